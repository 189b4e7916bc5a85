"""Three shapes of a result that is worth storing or not, and an action that reads all of it.

A remainder leaves out about a thousandth of the rows: every value of it makes a result that was never seen before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def heavy_prefix(spark: SparkSession, remainder: int) -> DataFrame:
    """A join of three tables: about 1.9 million rows of 6 columns at scale 1."""
    return (
        _lines(spark, remainder)
        .where(F.col("l_shipdate") >= "1996-07-01")
        .join(spark.table("orders"), F.col("l_orderkey") == F.col("o_orderkey"))
        .join(spark.table("part"), F.col("l_partkey") == F.col("p_partkey"))
        .select("o_orderdate", "o_orderpriority", "p_brand", "l_quantity", "l_extendedprice", "l_discount")
    )


def wide_scan(spark: SparkSession, remainder: int) -> DataFrame:
    """Cheap to compute, dear to write: about 1.3 million rows of all 16 columns at scale 1."""
    return _lines(spark, remainder).where(F.col("l_shipdate") >= "1997-07-15")


def aggregate(spark: SparkSession, remainder: int) -> DataFrame:
    """200 000 groups at scale 1."""
    return (
        _lines(spark, remainder)
        .groupBy("l_partkey")
        .agg(F.sum("l_quantity").alias("quantity"), F.max("l_shipdate").alias("last"), F.count("*").alias("lines"))
    )


FLOAT_AGGREGATES = "spark.regions.recycle.floatAggregates"

SHAPES: dict[str, Callable[[SparkSession, int], DataFrame]] = {
    function.__name__: function for function in (heavy_prefix, wide_scan, aggregate)
}


def checksum(frame: DataFrame) -> list[Any]:
    """Of every value, whatever the order of rows.

    A sum of doubles, which are not stored here, so that it is the frame below that is. The doubles are whole numbers
    below 2^53: the sum is exact.
    """
    value = F.pmod(F.xxhash64(*frame.columns), F.lit(1_000_003)).cast("double")
    conf = frame.sparkSession.conf
    conf.set(FLOAT_AGGREGATES, "false")
    try:
        return frame.agg(F.count("*"), F.sum(value)).collect()
    finally:
        conf.unset(FLOAT_AGGREGATES)


def _lines(spark: SparkSession, remainder: int) -> DataFrame:
    return spark.table("lineitem").where(F.col("l_orderkey") % 1009 != remainder)
