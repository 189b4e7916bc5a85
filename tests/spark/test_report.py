"""Reports on the event logs of real applications, and on a running one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

import spark_regions
from spark_regions.reports.page import page
from spark_regions.reports.summary import Prices, Report, read_report
from spark_regions.spark.jar import jar_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOB = """
import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_regions

folder, logs, more = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
logs.mkdir()
builder = (
    SparkSession.builder.master("local[2]")
    .appName("sums")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", logs.as_uri())
    .config(map=more)
)
spark = spark_regions.configure(
    builder, recycle_dir=folder / "store", recycle_strategy="always", planner_deadline="10s"
).getOrCreate()
if not (folder / "rows").exists():
    spark.conf.set("spark.regions.mode", "observe")
    spark.range(200000).selectExpr("id", "id % 50 AS k", "sha2(CAST(id AS STRING), 512) AS h").write.parquet(
        str(folder / "rows")
    )
    spark.conf.unset("spark.regions.mode")
rows = spark.read.parquet(str(folder / "rows"))
for least in (10, 1000):
    rows.where(F.col("id") > least).groupBy("k").agg(F.max("h").alias("most"), F.count("*").alias("n")).collect()
shown = spark_regions.report(spark, core_hour_price=1.0)
decided = spark_regions.decisions(spark)
print("ANSWER " + json.dumps({
    "report": shown.document(), "text": str(shown), "html": shown._repr_html_(), "table": decided._repr_html_(),
    "loads": sum(a["kind"] == "load" and a["refusal"] is None for d in decided for a in d["actions"]),
}))
if "--killed" in sys.argv:
    import os

    sys.stdout.flush()
    os.kill(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid(), 9)
    os._exit(0)
spark.stop()
"""


def run(folder: Path, name: str, *words: str, **confs: str) -> tuple[dict[str, Any], Path]:
    """What the job says of itself, and the one log that it wrote."""
    script, logs = folder / "job.py", folder / name
    script.write_text(JOB, encoding="utf-8")
    arguments = [str(folder), str(logs), json.dumps({key.replace("_", "."): value for key, value in confs.items()})]
    result = subprocess.run(
        [sys.executable, str(script), *arguments, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "JDK_JAVA_OPTIONS": f"-Duser.home={folder}"},
        timeout=900,
    )
    answers = [line.removeprefix("ANSWER ") for line in result.stdout.splitlines() if line.startswith("ANSWER ")]
    assert result.returncode == 0 and len(answers) == 1, result.stdout + result.stderr
    (log,) = logs.iterdir()
    return json.loads(answers[0]), log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def first(folder: Path) -> tuple[dict[str, Any], Path]:
    return run(folder, "first")


@pytest.fixture(scope="module")
def second(folder: Path, first: object) -> tuple[dict[str, Any], Path]:
    return run(folder, "second", spark_eventLog_compression_codec="lz4")


def read(log: Path) -> Report:
    return read_report(log, Prices(1.0, 1.0))


def test_a_run_that_stores(first: tuple[dict[str, Any], Path]) -> None:
    live, log = first
    assert log.is_dir(), "Spark writes rolling logs"
    found = read(log)
    assert found.notes == ()
    assert (found.application.name, found.application.cores) == ("sums", 2)
    assert found.actions["store"] == found.stored == 2
    assert found.stored_bytes > 0
    assert found.write_task_seconds is not None and found.write_task_seconds > 0
    assert found.measured_seconds == pytest.approx(-found.write_task_seconds / 2)
    assert found.outcomes["ok"] == found.queries == 3
    # The two aggregates are worth storing, and were; the rows that were written as a table were only looked at.
    assert [each.stored for each in found.candidates if each.operator == "Aggregate"] == [True, True]
    assert all(each.code == "OBSERVE_ONLY" for each in found.candidates if not each.stored)
    assert live["report"]["actions"] == dict(found.actions)


def test_a_run_that_reads(second: tuple[dict[str, Any], Path]) -> None:
    """The log is compressed by Spark's lz4."""
    live, log = second
    assert any(file.name.endswith(".lz4") for file in log.iterdir())
    found = read(log)
    # On a busy machine a lock may cost one of the two.
    assert found.actions["load"] == live["loads"] == found.measured.by_runs > 0
    assert found.predicted_seconds > 0
    assert found.measured_seconds is not None
    assert found.money.computing == pytest.approx(found.measured_seconds * 2 / 3600)
    assert len(found.measured.points) == live["loads"]
    assert "Saving of reads" in page(found)
    # The running application says the same.
    assert live["report"]["actions"] == dict(found.actions)
    assert live["report"]["saved"]["predicted_seconds"] == pytest.approx(found.predicted_seconds)
    assert live["report"]["measured"]["saved"] == pytest.approx(found.measured.saved)
    assert live["report"]["held_bytes"] == found.held_bytes > 0
    reads = f"{live['loads']} of {live['loads']} reads"
    assert reads in live["text"]
    assert reads in live["html"]
    assert live["table"].count("ALWAYS: ") >= live["loads"]


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_spark_s_other_codecs(folder: Path, second: object, codec: str) -> None:
    live, log = run(folder, codec, spark_eventLog_compression_codec=codec, spark_eventLog_rolling_enabled="false")
    assert log.name.endswith(f".{codec}")
    found = read(log)
    assert found.queries == 2
    assert found.actions == live["report"]["actions"]


