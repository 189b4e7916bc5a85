"""Show that a function depends on its arguments alone, or say what stands against it.

Whatever code names is looked up: a value that came with the function, code of the user's that is read by the same
rule, or an entry of the lists. Nothing else can be reached: an attribute of a value of unknown type is taken only
where it is pure on each type of the lists that has it, and what is called was taken from somewhere first. So purity is
closed under composition, and a function whose every name is proven is pure as a whole.

State that is kept from call to call is the other way out. A value that may be a mutable object which outlives the call
is followed (`Value.shared`), and must not be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import CodeType
from typing import Any

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf import calling, naming, rules
from spark_regions.identity.udf.allowed import Allowed
from spark_regions.identity.udf.instructions import Instructions
from spark_regions.identity.udf.machine import Machine
from spark_regions.identity.udf.values import (
    DATA,
    ITERATOR,
    MAKING,
    NOTHING,
    SHOWING,
    UNPROVEN,
    Checked,
    Function,
    Guarded,
    Library,
    Marker,
    Method,
    UserClass,
    UserModule,
    Value,
    is_dunder,
    joined,
    receiver,
)

# What these return is made a text, a number or a truth before anybody sees it.
_CONVERTED = SHOWING | frozenset(
    ("__hash__", "__len__", "__bool__", "__contains__", "__index__", "__int__", "__float__")
)
# No library has a plain attribute of such a name.
_METHODS_OF_TEXT = frozenset(name for name in dir(str) if not name.startswith("_")) - {"count", "format", "index"}
MAX_ROUNDS = 40
MAX_FUNCTIONS = 5_000


class Proof:
    """One function's proof.

    :param allowed: the lists
    :param modules: what a module's name stands for
    """

    def __init__(self, allowed: Allowed, modules: Any) -> None:
        self.allowed = allowed
        self.modules = modules
        self.functions: list[Function] = []
        self.classes: list[UserClass] = []
        self.used: set[str] = set()
        self.marks: set[str] = set()
        self.strings: set[str] = set()
        self.arrays = False
        self.shared_arguments = False
        self.leaks = False
        self.part_changes: dict[tuple[str, str], None] = {}
        self.opaque_kept = False
        self.opaque_arguments = False
        self.parts_shown: dict[tuple[str, str], None] = {}
        self.changed = False

    def settle(self) -> None:
        """
        :raises UdfRefused: something is not proven
        """
        for _ in range(MAX_ROUNDS):
            self.changed = False
            position = 0
            for function in self.functions:
                if function.escaped:
                    self.bind(function, [], {}, spread=True)
            while position < len(self.functions):
                function = self.functions[position]
                before = dict(function.locals)
                returned = joined((function.returned, Machine(self, function).run()))
                self.changed |= returned != function.returned or function.locals != before
                function.returned = returned
                position += 1
                if position > MAX_FUNCTIONS:
                    raise UdfRefused("UDF_UNREADABLE", f"more than {MAX_FUNCTIONS} functions")
            if not self.changed:
                break
        else:
            raise UdfRefused("UDF_UNREADABLE", "its values do not settle")
        if self.leaks and self.part_changes:
            detail, where = next(iter(self.part_changes))
            raise UdfRefused("UDF_MUTABLE_STATE", f"{detail}, which may be kept from call to call ({where})")
        if self.opaque_kept and self.parts_shown:
            detail, where = next(iter(self.parts_shown))
            raise UdfRefused(UNPROVEN, f"the text of {detail} may show where it lies in memory ({where})")
        if "unknown template" in self.marks and self.classes:
            raise UdfRefused(UNPROVEN, "a template that is not a constant")
        if {"never-called", "unknown call"} <= self.marks:
            raise UdfRefused(UNPROVEN, "a class that must not be called may be")
        rules.check_strings(self)

    def reach(self, function: Function) -> Function:
        """The function may be called: its code counts."""
        if function not in self.functions:
            self.functions.append(function)
            self.changed = True
            rules.collect_strings(self, function.code)
        return function

    def add_class(self, found: UserClass) -> UserClass:
        if found not in self.classes:
            self.classes.append(found)
            self.changed = True
            for name, value in list(found.attributes.items()):
                if isinstance(value.known, Function) and (name in self.used or is_dunder(name)):
                    self._reach_method(value.known, DATA)
        return found

    def keep(self, found: UserClass) -> None:
        """Some instance is there at the next call, and operators call its methods."""
        if not found.kept:
            found.kept = self.changed = True
            for name, value in list(found.attributes.items()):
                if (
                    isinstance(value.known, Function)
                    and is_dunder(name)
                    and name not in MAKING | self.allowed.changing_every
                ):
                    self._reach_method(value.known, Value(found.name, shared=True, inner=True))
        for base in found.bases:
            if isinstance(base.known, UserClass):
                self.keep(base.known)

    def _reach_method(self, function: Function, owner: Value) -> None:
        self.reach(function)
        self.bind(function, receiver(function, replace(owner, known=None, const=NOTHING)), {}, spread=True)

    def use(self, name: str, owner: Value = DATA) -> list[Function]:
        """Methods of the user's that an attribute of this name may be."""
        if name not in self.used:
            self.used.add(name)
            self.changed = True
        found = [each.attributes[name].known for each in self.classes if name in each.attributes]
        methods = [each for each in found if isinstance(each, Function)]
        for method in methods:
            self._reach_method(method, owner)
        return methods

    def store(self, machine: Instructions, owner: Function, name: str, value: Value) -> None:
        """A variable is set. It counts as any of what is ever stored in it."""
        known = owner.locals.get(name)
        if known is None:
            owner.locals[name] = value if value.known is not None else value.named(name)
            self.changed = True
            return
        both = joined((known, value))
        if both == known:
            return
        if both.known is None:
            self.escape(machine, known)
            self.escape(machine, value)
        owner.locals[name] = both
        self.changed = True

    def consumed(self, machine: Instructions, value: Value) -> None:
        if value.known is not None:
            self.escape(machine, value)

    def escape(self, machine: Instructions | None, value: Value) -> None:
        """Where the value goes is not followed from here on: it must be safe whatever is done with it."""
        known = value.known
        if isinstance(known, Function):
            known.by_spark = known.by_spark and machine is None
            if not known.escaped:
                known.escaped = True
                self.changed = True
            self.reach(known)
            self.bind(known, [], {}, spread=True)
        elif isinstance(known, UserClass):
            self.add_class(known)
        elif isinstance(known, Library) and known.path in ("builtins.set", "builtins.frozenset"):
            self.marks.add("sets")
        elif isinstance(known, UserModule) or (isinstance(known, Library) and known.path in self.allowed.modules):
            raise self.refused(machine, UNPROVEN, f"the module {value.text} as a value")
        elif isinstance(known, Library) and known.path in self.allowed.changes:
            raise self.refused(machine, UNPROVEN, f"{value.text} as a value: it changes its argument")
        elif isinstance(known, Checked) and known.rule.split()[0] in rules.MARKS:
            # What it notes is noted; it may be called by anybody.
            self.marks.add(known.rule.split()[0])
        elif isinstance(known, Checked):
            raise self.refused(machine, UNPROVEN, f"{value.text} as a value: how it is called cannot be seen")
        elif isinstance(known, Guarded):
            raise self.refused(machine, UNPROVEN, f"{value.text}, a {known.type}, where its type is lost")
        elif isinstance(known, Method) and (
            known.name in self.allowed.changes or known.name in self.allowed.changing_every
        ):
            if known.owner.shared or machine is None or machine.importing:
                raise self.refused(machine, "UDF_MUTABLE_STATE", f"{value.text}, which changes what is kept")
        elif known == ITERATOR and value.shared:
            raise self.refused(machine, "UDF_MUTABLE_STATE", f"{value.text}, which iterating over uses up")
        elif isinstance(known, Marker) and known.kind == "build class":
            raise self.refused(machine, UNPROVEN, "__build_class__ as a value")

    def put(self, machine: Instructions, owner: Value, values: list[Value], what: str, by_number: bool = False) -> None:
        """The values go into `owner`, or it is changed otherwise.

        :param by_number: by an operator and a number, which changes nothing in place but an array or an object
        """
        for value in values:
            self.consumed(machine, value)
        if machine.importing:
            if isinstance(owner.known, Library | UserModule):
                raise self.refused(machine, "UDF_MUTABLE_STATE", f"{what}, in another module")
            return
        harmless = by_number and not self.arrays and owner.taken
        if (owner.shared and not harmless) or isinstance(owner.known, Library | UserModule | UserClass | Function):
            raise self.refused(machine, "UDF_MUTABLE_STATE", f"{what}, and kept from call to call")
        if owner.taken and not harmless:
            self.part_changes[what, f"{machine.function.name}, line {machine.line}"] = None
        self.leak(values)

    def leak(self, values: Iterable[Value]) -> None:
        found = list(values)
        self.leaks = self.leaks or any(each.shared or each.inner for each in found)
        self.opaque_kept = self.opaque_kept or any(each.opaque or each.hidden for each in found)

    def is_method(self, value: Value) -> bool:
        """Whether it is a bound method, of which only a call is data."""
        if not isinstance(value.known, Method):
            return False
        name = value.known.name
        found = [each.attributes[name].known for each in self.classes if name in each.attributes]
        plain = [each for each in found if isinstance(each, Function) and each.kind != "property"]
        return bool(plain) or (not found and name in _METHODS_OF_TEXT)

    def hashed(self, machine: Instructions, values: list[Value]) -> None:
        rules.check_hashed(machine, values)

    def hooked(self, value: Value) -> Value:
        """What an operator gives where classes of the user's say what it does."""
        if value.known is not None or not self.classes:
            return value
        found = [
            each.known.returned
            for cls in self.classes
            for name, each in cls.attributes.items()
            if isinstance(each.known, Function) and is_dunder(name) and name not in MAKING | _CONVERTED
        ]
        return replace(
            value,
            shared=value.shared or any(each.shared for each in found),
            inner=value.inner or any(each.inner for each in found),
            taken=value.taken or any(each.shared or each.inner for each in found),
        )

    def shown(self, machine: Instructions, value: Value) -> None:
        """Its text is made."""
        if isinstance(value.known, Guarded):
            return
        if value.taken and value.known is None:
            self.parts_shown[value.text, f"{machine.function.name}, line {machine.line}"] = None
        if value.opaque or isinstance(value.known, Function) or value.known == ITERATOR or self.is_method(value):
            raise self.refused(machine, UNPROVEN, f"the text of {value.text} shows where it lies in memory")
        self.consumed(machine, value)

    def refused(self, machine: Instructions | None, code: str, detail: str) -> UdfRefused:
        return UdfRefused(code, detail) if machine is None else machine.refused(code, detail)

    # ---- Looked up in `naming` and `calling` ----

    def global_name(self, machine: Instructions, name: str) -> Value:
        return naming.global_name(self, machine, name)

    def library(self, path: str, text: str = "", owner: Value = DATA) -> Value:
        return naming.library(self, path, text, owner)

    def imported(self, machine: Instructions, name: str, level: int, whole: bool) -> Value:
        return naming.imported(self, machine, name, level, whole)

    def attribute(self, machine: Instructions, owner: Value, name: str) -> Value:
        return naming.attribute(self, machine, owner, name)

    def item(self, machine: Instructions, owner: Value) -> Value:
        return naming.item(self, machine, owner)

    def entered(self, machine: Instructions, owner: Value) -> Value:
        return naming.entered(self, machine, owner)

    def call(
        self, machine: Instructions, callee: Value, arguments: list[Value], keywords: Mapping[str, Value] | None
    ) -> Value:
        return calling.call(self, machine, callee, arguments, keywords)

    def changing_keywords(
        self, machine: Instructions, owner: Value | None, keywords: Mapping[str, Value] | None
    ) -> None:
        return calling.changing_keywords(self, machine, owner, keywords)

    def bind(
        self, function: Function, arguments: list[Value], keywords: Mapping[str, Value], spread: bool = False
    ) -> None:
        return calling.bind(self, function, arguments, keywords, spread)

    def made(self, machine: Instructions, code: CodeType, defaults: list[Value]) -> Value:
        return calling.made(self, machine, code, defaults)

    def add_defaults(self, function: Value, value: Value) -> None:
        return calling.add_defaults(self, function, value)
