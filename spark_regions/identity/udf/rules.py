"""Library functions that are pure when they are called in a certain way, and those that need a word of their own."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.values import (
    DATA,
    NOTHING,
    Checked,
    Function,
    Library,
    Method,
    UserClass,
    Value,
    mixed,
)

if TYPE_CHECKING:
    from spark_regions.identity.udf.instructions import Instructions
    from spark_regions.identity.udf.proof import Proof

Keywords = Mapping[str, Value] | None
NAMED_TUPLE = frozenset(("_asdict", "_replace", "_fields", "_make", "_field_defaults"))
# Attributes of a guarded class that give another instance of it.
STAY_GUARDED = frozenset(("parent",))
# Rules that only note something: whatever they stand beside may be called by anybody.
MARKS = frozenset(("zone", "dates", "never-called"))
# Methods that change what they are given.
CHANGING_ARGUMENTS = frozenset(("shuffle", "readinto", "readinto1", "pack_into"))
# What these make may look into memory of each other.
ARRAYS = ("numpy.", "pandas.", "pyarrow.")
_CLOCK_WORDS = frozenset(("now", "today"))
_PATHS = frozenset(("path_or_buf", "path_or_buffer", "buf", "path", "excel_writer", "file", "con", "fname"))
_SIMPLE_EXPRESSION = re.compile(r"""[\w\s<>=!&|+\-*/%'",]*""")


def checked(
    proof: Proof, machine: Instructions, callee: Value, known: Checked, arguments: list[Value], keywords: Keywords
) -> Value:
    """The call of something that a rule stands beside.

    :raises UdfRefused: it is called otherwise
    """
    rule, _, path = known.rule.partition(" ")
    if path.removeprefix(".") in WRITING and known.owner.address:
        raise machine.refused("UDF_UNPROVEN", f"the text of {known.owner.text} shows where it lies in memory")
    found = _RULES[rule](proof, machine, callee, arguments, keywords)
    if found is not None:
        return found
    given = [*arguments, *(keywords or {}).values()]
    for value in given:
        proof.consumed(machine, value)
    proof.changing_keywords(machine, known.owner if path.startswith(".") else None, keywords)
    made = mixed([*given, known.owner.part()], f"{callee.text}(…)")
    lasting = machine.importing
    return replace(
        made,
        shared=known.owner.inner or lasting,
        inner=made.inner or (lasting and path.startswith(ARRAYS)),
        taken=path.startswith("."),
        literal=False,
    )


def _refused(machine: Instructions, callee: Value, how: str) -> UdfRefused:
    return machine.refused("UDF_UNPROVEN", f"{callee.text} {how}")


def _constant_seed(
    proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords
) -> None:
    """A random generator with a seed that stands in the code."""
    named = keywords or {}
    seed = named.get("random_state") or named.get("seed") or (arguments[0] if arguments else DATA)
    if callee.text.endswith(".sample"):
        seed = named.get("random_state", DATA)
    if keywords is None or type(seed.const) is not int:
        raise machine.refused("UDF_NONDETERMINISTIC", f"{callee.text} without a constant seed")


def _no_path(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> None:
    if keywords is None or arguments or _PATHS & set(keywords):
        raise _refused(machine, callee, "may write to a file")


def _expression(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> None:
    text = arguments[0].const if arguments and keywords is not None else NOTHING
    if not isinstance(text, str) or not _SIMPLE_EXPRESSION.fullmatch(text):
        raise _refused(machine, callee, "with an expression that is not plain and constant")


def _by_name(
    proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords
) -> Value | None:
    """`agg("sum")` calls a method by its name."""
    chosen = [*arguments[:1], *(value for key, value in (keywords or {}).items() if key not in ("axis", "args"))]
    for value in chosen:
        if isinstance(value.const, str):
            proof.attribute(machine, DATA.named(callee.text), value.const)
        elif not (value.literal or isinstance(value.known, Function | Library | Method)) or keywords is None:
            if callee.text.endswith((".agg", ".aggregate")):
                raise _refused(machine, callee, "with a function that is not named in the code")
            proof.marks.add("dispatch")
    proof.marks.add("dispatch")
    return None


def _two_arguments(
    proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords
) -> None:
    if len(arguments) != 2 or keywords is None:
        raise machine.refused("UDF_NONDETERMINISTIC", f"{callee.text} without a time reads the clock")


def _one_argument(
    proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords
) -> Value:
    if len(arguments) != 1 or keywords is None or keywords:
        raise _refused(machine, callee, "with more than one argument")
    # A class is there at the next call, too.
    return Value(f"{callee.text}({arguments[0].text})", shared=True, inner=True, taken=True)


def _zone(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> None:
    proof.marks.add("zone")


def _dates(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> None:
    proof.marks.add("dates")


def _constant_name(
    proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords
) -> Value:
    if keywords is None or keywords or len(arguments) not in (2, 3) or not isinstance(arguments[1].const, str):
        raise _refused(machine, callee, "with a computed name")
    for value in arguments[2:]:
        proof.consumed(machine, value)
    found = proof.attribute(machine, arguments[0], arguments[1].const)
    if len(arguments) == 2 or isinstance(found.known, Checked):
        return found
    both = mixed([found, arguments[2]], found.text)
    return replace(both, known=found.known, shared=found.shared or arguments[2].shared)


def _taken_names(
    proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords
) -> Value:
    """`attrgetter` and `methodcaller`: names of attributes as text."""
    names = arguments if callee.text.endswith("attrgetter") else arguments[:1]
    if keywords is None or not all(isinstance(each.const, str) for each in names):
        raise _refused(machine, callee, "with a computed name")
    for name in (part for each in names for part in each.const.split(".")):
        if name in proof.allowed.changes or name in proof.allowed.changing_every:
            raise _refused(machine, callee, f"of {name}")
        if isinstance(proof.attribute(machine, DATA.named(callee.text), name).known, Checked):
            raise _refused(machine, callee, f"of {name}")
    return DATA.named(f"{callee.text}(…)")


def _in_hash(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> None:
    if machine.function.name != "__hash__":
        raise machine.refused("UDF_NONDETERMINISTIC", "hash depends on the seed of the process")


def _never(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> None:
    raise _refused(machine, callee, "called")


_RULES: dict[str, Callable[..., Value | None]] = {
    "constant-seed": _constant_seed,
    "no-path": _no_path,
    "expression": _expression,
    "by-name": _by_name,
    "two-arguments": _two_arguments,
    "one-argument": _one_argument,
    "zone": _zone,
    "dates": _dates,
    "constant-name": _constant_name,
    "taken-names": _taken_names,
    "in-hash": _in_hash,
    "never-called": _never,
}


# ---- Calls with a word of their own ----------------------------------------------------------------------------------


def _text(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> Value:
    for value in arguments:
        proof.shown(machine, value)
    return Value(f"{callee.text}(…)")


def _super(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> Value:
    names = machine.function.code.co_varnames
    return replace(machine.variable(names[0]) if names else DATA, known=None)


def _set(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> None:
    proof.marks.add("sets")
    check_hashed(machine, (each.part() for each in arguments))


def _deepcopy(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> Value:
    if len(arguments) != 1 or keywords is None or keywords:
        raise _refused(machine, callee, "with a memo of its own")
    proof.consumed(machine, arguments[0])
    lasting = machine.importing
    return Value(f"{callee.text}(…)", shared=lasting, inner=lasting, address=arguments[0].address)


def _object(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> Value:
    return Value("object()", address=1, shared=machine.importing)


def _kind_test(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> Value:
    """`isinstance` calls nothing of what it is given, whatever that is."""
    for value in arguments:
        if not isinstance(value.known, Checked):
            proof.consumed(machine, value)
    return DATA


def _decorated(
    proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords
) -> Value | None:
    """Decorators that leave a function or class what it is."""
    if not arguments:
        return callee if keywords is not None else None
    known = arguments[0].known
    if isinstance(known, UserClass):
        if callee.text.endswith("dataclass") and (keywords or {}).get("repr", DATA).const is not False:
            known.shows_address = False
        return arguments[0]
    if isinstance(known, Function):
        name = callee.text.rpartition(".")[2]
        known.kind = _KINDS.get(name, known.kind)
        known.cached = known.cached or name in _CACHING
        return arguments[0]
    return None


_KINDS = {"staticmethod": "static", "classmethod": "class", "property": "property", "cached_property": "property"}
_CACHING = frozenset(("lru_cache", "cache", "cached_property"))


def _trusted(proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Keywords) -> Value:
    """`@spark_regions.pure`: the user's own word."""
    return DATA.named(arguments[0].text if arguments else callee.text)


# Methods that make text of what they are given, and of what they are called on.
FORMATTING = frozenset(("format", "format_map", "substitute", "safe_substitute", "vformat"))
HASHING = frozenset(("add", "union", "intersection", "symmetric_difference"))
WRITING = frozenset(("astype", "to_string", "to_csv", "to_json", "to_html", "to_markdown", "to_xml"))


def makes_text(value: Value) -> bool:
    if isinstance(value.known, Library):
        return value.known.path in TEXTS
    return isinstance(value.known, Method) and value.known.name in FORMATTING


def check_hashed(machine: Instructions, values: Iterable[Value]) -> None:
    """
    :raises UdfRefused: a set would be ordered by where its elements lie in memory
    """
    for value in values:
        if value.address or isinstance(value.known, Function):
            raise machine.refused("UDF_UNPROVEN", f"a set of {value.text}, in the order of where they lie in memory")


def check_template(proof: Proof, machine: Instructions, known: Method) -> None:
    """A template reaches attributes of what it is given.

    :raises UdfRefused: attributes that are not data
    """
    template = known.owner.const
    if not isinstance(template, str):
        proof.marks.add("unknown template")
        return
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(template) if field]
    except ValueError:
        return  # it fails where it is used, as it does in plain Spark
    for field in fields:
        for name in re.findall(r"\.(\w+)", field):
            if name.startswith("_") or isinstance(proof.attribute(machine, DATA.named(field), name).known, Checked):
                raise machine.refused("UDF_UNPROVEN", f"the field {field} of a template")


TEXTS = frozenset(("builtins.str", "builtins.repr", "builtins.ascii", "builtins.format"))
CALLS: dict[str, Callable[..., Value | None]] = {
    **dict.fromkeys(TEXTS, _text),
    "builtins.super": _super,
    "builtins.object": _object,
    "copy.deepcopy": _deepcopy,
    "builtins.set": _set,
    "builtins.frozenset": _set,
    "builtins.isinstance": _kind_test,
    "builtins.issubclass": _kind_test,
    **dict.fromkeys(
        ("builtins.staticmethod", "builtins.classmethod", "builtins.property", "dataclasses.dataclass", "enum.unique",
         "functools.total_ordering", "functools.lru_cache", "functools.cache", "functools.cached_property",
         "abc.abstractmethod", "typing.final", "typing.override", "typing.no_type_check", "typing.overload"),
        _decorated,
    ),
    "spark_regions.pure": _trusted,
}  # fmt: skip


# ---- Constants of the code -------------------------------------------------------------------------------------------


def collect_strings(proof: Proof, code: CodeType) -> None:
    """Texts among the constants of a code object and of those inside of it."""
    waiting: list[Any] = [code]
    while waiting:
        value = waiting.pop()
        if isinstance(value, CodeType):
            waiting.extend(value.co_consts)
        elif isinstance(value, tuple | frozenset):
            waiting.extend(value)
        elif isinstance(value, str):
            proof.strings.add(value)


def check_strings(proof: Proof) -> None:
    """
    :raises UdfRefused: a text among the constants is no text to what the code calls
    """
    if "dates" in proof.marks:
        for text in proof.strings:
            if text.strip().lower() in _CLOCK_WORDS:
                raise UdfRefused("UDF_NONDETERMINISTIC", f"{text!r} as a date is the time of the run")
    if "dispatch" in proof.marks:
        for text in proof.strings & proof.allowed.dispatched:
            raise UdfRefused("UDF_UNPROVEN", f"{text!r} may name a method that is called")
