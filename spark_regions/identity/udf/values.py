"""What is known of a value that a function's code meets: where it comes from, and whom a change of it would reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any


class _Nothing:
    """No constant; None is one."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


@dataclass(frozen=True, slots=True)
class Value:
    """A value that code computes.

    The default is plain data that nobody else holds: an argument, a constant, what a pure function returned.

    :param text: how the code came to it, for reasons
    :param known: the module, function, class or method that it is, where that is known
    :param shared: it may be a mutable object that is still there at the next call
    :param inner: so may what is in it
    :param taken: it was taken out of something
    :param address: whether its text may show where in memory it lies (bit 0), that of what is in it (bit 1), and so on
    :param const: the value itself, where it is a constant
    :param literal: it is made of constants and functions of the code alone
    """

    text: str = "a value"
    known: Known | None = None
    shared: bool = False
    inner: bool = False
    taken: bool = False
    address: int = 0
    const: Any = NOTHING
    literal: bool = False

    def part(self, text: str = "") -> Value:
        """What is in it: an element, an attribute."""
        return Value(
            text or f"{self.text}[…]",
            shared=self.inner,
            inner=self.inner,
            taken=True,
            address=self.address >> 1,
        )

    @property
    def opaque(self) -> bool:
        return bool(self.address & 1)

    @property
    def hidden(self) -> bool:
        return self.address > 1

    def named(self, text: str) -> Value:
        return replace(self, text=text)


DATA = Value()


@dataclass(frozen=True, slots=True)
class Library:
    """A module of a library, or a name in it.

    :param path: dotted, as in the lists
    """

    path: str


@dataclass(frozen=True, slots=True)
class UserModule:
    """A module of the user's own, read from its source."""

    name: str


@dataclass(eq=False, slots=True)
class Function:
    """A function whose code is read.

    :param names: what its globals are, by name
    :param cells: what its free variables are, where they came with it; they outlive every call
    :param parent: the function whose code makes it
    :param default: any of the defaults of its parameters
    :param defaulted: the parameters that have one; None for any
    :param kind: "static", "class" or "property" where a method is one
    :param by_spark: nobody but Spark calls it without being seen to, with rows that nobody else holds
    :param cached: what it returned is kept and returned again
    :param at_import: it runs while a module is imported, so what it makes may outlive every call
    """

    code: CodeType
    names: Any
    cells: dict[str, Value] = field(default_factory=dict)
    parent: Function | None = None
    kind: str = ""
    cached: bool = False
    at_import: bool = False
    # What the analysis has found so far; grows only.
    locals: dict[str, Value] = field(default_factory=dict)
    made: dict[int, Any] = field(default_factory=dict)
    returned: Value = DATA
    default: Value = DATA
    defaulted: frozenset[str] | None = None
    escaped: bool = False
    by_spark: bool = False

    @property
    def name(self) -> str:
        return self.code.co_name

    @property
    def is_generator(self) -> bool:
        return bool(self.code.co_flags & 0x20)

    def owner_of(self, name: str) -> Function | None:
        """The function around this one that has the variable; None where it came with the function."""
        around = self.parent
        while around is not None:
            if name in around.code.co_cellvars:
                return around
            around = around.parent
        return None


@dataclass(eq=False, slots=True)
class UserClass:
    """A class of the user's own.

    :param bases: its base classes, known or not
    :param attributes: methods and other attributes, by name
    :param kept: some instance of it is there at the next call
    """

    name: str
    bases: list[Value]
    attributes: dict[str, Value]
    shows_address: bool = True
    is_enum: bool = False
    kept: bool = False

    def method(self, name: str) -> Function | None:
        """A method of it, or of a base class of the user's."""
        found = self.attributes.get(name)
        if found is not None:
            return found.known if isinstance(found.known, Function) else None
        for base in self.bases:
            if isinstance(base.known, UserClass):
                inherited = base.known.method(name)
                if inherited is not None:
                    return inherited
        return None


@dataclass(frozen=True, slots=True)
class Method:
    """An attribute of a value of unknown type, taken to be called."""

    name: str
    owner: Value


