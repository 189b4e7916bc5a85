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
from spark_regions.identity.udf import rules
from spark_regions.identity.udf.allowed import Allowed
from spark_regions.identity.udf.machine import Machine
from spark_regions.identity.udf.values import (
    DATA,
    NOTHING,
    Checked,
    Function,
    Guarded,
    Instance,
    Library,
    Marker,
    Method,
    UserClass,
    UserModule,
    Value,
    is_mutable,
    joined,
    mixed,
)

MAX_ROUNDS = 40
MAX_FUNCTIONS = 5_000
_UNPROVEN = "UDF_UNPROVEN"
ITERATOR = Marker("iterator")
_CLASS_PARTS = frozenset(("__class__", "__mro__", "__bases__"))
_MAKING = frozenset(("__init__", "__new__", "__post_init__"))
_SHOWING = frozenset(("__repr__", "__str__", "__format__"))


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
        self.parts_shown: dict[tuple[str, str], None] = {}
        self.changed = False

    # ---- Until nothing new is found ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """
        :raises UdfRefused: something is not proven
        """
        for _ in range(MAX_ROUNDS):
            self.changed = False
            position = 0
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
            raise UdfRefused(_UNPROVEN, f"the text of {detail} may show where it lies in memory ({where})")
        if {"never-called", "unknown call"} <= self.marks:
            raise UdfRefused(_UNPROVEN, "a class that must not be called may be")
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
                if isinstance(value.known, Function) and (name in self.used or _is_dunder(name)):
                    self._reach_method(value.known, DATA)
        return found

    def keep(self, found: UserClass) -> None:
        """Some instance is there at the next call, and operators call its methods."""
        if not found.kept:
            found.kept = self.changed = True
            for name, value in list(found.attributes.items()):
                if (
                    isinstance(value.known, Function)
                    and _is_dunder(name)
                    and name not in _MAKING | self.allowed.changing_every
                ):
                    self._reach_method(value.known, Value(found.name, shared=True, inner=True))
        for base in found.bases:
            if isinstance(base.known, UserClass):
                self.keep(base.known)

    def _reach_method(self, function: Function, owner: Value) -> None:
        self.reach(function)
        self._bind(function, _receiver(function, replace(owner, known=None, const=NOTHING)), {}, spread=True)

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

    # ---- Values that flow --------------------------------------------------------------------------------------------

    def store(self, machine: Machine, owner: Function, name: str, value: Value) -> None:
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

    def consumed(self, machine: Machine, value: Value) -> None:
        if value.known is not None:
            self.escape(machine, value)

    def escape(self, machine: Machine | None, value: Value) -> None:
        """Where the value goes is not followed from here on: it must be safe whatever is done with it."""
        known = value.known
        if isinstance(known, Function):
            if not known.escaped:
                known.escaped = True
                self.changed = True
            self.reach(known)
            self._bind(known, [], {}, spread=True)
        elif isinstance(known, UserClass):
            self.add_class(known)
        elif isinstance(known, Library) and known.path in ("builtins.set", "builtins.frozenset"):
            self.marks.add("sets")
        elif isinstance(known, UserModule) or (isinstance(known, Library) and known.path in self.allowed.modules):
            raise self._refused(machine, _UNPROVEN, f"the module {value.text} as a value")
        elif isinstance(known, Library) and known.path in self.allowed.changes:
            raise self._refused(machine, _UNPROVEN, f"{value.text} as a value: it changes its argument")
        elif isinstance(known, Checked) and known.rule.split()[0] in rules.MARKS:
            # What it notes is noted; it may be called by anybody.
            self.marks.add(known.rule.split()[0])
        elif isinstance(known, Checked):
            raise self._refused(machine, _UNPROVEN, f"{value.text} as a value: how it is called cannot be seen")
        elif isinstance(known, Guarded):
            raise self._refused(machine, _UNPROVEN, f"{value.text}, a {known.type}, where its type is lost")
        elif known == ITERATOR and value.shared:
            raise self._refused(machine, "UDF_MUTABLE_STATE", f"{value.text}, which iterating over uses up")
        elif isinstance(known, Marker) and known.kind == "build class":
            raise self._refused(machine, _UNPROVEN, "__build_class__ as a value")

    def put(self, machine: Machine, owner: Value, values: list[Value], what: str, by_number: bool = False) -> None:
        """The values go into `owner`, or it is changed otherwise.

        :param by_number: by an operator and a number or text, which changes nothing in place but an array
        """
        for value in values:
            self.consumed(machine, value)
        if machine.importing:
            return
        if owner.shared or isinstance(owner.known, Library | UserModule | UserClass | Function):
            raise self._refused(machine, "UDF_MUTABLE_STATE", f"{what}, and kept from call to call")
        if owner.taken and not (by_number and not self.arrays):
            self.part_changes[what, f"{machine.function.name}, line {machine.line}"] = None
        self._leak(values)

    def _leak(self, values: Iterable[Value]) -> None:
        found = list(values)
        self.leaks = self.leaks or any(each.shared or each.inner for each in found)
        self.opaque_kept = self.opaque_kept or any(each.opaque or each.hidden for each in found)

    def shown(self, machine: Machine, value: Value) -> None:
        """Its text is made."""
        if isinstance(value.known, Guarded):
            return
        if value.taken and value.known is None:
            self.parts_shown[value.text, f"{machine.function.name}, line {machine.line}"] = None
        if value.opaque or isinstance(value.known, Function) or value.known == ITERATOR:
            raise self._refused(machine, _UNPROVEN, f"the text of {value.text} shows where it lies in memory")
        self.consumed(machine, value)

    # ---- Names -------------------------------------------------------------------------------------------------------

    def global_name(self, machine: Machine, name: str) -> Value:
        found: Value | None = machine.function.names.lookup(self, name)
        if found is not None:
            if found.known == ITERATOR:
                raise self._refused(machine, "UDF_MUTABLE_STATE", f"{name}, which iterating over uses up")
            return found.named(name) if found.known is None else found
        path = f"builtins.{name}"
        if not self.allowed.has(path):
            raise self._refused(machine, _UNPROVEN, f"{name}")
        return self.library(path, name)

    def library(self, path: str, text: str = "", owner: Value = DATA) -> Value:
        """What the lists say of a dotted name that they have."""
        rule = self.allowed.rule(path)
        if path in self.allowed.constants:
            return DATA.named(text or path)
        if rule:
            return Value(text or path, known=Checked(f"{rule} {path}", owner))
        return Value(text or path, known=Library(path), literal=True)

    def imported(self, machine: Machine, name: str, level: int, whole: bool) -> Value:
        if level:
            name = machine.function.names.absolute(name, level)
        found: Value | None = None
        for each in (name, name.split(".")[0] if whole else name):
            found = self.modules.resolve(self, each)
            if found is None:
                self.modules.check(each)
                raise self._refused(machine, _UNPROVEN, f"the module {each}")
        return found or DATA

    # ---- Attributes --------------------------------------------------------------------------------------------------

    def attribute(self, machine: Machine, owner: Value, name: str) -> Value:
        text = f"{owner.text}.{name}"
        known = owner.known
        if isinstance(known, Library):
            return self._of_library(machine, owner, known, name, text)
        if isinstance(known, UserModule):
            found: Value | None = self.modules.attribute(self, known.name, name)
            if found is None:
                raise self._refused(machine, _UNPROVEN, text)
            if found.known == ITERATOR:
                raise self._refused(machine, "UDF_MUTABLE_STATE", f"{text}, which iterating over uses up")
            return found if found.known is not None else found.named(text)
        if isinstance(known, UserClass) and name in known.attributes:
            value = known.attributes[name]
            self.add_class(known)
            if isinstance(value.known, Function) and value.known.kind == "class":
                return Value(text, known=Method(name, Value("cls", shared=True, inner=True)))
            return value.named(text) if value.known is None else value
        if isinstance(known, Instance) and self.allowed.rule(f"{known.type}.{name}") == "":
            return owner.part(text)
        if isinstance(known, Guarded):
            if name not in self.allowed.guarded.get(known.type, ()):
                raise self._refused(machine, _UNPROVEN, text)
            return Value(text, known=Guarded(known.type) if name in rules.STAY_GUARDED else None)
        if isinstance(known, Checked):
            return self._of_library(machine, owner, Library(known.rule.partition(" ")[2]), name, text)
        return self._of_unknown(machine, owner, name, text)

    def _of_library(self, machine: Machine, owner: Value, known: Library, name: str, text: str) -> Value:
        path = f"{known.path}.{name}"
        if self.allowed.has(path):
            return self.library(path, text)
        trusted: Value | None = self.modules.trusted(path)
        if trusted is not None:
            return trusted
        if name in self.allowed.every and known.path not in self.allowed.modules:
            return replace(DATA.named(text), shared=name == "__dict__")
        raise self._refused(machine, _UNPROVEN, text)

    def _of_unknown(self, machine: Machine, owner: Value, name: str, text: str) -> Value:
        methods = self.use(name, owner)
        plain = [
            is_mutable(each.attributes[name])
            for each in self.classes
            if name in each.attributes and not isinstance(each.attributes[name].known, Function | Instance)
        ]
        if name in _SHOWING:
            self.shown(machine, owner)
        elif name in self.allowed.changing_every or (name in self.allowed.changes and name not in self.allowed.rules):
            self.put(machine, owner, [], f"{text}(…) changes it")
        elif name.startswith("__") and name.endswith("__"):
            if name not in self.allowed.every and not methods and not plain:
                raise self._refused(machine, _UNPROVEN, text)
        elif name in self.allowed.rules and name not in self.allowed.unproven:
            if name in self.allowed.changes:
                self.put(machine, owner, [], f"{text}(…) changes it")
            return Value(text, known=Checked(f"{self.allowed.rules[name]} .{name}", owner))
        elif not self.allowed.is_pure_on_all(name) and not (
            self.allowed.may_be_a_field(name) or (name not in self.allowed.unproven and self._is_private(name))
        ):
            raise self._refused(machine, _UNPROVEN, text)
        shared = owner.inner or any(each.shared for each in plain)
        found = [each.returned for each in methods]
        return Value(
            text,
            known=Method(name, replace(owner, known=None)),
            shared=shared or name in _CLASS_PARTS or (name == "__dict__" and owner.shared),
            inner=owner.inner or any(each.inner or each.shared for each in [*plain, *found]),
            taken=True,
            opaque=owner.hidden or any(each.opaque for each in found),
            hidden=owner.hidden or any(each.hidden for each in found),
        )

    def _is_private(self, name: str) -> bool:
        """A name with an underscore that the user's own classes have, or that a named tuple has."""
        return name in rules.NAMED_TUPLE or bool(self.classes)

    def item(self, machine: Machine, owner: Value) -> Value:
        if isinstance(owner.known, Library | UserClass):
            return DATA.named(f"{owner.text}[…]")
        self.consumed(machine, owner)
        return owner.part()

    def entered(self, machine: Machine, owner: Value) -> Value:
        """What `with owner as …` gives."""
        self.consumed(machine, owner)
        return replace(owner, known=None, const=NOTHING)

    # ---- Calls -------------------------------------------------------------------------------------------------------

    def call(
        self, machine: Machine, callee: Value, arguments: list[Value], keywords: Mapping[str, Value] | None
    ) -> Value:
        """What a call returns.

        :param keywords: None where the arguments are not told apart: `f(*args, **kwargs)`
        """
        given = [*arguments, *(keywords or {}).values()]
        known = callee.known
        if isinstance(known, Checked):
            return rules.checked(self, machine, callee, known, arguments, keywords)
        if isinstance(known, Marker):
            if known.kind == "build class":
                return self._class(machine, arguments, keywords)
            raise self._refused(machine, _UNPROVEN, callee.text)
        if isinstance(known, Library):
            return self._call_library(machine, known, callee, arguments, keywords)
        for value in given:
            self.consumed(machine, value)
        if isinstance(known, Function):
            self.reach(known)
            self._bind(known, arguments, keywords or {}, spread=keywords is None)
            if machine.importing and not known.at_import:
                known.at_import = True
                self.changed = True
            return self._returned(machine, known)
        if isinstance(known, UserClass):
            return self._instance(machine, known, arguments, keywords)
        if isinstance(known, Method):
            return self._call_method(machine, callee, known, arguments, keywords)
        if any(each.shared for each in given):
            self._share_arguments()
        self.marks.add("unknown call")
        for method in self.use("__call__", callee):
            self._bind(method, [*_receiver(method, callee), *arguments], keywords or {}, spread=keywords is None)
        escaped = [each.returned for each in self.functions if each.escaped]
        made = mixed([*given, *escaped, callee.part()], f"{callee.text}(…)")
        return replace(made, shared=made.inner or machine.importing, taken=True, literal=False)

    def _call_library(
        self, machine: Machine, known: Library, callee: Value, arguments: list[Value], keywords: Any
    ) -> Value:
        given = [*arguments, *(keywords or {}).values()]
        special = rules.CALLS.get(known.path)
        if special is not None:
            found: Value | None = special(self, machine, callee, arguments, keywords)
            if found is not None:
                return found
        if known.path in self.allowed.changes and given:
            self.put(machine, given[0], [], f"{callee.text}({given[0].text}) changes it")
        self.changing_keywords(machine, None, keywords)
        if any(isinstance(each.known, Library) and each.known.path in rules.TEXTS for each in given):
            for value in given:
                self.shown(machine, value.part() if value.known == ITERATOR else value)
        functions = any(isinstance(each.known, Function | Method) for each in given)
        if functions and any(each.shared for each in given):
            self._share_arguments()
        for value in given:
            self.consumed(machine, value)
        made = mixed(given, f"{callee.text}(…)")
        if functions:
            escaped = mixed([each.returned for each in self.functions if each.escaped])
            made = replace(made, inner=made.inner or escaped.inner, opaque=made.opaque or escaped.opaque)
        if known.path in self.allowed.guarded:
            return Value(made.text, known=Guarded(known.path))
        if known.path in self.allowed.iterators:
            return replace(made, known=ITERATOR, shared=False, opaque=False)
        if known.path in self.allowed.passes:
            return replace(made, shared=made.inner, taken=True, literal=False)
        lasting = machine.importing and known.path not in self.allowed.immutable
        inner = made.inner or (lasting and known.path.startswith(rules.ARRAYS))
        type_ = self.allowed.returns.get(known.path)
        return replace(made, known=Instance(type_) if type_ else None, shared=lasting, inner=inner, literal=False)

    def _call_method(
        self, machine: Machine, callee: Value, known: Method, arguments: list[Value], keywords: Any
    ) -> Value:
        given = [*arguments, *(keywords or {}).values()]
        self._leak(given if known.name in self.allowed.changes else ())
        self.changing_keywords(machine, known.owner, keywords)
        if any(each.shared for each in given):
            self._share_arguments()
        methods = self.use(known.name, known.owner)
        for method in methods:
            self._bind(method, [*_receiver(method, known.owner), *arguments], keywords or {}, spread=keywords is None)
        found = [self._returned(machine, each) for each in methods]
        if known.name in _SHOWING or known.name == "format":
            for each in given:
                self.shown(machine, each)
        made = mixed([*given, *found, known.owner.part(), callee.part()], f"{callee.text}(…)")
        return replace(
            made,
            shared=known.owner.inner or any(each.shared for each in found) or machine.importing,
            taken=True,
            literal=False,
        )

    def changing_keywords(self, machine: Machine, owner: Value | None, keywords: Mapping[str, Value] | None) -> None:
        """`out=` and `inplace=` make a pure function one that changes an argument."""
        for name, value in (keywords or {}).items():
            if name == "out" and value.const is not None:
                for each in (value, value.part()):
                    self.put(machine, each, [], f"out={value.text} changes it")
            if name == "inplace" and value.const is not False and owner is not None:
                self.put(machine, owner, [], f"inplace changes {owner.text}")

    def _share_arguments(self) -> None:
        if not self.shared_arguments:
            self.shared_arguments = self.changed = True

    def _returned(self, machine: Machine, function: Function) -> Value:
        found = function.returned
        if function.is_generator:
            held = mixed([found])
            return replace(held, text=f"{function.name}(…)", known=ITERATOR, opaque=False, literal=False)
        if machine.importing:
            found = is_mutable(found)
        return found.named(f"{function.name}(…)")

    def _instance(self, machine: Machine, found: UserClass, arguments: list[Value], keywords: Any) -> Value:
        self.add_class(found)
        if machine.importing or machine.function.at_import:
            self.keep(found)
        given = [*arguments, *(keywords or {}).values()]
        made = mixed(given, f"{found.name}(…)")
        self._leak([value for value in given if value.shared])
        for name in _MAKING:
            value = found.attributes.get(name)
            if value is not None and isinstance(value.known, Function):
                self.reach(value.known)
                more = [] if name == "__post_init__" else arguments
                self._bind(value.known, [replace(made, opaque=False), *more], keywords or {}, spread=keywords is None)
        return replace(made, shared=machine.importing, opaque=found.shows_address, taken=False, literal=False)

    def _bind(
        self, function: Function, arguments: list[Value], keywords: Mapping[str, Value], spread: bool = False
    ) -> None:
        """The function is called with these arguments; `spread`: they may be any of its parameters'."""
        code = function.code
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        plain = code.co_varnames[: code.co_argcount]
        count = len(named)
        rest = code.co_varnames[count : count + bool(code.co_flags & 0x04)]
        options = code.co_varnames[count + len(rest) : count + len(rest) + bool(code.co_flags & 0x08)]
        lost = Value(shared=self.shared_arguments, inner=self.shared_arguments) if function.escaped else DATA
        values: dict[str, list[Value]] = {name: [lost] for name in named} if function.escaped or spread else {}
        if spread:
            first = plain[:1] if arguments else ()
            for name in first:
                values[name].append(arguments[0])
            for name in named[len(first) :]:
                values[name].extend(arguments[1:])
        else:
            for name, value in zip(plain, arguments, strict=False):
                values.setdefault(name, []).append(value)
            for name, value in keywords.items():
                if name in named:
                    values.setdefault(name, []).append(value)
        for name in named:
            has_default = function.defaulted is None or name in function.defaulted
            if name not in values or (has_default and function.default != DATA):
                values.setdefault(name, []).append((function.default if has_default else DATA).named(name))
        more = [*arguments[len(plain) :], *(value for name, value in keywords.items() if name not in named), lost]
        for name in (*rest, *options):
            values[name] = [mixed(more, name)]
        for name, found in values.items():
            known = joined([replace(each, literal=False) for each in found])
            if known.known is None:
                for each in found:
                    self.escape(None, each)
            before = function.locals.get(name)
            after = known if before is None else joined((before, known))
            if after != before:
                if before is not None and after.known is None:
                    self.escape(None, before)
                function.locals[name] = after.named(name) if after.known is None else after
                self.changed = True

    # ---- Functions and classes that code makes -----------------------------------------------------------------------

    def made(self, machine: Machine, code: CodeType, defaults: list[Value]) -> Value:
        """A function, from its code."""
        parent = machine.function
        found = parent.made.get(machine.offset)
        if found is None:
            found = Function(code, parent.names, dict(parent.cells), parent, at_import=False)
            parent.made[machine.offset] = found
        for value in defaults:
            self._default(machine, found, value)
        return Value(found.name, known=found, literal=True)

    def _default(self, machine: Machine, function: Function, value: Value) -> None:
        part = value.part() if value.const is NOTHING else DATA
        if machine.importing or machine.namespace is not None:
            part = replace(part, shared=part.shared or value.const is NOTHING)
        function.default = joined((function.default, part))

    def add_defaults(self, function: Value, value: Value) -> None:
        if isinstance(function.known, Function):
            part = value.part() if value.const is NOTHING else DATA
            function.known.default = joined((function.known.default, part))

    def _class(self, machine: Machine, arguments: list[Value], keywords: Any) -> Value:
        body, bases = arguments[0], arguments[2:]
        if not isinstance(body.known, Function) or keywords is None or set(keywords) - {"metaclass"}:
            raise self._refused(machine, _UNPROVEN, "a class that is made in an unusual way")
        function = machine.function
        key = -1 - machine.offset
        found = function.made.get(key)
        namespace: dict[str, Value] = {} if found is None else found.attributes
        inner = Machine(self, body.known, namespace)
        inner.importing = machine.importing
        inner.run()
        if found is None:
            found = function.made[key] = UserClass(str(arguments[1].const), bases, namespace)
            found.shows_address = shows_address(found)
        for base in bases:
            self.consumed(machine, base)
        self.add_class(found)
        return Value(found.name, known=found, literal=True)

    def _refused(self, machine: Machine | None, code: str, detail: str) -> UdfRefused:
        return UdfRefused(code, detail) if machine is None else machine.refused(code, detail)


def shows_address(found: UserClass) -> bool:
    """Whether the text of an instance is that of `object`: nothing of its own, nothing from a base class."""
    if "__repr__" in found.attributes or "__str__" in found.attributes:
        return False
    for base in found.bases:
        if isinstance(base.known, UserClass) and not base.known.shows_address:
            return False
        if isinstance(base.known, Library) and base.known.path not in rules.WITHOUT_TEXT:
            return False
    return True


def _receiver(method: Function, owner: Value) -> list[Value]:
    """What a method gets as its first argument. A class is there at the next call, too."""
    if method.kind == "static":
        return []
    return [Value("cls", shared=True, inner=True)] if method.kind == "class" else [owner]


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
