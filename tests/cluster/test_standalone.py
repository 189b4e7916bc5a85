"""The orders job by spark-submit to a real standalone cluster: a master and two workers."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from examples import data
from examples.demo import JOB, differing_reports, effects, plugin_confs, submit
from tests.harness.daemons import standalone_cluster
from tests.harness.session import decisions, settle, spark_session
from tests.platforms.test_engine import until
from tests.spark.test_platforms import CANCELS, HEAVY, ROUTED, apart, busy, engines

pytestmark = pytest.mark.spark
SCALE = 0.1
CONFS = {
    "spark.executor.memory": "1g",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}


def test_recurring_job_on_a_cluster(tmp_path: Path) -> None:
    tables = str(data.tpch(SCALE))
    recycle = tmp_path / "recycle"
    with standalone_cluster(tmp_path) as master:
        confs = CONFS | {"spark.master": master}
        submit(JOB, [tables, str(tmp_path / "plain")], confs)
        runs = []
        for number in (1, 2, 3):
            runs.append(submit(JOB, [tables, str(tmp_path / f"run-{number}")], confs | plugin_confs(recycle)))
    for number in (1, 2, 3):
        assert differing_reports(tmp_path / "plain", tmp_path / f"run-{number}") == []
    done = [effects(recycle, run.log) for run in runs]
    assert done[0].stored + done[1].stored > 0, done
    assert done[2].loaded > 0, done


def cancels(folder: str) -> None:
    """Of statements of another engine, whose jobs hold no core: the only one is free meanwhile."""
    data = str(Path(folder, "facts"))
    confs = CONFS | ROUTED | {"spark.master": sys.argv[2]}
    with spark_session(Path(folder, "store"), confs) as alone:
        alone.range(1000).selectExpr("id AS v").write.parquet(data)
        alone.read.parquet(data).createOrReplaceTempView("facts")
        context = alone.sparkContext
        for how, cancel in CANCELS.items():
            frame = alone.sql(HEAVY)

            def run(frame: DataFrame = frame) -> object:
                context.setJobGroup("heavy", "")
                context.addJobTag("heavy")
                return frame.collect()

            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(run)
                until(lambda: engines(alone) and busy(engines(alone)[0]), 30)
                time.sleep(1.5)
                began = time.monotonic()
                assert context.parallelize([1], 1).count() == 1
                assert time.monotonic() - began < 10, "no core is free"
                assert not context.statusTracker().getActiveJobsIds()
                began = time.monotonic()
                cancel(alone)
                with pytest.raises(Exception, match=r"(?i)cancel"):
                    running.result(timeout=10)
                assert time.monotonic() - began < 1.0, how
            assert not busy(engines(alone)[0]), "the statement goes on"
        settle(alone)
        assert not [each for each in decisions(alone) if each["kind"] == "fallback"]
        tracker = context.statusTracker()
        assert list(tracker.getJobIdsForGroup("heavy")) == [], "Spark's pages have none of them"
    print("cancelled")


def test_a_statement_of_another_engine_is_cancelled_by_group_and_tag(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path, workers=1) as master:
        done = apart(cancels, tmp_path, master)
    assert "cancelled" in done.stdout, done.stderr[-4000:]
