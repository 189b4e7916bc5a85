"""An application of many small queries, and one of a thousand operators, whose UI is measured.

python ui_job.py <folder> <UI port> <queries> <confs as JSON>

Prints a line of JSON, and waits for a line before it ends.
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

BRANCHES = 334
"""Each a projection, a filter and a relation."""


def heap_bytes(spark: SparkSession) -> int:
    """Bytes of the driver's heap that live objects take."""
    jvm: Any = spark.sparkContext._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    used = []
    for _ in range(4):
        jvm.java.lang.System.gc()
        used.append(runtime.totalMemory() - runtime.freeMemory())
    return int(min(used))


def main(folder: Path, port: str, queries: int, confs: dict[str, str]) -> None:
    builder = SparkSession.builder.appName("ui benchmark")
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.ui.port": port,
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.sql.shuffle.partitions": "2",
        # The table is as old as the application.
        "spark.regions.sources.racySeconds": "0",
    }
    for key, value in (settings | confs).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    table = str(folder / "table")
    spark.range(2000).selectExpr("id", "id % 7 AS k").write.mode("overwrite").parquet(table)
    rows = spark.read.parquet(table)
    before = heap_bytes(spark)
    sums = [rows.where(f"id > {number}").groupBy("k").count().collect() for number in range(queries)]
    after = heap_bytes(spark)
    wide: DataFrame = reduce(
        DataFrame.unionAll,
        [rows.where(f"id <> {number}").selectExpr(f"k + {number} AS v") for number in range(BRANCHES)],
    )
    many = wide.where("v < 0").limit(5).collect()
    facts = {"heap_before": before, "heap_after": after, "digest": hash((str(sums), str(many)))}
    print(json.dumps(facts | {"application": spark.sparkContext.applicationId}), flush=True)
    sys.stdin.readline()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
