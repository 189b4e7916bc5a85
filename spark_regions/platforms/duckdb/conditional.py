"""Literals, branches, and what chooses among values.

Both evaluate a branch in those rows only that come to it (`CaseWhen`, `Coalesce`; execute_case.cpp,
execute_operator.cpp), so that a branch guards another from errors.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from spark_regions.platforms.duckdb.comparison import comparable
from spark_regions.platforms.duckdb.text import INT64_DIGITS, cast, constant, engine_type, narrow, quoted
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql
from spark_regions.platforms.typed import FLOATING, decimal_of, decimal_type

FAMILY = "conditional"
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECONDS_PER_DAY = 86_400_000_000


def _literal(call: Call) -> Sql:
    engine = engine_type(call.type)
    digits = decimal_of(call.type)
    short = decimal_type(INT64_DIGITS, digits[1]) if digits and digits[1] <= INT64_DIGITS else ""
    if "value" not in call.expression.fields:
        return call.sql(cast("NULL", engine), narrow=cast("NULL", short) if short else "")
    value = call.field("value")
    if short and len(value.lstrip("-").replace(".", "")) <= INT64_DIGITS:
        return call.sql(constant(value, engine), narrow=constant(value, short))
    if call.type == "STRING":
        return call.sql(quoted(value))
    if call.type in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return call.sql(constant(_moment(call, int(value)), engine))
    return call.sql(constant(value, engine))


def _moment(call: Call, number: int) -> str:
    """Text of days or microseconds since 1970, in years of four digits: it is read alike wherever it is."""
    day = number if call.type == "DATE" else number // MICROSECONDS_PER_DAY
    call.needs((datetime.datetime.min - EPOCH).days <= day <= (datetime.datetime.max - EPOCH).days, f"{number}")
    if call.type == "DATE":
        return (EPOCH + datetime.timedelta(days=number)).date().isoformat()
    moment = (EPOCH + datetime.timedelta(microseconds=number)).isoformat(" ", "microseconds")
    return moment + "+00" if call.type == "TIMESTAMP" else moment


def _one_type(call: Call, children: tuple[str, ...]) -> None:
    call.needs(set(children) == {call.type}, f"of {', '.join(children)}", "UNPROVEN_TYPE")


def _coalesce(call: Call) -> Sql:
    _one_type(call, call.types)
    return call.sql(f"coalesce({', '.join(call.texts)})")


def _case_when(call: Call) -> Sql:
    otherwise = len(call.types) % 2
    pairs = list(zip(call.types[::2], call.types[1::2], strict=False))
    call.needs(bool(pairs) and {first for first, _ in pairs} == {"BOOLEAN"}, "without conditions", "UNPROVEN_TYPE")
    _one_type(call, (*(value for _, value in pairs), *call.types[len(call.types) - otherwise :]))
    values = call.args

    def text(of: Callable[[Sql], str]) -> str:
        branches = (f"WHEN {when.text} THEN {of(then)}" for when, then in zip(values[::2], values[1::2], strict=False))
        return f"(CASE {' '.join(branches)}{f' ELSE {of(values[-1])}' if otherwise else ''} END)"

    known = all(map(narrow, (*values[1::2], *values[len(values) - otherwise :])))
    return call.sql(text(lambda each: each.text), narrow=text(narrow) if known else "")


def _if(call: Call) -> Sql:
    call.needs(call.types[0] == "BOOLEAN", f"of {call.types[0]}", "UNPROVEN_TYPE")
    _one_type(call, call.types[1:])
    when, then, otherwise = call.args

    def text(of: Callable[[Sql], str]) -> str:
        return f"(CASE WHEN {when.text} THEN {of(then)} ELSE {of(otherwise)} END)"

    known = narrow(then) and narrow(otherwise)
    return call.sql(text(lambda each: each.text), narrow=text(narrow) if known else "")


def _nanvl(call: Call) -> Sql:
    call.needs_types(FLOATING)
    _one_type(call, call.types)
    value, instead = call.texts
    return call.sql(f"(CASE WHEN isnan({value}) THEN {instead} ELSE {value} END)")


def _extreme(call: Call) -> Sql:
    comparable(call)
    # Zeros of both signs are equal: which one is kept is not shown.
    call.needs(call.type not in FLOATING and len(call.types) > 1, f"of {call.type}", "UNPROVEN_TYPE")
    return call.sql(f"{call.expression.kind.lower()}({', '.join(call.texts)})")


def _same(call: Call) -> Sql:
    return call.sql(call.texts[0])


def _at_least_non_null(call: Call) -> Sql:
    count = int(call.field("n"))
    there = []
    for arg in call.args:
        number = f" AND NOT isnan({arg.text})" if arg.type in FLOATING else ""
        there.append(f"CASE WHEN {arg.text} IS NOT NULL{number} THEN 1 ELSE 0 END")
    call.needs(bool(there), "of nothing")
    return call.sql(f"(({' + '.join(there)}) >= {count})")


_LITERALS = {
    "BOOLEAN": "true",
    "TINYINT": "-128Y",
    "SMALLINT": "-32768S",
    "INT": "-2147483648",
    "BIGINT": "9223372036854775807L",
    "FLOAT": "CAST('NaN' AS FLOAT)",
    "DOUBLE": "-1.0E-300D",
    "STRING": "'it''s \\u00e4 \\\\ \\n'",
    "DATE": "DATE '0001-01-01'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'",
    "TIMESTAMP": "TIMESTAMP '2020-02-29 12:00:00.1Z'",
    "DECIMAL(7,2)": "CAST(-12345.67BD AS DECIMAL(7,2))",
    "DECIMAL(38,18)": "CAST(0.000000000000000001BD AS DECIMAL(38,18))",
}
_CHOICES = ("INT", "DOUBLE", "STRING", "DATE", "DECIMAL(7,2)")

EQUIVALENTS = (
    Equivalent(
        "Literal",
        FAMILY,
        "a value of a known type; dates and timestamps of years 1 to 9999; strings without a zero byte",
        "the constant of the type from its text: digits of numbers are read as the nearest float or double "
        "(Double.toString has enough of them), all others exactly",
        tuple(Example(f"coalesce({{0}}, {text})", (each,)) for each, text in _LITERALS.items()),
        _literal,
    ),
    Equivalent(
        "Coalesce",
        FAMILY,
        "values of one type",
        "the first that is not null",
        tuple(Example("coalesce({0}, {1})", (each, each)) for each in _CHOICES),
        _coalesce,
    ),
    Equivalent(
        "CaseWhen",
        FAMILY,
        "conditions, and values of one type",
        "the value of the first condition that is true, else the last one or null",
        (
            *(
                Example("CASE WHEN {0} THEN {1} WHEN {2} THEN {1} END", ("BOOLEAN", each, "BOOLEAN"))
                for each in _CHOICES
            ),
            Example("CASE WHEN {0} > 0 THEN 'a' WHEN {0} < 0 THEN {1} ELSE 'c' END", ("INT", "STRING")),
            Example("CASE WHEN {0} = 0 THEN 0 ELSE 100 div {0} END", ("BIGINT",)),
        ),
        _case_when,
    ),
    Equivalent(
        "If",
        FAMILY,
        "a condition, and two values of one type",
        "the second where the condition is false or null",
        tuple(Example("if({0}, {1}, {2})", ("BOOLEAN", each, each)) for each in _CHOICES),
        _if,
    ),
    Equivalent(
        "NaNvl",
        FAMILY,
        "two floating-point numbers of one type",
        "the second where the first is NaN; null for a null",
        (Example("nanvl({0}, {1})", ("DOUBLE", "DOUBLE")),),
        _nanvl,
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "values of one type, no floating-point numbers",
            "nulls are passed over in both; equal values are the same",
            tuple(
                Example(f"{kind.lower()}({{0}}, {{1}})", (each, each))
                for each in ("INT", "STRING", "DATE", "DECIMAL(7,2)")
            ),
            _extreme,
        )
        for kind in ("Greatest", "Least")
    ),
    Equivalent("KnownNotNull", FAMILY, "anything", "the value itself", (), _same),
    Equivalent("KnownNullable", FAMILY, "anything", "the value itself", (), _same),
    Equivalent(
        "AtLeastNNonNulls",
        FAMILY,
        "a number, and values",
        "counts what is neither null nor NaN",
        (),
        _at_least_non_null,
    ),
)
