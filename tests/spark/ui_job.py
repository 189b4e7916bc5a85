"""An application whose UI is looked at: a store in one query, loads in the next ones, and one that is left alone.

Commands, one a line: `run`, `decisions`, `counters`, `explore`, `many`, `sql <statement>`, `post <event>`; each is
answered by one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions

SECRET = "pa55word"
HOSTILE = "</script><img src=x onerror='window.hurt = 1'>" + "w" * 80


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


def explore(spark: SparkSession, folder: Path) -> Iterator[dict[str, object]]:
    """Scopes within scopes. The third branch waits for a file."""
    rows = spark.read.parquet(str(folder / "table"))

    def count(found: DataFrame) -> float:
        counted = found.count()
        while counted == 10_000 and not (folder / "go").exists():
            time.sleep(0.1)
        return float(counted)

    def split(found: DataFrame, m: int) -> DataFrame:
        runs = spark_regions.explore(r=[0, 1])(lambda r: found.where(F.col("k") % m == r))
        return runs.choose(count, spark_regions.minimum).frame

    runs = spark_regions.explore(low=[0, 25, 50, 75], note=[HOSTILE], token=[SECRET])(
        lambda low, note, token: rows.where(F.col("k") >= low)
    )
    kept = runs.choose(count, spark_regions.top(2), parallel=1)
    yield {"held": len(kept.frames)}
    best = kept.explore(m=[2, 3])(split).choose(count, spark_regions.minimum)
    yield {"parameters": {name: best.parameters[name] for name in ("low", "m")}}
    kept.release()
    yield {"released": True}


def many(spark: SparkSession) -> dict[str, object]:
    """More branches than are told one by one; the last two are kept."""
    runs = spark_regions.explore(x=range(1200))(lambda x: x)
    return {"values": runs.choose(float, spark_regions.top(2), parallel=1).values}


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
    explored: Iterator[dict[str, object]] | None = None
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "run":
            answer: object = run(spark, table)
        elif command == "decisions":
            answer = [row.asDict() for row in spark.sql("SELECT * FROM spark_regions_decisions()").collect()]
        elif command == "counters":
            answer = {row["key"]: row["value"] for row in spark.sql("SELECT * FROM spark_regions_status()").collect()}
        elif command == "explore":
            explored = explored or explore(spark, folder)
            answer = next(explored)
        elif command == "many":
            answer = many(spark)
        elif command == "post":
            answer = post(spark, rest)
        else:
            answer = len(spark.sql(rest).collect())
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
