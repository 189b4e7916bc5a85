"""A driver process that does one thing at a time as it is told: a line of JSON in, a line of JSON out.

Started by `benchmarks.turns`. Standard output is kept for the answers: whatever else writes there goes to the log.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from benchmarks import shapes
from benchmarks.rows import digest

Answer = dict[str, Any]
ROUNDS_PER_MILLI = 2000
"""Of SHA-256 over 32 bytes, on one core."""


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    builder = SparkSession.builder.appName("spark_regions benchmark")
    for key, value in json.loads(sys.stdin.readline()).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    java = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")  # type: ignore[union-attr]
    print(json.dumps({"spark": spark.version, "java": java}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(TASKS[request.pop("task")](spark, **request)), file=answers)
    spark.stop()


def register(spark: SparkSession, tables: Mapping[str, str]) -> Answer:
    for name, file in tables.items():
        spark.read.parquet(file).createOrReplaceTempView(name)
    return {}


def python_function(spark: SparkSession, name: str) -> Answer:
    """A function of SQL that Python computes."""
    spark.udf.register(name, lambda value: value + 1, "long")
    return {}


def query(spark: SparkSession, text: str, confs: Mapping[str, str] = {}) -> Answer:
    """Seconds from the text to the rows, and those until everything that the query left behind is done.

    :param confs: of the session from now on
    """
    for key, value in confs.items():
        spark.conf.set(key, value)
    return _measured(spark, lambda: spark.sql(text).collect())


def tasks(spark: SparkSession, text: str, end: str = "collect") -> Answer:
    """A query, and of each of its tasks when it started, how long it ran, also on a core, and what it read.

    :param end: `collect`; `write` to files, whose rows and, if the query sorts by `k`, order are the answer;
        `apply`, a Python function of the groups of `k`
    """
    if end == "write":
        return _written(spark, text)
    return _with_tasks(spark, text, lambda: (_applied(spark, text) if end == "apply" else spark.sql(text)).collect())


def _with_tasks(spark: SparkSession, text: str, action: Callable[[], list[Any]]) -> Answer:
    context = spark.sparkContext
    group = f"tasks of {time.time_ns()}"
    context.setJobGroup(group, text[:100])
    before = max((each["query"] for each in _decisions(spark)), default=-1)
    answer = _measured(spark, action)
    decided = [each for each in _decisions(spark) if each["query"] > before]
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}  # type: ignore[union-attr]
    found = []
    for stage in sorted(stages):
        listed = store.taskList(stage, 0, 100_000)
        for number in range(listed.size()):
            task = listed.apply(number)
            metrics = task.taskMetrics().get()
            read = metrics.shuffleReadMetrics()
            size = read.localBytesRead() + read.remoteBytesRead()
            start = task.launchTime().getTime() / 1000
            seconds, cpu = task.duration().get() / 1000, metrics.executorCpuTime() / 1e9
            told = {"stage": stage, "start": start, "seconds": seconds, "cpu": cpu}
            found.append(told | {"read": size > 100_000})
    return answer | {"tasks": found, "actions": [action for each in decided for action in each["actions"]]}


def _written(spark: SparkSession, text: str) -> Answer:
    from pyspark.sql import functions as F

    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:

        def write() -> list[Any]:
            spark.sql(text).write.mode("overwrite").parquet(folder)
            return []

        answer = _with_tasks(spark, text, write)
        files = spark.read.parquet(folder)
        sums: list[tuple[Any, ...]] = list(files.agg(F.count("*"), F.sum(F.xxhash64("*") % 1_000_003)).collect())
        if "ORDER BY k" in text:
            ends = files.groupBy(F.input_file_name()).agg(F.min("k"), F.max("k")).orderBy(F.input_file_name()).collect()
            bounds = [bound for _, low, high in ends for bound in (low, high)]
            sums.append((bounds == sorted(bounds),))
    return answer | {"rows": sums[0][0], "digest": digest(sums)}


def _applied(spark: SparkSession, text: str) -> DataFrame:
    from pyspark.sql import functions as F

    def ranked(group: Any) -> Any:
        group["rank"] = group["v"].rank(method="dense")
        return group.groupby("rank", as_index=False).agg(k=("k", "first"), n=("v", "count"))[["k", "n"]]

    found = spark.sql(text).groupBy("k").applyInPandas(ranked, "k long, n long")
    return found.agg(F.count("*"), F.sum("n"), F.max("n"), F.sum(F.col("k") * F.col("n")))


def groups(spark: SparkSession, text: str, millis: float) -> Answer:
    """A Python function of each group of a query's `k`, which takes the group's `work` times `millis`."""
    from pyspark.sql import functions as F

    def busy(group: Any) -> Any:
        work = int(group["work"].iloc[0] * millis * ROUNDS_PER_MILLI)
        sha = b""
        for _ in range(work):
            sha = hashlib.sha256(sha).digest()
        return group.assign(found=sha.hex())[["k", "n", "found"]]

    frame = spark.sql(text).groupBy("k").applyInPandas(busy, "k long, n long, found string")
    return _measured(spark, lambda: frame.groupBy("found").agg(F.sum("n"), F.max("k")).collect())


def plan(spark: SparkSession, text: str) -> Answer:
    """Seconds for the optimized and the physical plan; parsing and analysis are before, execution is not done."""
    frame = spark.sql(text)
    execution = frame._jdf.queryExecution()
    start = time.perf_counter()
    execution.optimizedPlan()
    execution.executedPlan()
    return {"seconds": time.perf_counter() - start, "schema": frame.schema.simpleString()}


def shape(spark: SparkSession, name: str, remainder: int, disk_only: bool) -> Answer:
    """One action over a shape of `benchmarks.shapes`."""
    frame = shapes.SHAPES[name](spark, remainder)
    return _measured(spark, lambda: _persisted(frame) if disk_only else shapes.checksum(frame))


def status(spark: SparkSession) -> Answer:
    from spark_regions import status

    settle(spark)
    return dict(status(spark).rows)


def last_decision(spark: SparkSession) -> Answer:
    """The newest one on a query; what is told later of what it stores, or of its stages, is no decision on it."""
    return next(reversed(_on_queries(_decisions(spark))), {})


def decided(spark: SparkSession, since: float) -> Answer:
    """Milliseconds of all decisions on queries since a time (epoch, in seconds)."""
    found = _on_queries(_decisions(spark, limit=100_000))
    found = [each for each in found if each["epochMillis"] >= 1000 * since]
    return {name: [each[name] for each in found] for name in ("planningMillis", "plannerMillis")}


def _on_queries(found: list[Answer]) -> list[Answer]:
    return [each for each in found if each["session"] and not each["topic"]]


def _decisions(spark: SparkSession, limit: int = 30) -> list[Answer]:
    """The newest decisions; none without the plugin."""
    if not _with_plugin(spark):
        return []
    from spark_regions import decisions

    return list(decisions(spark, limit=limit))


TASKS: dict[str, Callable[..., Answer]] = {
    function.__name__: function
    for function in (register, python_function, query, tasks, groups, plan, shape, status, last_decision, decided)
}


def settle(spark: SparkSession) -> None:
    """Wait until every listener has seen what happened, and the planner has answered what it was told."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    if _with_plugin(spark):
        from spark_regions import status

        status(spark)  # the planner takes its requests in order


def _with_plugin(spark: SparkSession) -> bool:
    return spark.conf.get("spark.regions.enabled", "false") == "true"


def _measured(spark: SparkSession, action: Callable[[], list[Any]]) -> Answer:
    start = time.perf_counter()
    rows = action()
    seconds = time.perf_counter() - start
    settle(spark)
    settled = time.perf_counter() - start
    return {"seconds": seconds, "seconds_settled": settled, "rows": len(rows), "digest": digest(rows)}


def _persisted(frame: DataFrame) -> list[Any]:
    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        return shapes.checksum(kept)
    finally:
        kept.unpersist(blocking=True)


if __name__ == "__main__":
    main()
