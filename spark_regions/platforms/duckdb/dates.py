"""Dates: days since 1970 in the proleptic Gregorian calendar in both (DateTimeUtils by java.time.LocalDate; date.cpp).

Two values are infinite for DuckDB, the greatest and the second least: these raise.
"""

from __future__ import annotations

from spark_regions.platforms.duckdb.text import INTEGRAL_BOUNDS, cast, finite, instant, local, within
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql

FAMILY = "dates"
DATE = frozenset({"DATE"})
MOMENTS = frozenset({"TIMESTAMP", "TIMESTAMP_NTZ"})
COUNTS = frozenset({"INT", "SMALLINT", "TINYINT"})
# DuckDB's expression of a date {0}.
PARTS = {
    "Year": "year({0})",
    "Quarter": "quarter({0})",
    "Month": "month({0})",
    "DayOfMonth": "day({0})",
    "DayOfYear": "dayofyear({0})",
    "DayOfWeek": "dayofweek({0}) + 1",
    "WeekDay": "isodow({0}) - 1",
    "WeekOfYear": "week({0})",
}
TIMES = {"Hour": "hour({0})", "Minute": "minute({0})", "Second": "second({0})"}
# What is taken off a date to come to the first day of a unit; names as of DateTimeUtils.parseTruncLevel.
FIRST_DAYS = {
    "WEEK": "isodow({0}) - 1",
    **dict.fromkeys(("MON", "MONTH", "MM"), "day({0}) - 1"),
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "dayofyear({0}) - 1"),
}


# Names as of DateTimeUtils.parseTruncLevel.
UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    **dict.fromkeys(("MON", "MONTH", "MM"), "month"),
    **dict.fromkeys(("DAY", "DD"), "day"),
    **{each: each.lower() for each in ("QUARTER", "WEEK", "HOUR", "MINUTE", "SECOND")},
}


def _part(call: Call) -> Sql:
    call.needs_types(DATE)
    text = call.texts[0]
    return call.sql(finite(text, cast(PARTS[call.expression.kind].format(text), "INTEGER"), "INTEGER"))


def _time(call: Call) -> Sql:
    call.needs_types(MOMENTS)
    found = TIMES[call.expression.kind].format(local(call, 0))
    return call.sql(finite(call.texts[0], cast(found, "INTEGER"), "INTEGER"))


def _truncate_time(call: Call) -> Sql:
    call.needs_types({"STRING"}, {"TIMESTAMP"})
    unit = call.literal(0).upper()
    call.needs(unit in UNITS, f"to {unit}")
    first = instant(call, f"date_trunc('{UNITS[unit]}', {local(call, 1)})")
    # What is before the first of all timestamps overflows in Spark.
    return call.sql(finite(call.texts[1], first, "TIMESTAMPTZ"), raises=True)


def _shift(call: Call) -> Sql:
    call.needs_types(DATE, COUNTS)
    date, days = call.texts
    sign = "+" if call.expression.kind == "DateAdd" else "-"
    return call.sql(finite(date, f"{date} {sign} {cast(days, 'INTEGER')}", "DATE"))


def _difference(call: Call) -> Sql:
    call.needs_types(DATE)
    end, start = call.texts
    return call.sql(within(f"({end} - {start})", INTEGRAL_BOUNDS["INT"], "BIGINT", "INTEGER"))


def _add_months(call: Call) -> Sql:
    call.needs_types(DATE, {"INT"})
    date, months = call.texts
    # Spark raises where the day is none of its dates.
    return call.sql(finite(date, cast(f"{date} + to_months({months})", "DATE"), "DATE"), raises=True)


def _last_day(call: Call) -> Sql:
    call.needs_types(DATE)
    date = call.texts[0]
    return call.sql(finite(date, f"last_day({date})", "DATE"))


def _truncate(call: Call) -> Sql:
    call.needs_types(DATE, {"STRING"})
    unit = call.literal(1).upper()
    call.needs(unit in FIRST_DAYS, f"to {unit}")
    date = call.texts[0]
    return call.sql(finite(date, f"{date} - {cast(FIRST_DAYS[unit].format(date), 'INTEGER')}", "DATE"))


_SPARK_NAMES = {"DayOfMonth": "day"}

EQUIVALENTS = (
    *(
        Equivalent(
            kind,
            FAMILY,
            "a date",
            "the calendar's number; the year before 1 is 0; weeks are ISO's; Sunday is 1 for `dayofweek` in Spark and "
            "0 in DuckDB, Monday 0 for `weekday` and 1 for `isodow`",
            (Example(f"{_SPARK_NAMES.get(kind, kind.lower())}({{0}})", ("DATE",)),),
            _part,
        )
        for kind in PARTS
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "a timestamp without zone, or in UTC",
            "of the time of its day, counted from midnight before it also before 1970",
            tuple(Example(f"{kind.lower()}({{0}})", (each,)) for each in sorted(MOMENTS)),
            _time,
        )
        for kind in TIMES
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "a date, a number of days",
            "sums of days; beyond all dates DuckDB raises",
            (Example(f"{name}({{0}}, {{1}})", ("DATE", "SMALLINT")), Example(f"{name}({{0}}, 30)", ("DATE",))),
            _shift,
        )
        for kind, name in (("DateAdd", "date_add"), ("DateSub", "date_sub"))
    ),
    Equivalent(
        "DateDiff",
        FAMILY,
        "two dates",
        "days between them; beyond an integer DuckDB raises",
        (Example("datediff({0}, {1})", ("DATE", "DATE")),),
        _difference,
    ),
    Equivalent(
        "AddMonths",
        FAMILY,
        "a date, a number of months",
        "the same day of the month, or its last (LocalDate.plusMonths; Interval::Add)",
        (Example("add_months({0}, {1})", ("DATE", "TINYINT")), Example("add_months({0}, -1)", ("DATE",))),
        _add_months,
    ),
    Equivalent(
        "LastDay",
        FAMILY,
        "a date",
        "the last day of its month",
        (Example("last_day({0})", ("DATE",)),),
        _last_day,
    ),
    Equivalent(
        "TruncDate",
        FAMILY,
        "a date, literal unit: year, month or week",
        "the first day of the unit, as Spark takes the days since it off (DateTimeUtils.truncDate)",
        tuple(Example(f"trunc({{0}}, '{unit}')", ("DATE",)) for unit in ("YEAR", "mm", "WEEK")),
        _truncate,
    ),
    Equivalent(
        "TruncTimestamp",
        FAMILY,
        "a literal unit from second to year, a timestamp in UTC",
        "the first moment of the unit, also before 1970; weeks begin on Monday (DateTimeUtils.truncTimestamp; "
        "date_trunc.cpp)",
        (
            *(Example(f"date_trunc('{unit}', {{0}})", ("TIMESTAMP",)) for unit in dict.fromkeys(UNITS.values())),
            Example("date_trunc('MM', {0}) > TIMESTAMP'1969-12-31 00:00:00'", ("TIMESTAMP",)),
            Example("date_trunc('DAY', {0}) = TIMESTAMP'2020-02-29 00:00:00'", ("TIMESTAMP",)),
        ),
        _truncate_time,
    ),
)
