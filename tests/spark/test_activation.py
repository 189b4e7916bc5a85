"""Every way in, in a process of its own, as a user would start it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import spark_regions
from spark_regions import conf
from spark_regions.spark import activation, environment
from tests.harness.homes import at_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EXTENSIONS = activation.EXTENSIONS
PLUGIN = "org.apache.spark.sql.regions.RegionsPlugin"
QUIET = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}
BUILDER = f"SparkSession.builder.config(map={QUIET!r})"

JOB = """
import json
import sys
import time
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql import SparkSession
import spark_regions


def planners(pid):
    # How many planners are children of the driver that started this one. Those of applications before may still end.
    def field(process, name):
        try:
            return (process / name).read_text()
        except OSError:
            return ""

    def parent(process):
        return [line.split()[1] for line in field(process, "status").splitlines() if line.startswith("PPid:")]

    driver = parent(Path("/proc") / pid)
    deadline = time.monotonic() + 20
    while True:
        processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and parent(entry) == driver]
        found = sum("spark_regions.planner" in field(process, "cmdline") for process in processes)
        if found == 1 or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def told(spark):
    state = spark_regions.status(spark)
    counted = spark.sql("SELECT id % 3, count(*) FROM range(10) GROUP BY 1 ORDER BY 1").collect()
    answer = {
        "active": state.active,
        "reason": state.reason,
        "hint": state.hint,
        "rows": [list(row) for row in counted],
        "extensions": spark.conf.get("spark.sql.extensions", None),
        "jars": spark.conf.get("spark.jars", None),
    }
    if state.active:
        answer["table"] = spark.sql("SELECT * FROM spark_regions_status()").count()
        answer["planners"] = planners(dict(state.rows)["planner.pid"])
    return answer


for step in json.loads(sys.argv[1]):
    if step["submitted"]:
        # As spark-submit hands its --conf to the JVM that it runs in.
        SparkContext._ensure_initialized()
        for key, value in step["submitted"].items():
            SparkContext._jvm.java.lang.System.setProperty(key, value)
    try:
        spark = eval(step["session"])
    except spark_regions.ConfError as error:
        print("ANSWER " + json.dumps({"refused": str(error)}), flush=True)
    else:
        print("ANSWER " + json.dumps(told(spark)), flush=True)
        if not step["stays"]:
            spark.stop()
    for key in step["submitted"]:
        SparkContext._jvm.java.lang.System.clearProperty(key)
"""
ROWS = [[0, 4], [1, 3], [2, 3]]
Answer = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One application of a driver process.

    :param session: the expression that a user would write
    :param submitted: what spark-submit's `--conf` says for this application
    :param stays: it is not stopped before the next step
    """

    session: str
    submitted: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False


def run(
    folder: Path, *steps: Step, submit: dict[str, str] | None = None, environ: dict[str, str] | None = None
) -> list[Answer]:
    """Run the steps one after another in one driver process: by spark-submit with confs, or by plain Python.

    `spark.jars` of `submit` goes through `--jars`.
    """
    import pyspark

    job = folder / "job.py"
    job.write_text(JOB, encoding="utf-8")
    command = [sys.executable]
    if submit is not None:
        assert pyspark.__file__
        confs = {**QUIET, **submit}
        jars = confs.pop("spark.jars", None)
        words = [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
        launcher = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(launcher), *(["--jars", jars] if jars else []), *words]
    result = subprocess.run(
        [*command, str(job), json.dumps([asdict(step) for step in steps])],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=at_home(folder, **(environ or {})),
        timeout=600,
    )
    answers = [line.removeprefix("ANSWER ") for line in result.stdout.splitlines() if line.startswith("ANSWER ")]
    assert result.returncode == 0 and len(answers) == len(steps), result.stdout + result.stderr
    return [json.loads(answer) for answer in answers]


def jar() -> str:
    return str(spark_regions.jar_path())


ENABLED = {"spark.regions.enabled": "true", "spark.regions.planner.python": sys.executable}
UNCHANGED = "SparkSession.builder.getOrCreate()"
CONFIGURED = f"spark_regions.configure({BUILDER}).getOrCreate()"
CONFIGURED_LATER = f"(SparkSession.getActiveSession().stop(), {CONFIGURED})[1]"
CONNECT = "SparkSession.builder.remote('local[2]')" + BUILDER.removeprefix("SparkSession.builder").replace(
    "'spark.master': 'local[2]', ", ""
)


def assert_active_once(answer: Answer) -> None:
    assert answer["active"] is True, answer
    assert answer["table"] > 0
    assert answer["planners"] == 1
    assert answer["rows"] == ROWS


def assert_inactive(answer: Answer, reason: str, hint: str = "") -> None:
    assert answer["active"] is False, answer
    assert reason in answer["reason"] + answer["hint"]
    assert hint in answer["hint"]
    assert answer["rows"] == ROWS


def test_a_submitted_application_with_the_jar(tmp_path: Path) -> None:
    """Not enabled, by the class path and `enabled` alone, as a plugin of Spark's, and by everything at once."""
    plugin = ENABLED | {"spark.plugins": PLUGIN}
    steps = (
        Step(UNCHANGED),
        Step(UNCHANGED, ENABLED),
        Step(UNCHANGED, plugin),
        Step(CONFIGURED, plugin | {"spark.sql.extensions": EXTENSIONS}),
    )
    left, *active = run(tmp_path, *steps, submit={"spark.jars": jar()})
    assert_inactive(left, "spark.regions.enabled")
    for answer in active:
        assert_active_once(answer)
    assert active[-1]["extensions"] == EXTENSIONS


