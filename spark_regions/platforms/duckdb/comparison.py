"""Comparisons, three-valued logic, and sets.

Integers, dates, timestamps and decimals of one scale compare as integers in both, strings as unsigned bytes
(UTF8String; string_type.hpp: memcmp, then the length). Of floating-point numbers NaN is equal to itself and above all
others, and zeros are equal (SQLOrderingUtil.compareDoubles; comparison_operators.cpp).
"""

from __future__ import annotations

from spark_regions.platforms.duckdb.text import ENGINE_TYPES
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql
from spark_regions.platforms.typed import FLOATING, decimal_of

FAMILY = "comparison"
OPERATORS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "EqualNullSafe": "IS NOT DISTINCT FROM",
}
LOGIC = {"And": "AND", "Or": "OR"}
ENDS = {"And": "false", "Or": "true"}
"""Of the left side, after which the right one is not evaluated."""


def comparable(call: Call) -> None:
    """All children are of one type, whose order both know."""
    first = call.types[0] if call.types else ""
    known = first in ENGINE_TYPES or decimal_of(first) is not None
    call.needs(known and set(call.types) == {first}, f"of {', '.join(call.types)}", "UNPROVEN_TYPE")


def _compare(call: Call) -> Sql:
    comparable(call)
    left, right = call.texts
    return call.sql(f"({left} {OPERATORS[call.expression.kind]} {right})")


def _logic(call: Call) -> Sql:
    """Where a side may raise, in Spark's order: DuckDB takes the sides of a condition in any."""
    call.needs_types({"BOOLEAN"})
    left, right = call.texts
    both = f"({left} {LOGIC[call.expression.kind]} {right})"
    if any(each.raises for each in call.args):
        ends = ENDS[call.expression.kind]
        both = f"(CASE WHEN {left} IS NOT DISTINCT FROM {ends} THEN {ends} ELSE {both} END)"
    return call.sql(both)


def _not(call: Call) -> Sql:
    call.needs_types({"BOOLEAN"})
    return call.sql(f"(NOT {call.texts[0]})")


def _in(call: Call) -> Sql:
    comparable(call)
    value, *listed = call.texts
    call.needs(bool(listed), "of an empty list")
    return call.sql(f"({value} IN ({', '.join(listed)}))")


def _in_set(call: Call) -> Sql:
    # A set holds zeros of both signs, which are not equal there.
    call.needs(call.types[0] not in FLOATING, f"of {call.types[0]}", "UNPROVEN_TYPE")
    return _in(call)


def _is_null(call: Call) -> Sql:
    return call.sql(f"({call.texts[0]} IS NULL)")


def _is_not_null(call: Call) -> Sql:
    return call.sql(f"({call.texts[0]} IS NOT NULL)")


def _is_nan(call: Call) -> Sql:
    call.needs_types(FLOATING)
    return call.sql(f"coalesce(isnan({call.texts[0]}), false)")


_DECIMALS = ("DECIMAL(7,2)", "DECIMAL(38,10)")
_TYPES = ("BOOLEAN", "INT", "BIGINT", "DOUBLE", "FLOAT", "STRING", "DATE", "TIMESTAMP_NTZ", *_DECIMALS)


def _examples(form: str, types: tuple[str, ...] = _TYPES) -> tuple[Example, ...]:
    return tuple(Example(form, (each,) * (1 + ("{1}" in form))) for each in types)


_LISTED = tuple(range(-6, 7))

EQUIVALENTS = (
    *(
        Equivalent(
            kind,
            FAMILY,
            "two values of one type",
            "the same order, and null for a null on either side, or none for `<=>`",
            _examples(f"{{0}} {'<=>' if kind == 'EqualNullSafe' else sign} {{1}}"),
            _compare,
        )
        for kind, sign in OPERATORS.items()
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "two booleans",
            "SQL's truth tables in both",
            _examples(f"{{0}} {sign} {{1}}", ("BOOLEAN",)),
            _logic,
        )
        for kind, sign in LOGIC.items()
    ),
    # Of `NOT` over a comparison Spark's optimizer leaves another comparison.
    Equivalent("Not", FAMILY, "a boolean", "null stays null in both", _examples("NOT {0}", ("BOOLEAN",)), _not),
    Equivalent(
        "In",
        FAMILY,
        "a value, and a list of its type",
        "true for an equal one, else null for a null on either side, else false",
        (
            Example("{0} IN ({1}, 3, NULL)", ("INT", "INT")),
            Example("{0} IN ({1}, 'a')", ("STRING", "STRING")),
            Example("{0} IN ({1}, 0.0D)", ("DOUBLE", "DOUBLE")),
        ),
        _in,
    ),
    Equivalent(
        "InSet",
        FAMILY,
        "a value, and literals of its type",
        "true for an equal one, else null where the set has one, else false; null for a null",
        (
            Example(f"{{0}} IN ({', '.join(map(str, _LISTED))})", ("INT",)),
            Example(f"{{0}} IN ({', '.join(map(str, _LISTED))}, NULL)", ("BIGINT",)),
            Example(f"{{0}} IN ({', '.join(repr(str(each)) for each in _LISTED)})", ("STRING",)),
        ),
        _in_set,
    ),
    Equivalent("IsNull", FAMILY, "anything", "of NaN too, it is false", _examples("{0} IS NULL"), _is_null),
    Equivalent("IsNotNull", FAMILY, "anything", "of NaN too, it is true", _examples("{0} IS NOT NULL"), _is_not_null),
    Equivalent(
        "IsNaN",
        FAMILY,
        "a floating-point number",
        "false of null in Spark",
        _examples("isnan({0})", ("FLOAT", "DOUBLE")),
        _is_nan,
    ),
)
