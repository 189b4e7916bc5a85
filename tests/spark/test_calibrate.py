"""Queries on generated rows teach the weights of operators, and the next application divides by them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from spark_regions.store.admin import opened
from spark_regions.store.timed_stages import learned_weights, machine, timed_stages

ROOT = Path(__file__).parents[2]
ROWS = 250_000
JOB = """
import sys
from pyspark.sql import SparkSession
import spark_regions

folder, namespace = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = spark_regions.configure(builder, recycle_dir=folder, recycle_namespace=namespace).getOrCreate()
told = [dict(spark_regions.status(spark).rows)["planner.weights"]]
for turn in range(20):  # weights come with a decision, and on a busy machine the first ones may be late
    spark.range(1000).selectExpr(f"id % {turn + 7} AS k").groupBy("k").count().collect()
    told[1:] = [dict(spark_regions.status(spark).rows)["planner.weights"]]
    if told[1] != told[0]:
        break
spark.stop()
print("\\n".join(told))
"""
CALIBRATE = """
import sys
from spark_regions.spark.calibration import run_queries

folder, namespace, rows = sys.argv[1:]
confs = {"spark.regions.recycle.dir": folder, "spark.regions.recycle.namespace": namespace}
run_queries(confs, print, sizes=[int(rows), 3 * int(rows)])
"""


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_new_machine_is_calibrated_and_the_next_application_divides_by_that(tmp_path):
    store = (str(tmp_path), "anna")
    run("-c", CALIBRATE, *store, str(ROWS))
    with opened(*store, "") as known:
        stages = known.catalog.read(lambda connection: timed_stages(connection, machine()))
    kinds = {kind for stage in stages for kind in stage.rows}
    expected = {"FileSourceScanExec", "HashAggregateExec", "SortMergeJoinExec", "BroadcastHashJoinExec", "WindowExec"}
    assert expected | {"SortExec", "ShuffleExchangeExec", "ShuffleExchangeExec.read", "ExpandExec"} <= kinds
    assert all(stage.cpu_seconds > 0 and stage.seconds >= 0.02 and stage.tasks > 0 for stage in stages)
    assert max(stage.rows.get("FileSourceScanExec", 0) for stage in stages) >= ROWS
    assert not list(tmp_path.rglob("*.parquet")), "nothing else is stored"

    command = ("-m", "spark_regions", "calibrate", "--dir", store[0], "--namespace", store[1])
    found = json.loads(run(*command, "--json"))
    assert found["stages"] == len(stages) >= 30
    assert {each["kind"] for each in found["kinds"]} >= kinds
    with opened(*store, "") as known:
        weights = known.catalog.read(lambda connection: learned_weights(connection, machine()))
    assert weights is not None and weights.micros.keys() >= expected

    before, after = run("-c", JOB, *store).splitlines()
    assert before == "fixed"
    assert after.startswith("learned 2"), after