def test_observe_mode(folder: Path, second: object) -> None:
    live, log = run(folder, "observe", spark_regions_mode="observe")
    found = read(log)
    assert found.actions == {}
    assert found.would["load"] > 0
    assert live["report"]["would"] == dict(found.would)
    assert live["text"].startswith("Observed only: ")


def test_a_killed_application(folder: Path, second: object) -> None:
    _, log = run(folder, "killed", "--killed", spark_eventLog_compress="false")
    found = read(log)
    assert found.application.ended == 0
    assert found.queries > 0


LAST = """
import time

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession


class Busy:
    \"\"\"A listener of somebody else's, which keeps Spark's shared queue busy when the application stops.\"\"\"

    def __getattr__(self, name):
        if not name.startswith("on"):
            raise AttributeError(name)
        return lambda event: time.sleep(0.3 if name == "onTaskEnd" else 0)

    class Java:
        implements = ["org.apache.spark.scheduler.SparkListenerInterface"]


spark = SparkSession.builder.appName("last").getOrCreate()
ensure_callback_server_started(spark.sparkContext._gateway)
spark.sparkContext._jsc.sc().addSparkListener(Busy())
for n in range(3):
    spark.sql(f"SELECT id % 7 AS k, count(*) AS c FROM range({1000 + n}) GROUP BY 1").collect()
spark.stop()
"""


@pytest.mark.parametrize("plugin", [True, False])
def test_the_last_query_is_in_the_log_though_the_application_stops_at_once(tmp_path: Path, plugin: bool) -> None:
    (tmp_path / "job.py").write_text(LAST, encoding="utf-8")
    (tmp_path / "logs").mkdir()
    confs = {
        "spark.regions.enabled": "true",
        "spark.regions.planner.python": sys.executable,
        "spark.regions.recycle.dir": tmp_path / "store",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "logs").as_uri(),
    } | ({"spark.plugins": "org.apache.spark.sql.regions.RegionsPlugin"} if plugin else {})
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    given = [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    subprocess.run(
        [submit, "--master", "local[2]", "--driver-memory", "1g", "--jars", jar_path(), *given, tmp_path / "job.py"],
        check=True,
        cwd=tmp_path,
        env=os.environ | python | {"SPARK_LOCAL_IP": "127.0.0.1"},
        timeout=300,
    )
    (log,) = (tmp_path / "logs").iterdir()
    said = subprocess.run(
        [sys.executable, "-m", "spark_regions", "report", log], check=True, capture_output=True, text=True
    )
    assert "3, of which 3 ended well" in said.stdout


def test_an_application_without_us(folder: Path, first: object) -> None:
    _, log = run(folder, "shown-nowhere", spark_regions_ui_enabled="false")
    assert any("ran without it" in note for note in read(log).notes)


def test_decisions_are_a_list_and_a_table(spark: SparkSession) -> None:
    spark.sql("SELECT sum(id) FROM range(10)").collect()
    decided = spark_regions.decisions(spark)
    assert isinstance(decided, list)
    assert json.loads(json.dumps(decided)) == decided
    assert decided._repr_html_().startswith("<table>")
    assert spark_regions.report(spark).document()["queries"] > 0
