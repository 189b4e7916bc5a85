"""What the symbols of a pickle are to a proof: values, functions, classes."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from types import CodeType
from typing import Any

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.canonical import CODE_ARGUMENTS, cloudpickle_name, is_code_type, refuse_side_effect
from spark_regions.identity.udf.proof import Proof
from spark_regions.identity.udf.rules import ARRAYS
from spark_regions.identity.udf.symbols import Call, Global, Pairs, Unordered
from spark_regions.identity.udf.values import (
    DATA,
    Function,
    Instance,
    Library,
    UserClass,
    Value,
    constant,
    is_enum,
    is_mutable,
    mixed,
    shows_address,
)
from spark_regions.trust import PURE

_PLAIN = (str, bytes, int, float, bool, type(None))
_WRAPPED = {"staticmethod": "static", "classmethod": "class", "property": "property"}


class Pickled:
    """The symbols of one pickle. Each is read once, so that shared objects stay one.

    :param proof: it grows by what is read
    """

    def __init__(self, proof: Proof) -> None:
        self.proof = proof
        self.done: dict[int, Value] = {}
        self.codes: dict[int, CodeType] = {}
        self.keep: list[Any] = []

    def value(self, symbol: Any, text: str = "") -> Value:
        """
        :raises UdfRefused: it is not known to be a value, a pure function, or a class of such
        """
        if isinstance(symbol, str):
            self.proof.strings.add(symbol)
        if isinstance(symbol, _PLAIN):
            return constant(symbol)
        key = id(symbol)
        if key not in self.done:
            self.done[key] = DATA.named(text or "a value of itself")  # what it refers to inside of itself
            self.keep.append(symbol)
            self.done[key] = self._read(symbol, text)
        return self.done[key]

    def _read(self, symbol: Any, text: str) -> Value:
        if isinstance(symbol, bytearray):
            return Value(text or "a bytearray", shared=True)
        if isinstance(symbol, tuple):
            return self._holding(symbol, text or "a tuple")
        if isinstance(symbol, list):
            return is_mutable(self._holding(symbol, text or "a list"))
        if isinstance(symbol, Unordered):
            self.proof.marks.add("sets")
            found = self._holding(symbol.items, text or "a set")
            return found if symbol.frozen else is_mutable(found)
        if isinstance(symbol, Pairs):
            return is_mutable(self._holding([each for pair in symbol.items for each in pair], text or "a dict"))
        if isinstance(symbol, Global):
            return self._global(symbol)
        if isinstance(symbol, Call):
            return self._call(symbol, text)
        raise UdfRefused("UDF_UNREADABLE", f"a {type(symbol).__name__}")

    def _holding(self, symbols: Any, text: str) -> Value:
        found = [self.value(each, f"{text}[…]") for each in symbols]
        for each in found:
            self.proof.escape(None, each)
        return mixed(found, text)

    def _global(self, symbol: Global) -> Value:
        name = symbol.name
        module = "builtins" if symbol.module == "__builtin__" else symbol.module
        found = self.proof.modules.resolve(self.proof, module)
        for part in name.split("."):
            if found is None:
                break
            found = self.proof.modules.member(self.proof, found, part)
        if found is None and f"{module}.{name}" not in self.proof.allowed.pickles:
            self.proof.modules.check(module)
            raise UdfRefused("UDF_UNPROVEN", f"{module}.{name}")
        return found or DATA.named(name)

    def _call(self, call: Call, text: str) -> Value:
        name = cloudpickle_name(call.function)
        refuse_side_effect(call.function)
        if name == "_make_function":
            return self._function(call)
        if name == "subimport":
            return self._global_module(str(call.arguments[0]))
        if name in ("_make_skeleton_class", "_make_skeleton_enum"):
            return self._class(call, name)
        if name in ("_builtin_type", "_make_empty_cell", "_make_typevar", "_get_dataclass_field_type_sentinel"):
            return DATA.named(name)
        if name == "_make_cell":
            return self._holding(call.arguments, "a cell")
        if name:
            raise UdfRefused("UDF_UNPROVEN", f"cloudpickle's {name}")
        if is_code_type(call.function):
            raise UdfRefused("UDF_UNPROVEN", "code as a value")
        return self._made(call, text)

    def _global_module(self, module: str) -> Value:
        found = self.proof.modules.resolve(self.proof, module)
        if found is None:
            self.proof.modules.check(module)
            raise UdfRefused("UDF_UNPROVEN", f"the module {module}")
        return found  # type: ignore[no-any-return]

    def _made(self, call: Call, text: str) -> Value:
        """An object that a call makes when the pickle is read."""
        function = call.function
        path = f"{function.module}.{function.name}" if isinstance(function, Global) else ""
        path = path.replace("__builtin__.", "builtins.")
        if path in ("builtins.staticmethod", "builtins.classmethod", "builtins.property"):
            parts = call.arguments if isinstance(call.arguments, tuple) else ()
            found = [self.value(each) for each in parts if each is not None]
            first = found[0].known if found else None
            if isinstance(first, Function):
                first.kind = _WRAPPED[path.rpartition(".")[2]]
                for each in found[1:]:
                    self.proof.escape(None, each)
                return found[0]
        if path == "builtins.getattr":
            return self._attribute(call)
        made_by = None
        if path not in self.proof.allowed.pickles:
            maker = self.value(function)
            made_by = maker.known
            known = isinstance(made_by, UserClass)
            if isinstance(made_by, Library):
                known = made_by.path in self.proof.allowed.immutable
            if not known and maker != DATA.named(maker.text):  # that is one that the user vouches for
                raise UdfRefused("UDF_UNPROVEN", f"an object made by {path or maker.text}")
        arguments = call.arguments if isinstance(call.arguments, tuple) else (call.arguments,)
        held = self._holding(
            [*arguments, call.keywords, *call.states, *call.items], text or f"a {path.rpartition('.')[2]}"
        )
        if path.rpartition(".")[2] in ("methodcaller", "attrgetter"):
            self._names(call)
        immutable = path in self.proof.allowed.immutable and not call.items
        if path.startswith(ARRAYS) and not immutable:
            self.proof.arrays = True
            held = replace(held, inner=True)
        if path == "functools.partial" and held.inner:
            self.proof.shared_arguments = True
        if path in self.proof.allowed.returns:
            held = replace(held, known=Instance(self.proof.allowed.returns[path]))
        if isinstance(made_by, UserClass):
            self.proof.add_class(made_by)
            self.proof.arrays = True
            self.proof.keep(made_by)
            held = replace(held, address=(held.address & ~1) | made_by.shows_address)
        return held if immutable else is_mutable(held)

    def _names(self, call: Call) -> None:
        names = call.arguments if call.function.name == "attrgetter" else call.arguments[:1]
        for name in (part for each in names for part in str(each).split(".")):
            self._taken(name)

    def _taken(self, name: str) -> None:
        allowed = self.proof.allowed
        if name in allowed.every:
            return
        if (
            name in allowed.rules
            or name in allowed.changes
            or not (allowed.is_pure_on_all(name) or allowed.may_be_a_field(name))
        ):
            raise UdfRefused("UDF_UNPROVEN", f"the attribute {name} by its name")
        self.proof.use(name)

    def _attribute(self, call: Call) -> Value:
        owner, name = call.arguments[:2]
        if not isinstance(name, str):
            raise UdfRefused("UDF_UNPROVEN", "an attribute with a computed name")
        found = self.value(owner)
        if f"{found.text}.{name}" in self.proof.allowed.pickles:
            self.proof.escape(None, found)
            return DATA.named(name)
        if found.known is not None:
            member = self.proof.modules.member(self.proof, found, name)
            if member is not None:
                return member  # type: ignore[no-any-return]
        self._taken(name)
        return found.part(f"{found.text}.{name}")

    # ---- Functions and classes ---------------------------------------------------------------------------------------

    def _function(self, call: Call) -> Value:
        code = self.code(call.arguments[0])
        slots = next((state[1] for state in call.states if isinstance(state, tuple) and len(state) == 2), None)
        own = next((state[0] for state in call.states if isinstance(state, tuple) and len(state) == 2), None)
        if isinstance(own, Pairs) and own.get(PURE) is True:
            return DATA.named(code.co_name)
        if _same_code(code, _RECURSIVE_REPR):
            # It asks for the address of what it shows only to end where that refers to itself.
            cells = dict(zip(code.co_freevars, slots.get("__closure__") or (), strict=False)) if slots else {}
            return self.value(_content(cells["user_function"]))
        names = slots.get("__globals__") if isinstance(slots, Pairs) else None
        function = Function(code, PickledNames(self, names))
        made = Value(code.co_name, known=function, literal=True)
        self.done[id(call)] = made
        if isinstance(own, Pairs):
            self._holding([value for _, value in own.items], code.co_name)
        if isinstance(slots, Pairs):
            closure = slots.get("__closure__")
            for name, cell in zip(code.co_freevars, closure or (), strict=False):
                function.cells[name] = self.value(_content(cell), name)
            defaults = [*(slots.get("__defaults__") or ())]
            plain = code.co_varnames[: code.co_argcount]
            function.defaulted = frozenset((*plain[len(plain) - len(defaults) :], *code.co_varnames[len(plain) :]))
            named = slots.get("__kwdefaults__")
            if isinstance(named, Pairs):
                defaults += [value for _, value in named.items]
            found = self._holding(defaults, "a default")
            function.default = Value("a default", shared=found.inner, inner=found.inner, address=found.address >> 1)
        return made

    def code(self, symbol: Any) -> CodeType:
        """The code object that a symbol stands for. It is made, and never run."""
        if not isinstance(symbol, Call) or not is_code_type(symbol.function):
            raise UdfRefused("UDF_UNREADABLE", "a function without code")
        if id(symbol) not in self.codes:
            arguments = symbol.arguments
            if not isinstance(arguments, tuple) or len(arguments) != CODE_ARGUMENTS:
                raise UdfRefused("UDF_UNREADABLE", "bytecode of a Python before 3.11")
            parts = list(arguments)
            parts[7] = tuple(self._constant(each) for each in arguments[7])
            try:
                self.codes[id(symbol)] = CodeType(*parts)
            except (TypeError, ValueError) as error:
                raise UdfRefused("UDF_UNREADABLE", f"bytecode: {error}") from error
            self.keep.append(symbol)
        return self.codes[id(symbol)]

    def _constant(self, symbol: Any) -> Any:
        if isinstance(symbol, _PLAIN):
            return symbol
        if isinstance(symbol, tuple):
            return tuple(map(self._constant, symbol))
        if isinstance(symbol, Unordered):
            return frozenset(map(self._constant, symbol.items))
        if isinstance(symbol, Call) and is_code_type(symbol.function):
            return self.code(symbol)
        if isinstance(symbol, Call) and isinstance(symbol.function, Global) and symbol.function.name == "complex":
            return complex(*symbol.arguments)
        if isinstance(symbol, Global) and symbol.name == "Ellipsis":
            return ...
        raise UdfRefused("UDF_UNREADABLE", f"a constant that is a {type(symbol).__name__}")

    def _class(self, call: Call, maker: str) -> Value:
        arguments = call.arguments
        name, bases = (arguments[1], arguments[2]) if maker == "_make_skeleton_class" else (arguments[1], arguments[0])
        found = UserClass(str(name), [], {})
        made = Value(str(name), known=found, literal=True)
        self.done[id(call)] = made
        found.bases.extend(self.value(base) for base in bases)
        if maker == "_make_skeleton_class" and isinstance(self.value(arguments[0]).known, UserClass):
            raise UdfRefused("UDF_UNPROVEN", f"{name} has a metaclass of its own")
        if maker == "_make_skeleton_enum":
            self._holding([arguments[3]], str(name))
            members = arguments[3].items if isinstance(arguments[3], Pairs) else ()
            found.attributes.update((str(key), self.value(value, str(key))) for key, value in members)
        for state in call.states:
            pairs = state[0] if isinstance(state, tuple) and state else state
            if not isinstance(pairs, Pairs):
                continue
            if pairs.get(PURE) is True:
                return DATA.named(str(name))
            for attribute, value in pairs.items:
                if str(attribute) not in _CLASS_NOISE:
                    found.attributes[str(attribute)] = self.value(value, f"{name}.{attribute}")
        found.shows_address = shows_address(found)
        found.is_enum = is_enum(found)
        self.proof.add_class(found)
        return made


_CLASS_NOISE = frozenset(
    ("__doc__", "__module__", "__dict__", "__weakref__", "_abc_impl", "__annotations__", "__parameters__")
)


@dataclasses.dataclass
class _Shown:
    """Has the wrapper around `__repr__` that dataclasses make."""


_RECURSIVE_REPR: CodeType = _Shown.__repr__.__code__


def _same_code(one: CodeType, other: CodeType) -> bool:
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    )


def _content(cell: Any) -> Any:
    """What is in the cell of a closure."""
    if isinstance(cell, Call) and cell.states:
        return cell.states[-1]
    return cell.arguments[0] if isinstance(cell, Call) and cell.arguments else None


class PickledNames:
    """Globals of a function that came in a pickle."""

    def __init__(self, pickled: Pickled, pairs: Any) -> None:
        self.pickled = pickled
        self.symbols = {str(name): value for name, value in pairs.items} if isinstance(pairs, Pairs) else {}

    def lookup(self, proof: Proof, name: str) -> Value | None:
        return self.pickled.value(self.symbols[name], name) if name in self.symbols else None

    def absolute(self, name: str, level: int) -> str:
        raise UdfRefused("UDF_UNPROVEN", f"a relative import of {name or '.'}")
