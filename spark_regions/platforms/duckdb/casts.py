"""Casts. In ANSI mode Spark raises where a value does not fit. In the other mode it gives null for decimals, as is said
here; of integers it keeps bits or saturates, where DuckDB raises, and Spark runs. The zone of a cast matters to
timestamps alone, of which it is UTC.
"""

from __future__ import annotations

from collections.abc import Callable

from spark_regions.platforms.duckdb.arithmetic import most
from spark_regions.platforms.duckdb.dates import MOMENTS
from spark_regions.platforms.duckdb.text import (
    INTEGRAL_BOUNDS,
    beyond,
    cast,
    constant,
    engine_type,
    finite,
    instant,
    local,
    narrow,
    unless,
    within,
)
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql
from spark_regions.platforms.typed import FLOATING, INTEGRAL_DIGITS, Expression, decimal_of, decimal_type

FAMILY = "casts"
INTEGRAL = frozenset(INTEGRAL_DIGITS)
# Any decimal of so many digits is the nearest one to its nearest double; 2^53 has 16.
DOUBLE_DIGITS = 15
# Powers of ten up to this one are doubles.
DOUBLE_POWERS = 22


def _cast(rule: Callable[[Call, str, str], Sql]) -> Callable[[Call], Sql]:
    """A rule of the types of a cast, from and to."""

    def of(call: Call) -> Sql:
        _ = call.ansi
        call.ignore("timeZoneId")
        return rule(call, call.types[0], call.type)

    return of


def _takes(call: Call, condition: bool) -> None:
    call.needs(condition, f"from {call.types[0]} to {call.type}", "UNPROVEN_TYPE")


def _integer(call: Call, given: str, to: str) -> Sql:
    _takes(call, given in INTEGRAL | {"BOOLEAN"} and to in INTEGRAL | FLOATING | {"BOOLEAN"})
    narrows = INTEGRAL_DIGITS.get(given, 1) > INTEGRAL_DIGITS.get(to, INTEGRAL_DIGITS["BIGINT"]) and to != "BOOLEAN"
    if not narrows or most(call.expression) is not None:
        return call.sql(cast(call.texts[0], engine_type(to)))
    return call.sql(within(call.texts[0], INTEGRAL_BOUNDS[to], engine_type(given), engine_type(to)), raises=call.ansi)


def _integer_to_decimal(call: Call, given: str, to: str) -> Sql:
    known = decimal_of(to)
    _takes(call, given in INTEGRAL and known is not None)
    assert known
    digits = known[0] - known[1]
    if digits >= INTEGRAL_DIGITS[given]:
        return call.sql(cast(call.texts[0], to))
    text = call.texts[0]
    return _checked(call, beyond(text, _digits(digits), engine_type(given)), cast(text, to))


def _checked(call: Call, overflow: str, text: str) -> Sql:
    """A cast to a decimal. It would raise by itself, but null has to be seen, also by DuckDB's optimizer."""
    if call.ansi:
        return call.sql(unless(overflow, "overflow", text, call.type), raises=True)
    return call.sql(f"(CASE WHEN {overflow} THEN NULL ELSE {text} END)")


def _digits(count: int) -> tuple[int, int]:
    """Whole numbers of so many digits.

    >>> _digits(2)
    (-99, 99)
    """
    return 1 - 10**count, 10**count - 1


def _floating(call: Call, given: str, to: str) -> Sql:
    _takes(call, given in FLOATING and to in FLOATING)
    return call.sql(cast(call.texts[0], to))


def _floating_to_integer(call: Call, given: str, to: str) -> Sql:
    _takes(call, given in FLOATING and to in INTEGRAL)
    return call.sql(cast(f"trunc({call.texts[0]})", engine_type(to)), raises=call.ansi)