@dataclass(frozen=True, slots=True)
class Checked:
    """Something that is pure only when it is called in a certain way: see `rules`.

    :param rule: name of the rule
    :param owner: what it was taken from, for a method
    """

    rule: str
    owner: Value


@dataclass(frozen=True, slots=True)
class Guarded:
    """An instance of a class whose methods are known by the class alone, such as `pathlib.Path`."""

    type: str


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a class of the lists. Where that is lost, it is a value of unknown type."""

    type: str


@dataclass(frozen=True, slots=True)
class Marker:
    """Something of the interpreter's own on the stack."""

    kind: str


Known = Library | UserModule | Function | UserClass | Method | Checked | Guarded | Instance | Marker

# Some class of the user's: there is one at the next call, too.
CLASS = Value("cls", known=Marker("class"), shared=True, inner=True)
_OF_CLASSES = frozenset(("__new__", "__init_subclass__", "__class_getitem__"))
NULL = Value("NULL", known=Marker("null"))
BUILD_CLASS = Value("class", known=Marker("build class"))
ITERATOR = Marker("iterator")
# Methods that the data model calls while an instance is made, and those that make its text.
MAKING = frozenset(("__init__", "__new__", "__post_init__"))
SHOWING = frozenset(("__repr__", "__str__", "__format__"))
UNPROVEN = "UDF_UNPROVEN"


def constant(value: Any) -> Value:
    return Value(repr(value)[:40], const=value, literal=True)


def is_mutable(value: Value) -> Value:
    """The same value, once it is kept where the next call finds it."""
    if value.const is not NOTHING or isinstance(value.known, Library | UserModule | Function | UserClass):
        return value
    return replace(value, shared=True)


_DEEPEST = 0xFFFE


def _any_of(values: list[Value]) -> int:
    found = 0
    for each in values:
        found |= each.address
    return found


def joined(values: Iterable[Value], text: str = "") -> Value:
    """Any of the values. What they are known to be is kept only where they agree."""
    found = list(values)
    if not found:
        return DATA
    first = found[0]
    if all(each == first for each in found[1:]):
        return first
    same = all(each.known == first.known for each in found[1:])
    constants = all(each.const is not NOTHING and each.const == first.const for each in found[1:])
    return Value(
        text or first.text,
        known=first.known if same else None,
        shared=any(each.shared for each in found),
        inner=any(each.inner for each in found),
        taken=any(each.taken for each in found),
        address=_any_of(found),
        const=first.const if constants else NOTHING,
        literal=all(each.literal for each in found),
    )


def mixed(values: Iterable[Value], text: str = "a value") -> Value:
    """Something new that holds the values."""
    found = list(values)
    below = _any_of(found)
    return Value(
        text,
        inner=any(each.shared or each.inner for each in found),
        address=(min(below << 1, _DEEPEST) | 1) if below else 0,
        literal=bool(found) and all(each.literal for each in found),
    )


# Base classes without a text of their own.
WITHOUT_TEXT = frozenset(
    (
        "builtins.object",
        "abc.ABC",
        "typing.Generic",
        "typing.Protocol",
        "json.JSONEncoder",
        "json.JSONDecoder",
        "html.parser.HTMLParser",
    )
)


def shows_address(found: UserClass) -> bool:
    """Whether the text of an instance is that of `object`: nothing of its own, nothing from a base class."""
    if "__repr__" in found.attributes or "__str__" in found.attributes:
        return False
    for base in found.bases:
        if isinstance(base.known, UserClass) and not base.known.shows_address:
            return False
        if isinstance(base.known, Library) and base.known.path not in WITHOUT_TEXT:
            return False
    return True


def is_enum(found: UserClass) -> bool:
    """Whether its attributes are members that hold a value."""
    return any(
        (isinstance(base.known, Library) and base.known.path.startswith("enum."))
        or (isinstance(base.known, UserClass) and base.known.is_enum)
        for base in found.bases
    )


def receiver(method: Function, owner: Value) -> list[Value]:
    """What a method gets as its first argument. A class is there at the next call, too."""
    if method.kind == "class" or method.name in _OF_CLASSES:
        return [CLASS]
    return [] if method.kind == "static" else [owner]


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
