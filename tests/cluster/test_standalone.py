"""The orders job by spark-submit to a real standalone cluster: a master and two workers."""

from pathlib import Path

import pytest

from examples import data
from examples.demo import JOB, differing_reports, effects, plugin_confs, submit
from tests.harness.daemons import standalone_cluster

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
        plain = submit(JOB, [tables, str(tmp_path / "plain")], confs)
        runs = []
        for number in (1, 2, 3):
            runs.append(submit(JOB, [tables, str(tmp_path / f"run-{number}")], confs | plugin_confs(recycle)))
    print(
        f"plain {plain.seconds_reports:.1f} s; runs {[round(run.seconds_reports, 1) for run in runs]} s in the reports"
    )
    for number in (1, 2, 3):
        assert differing_reports(tmp_path / "plain", tmp_path / f"run-{number}") == []
    done = [effects(recycle, run.log) for run in runs]
    assert done[0].stored + done[1].stored > 0, done
    assert done[2].loaded > 0, done
    assert runs[2].seconds_reports < plain.seconds_reports
