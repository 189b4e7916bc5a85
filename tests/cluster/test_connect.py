"""The orders job, unchanged, as a client of a Spark Connect server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples import data
from examples.demo import JOB, differing_reports, plugin_confs
from tests.harness.daemons import connect_server

pytestmark = pytest.mark.spark
SCALE = 0.1
CONFS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}
STATUS = """
import json
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(json.dumps(dict(map(tuple, spark.sql("SELECT * FROM spark_regions_status()").collect()))))
"""

BAD_ROWS = """
import json
from pyspark.sql import SparkSession, functions as F
import spark_regions
spark = SparkSession.builder.getOrCreate()
spark.conf.set("spark.regions.control.onBadRow", "quarantine")
rows = spark.createDataFrame([("1",), ("x",), ("3",)], "text STRING")
found = [rows.select(F.col("text").cast("int")), rows.select(F.udf(int, "int")("text"))]
kept = spark_regions.bad_rows(spark)
rows = [[row[0] for row in frame.collect()] for frame in found]
print(json.dumps([rows, [row.row["text"] for row in kept.collect()]]))
"""


def client(url: str, *arguments: str) -> str:
    """Standard output of a Python process whose sessions are remote."""
    process = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"SPARK_REMOTE": url, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-4000:]
    return process.stdout


def test_unchanged_job_through_connect(tmp_path: Path) -> None:
    tables = str(data.tpch(SCALE))
    with connect_server(tmp_path, CONFS) as url:
        client(url, str(JOB), tables, str(tmp_path / "plain"))
    loads = []
    with connect_server(tmp_path, CONFS | plugin_confs(tmp_path / "recycle")) as url:
        for number in (1, 2, 3):
            client(url, str(JOB), tables, str(tmp_path / f"run-{number}"))
            status = json.loads(client(url, "-c", STATUS).splitlines()[-1])
            assert status["active"] == "true", status
            loads.append(int(status["counter.loads"]))
        assert json.loads(client(url, "-c", BAD_ROWS).splitlines()[-1]) == [[[1, 3], [1, 3]], ["x", "x"]]
    for number in (1, 2, 3):
        assert differing_reports(tmp_path / "plain", tmp_path / f"run-{number}") == []
    assert loads[2] > loads[1], loads