def _decimal(call: Call, given: str, to: str) -> Sql:
    old, new = decimal_of(given), decimal_of(to)
    _takes(call, bool(old and new))
    assert old and new
    (p1, s1), (precision, scale) = old, new
    # DuckDB's check adds the last digit that is cut off, which must stay within 128 bits.
    _takes(call, s1 - scale < 38)
    text, digits = call.texts[0], precision - scale
    if digits >= p1 - s1 + (scale < s1):
        return call.sql(cast(text, to), narrow=narrow(call.args[0]) if scale == s1 else "")
    # The least number that is rounded to one digit more than there is room for.
    bound = 10 ** (digits + s1) - (5 * 10 ** (s1 - scale - 1) if scale < s1 else 0)
    return _checked(call, f"abs({text}) >= {_unscaled(bound, s1)}", cast(text, to))


def _unscaled(number: int, scale: int) -> str:
    """A constant from its unscaled number.

    >>> _unscaled(9995, 2)
    "CAST('99.95' AS DECIMAL(4,2))"
    """
    digits = str(number).rjust(scale + 1, "0")
    at = len(digits) - scale
    return constant(f"{digits[:at]}.{digits[at:]}".rstrip("."), decimal_type(max(len(str(number)), scale), scale))


def _decimal_to_integer(call: Call, given: str, to: str) -> Sql:
    """In ANSI mode Spark goes by way of a double (`Decimal.roundToInt`), but for bigints: of up to 15 digits its whole
    part is the decimal's."""
    known = decimal_of(given)
    _takes(call, known is not None and to in INTEGRAL)
    assert known
    precision, scale = known
    engine = engine_type(to)
    text = call.texts[0]
    whole = f"trunc({text})"
    if fits := precision - scale < INTEGRAL_DIGITS[to]:
        whole = cast(whole, engine)
    else:
        whole = within(whole, INTEGRAL_BOUNDS[to], decimal_type(INTEGRAL_DIGITS[to], 0), engine)
    if call.ansi and to != "BIGINT" and precision > DOUBLE_DIGITS:
        _takes(call, scale < DOUBLE_DIGITS)
        bound = constant("1" + "0" * (DOUBLE_DIGITS - scale), decimal_type(DOUBLE_DIGITS - scale + 1, 0))
        whole = unless(f"abs({text}) >= {bound}", "too many digits", whole, engine)
    return call.sql(whole, raises=call.ansi and not fits)


def _decimal_to_double(call: Call, given: str, to: str) -> Sql:
    """Spark takes the nearest double (`BigDecimal.doubleValue`). So does DuckDB, dividing a double by a double, where
    the unscaled number and the power of ten are doubles: up to 2^53."""
    known = decimal_of(given)
    _takes(call, known is not None and to == "DOUBLE" and known[1] <= DOUBLE_POWERS)
    assert known
    precision, scale = known
    text = call.texts[0]
    if precision <= DOUBLE_DIGITS:
        return call.sql(cast(text, "DOUBLE"))
    overflow = f"abs({text}) > {_unscaled(2**53, scale)}"
    return call.sql(unless(overflow, "too many digits", cast(text, "DOUBLE"), "DOUBLE"))


def _double_to_decimal(call: Call, given: str, to: str) -> Sql:
    """Spark rounds the decimal that Java writes of a double, half up; DuckDB rounds the shortest one that is read back
    as the double, likewise. Both lie on one side of a tie: between them any decimal is read back as the double, and a
    tie of up to 15 digits would be shorter. DuckDB writes smaller numbers with an exponent, and rounds these twice.
    """
    known = decimal_of(to)
    _takes(call, given == "DOUBLE" and known is not None)
    assert known
    digits = min(known[0] - known[1], DOUBLE_DIGITS - 1 - known[1])
    _takes(call, digits > 0)
    text = call.texts[0]
    least = constant("0.0001", "DOUBLE")
    short = cast(cast(text, "VARCHAR"), to)
    if _short_average(call.expression.children[0]) == (known[0] - 4, known[1] - 4) and known[0] - known[1] == digits:
        return call.sql(unless(f"{text} <> 0 AND abs({text}) < {least}", "small double", short, to))
    fits = f"abs({text}) NOT BETWEEN {least} AND {constant(str(10**digits - 1), 'DOUBLE')}"
    return call.sql(unless(f"{text} <> 0 AND {fits}", "double", short, to), raises=call.ansi)


