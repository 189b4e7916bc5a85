"""Record anew what a real shim says about skew, with the jar built: `python -m tests.harness.record_skew FILE`.

The skew suites, then the shapes of `benchmarks.skew` twice each (what a stage took is known the second time), in a
driver of little memory, so that sorts spill. Then `python -m tests.harness.skew_messages FILE` keeps a few of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import skew
from examples.data import DATA
from tests.harness.session import settle, spark_session

SUITES = ("test_skew.py", "test_skew_history.py", "test_skew_operators.py")


def shapes(folder: Path) -> None:
    files = skew.tables(DATA, 1, "one60")
    with spark_session(folder / "store", skew.OURS | {"spark.driver.memory": "512m"}) as spark:
        for name, file in files.items():
            spark.read.parquet(file).createOrReplaceTempView(name)
        for kind in (each for each in skew.QUERIES if skew.ENDS.get(each) != "apply"):
            for _ in range(2):
                spark.sql(skew.QUERIES[kind]).write.mode("overwrite").parquet(str(folder / "out"))
                settle(spark)
            print(kind, flush=True)


def main(file: str) -> None:
    file = os.path.abspath(file)
    os.environ |= {"PLANNER_RECORD": file, "PYTHONPATH": str(Path(__file__).with_name("recorder"))}
    suites = [str(Path(__file__).parents[1] / "spark" / name) for name in SUITES]
    subprocess.run([sys.executable, "-m", "pytest", "-q", *suites])  # what a failing test asked is as real
    with tempfile.TemporaryDirectory() as folder:
        shapes(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1])
