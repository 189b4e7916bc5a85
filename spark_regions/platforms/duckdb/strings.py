"""Strings. Both hold UTF-8, and count in code points (UTF8String.numChars; length.cpp, substring.cpp), not graphemes.
DuckDB refuses a file with bytes that are not UTF-8.
"""

from __future__ import annotations

from spark_regions.platforms.duckdb.text import cast, quoted, unless
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql

FAMILY = "strings"
STRING = frozenset({"STRING"})
FUNCTIONS = {"StartsWith": "starts_with", "EndsWith": "ends_with", "Contains": "contains"}
TRIMS = {"StringTrim": "trim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim"}
SPACE = quoted(" ")


def _substring(call: Call) -> Sql:
    call.needs_types(STRING, {"INT"})
    position, length = int(call.literal(1)), int(call.literal(2))
    # DuckDB counts a position of 0 and negative lengths otherwise; Spark takes them as 1 and 0.
    call.needs(position >= 0, "from behind")
    return call.sql(f"substring({call.texts[0]}, {max(position, 1)}, {max(length, 0)})")


def _search(call: Call) -> Sql:
    call.needs_types(STRING)
    text, searched = call.texts
    return call.sql(f"{FUNCTIONS[call.expression.kind]}({text}, {searched})")


def _like(call: Call) -> Sql:
    call.needs_types(STRING)
    pattern, escape = call.literal(1), call.field("escapeChar")
    text = call.texts[0]
    # Spark makes a regular expression of it, char by char: what is one of two chars is not shown to stay one.
    call.needs(len(escape) == 1 and max(pattern, default="") <= "\uffff", f"of pattern {pattern!r}")
    if escape not in pattern:
        return call.sql(f"({text} LIKE {quoted(pattern)})")
    # Spark raises on an escape character before anything else, or at the end.
    call.needs(_escapes(pattern, escape), f"of pattern {pattern!r}")
    return call.sql(f"({text} LIKE {quoted(pattern)} ESCAPE {quoted(escape)})")


def _escapes(pattern: str, escape: str) -> bool:
    """Whether each escape character stands before `%`, `_` or another one.

    >>> _escapes("a!%!!", "!"), _escapes("a!b", "!"), _escapes("a!", "!")
    (True, False, False)
    """
    rest = iter(pattern)
    return all(next(rest, "") in ("%", "_", escape) for each in rest if each == escape)


def _concat(call: Call) -> Sql:
    call.needs_types(STRING)
    return call.sql(f"({' || '.join(call.texts)})")


def _length(call: Call) -> Sql:
    call.needs_types(STRING)
    return call.sql(cast(f"length({call.texts[0]})", "INTEGER"))


def _instr(call: Call) -> Sql:
    call.needs_types(STRING)
    call.needs(call.literal(1) != "", "of an empty string")
    text, searched = call.texts
    return call.sql(cast(f"instr({text}, {searched})", "INTEGER"))


def _trim(call: Call) -> Sql:
    call.needs_types(STRING)
    characters = SPACE
    if len(call.types) > 1:
        call.needs(call.literal(1) != "", "of no characters")
        characters = call.texts[1]
    return call.sql(f"{TRIMS[call.expression.kind]}({call.texts[0]}, {characters})")


def _case(call: Call) -> Sql:
    call.needs_types(STRING)
    text = call.texts[0]
    converted = f"{call.expression.kind.lower()}({text})"
    return call.sql(unless(f"strlen({text}) <> length({text})", "not ASCII", converted, "VARCHAR"))


_S = ("STRING",)

EQUIVALENTS = (
    Equivalent(
        "Substring",
        FAMILY,
        "a string, literal position of at least 0, literal length",
        "code points from a position on, as many as there are up to the length",
        tuple(Example(f"substring({{0}}, {at})", _S) for at in ("1, 2", "2", "0, 3", "3, 0", "2, -1", "9, 9")),
        _substring,
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "two strings",
            "compares bytes in both; any string has the empty one",
            (
                Example(f"{kind.lower()}({{0}}, {{1}})", ("STRING", "STRING")),
                Example(f"{kind.lower()}({{0}}, 'a')", _S),
            ),
            _search,
        )
        for kind in FUNCTIONS
    ),
    Equivalent(
        "Like",
        FAMILY,
        "a string, literal pattern",
        "`%` is any string, line ends included, and `_` any code point; DuckDB has no escape character but the one "
        "named",
        tuple(
            Example(f"{{0}} LIKE {each}", _S)
            for each in ("'%a_b%'", "'_'", "'a\\\\_%b_'", "'a!%_c%' ESCAPE '!'", "'%b%c'")
        ),
        _like,
    ),
    Equivalent(
        "Concat",
        FAMILY,
        "strings",
        "null for a null in both, by `||`",
        (Example("concat({0}, '-', {1})", ("STRING", "STRING")),),
        _concat,
    ),
    Equivalent("Length", FAMILY, "a string", "its code points", (Example("length({0})", _S),), _length),
    Equivalent(
        "StringInstr",
        FAMILY,
        "a string, a literal that is not empty",
        "the first place in code points from 1, or 0",
        (Example("instr({0}, 'b')", _S),),
        _instr,
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "a string; literal characters",
            "spaces alone where no characters are given (DuckDB's own trim takes others too); else a set of code "
            "points",
            (Example(f"{name}({{0}})", _S), Example(f"{spark}", _S)),
            _trim,
        )
        for kind, name, spark in (
            ("StringTrim", "trim", "trim(BOTH 'a\\u00e4' FROM {0})"),
            ("StringTrimLeft", "ltrim", "trim(LEADING 'a\\u00e4' FROM {0})"),
            ("StringTrimRight", "rtrim", "trim(TRAILING 'a\\u00e4' FROM {0})"),
        )
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "a string of ASCII",
            "both change the letters A to Z alone (UTF8String; caseconvert.cpp); as many bytes as code points is "
            "ASCII, and other strings raise",
            (Example(f"{kind.lower()}({{0}})", _S),),
            _case,
        )
        for kind in ("Upper", "Lower")
    ),
)
