"""Sums and averages of floating-point numbers, for who does not mind their last digits.

Not equal, unlike all else: both add up doubles in the order in which rows come (Sum.scala, Average.scala; sum.cpp), and
that is another one here. Plain Spark's own results differ likewise from run to run, where rows are shuffled.
"""

from __future__ import annotations

from spark_regions.platforms.duckdb import EQUIVALENTS as PROVEN
from spark_regions.platforms.duckdb.text import cast
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql, table_of
from spark_regions.platforms.typed import FLOATING

FAMILY = "float sums"


def _added_up(call: Call) -> Sql:
    _ = call.ansi
    call.needs_types(FLOATING)
    call.needs(not call.how.distinct, "of distinct numbers")
    name = "sum" if call.expression.kind == "Sum" else "avg"
    return call.sql(call.aggregate(name, cast(call.texts[0], "DOUBLE")))


EQUIVALENTS = tuple(
    Equivalent(
        kind,
        FAMILY,
        "floating-point numbers, with spark.regions.platforms.floatSums",
        "up to the last digits: additions of doubles in another order, null of no value",
        tuple(Example(f"{name}({{0}})", (each,), grouped=True) for each in sorted(FLOATING)),
        _added_up,
    )
    for kind, name in (("Sum", "sum"), ("Average", "avg"))
)
TABLE = table_of((*PROVEN, *EQUIVALENTS))