def test_extra_class_path_and_enabled(tmp_path: Path) -> None:
    places = {"spark.driver.extraClassPath": jar(), "spark.executor.extraClassPath": jar()}
    (answer,) = run(tmp_path, Step(UNCHANGED), submit=places | ENABLED)
    assert_active_once(answer)


def test_configure_under_spark_submit(tmp_path: Path) -> None:
    """The driver JVM runs already, so its class path has to be extended."""
    (answer,) = run(tmp_path, Step(CONFIGURED), submit={})
    assert_active_once(answer)


def test_a_notebook_whose_kernel_began_without_us(tmp_path: Path) -> None:
    """Enabled but without the jar; refused as long as that application runs; and then configured, in the same JVM."""
    enabled = f"{BUILDER}.config(map={ENABLED!r}).getOrCreate()"
    plain, refused, configured = run(tmp_path, Step(enabled, stays=True), Step(CONFIGURED), Step(CONFIGURED_LATER))
    assert_inactive(plain, "jar is not on the driver's class path", "--jars")
    assert re.search(r"A Spark application runs already.*Hint: call spark\.stop\(\) first", refused["refused"])
    assert_active_once(configured)


def test_configure_in_a_plain_process(spark: SparkSession) -> None:
    """The session that the tests share was made so."""
    assert spark_regions.status(spark).active
    assert spark.conf.get("spark.jars") == jar()
    assert spark.conf.get("spark.sql.extensions") == EXTENSIONS


def test_configure_with_a_local_connect_server(tmp_path: Path) -> None:
    (answer,) = run(tmp_path, Step(f"spark_regions.configure({CONNECT}).getOrCreate()"))
    assert_active_once(answer)


def test_a_connect_server_without_the_jar_is_inactive(tmp_path: Path) -> None:
    (answer,) = run(tmp_path, Step(f"{CONNECT}.getOrCreate()"))
    assert_inactive(answer, "jar is not on the driver's class path")


def test_configure_appends_to_lists_of_spark_defaults_and_submit_args(tmp_path: Path) -> None:
    own = tmp_path / "own.jar"
    with zipfile.ZipFile(own, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.sql.extensions  com.example.Own\n", encoding="utf-8")
    (answer,) = run(
        tmp_path,
        Step(CONFIGURED),
        environ={"SPARK_CONF_DIR": str(tmp_path / "conf"), "PYSPARK_SUBMIT_ARGS": f"--jars {own} pyspark-shell"},
    )
    assert_active_once(answer)
    assert answer["extensions"] == f"com.example.Own,{EXTENSIONS}"
    assert answer["jars"] == f"{own},{jar()}"


def test_configure_refuses_a_remote_builder() -> None:
    from pyspark.sql import SparkSession

    with pytest.raises(spark_regions.ConfError, match=r"sc://host.*Hint: start the server with --jars"):
        spark_regions.configure(SparkSession.builder.remote("sc://host"))


def test_configure_names_unknown_options_and_bad_values() -> None:
    from pyspark.sql import SparkSession

    with pytest.raises(spark_regions.ConfError, match=r"did you mean spark\.regions\.recycle\.maxBytes\?"):
        spark_regions.configure(SparkSession.builder, recycle_max_byte="1g")
    with pytest.raises(spark_regions.ConfError, match=r"recycle\.strategy: found 'lates'.*did you mean latest\?"):
        spark_regions.configure(SparkSession.builder, recycle_strategy="lates")
    with pytest.raises(spark_regions.ConfError, match=r"recycle\.maxBytes: found '-5'"):
        spark_regions.configure(SparkSession.builder, recycle_max_bytes=-5)


def test_status_of_the_shared_session(spark: SparkSession) -> None:
    state = spark_regions.status(spark)
    assert state.active, state
    facts = dict(state.rows)
    table = {row[0]: row[1] for row in spark.sql("SELECT * FROM spark_regions_status()").collect()}
    assert table.keys() == facts.keys()
    assert str(state).startswith("active: true")


def test_spark_lists_the_same_confs(spark: SparkSession) -> None:
    listed = {row["key"]: row for row in spark.sql("SET -v").collect() if row["key"].startswith(conf.PREFIX)}
    assert set(listed) == {known.key for known in conf.CONFS}
    # The session's own values are shown in the place of defaults, so compare in a session that never set any.
    given = ("enabled", "sources.racySeconds", "planner.deadline", "planner.python", "recycle.dir", "platforms")
    own = {conf.PREFIX + key for key in given}
    for known in conf.CONFS:
        value = listed[known.key]["value"]
        if known.key not in own:
            shown = "" if value == "<undefined>" else value
            assert known.parse(shown) == known.parse(known.default), known.key
        assert spark.conf.isModifiable(known.key) == (known.when == "runtime"), known.key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.regions.skew.strategy", "markof"),
        ("spark.regions.recycle.maxBytes", "-1"),
        ("spark.regions.recycle.window", "0"),
        ("spark.regions.mode", "both"),
        ("spark.regions.explain.format", "yaml"),
        ("spark.regions.enabled", "yes"),
    ],
)
def test_spark_refuses_the_same_values(spark: SparkSession, key: str, value: str) -> None:
    from pyspark.errors import PySparkException

    assert conf.validate({key: value})
    with pytest.raises(PySparkException):
        spark.conf.set(key, value)


def test_reading_submit_args_keeps_the_last_conf() -> None:
    arguments = {"PYSPARK_SUBMIT_ARGS": "--conf spark.jars=a.jar --conf spark.jars=b.jar pyspark-shell"}
    assert environment.submit_args(arguments) == {"spark.jars": "b.jar"}
    assert environment.with_jars(arguments["PYSPARK_SUBMIT_ARGS"], "c.jar").count("c.jar") == 2
