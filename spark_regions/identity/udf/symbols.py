"""Read a pickle without importing or calling anything: objects become inert symbols."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spark_regions.errors import UdfRefused

MAX_PICKLE_BYTES = 16 * 1024 * 1024
MAX_OPCODES = 2_000_000


@dataclass(frozen=True, slots=True)
class Global:
    """A name that the pickle asks for: module and qualified name."""

    module: str
    name: str


@dataclass(eq=False, slots=True)
class Call:
    """What `function(*arguments)` would give, and what was done to it afterwards.

    :param states: arguments of BUILD, and of cloudpickle's state setters
    :param items: appended items, or (key, value) pairs
    """

    function: Any
    arguments: Any
    keywords: Any = None
    states: list[Any] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Unordered:
    """A set: its order comes from the hash seed."""

    items: list[Any]
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class Symbols:
    """:param effects: calls whose result was thrown away"""

    root: Any
    effects: tuple[Call, ...]


def read_symbols(data: bytes) -> Symbols:
    """The object graph of a pickle.

    :raises UdfRefused: it cannot be read, or is too large
    """
    if len(data) > MAX_PICKLE_BYTES:
        raise UdfRefused("UDF_UNREADABLE", f"{len(data)} bytes, at most {MAX_PICKLE_BYTES} expected")
    reader = _Reader(data)
    try:
        root = reader.load()
    except UdfRefused:
        raise
    except (Exception, RecursionError) as error:
        raise UdfRefused("UDF_UNREADABLE", f"{type(error).__name__}: {error}"[:200]) from error
    return Symbols(root, tuple(reader.effects))


# The pure Python reader: the C one would call what REDUCE names.
class _Reader(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Callable[..., None]]] = {}
    stack: list[Any]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.effects: list[Call] = []
        self.steps = 0

    def find_class(self, module: str, name: str) -> Global:
        return Global(str(module), str(name))

    def persistent_load(self, pid: Any) -> Any:
        raise UdfRefused("UDF_UNREADABLE", f"persistent id {pid!r}"[:100])

    def get_extension(self, code: int) -> None:
        raise UdfRefused("UDF_UNREADABLE", f"extension {code}")

    def on_reduce(self) -> None:
        arguments = self.stack.pop()
        function = self.stack[-1]
        if isinstance(function, Global) and function.name in _SETTERS and _target(arguments) is not None:
            _target(arguments).states.append(arguments[1])
        self.stack[-1] = Call(function, arguments)

    def on_newobj(self) -> None:
        arguments = self.stack.pop()
        self.stack.append(Call(self.stack.pop(), arguments))

    def on_newobj_ex(self) -> None:
        keywords = self.stack.pop()
        arguments = self.stack.pop()
        self.stack.append(Call(self.stack.pop(), arguments, keywords))

    def on_build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if not isinstance(target, Call):
            raise UdfRefused("UDF_UNREADABLE", f"state for a {type(target).__name__}")
        target.states.append(state)

    def on_pop(self) -> None:
        if not self.stack:
            self.pop_mark()
            return
        dropped = self.stack.pop()
        if isinstance(dropped, Call) and not _is_known_setter(dropped):
            self.effects.append(dropped)

    def on_append(self) -> None:
        value = self.stack.pop()
        self._extend([value])

    def on_appends(self) -> None:
        self._extend(self.pop_mark())

    def on_setitem(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self._set([key, value])

    def on_setitems(self) -> None:
        self._set(self.pop_mark())

    def on_empty_set(self) -> None:
        self.stack.append(Unordered([]))

    def on_frozenset(self) -> None:
        items = self.pop_mark()
        self.stack.append(Unordered(items, frozen=True))

    def on_additems(self) -> None:
        self._extend(self.pop_mark())

    def on_make_dict(self) -> None:
        items = self.pop_mark()
        self.stack.append(_pairs(items))

    def on_empty_dict(self) -> None:
        self.stack.append(Pairs([]))

    def on_refused(self) -> None:
        raise UdfRefused("UDF_UNREADABLE", "an opcode that no Spark function needs")

    def _extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, Unordered | Call):
            target.items.extend(items)
        else:
            raise UdfRefused("UDF_UNREADABLE", f"items for a {type(target).__name__}")

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, Pairs | Call):
            raise UdfRefused("UDF_UNREADABLE", f"items for a {type(target).__name__}")
        target.items.extend(_pairs(items).items)


@dataclass(eq=False, slots=True)
class Pairs:
    """A dict: keys may be symbols, which would not be hashed by value."""

    items: list[tuple[Any, Any]]

    def get(self, key: str) -> Any:
        for name, value in reversed(self.items):
            if isinstance(name, str) and name == key:
                return value
        return None


_SETTERS = ("_function_setstate", "_class_setstate")

_OVERRIDES: dict[bytes, Callable[[_Reader], None]] = {
    pickle.REDUCE: _Reader.on_reduce,
    pickle.NEWOBJ: _Reader.on_newobj,
    pickle.NEWOBJ_EX: _Reader.on_newobj_ex,
    pickle.BUILD: _Reader.on_build,
    pickle.POP: _Reader.on_pop,
    pickle.APPEND: _Reader.on_append,
    pickle.APPENDS: _Reader.on_appends,
    pickle.SETITEM: _Reader.on_setitem,
    pickle.SETITEMS: _Reader.on_setitems,
    pickle.EMPTY_SET: _Reader.on_empty_set,
    pickle.FROZENSET: _Reader.on_frozenset,
    pickle.ADDITEMS: _Reader.on_additems,
    pickle.DICT: _Reader.on_make_dict,
    pickle.EMPTY_DICT: _Reader.on_empty_dict,
    pickle.INST: _Reader.on_refused,
    pickle.OBJ: _Reader.on_refused,
    pickle.EXT1: _Reader.on_refused,
    pickle.EXT2: _Reader.on_refused,
    pickle.EXT4: _Reader.on_refused,
    pickle.PERSID: _Reader.on_refused,
    pickle.BINPERSID: _Reader.on_refused,
    pickle.NEXT_BUFFER: _Reader.on_refused,
    pickle.READONLY_BUFFER: _Reader.on_refused,
}


def _counted(step: Callable[[Any], None]) -> Callable[[Any], None]:
    def counted(reader: _Reader) -> None:
        reader.steps += 1
        if reader.steps > MAX_OPCODES:
            raise UdfRefused("UDF_UNREADABLE", f"more than {MAX_OPCODES} steps")
        step(reader)

    return counted


_Reader.dispatch.update({code: _counted(step) for code, step in pickle._Unpickler.dispatch.items()})
_Reader.dispatch.update({code[0]: _counted(step) for code, step in _OVERRIDES.items()})
_Reader.dispatch[pickle.STOP[0]] = pickle._Unpickler.dispatch[pickle.STOP[0]]


def _target(arguments: Any) -> Any:
    if isinstance(arguments, tuple) and len(arguments) == 2 and isinstance(arguments[0], Call):
        return arguments[0]
    return None


def _is_known_setter(call: Call) -> bool:
    return isinstance(call.function, Global) and call.function.name in _SETTERS and _target(call.arguments) is not None


def _pairs(items: list[Any]) -> Pairs:
    if len(items) % 2:
        raise UdfRefused("UDF_UNREADABLE", "a key without value")
    return Pairs(list(zip(items[::2], items[1::2], strict=True)))
