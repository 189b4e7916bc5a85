"""One digest for a function, whatever order, interning and file names its pickle has."""

from __future__ import annotations

import hashlib
import opcode
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.symbols import Call, Global, Pairs, Symbols, Unordered

MAX_STEPS = 400_000
MAX_DEPTH = 900

CLOUDPICKLE = ("pyspark.cloudpickle.cloudpickle", "pyspark.cloudpickle", "cloudpickle.cloudpickle", "cloudpickle")
_SIDE_EFFECTS = {
    ("pyspark.accumulators", "_deserialize_accumulator"): "accumulator",
    ("pyspark.core.broadcast", "_from_id"): "broadcast variable",
    ("pyspark.broadcast", "_from_id"): "broadcast variable",
}
# Position of what differs between two runs of one script: random ids of classes.
_TRACKER = {"_make_skeleton_class": 4, "_make_skeleton_enum": 5, "_make_typevar": 5}
_FUNCTION_STATE = (
    "__name__",
    "__annotations__",
    "__kwdefaults__",
    "__defaults__",
    "__closure__",
    "__globals__",
)
_CLASS_NOISE = frozenset(("__firstlineno__", "__qualname__", "__doc__"))
# types.CodeType's arguments since 3.11, without file name, names of the function, line number and line table.
CODE_ARGUMENTS = 18
_CODE_KEPT = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17)
_IMPORT_NAME = opcode.opmap["IMPORT_NAME"]
_EXTENDED_ARG = opcode.EXTENDED_ARG

ModuleDigest = Callable[[str], str]


def canonical_digest(symbols: Symbols, module_digest: ModuleDigest, surroundings: Sequence[str] = ()) -> str:
    """32 hex characters for what the function computes.

    :param module_digest: identity of a module that is pickled by reference
    :param surroundings: what else the function depends on, such as the time zone of the machine
    :raises UdfRefused: no identity
    """
    writer = _Writer(module_digest)
    parts = [writer.digest(symbols.root), *(writer.digest(effect) for effect in symbols.effects)]
    parts += [_hash(b"surroundings", each.encode()) for each in surroundings]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


