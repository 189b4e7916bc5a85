"""Jobs whose drivers say what the suites' do not: `PLANNER_RECORD=FILE python -m tests.harness.record_streams`.

Every strategy on queries that are dear enough, a name that no strategy has, a budget for two results, and a DataFrame
that is held. Then `python -m tests.harness.streams FILE`, of this and of the suites' recordings.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.harness.session import settle, spark_session

STRATEGIES: dict[str, dict[str, str]] = {
    "markov": {},
    "latest": {},
    "maxbenefit": {},
    "always": {},
    "tight": {"spark.regions.recycle.strategy": "markov", "spark.regions.recycle.maxBytes": "300k"},
}


def job(name: str, store: str, data: str) -> None:
    from tests.spark.workflow_job import queries

    confs = {"spark.regions.recycle.strategy": name, "spark.regions.sources.racySeconds": "0"} | STRATEGIES[name]
    with spark_session(Path(store), confs | {"spark.regions.recycle.rowOrder": "any"}) as spark:
        for _ in range(2):
            frames = queries(spark, data)
            for frame in frames.values():
                frame.collect()
                settle(spark)


def main() -> None:
    os.environ |= {"PYTHONPATH": os.pathsep.join([str(Path(__file__).with_name("recorder")), os.getcwd()])}
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data")
        with spark_session(None) as spark:
            rows = spark.range(0, 30_000, 1, 2).selectExpr("id", "id % 5000 AS k", "sha2(string(id), 512) AS text")
            rows.write.parquet(data)
        for name in STRATEGIES:
            for _ in range(2):
                subprocess.run([sys.executable, "-m", __spec__.name, name, str(Path(folder) / name), data], check=True)


if __name__ == "__main__":
    job(*sys.argv[1:]) if sys.argv[1:] else main()
