"""DuckDB: a part of a query as one statement over the same files."""

from __future__ import annotations

from spark_regions.platforms.duckdb import (
    aggregates,
    arithmetic,
    casts,
    comparison,
    conditional,
    dates,
    decimals,
    strings,
)
from spark_regions.platforms.equivalents import Equivalent, table_of

PROVEN = ("1.5",)
"""Minor versions whose sources were read, and which the tests of the entries run on."""

FAMILIES = (conditional, comparison, arithmetic, decimals, casts, strings, dates, aggregates)
EQUIVALENTS: tuple[Equivalent, ...] = tuple(each for family in FAMILIES for each in family.EQUIVALENTS)
TABLE = table_of(EQUIVALENTS)