def _short_average(quotient: Expression) -> tuple[int, int] | None:
    """Precision and scale of what is averaged, if Catalyst's DecimalAggregates made the quotient of an average."""
    if quotient.kind != "Divide" or quotient.children[0].kind not in ("AggregateExpression", "WindowExpression"):
        return None
    found = quotient.children[0].children[0]
    average = found.children[0] if found.kind == "AggregateExpression" else found
    if average.kind != "Average" or average.children[0].kind != "UnscaledValue":
        return None
    return decimal_of(average.children[0].children[0].type)


def _to_string(call: Call, given: str, to: str) -> Sql:
    _takes(call, to == "STRING")
    text = call.texts[0]
    if known := decimal_of(given):
        # DuckDB leaves out the zero before the point of a decimal without digits there.
        _takes(call, known[0] < 38 and (call.ansi or known[1] <= 6))
        wider = cast(text, decimal_type(known[0] + 1, known[1])) if known[0] == known[1] else text
        return call.sql(cast(wider, "VARCHAR"))
    if given == "DATE":
        years = f"{constant('0001-01-01', 'DATE')} AND {constant('9999-12-31', 'DATE')}"
        return call.sql(unless(f"{text} NOT BETWEEN {years}", "year", cast(text, "VARCHAR"), "VARCHAR"))
    _takes(call, given in INTEGRAL | {"BOOLEAN"})
    return call.sql(cast(text, "VARCHAR"))


def _date_and_timestamp(call: Call, given: str, to: str) -> Sql:
    _takes(call, (given == "DATE" and to in MOMENTS) or (given in MOMENTS and to == "DATE"))
    engine = engine_type(to)
    text = instant(call, cast(local(call, 0), "TIMESTAMP")) if to == "TIMESTAMP" else cast(local(call, 0), engine)
    # Spark's product of days and microseconds is checked, whatever the mode.
    return call.sql(finite(call.texts[0], text, engine), raises=to != "DATE")


def _examples(*pairs: tuple[str, str]) -> tuple[Example, ...]:
    return tuple(Example(f"CAST({{0}} AS {to})", (given,)) for given, to in pairs)


def _entry(args: str, why: str, examples: tuple[Example, ...], rule: Callable[[Call, str, str], Sql]) -> Equivalent:
    return Equivalent("Cast", FAMILY, args, why, examples, _cast(rule))


