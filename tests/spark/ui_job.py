"""An application whose UI is looked at: a store in one query, loads in the next ones, and one that is left alone.

Commands, one a line: `run`, `decisions`, `counters`, `sql <statement>`, `post <event>`; each is answered by one line of
JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_regions

SECRET = "pa55word"


def session(folder: Path, port: str, confs: dict[str, str]) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("ui job")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.port", port)
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", (folder / "logs").as_uri())
        .config("spark.eventLog.rolling.enabled", "false")
        .config("spark.eventLog.compress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.redaction.string.regex", SECRET)
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.metrics.conf.*.sink.prometheusServlet.class", "org.apache.spark.metrics.sink.PrometheusServlet")
        .config("spark.metrics.conf.*.sink.prometheusServlet.path", "/metrics/prometheus")
    )
    for key, value in confs.items():
        builder = builder.config(key, value)
    return spark_regions.configure(
        builder,
        recycle_dir=folder / "store",
        recycle_strategy="always",
        planner_deadline="20s",
        sources_racy_seconds=0,  # its table is as old as the application
    ).getOrCreate()


def run(spark: SparkSession, table: str) -> dict[str, object]:
    rows = spark.read.parquet(table).where(f"name <> '{SECRET}'")
    totals = rows.groupBy("k").agg(F.count("*").alias("n"), F.max("name").alias("last"))
    first = totals.orderBy("k").collect()
    again = totals.orderBy("k").collect()
    spark.range(5).select(F.rand()).collect()
    return {"rows": len(first), "same": first == again}


def post(spark: SparkSession, event: str) -> bool:
    """An event of the event log's JSON, on Spark's listener bus."""
    java = spark.sparkContext._jvm
    told = java.org.apache.spark.util.JsonProtocol.sparkEventFromJson(event)  # type: ignore[union-attr]
    spark.sparkContext._jsc.sc().listenerBus().post(told)
    return True


def main(folder: Path, port: str, confs: dict[str, str]) -> None:
    (folder / "logs").mkdir(exist_ok=True)
    spark = session(folder, port, confs)
    table = str(folder / "table")
    if not Path(table).exists():
        names = spark.range(20_000).selectExpr("id", "id % 100 AS k", "sha2(cast(id AS string), 256) AS name")
        names.write.parquet(table)
    print(json.dumps({"application": spark.sparkContext.applicationId}), flush=True)
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "run":
            answer: object = run(spark, table)
        elif command == "decisions":
            answer = [row.asDict() for row in spark.sql("SELECT * FROM spark_regions_decisions()").collect()]
        elif command == "counters":
            answer = {row["key"]: row["value"] for row in spark.sql("SELECT * FROM spark_regions_status()").collect()}
        elif command == "post":
            answer = post(spark, rest)
        else:
            answer = len(spark.sql(rest).collect())
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
