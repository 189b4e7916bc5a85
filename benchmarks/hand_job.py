"""The orders job with its base materialized by hand: what a careful engineer would have written.

spark-submit --py-files examples/orders_report.py hand_job.py <tables> <output> memory_and_disk|disk_only|write_and_read
"""

import json
import sys
import time
from pathlib import Path

import orders_report
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession


def materialized(spark: SparkSession, lines: DataFrame, kind: str, output: Path) -> DataFrame:
    if kind == "memory_and_disk":
        return lines.persist(StorageLevel.MEMORY_AND_DISK)
    if kind == "disk_only":
        return lines.persist(StorageLevel.DISK_ONLY)
    if kind == "write_and_read":
        folder = str(output / "base")
        lines.write.parquet(folder)
        return spark.read.parquet(folder)
    raise ValueError(f"unknown kind {kind!r}")


def main() -> None:
    tables, output, kind = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    spark = SparkSession.builder.appName(f"orders report, {kind}").getOrCreate()
    start = time.perf_counter()
    lines = materialized(spark, orders_report.clean_lines(spark, tables), kind, output)
    seconds = {"materialize": time.perf_counter() - start}
    seconds |= orders_report.run_reports(lines, output)
    (output / "seconds.json").write_text(json.dumps(seconds))
    spark.stop()


if __name__ == "__main__":
    main()