EQUIVALENTS = (
    _entry(
        "an integer or a boolean to another, or to a floating-point number",
        "narrower integers are checked in DuckDB (TryCastWithOverflowCheck); doubles and floats are the nearest in "
        "C++ and the JVM; true is 1, and any number but 0 true",
        (
            *_examples(
                ("INT", "BIGINT"),
                ("BIGINT", "INT"),
                ("INT", "TINYINT"),
                ("BIGINT", "DOUBLE"),
                ("BIGINT", "FLOAT"),
                ("INT", "BOOLEAN"),
                ("BOOLEAN", "INT"),
            ),
            Example("CAST({0} AS INT) = 5", ("BIGINT",)),
            Example("CAST({0} AS TINYINT) IN (5, 7)", ("INT",)),
        ),
        _integer,
    ),
    _entry(
        "an integer to a decimal",
        "the number itself, or too many digits, on which DuckDB raises (StandardNumericToDecimalCast)",
        (
            *_examples(
                ("INT", "DECIMAL(10,0)"),
                ("INT", "DECIMAL(7,2)"),
                ("BIGINT", "DECIMAL(20,0)"),
                ("BIGINT", "DECIMAL(38,20)"),
            ),
            Example("CAST({0} AS DECIMAL(5,0)) < 7", ("INT",)),
        ),
        _integer_to_decimal,
    ),
    _entry(
        "a float to a double, a double to a float",
        "the nearest float in both; DuckDB raises on a double beyond all floats",
        _examples(("FLOAT", "DOUBLE"), ("DOUBLE", "FLOAT")),
        _floating,
    ),
    _entry(
        "a floating-point number to an integer",
        "Spark cuts off the fraction, DuckDB would round it: so it is cut off first; what is no number of the type "
        "raises",
        _examples(("DOUBLE", "INT"), ("DOUBLE", "BIGINT"), ("DOUBLE", "TINYINT"), ("FLOAT", "INT")),
        _floating_to_integer,
    ),
    _entry(
        "a decimal to a decimal",
        "half up, away from zero, in both (Decimal.changePrecision; DecimalScaleDownOperator)",
        (
            *_examples(
                ("DECIMAL(7,2)", "DECIMAL(12,4)"),
                ("DECIMAL(7,2)", "DECIMAL(6,1)"),
                ("DECIMAL(38,10)", "DECIMAL(20,2)"),
                ("DECIMAL(18,18)", "DECIMAL(18,9)"),
            ),
            Example("CAST({0} AS DECIMAL(4,2)) > 5", ("DECIMAL(7,2)",)),
        ),
        _decimal,
    ),
    _entry(
        "a decimal to an integer",
        "the fraction is cut off in both",
        (
            *_examples(
                ("DECIMAL(7,2)", "INT"),
                ("DECIMAL(17,2)", "INT"),
                ("DECIMAL(38,10)", "BIGINT"),
                ("DECIMAL(7,2)", "TINYINT"),
            ),
            Example("CAST({0} AS TINYINT) = 5", ("DECIMAL(7,2)",)),
        ),
        _decimal_to_integer,
    ),
    _entry(
        "a decimal to a double",
        "the nearest double in both",
        _examples(
            ("DECIMAL(7,2)", "DOUBLE"),
            ("DECIMAL(17,2)", "DOUBLE"),
            ("DECIMAL(38,10)", "DOUBLE"),
            ("DECIMAL(18,18)", "DOUBLE"),
        ),
        _decimal_to_double,
    ),
    _entry(
        "a double to a decimal of up to 14 digits after the first",
        "half up, of the decimal that is written of the double: another one in Java than in DuckDB, but on the same "
        "side of a tie, which would be shorter than both; numbers of another size raise in DuckDB",
        (
            *_examples(("DOUBLE", "DECIMAL(12,4)"), ("DOUBLE", "DECIMAL(11,6)"), ("DOUBLE", "DECIMAL(5,0)")),
            Example("CAST({0} AS DECIMAL(9,2)) < 7", ("DOUBLE",)),
            Example("CAST(CAST({0} AS DOUBLE) / 3200 AS DECIMAL(11,6))", ("INT",)),
            *(Example("avg({0})", (each,), grouped=True) for each in ("DECIMAL(7,2)", "DECIMAL(4,0)")),
            Example("avg({0}) OVER (PARTITION BY {1})", ("DECIMAL(7,2)", "TINYINT")),
        ),
        _double_to_decimal,
    ),
    _entry(
        "an integer, a boolean, a decimal or a date to a string",
        "digits, `true`, all fractional digits, and year-month-day of years with four digits, in both",
        _examples(
            ("BIGINT", "STRING"),
            ("BOOLEAN", "STRING"),
            ("DECIMAL(7,2)", "STRING"),
            ("DECIMAL(6,6)", "STRING"),
            ("DATE", "STRING"),
        ),
        _to_string,
    ),
    _entry(
        "a date to a timestamp without zone or in UTC, and back",
        "midnight; the day that it is in, also before 1970",
        _examples(("DATE", "TIMESTAMP_NTZ"), ("DATE", "TIMESTAMP"), ("TIMESTAMP_NTZ", "DATE"), ("TIMESTAMP", "DATE")),
        _date_and_timestamp,
    ),
)
