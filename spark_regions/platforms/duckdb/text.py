"""Pieces of DuckDB's SQL: types, casts, literals, and what raises."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spark_regions.platforms.equivalents import Call, Sql, Unproven
from spark_regions.platforms.typed import decimal_of

ENGINE_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "BOOLEAN": "BOOLEAN",
        "TINYINT": "TINYINT",
        "SMALLINT": "SMALLINT",
        "INT": "INTEGER",
        "BIGINT": "BIGINT",
        "FLOAT": "FLOAT",
        "DOUBLE": "DOUBLE",
        "STRING": "VARCHAR",
        "DATE": "DATE",
        "TIMESTAMP": "TIMESTAMPTZ",
        "TIMESTAMP_NTZ": "TIMESTAMP",
    }
)
"""Spark's types, but for decimals, whose names are the same. The values of both are the same bits; a string is UTF-8
for DuckDB, which refuses files with others. Strings with a collation have another name in Spark."""
UNTOLD = "NOT_IN_STATISTICS"
"""The code of a refusal, and what begins the message of what raises for it; a column of files follows."""
INTEGRAL_BOUNDS = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INT": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
}


def engine_type(data_type: str) -> str:
    """
    >>> engine_type("INT"), engine_type("DECIMAL(7,2)")
    ('INTEGER', 'DECIMAL(7,2)')
    """
    if decimal_of(data_type):
        return data_type
    if data_type not in ENGINE_TYPES:
        raise Unproven("UNPROVEN_TYPE", data_type)
    return ENGINE_TYPES[data_type]


INT64_DIGITS = 18
"""Decimals of up to so many digits have 64 bits."""


def narrow(found: Sql) -> str:
    """A decimal in a type of 64 bits, where there is one; else nothing."""
    digits = decimal_of(found.type)
    return found.text if digits and digits[0] <= INT64_DIGITS else found.narrow


def cast(text: str, to: str) -> str:
    """:param to: a type of DuckDB"""
    return f"CAST({text} AS {to})"


def quoted(value: str) -> str:
    """A string literal.

    >>> quoted("it's")
    "'it''s'"
    """
    if "\0" in value:
        raise Unproven("UNPROVEN_ARGUMENT", "a string literal with a zero byte")
    return "'" + value.replace("'", "''") + "'"


def constant(value: str, to: str) -> str:
    """A constant of a type of DuckDB, from its text."""
    return cast(quoted(value), to)


def raising(why: str, to: str) -> str:
    """What raises wherever it is evaluated, with `why` in the message. `error()` would be volatile, which keeps filters
    from where they are cheapest; an impossible cast is not, and is evaluated only in the rows of its branch.

    >>> raising("too many rows", "BIGINT")
    "CAST('too many rows' AS BIGINT)"
    """
    if to == "VARCHAR":
        return cast(constant(why, "INTEGER"), to)
    return constant(why, to)


def unless(condition: str, why: str, text: str, to: str) -> str:
    """`text`, in brackets; raises where the condition is true."""
    return f"(CASE WHEN {condition} THEN {raising(why, to)} ELSE {text} END)"


def within(text: str, bounds: tuple[int, int], known_as: str, to: str) -> str:
    """A number cast to a type with fewer values; raises beyond these bounds. The cast would raise by itself, but
    DuckDB's optimizer takes a cast off a side of a comparison with a constant (comparison_simplification.cpp), and its
    error.

    :param known_as: the number's own type
    """
    return unless(beyond(text, bounds, known_as), "overflow", cast(text, to), to)


def beyond(text: str, bounds: tuple[int, int], known_as: str) -> str:
    low, high = (constant(str(each), known_as) for each in bounds)
    return f"{text} NOT BETWEEN {low} AND {high}"


def finite(date: str, text: str, to: str) -> str:
    """`text` for a date or timestamp, null for null. Two of Spark's values are infinite ones in DuckDB: these raise."""
    return f"(CASE WHEN isfinite({date}) THEN {text} WHEN {date} IS NOT NULL THEN {raising('infinite', to)} END)"


UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00"})
"""Zones whose local time is that of the instant. Of others' rules Java and DuckDB may know different versions."""


def _in_utc(call: Call) -> None:
    zone = call.field("timeZoneId")
    call.needs(zone in UTC, f"in {zone}")


def local(call: Call, position: int) -> str:
    """A date or timestamp without zone, or the time in its zone of one that is an instant.

    :raises Unproven: of an instant in another zone than UTC
    """
    text = call.texts[position]
    if call.types[position] != "TIMESTAMP":
        call.ignore("timeZoneId")
        return text
    _in_utc(call)
    return f"make_timestamp(epoch_us({text}))"


def instant(call: Call, text: str) -> str:
    """The instant of a timestamp without zone.

    :raises Unproven: in another zone than UTC
    """
    _in_utc(call)
    return f"make_timestamptz(epoch_us({text}))"
