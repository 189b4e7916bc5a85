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

EQUIVALENTS: tuple[Equivalent, ...] = (
    *conditional.EQUIVALENTS,
    *comparison.EQUIVALENTS,
    *arithmetic.EQUIVALENTS,
    *decimals.EQUIVALENTS,
    *casts.EQUIVALENTS,
    *strings.EQUIVALENTS,
    *dates.EQUIVALENTS,
    *aggregates.EQUIVALENTS,
)
TABLE = table_of(EQUIVALENTS)