class _Writer:
    """Digests by value, bottom-up. A reference back to an object that is still being digested is its distance.

    Shared and copied strings, numbers and tuples come out alike, since which of them a pickle shares depends
    on interning.
    """

    def __init__(self, module_digest: ModuleDigest) -> None:
        self.module_digest = module_digest
        self.open: dict[int, int] = {}
        self.done: dict[int, bytes] = {}
        self.keep: list[Any] = []
        self.lowest = sys.maxsize
        self.steps = 0

    def digest(self, value: Any) -> bytes:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise UdfRefused("UDF_UNREADABLE", f"more than {MAX_STEPS} objects")
        plain = _plain(value)
        if plain is not None:
            return plain
        key = id(value)
        if key in self.done:
            return self.done[key]
        depth = len(self.open)
        if key in self.open:
            self.lowest = min(self.lowest, self.open[key])
            return _hash(b"back", str(depth - self.open[key]).encode())
        if depth > MAX_DEPTH:
            raise UdfRefused("UDF_UNREADABLE", f"nested deeper than {MAX_DEPTH}")
        outer, self.lowest = self.lowest, sys.maxsize
        self.open[key] = depth
        found = self._structure(value)
        del self.open[key]
        if self.lowest >= depth:
            # Nothing in it refers to what encloses it, so it is the same wherever it is met again.
            self.done[key] = found
            self.keep.append(value)
            self.lowest = outer
        else:
            self.lowest = min(self.lowest, outer)
        return found

    def _structure(self, value: Any) -> bytes:
        if isinstance(value, tuple):
            return _hash(b"tuple", *map(self.digest, value))
        if isinstance(value, list):
            return _hash(b"list", *map(self.digest, value))
        if isinstance(value, Unordered):
            return _hash(b"frozenset" if value.frozen else b"set", *sorted(map(self.digest, value.items)))
        if isinstance(value, Pairs):
            return _hash(b"dict", *(self.digest(each) for pair in value.items for each in pair))
        if isinstance(value, Global):
            return self._global(value)
        if isinstance(value, Call):
            return self._call(value)
        raise UdfRefused("UDF_UNREADABLE", f"a {type(value).__name__}")

    def _global(self, value: Global) -> bytes:
        if value.module in CLOUDPICKLE:
            return _hash(b"cloudpickle", value.name.encode())
        return _hash(b"global", self.module_digest(value.module).encode(), value.module.encode(), value.name.encode())

    def _call(self, call: Call) -> bytes:
        name = cloudpickle_name(call.function)
        refuse_side_effect(call.function)
        if name == "_make_function":
            return self._function(call)
        if name == "subimport":
            module = str(call.arguments[0])
            return _hash(b"module", self.module_digest(module).encode(), module.encode())
        if is_code_type(call.function):
            return self._code(call)
        arguments = call.arguments
        if name in _TRACKER and isinstance(arguments, tuple):
            position = _TRACKER[name]
            arguments = arguments[:position] + arguments[position + 1 :]
        if name in ("_make_skeleton_class", "_make_skeleton_enum"):
            return _hash(b"class", self.digest(arguments), *map(self._class_state, call.states))
        parts = [self.digest(call.function), self.digest(arguments), self.digest(call.keywords)]
        parts += [_hash(b"state", self.digest(state)) for state in call.states]
        for item in call.items:
            parts.append(_hash(b"item", self.digest(item)))
        return _hash(b"call", *parts)

    def _function(self, call: Call) -> bytes:
        """`_make_function(code, base globals, name, defaults, closure)`, then (dict, slots) as its state.

        Base globals hold the script's path and are not what the code reads: that is `__globals__` among the slots.
        """
        arguments = call.arguments
        if not isinstance(arguments, tuple) or len(arguments) != 5:
            raise UdfRefused("UDF_UNREADABLE", "a function of another cloudpickle")
        package = arguments[1].get("__package__") if isinstance(arguments[1], Pairs) else None
        parts = [self.digest(arguments[0]), self.digest(package), self.digest(arguments[2:])]
        for state in call.states:
            if not isinstance(state, tuple) or len(state) != 2 or not isinstance(state[1], Pairs):
                raise UdfRefused("UDF_UNREADABLE", "a function state of another cloudpickle")
            parts.append(self.digest(state[0]))
            slots = state[1]
            for name in _FUNCTION_STATE:
                found = slots.get(name)
                if name in ("__globals__", "__annotations__") and isinstance(found, Pairs):
                    parts.append(self._by_name(found))
                else:
                    parts.append(self.digest(found))
            # Which submodules were loaded: a list in the order of sys.modules.
            submodules = slots.get("_cloudpickle_submodules")
            parts.append(_hash(b"submodules", *sorted(map(self.digest, submodules or ()))))
        return _hash(b"function", *parts)

    def _code(self, call: Call) -> bytes:
        arguments = call.arguments
        if not isinstance(arguments, tuple) or len(arguments) != CODE_ARGUMENTS:
            raise UdfRefused("UDF_UNREADABLE", "bytecode of a Python before 3.11")
        code, names = arguments[6], arguments[8]
        if not isinstance(code, bytes) or not isinstance(names, tuple):
            raise UdfRefused("UDF_UNREADABLE", "bytecode that is none")
        imported = sorted(set(_imports(code, names)))
        modules = [self.module_digest(module).encode() for module in imported]
        return _hash(b"code", *(self.digest(arguments[index]) for index in _CODE_KEPT), *modules)

    def _class_state(self, state: Any) -> bytes:
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[0], Pairs):
            kept = []
            for name, value in state[0].items:
                if name in _CLASS_NOISE:
                    continue
                if name in ("_abc_impl", "__static_attributes__") and isinstance(value, list | tuple):
                    kept.append((name, _hash(b"unordered", *sorted(map(self.digest, value)))))
                else:
                    kept.append((str(name), self.digest(value)))
            return _hash(b"class state", *(part for name, value in sorted(kept) for part in (name.encode(), value)))
        return self.digest(state)

    def _by_name(self, pairs: Pairs) -> bytes:
        named = sorted((str(name), self.digest(value)) for name, value in pairs.items)
        return _hash(b"names", *(part for name, value in named for part in (name.encode(), value)))


def _plain(value: Any) -> bytes | None:
    """Digest of a value without parts; None for others."""
    if value is None or value is True or value is False:
        return _hash(b"constant", repr(value).encode())
    if type(value) is int:
        return _hash(b"int", hex(value).encode())
    if type(value) is float:
        return _hash(b"float", struct.pack(">d", value))
    if type(value) is str:
        return _hash(b"str", value.encode("utf-8", "surrogatepass"))
    if type(value) in (bytes, bytearray):
        return _hash(type(value).__name__.encode(), bytes(value))
    return None


def _hash(kind: bytes, *parts: bytes) -> bytes:
    state = hashlib.sha256()
    for part in (kind, *parts):
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


def cloudpickle_name(function: Any) -> str:
    return function.name if isinstance(function, Global) and function.module in CLOUDPICKLE else ""


def refuse_side_effect(function: Any) -> None:
    """
    :raises UdfRefused: what it makes has effects beside the function's result
    """
    effect = _SIDE_EFFECTS.get((function.module, function.name)) if isinstance(function, Global) else None
    if effect:
        raise UdfRefused("UDF_SIDE_EFFECT", effect)


def is_code_type(function: Any) -> bool:
    if isinstance(function, Global):
        return (function.module, function.name) in (("types", "CodeType"), ("builtins", "code"))
    return (
        isinstance(function, Call)
        and cloudpickle_name(function.function) == "_builtin_type"
        and function.arguments == ("CodeType",)
    )


def _imports(code: bytes, names: tuple[Any, ...]) -> Iterable[str]:
    """Modules that the code imports while it runs."""
    extended = 0
    for offset in range(0, len(code) - 1, 2):
        operation, argument = code[offset], code[offset + 1] | extended
        if operation == _EXTENDED_ARG:
            extended = argument << 8
            continue
        extended = 0
        if operation == _IMPORT_NAME and argument < len(names):
            yield str(names[argument])
