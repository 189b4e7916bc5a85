"""Reports on the event logs of real applications, and on a running one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

import spark_regions
from spark_regions.reports.page import page
from spark_regions.reports.summary import Prices, Report, read_report
from spark_regions.spark.jar import jar_path
from tests.harness.homes import at_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOB = """
import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_regions

folder = Path(sys.argv[1])


def application(logs, more, killed):
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
        builder, recycle_dir=folder / "store", recycle_strategy="always", planner_deadline="10s",
        sources_racy_seconds=0,
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
    answer = {
        "report": shown.document(), "text": str(shown), "html": shown._repr_html_(), "table": decided._repr_html_(),
        "loads": sum(a["kind"] == "load" and a["refusal"] is None for d in decided for a in d["actions"]),
    }
    if killed:
        os.kill(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid(), 9)
    else:
        spark.stop()
    print("ANSWER " + json.dumps(answer), flush=True)
    if killed:
        os._exit(0)


for line in sys.stdin:
    asked = json.loads(line)
    application(Path(asked["logs"]), asked["confs"], asked["killed"])
"""
Told = tuple[dict[str, Any], Path]


class Job:
    """Applications one after another in one process, as each is asked for: what it says of itself, and its one log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        script = folder / "job.py"
        script.write_text(JOB, encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, script, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=at_home(folder),
        )

    def run(self, name: str, killed: bool = False, **confs: str) -> Told:
        assert self.process.stdin is not None and self.process.stdout is not None
        logs = self.folder / name
        asked = {"logs": str(logs), "confs": {key.replace("_", "."): value for key, value in confs.items()}}
        self.process.stdin.write(json.dumps(asked | {"killed": killed}) + "\n")
        self.process.stdin.flush()
        answer = next((line for line in self.process.stdout if line.startswith("ANSWER ")), None)
        assert answer is not None, f"the application ended with {self.process.wait()}"
        (log,) = logs.iterdir()
        return json.loads(answer.removeprefix("ANSWER ")), log

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(120)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    running = Job(tmp_path_factory.mktemp("report"))
    yield running
    assert running.end() == 0


@pytest.fixture(scope="module")
def first(job: Job) -> Told:
    return job.run("first")


@pytest.fixture(scope="module")
def second(job: Job, first: object) -> Told:
    return job.run("second", spark_eventLog_compression_codec="lz4")


def read(log: Path) -> Report:
    return read_report(log, Prices(1.0, 1.0))


def test_a_run_that_stores(first: Told) -> None:
    live, log = first
    assert log.is_dir(), "Spark writes rolling logs"
    found = read(log)
    assert found.notes == ()
    assert (found.application.name, found.application.cores) == ("sums", 2)
    assert found.actions["store"] == found.stored == 2
    assert found.stored_bytes > 0
    assert found.write_task_seconds is not None and found.write_task_seconds > 0
    assert found.measured_seconds is None
    assert found.saved_seconds == pytest.approx(-found.write_task_seconds / 2)
    assert found.outcomes["ok"] == found.queries == 3
    # The two aggregates are worth storing, and were; the rows that were written as a table were only looked at.
    assert [each.stored for each in found.candidates if each.operator == "Aggregate"] == [True, True]
    assert all(each.code == "OBSERVE_ONLY" for each in found.candidates if not each.stored)
    assert live["report"]["actions"] == dict(found.actions)


def test_a_run_that_reads(second: Told) -> None:
    """The log is compressed by Spark's lz4."""
    live, log = second
    assert any(file.name.endswith(".lz4") for file in log.iterdir())
    found = read(log)
    # On a busy machine a lock may cost one of the two.
    assert found.actions["load"] == live["loads"] == found.measured.reads + found.measured.estimated > 0
    assert found.predicted_seconds > 0
    assert found.saved_seconds is not None
    assert found.money.computing == pytest.approx(found.saved_seconds * 2 / 3600)
    assert len(found.measured.points) == found.measured.choices
    assert ("Saving of choices" in page(found)) == bool(found.measured.choices)
    # The running application says the same.
    assert live["report"]["actions"] == dict(found.actions)
    assert live["report"]["saved"]["predicted_seconds"] == pytest.approx(found.predicted_seconds)
    for figure in ("choices", "reads", "lost", "estimated"):
        assert live["report"]["measured"][figure] == getattr(found.measured, figure)
    for figure in ("saved", "estimated_seconds"):
        assert live["report"]["measured"][figure] == pytest.approx(getattr(found.measured, figure))
    assert live["report"]["held_bytes"] == found.held_bytes > 0
    for how in ("text", "html"):
        assert ("estimated" in live[how]) == bool(found.measured.estimated)
    assert live["table"].count("ALWAYS: ") >= live["loads"]


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_spark_s_other_codecs(job: Job, second: object, codec: str) -> None:
    live, log = job.run(codec, spark_eventLog_compression_codec=codec, spark_eventLog_rolling_enabled="false")
    assert log.name.endswith(f".{codec}")
    found = read(log)
    assert found.queries == 2
    assert found.actions == live["report"]["actions"]


def test_observe_mode(job: Job, second: object) -> None:
    live, log = job.run("observe", spark_regions_mode="observe")
    found = read(log)
    assert found.actions == {}
    assert found.would["load"] > 0
    assert live["report"]["would"] == dict(found.would)
    assert live["text"].startswith("Observed only: ")


LAST = """
import time
from pathlib import Path

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


for plugin in ("", "org.apache.spark.sql.regions.RegionsPlugin"):
    logs = Path("with" if plugin else "without").absolute()
    logs.mkdir()
    own = {"spark.plugins": plugin, "spark.eventLog.dir": logs.as_uri()}
    spark = SparkSession.builder.appName("last").config(map=own).getOrCreate()
    ensure_callback_server_started(spark.sparkContext._gateway)
    spark.sparkContext._jsc.sc().addSparkListener(Busy())
    for n in range(3):
        spark.sql(f"SELECT id % 7 AS k, count(*) AS c FROM range({1000 + n}) GROUP BY 1").collect()
    spark.stop()
"""


def test_the_last_query_is_in_the_log_though_the_application_stops_at_once(tmp_path: Path) -> None:
    """Without and with our plugin, which sees the end of the application in other ways."""
    (tmp_path / "job.py").write_text(LAST, encoding="utf-8")
    confs = {
        "spark.regions.enabled": "true",
        "spark.regions.planner.python": sys.executable,
        "spark.regions.recycle.dir": tmp_path / "store",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
    }
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
    for name in ("without", "with"):
        (log,) = (tmp_path / name).iterdir()
        said = subprocess.run(
            [sys.executable, "-m", "spark_regions", "report", log], check=True, capture_output=True, text=True
        )
        assert "3, of which 3 ended well" in said.stdout, name


def test_an_application_without_us(job: Job, first: object) -> None:
    _, log = job.run("shown-nowhere", spark_regions_ui_enabled="false")
    assert any("ran without it" in note for note in read(log).notes)


def test_a_killed_application(job: Job, second: object) -> None:
    """The last one of the job's process."""
    _, log = job.run("killed", killed=True, spark_eventLog_compress="false")
    found = read(log)
    assert found.application.ended == 0
    assert found.queries > 0


def test_decisions_are_a_list_and_a_table(spark: SparkSession) -> None:
    spark.sql("SELECT sum(id) FROM range(10)").collect()
    decided = spark_regions.decisions(spark)
    assert isinstance(decided, list)
    assert json.loads(json.dumps(decided)) == decided
    assert "<table>" in decided._repr_html_()
    assert spark_regions.report(spark).document()["queries"] > 0
