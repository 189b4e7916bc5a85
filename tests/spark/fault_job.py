"""A small job in a process of its own, steered by lines on stdin, so that a test can break things in between.

    python -m tests.spark.fault_job <folder of tables> <confs as JSON>

Each line `run` is answered by one line of JSON: the queries' rows, or the error class, and what the plugin says.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from benchmarks.session import BASE, decisions, register, settle, status

QUERIES = (
    "SELECT o_orderpriority, count(*) AS n, sum(l_quantity) AS q FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
    " GROUP BY o_orderpriority",
    "SELECT l_orderkey, l_linenumber, o_custkey FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
    " WHERE l_quantity > 45",
)


def main() -> None:
    tables, confs = Path(sys.argv[1]), json.loads(sys.argv[2])
    builder = SparkSession.builder.appName("faults")
    for key, value in (BASE | {"spark.driver.memory": "1g"} | confs).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        if line.strip() == "run":
            print(json.dumps(answer(spark, tables)), flush=True)
    spark.stop()


def answer(spark: SparkSession, tables: Path) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        register(spark, tables)
        rows = [sorted(str(tuple(row)) for row in spark.sql(query).collect()) for query in QUERIES]
        found: dict[str, Any] = {"rows": rows, "error": None}
    except PySparkException as error:
        found = {"rows": None, "error": error.getCondition() or type(error).__name__}
    found["seconds"] = time.perf_counter() - start
    if "spark.jars" not in dict(spark.sparkContext.getConf().getAll()):
        return found
    settle(spark)
    return found | {"status": status(spark), "decisions": [str(decision) for decision in decisions(spark)]}


if __name__ == "__main__":
    main()
