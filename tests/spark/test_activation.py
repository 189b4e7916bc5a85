"""Every way in, in a process of its own, as a user would start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import spark_regions
from spark_regions import conf
from spark_regions.spark import activation, environment

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
from pathlib import Path
from pyspark.sql import SparkSession
import spark_regions


def planners(pid):
    # How many planners are children of the driver that started this one.
    def field(process, name):
        try:
            return (process / name).read_text()
        except OSError:
            return ""

    def parent(process):
        return [line.split()[1] for line in field(process, "status").splitlines() if line.startswith("PPid:")]

    driver = parent(Path("/proc") / pid)
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and parent(entry) == driver]
    return sum("spark_regions.planner" in field(process, "cmdline") for process in processes)


spark = {session}
state = spark_regions.status(spark)
answer = {{
    "active": state.active,
    "reason": state.reason,
    "hint": state.hint,
    "rows": [list(row) for row in spark.sql("SELECT id % 3, count(*) FROM range(10) GROUP BY 1 ORDER BY 1").collect()],
    "extensions": spark.conf.get("spark.sql.extensions", None),
    "jars": spark.conf.get("spark.jars", None),
}}
if state.active:
    answer["table"] = spark.sql("SELECT * FROM spark_regions_status()").count()
    answer["planners"] = planners(dict(state.rows)["planner.pid"])
print("ANSWER " + json.dumps(answer))
spark.stop()
"""
ROWS = [[0, 4], [1, 3], [2, 3]]


@dataclass
class Outcome:
    answer: dict[str, Any]
    log: str


def run(
    folder: Path, session: str, *, submit: dict[str, str] | None = None, environ: dict[str, str] | None = None
) -> Outcome:
    """Run the job by spark-submit with confs, or by plain Python; `spark.jars` of `submit` goes through `--jars`."""
    import pyspark

    job = folder / "job.py"
    job.write_text(textwrap.dedent(JOB).format(session=session), encoding="utf-8")
    command = [sys.executable, str(job)]
    if submit is not None:
        assert pyspark.__file__
        confs = {**QUIET, **submit}
        jars = confs.pop("spark.jars", None)
        words = [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
        launcher = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(launcher), *(["--jars", jars] if jars else []), *words, str(job)]
    # The JVM takes its home, hence the store's, from the password file and not from HOME.
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "JDK_JAVA_OPTIONS": f"-Duser.home={folder}", **(environ or {})},
        timeout=180,
    )
    answers = [line.removeprefix("ANSWER ") for line in result.stdout.splitlines() if line.startswith("ANSWER ")]
    assert result.returncode == 0 and len(answers) == 1, result.stdout + result.stderr
    return Outcome(json.loads(answers[0]), result.stderr)


def jar() -> str:
    return str(spark_regions.jar_path())


def planner_python() -> dict[str, str]:
    return {"spark.regions.planner.python": sys.executable}


def assert_active_once(outcome: Outcome) -> None:
    assert outcome.answer["active"] is True, outcome.answer
    assert outcome.answer["table"] > 0
    assert outcome.answer["planners"] == 1
    assert outcome.answer["rows"] == ROWS


def test_class_path_and_enabled(tmp_path: Path) -> None:
    submit = {"spark.jars": jar(), "spark.regions.enabled": "true", **planner_python()}
    assert_active_once(run(tmp_path, "SparkSession.builder.getOrCreate()", submit=submit))


def test_extra_class_path_and_enabled(tmp_path: Path) -> None:
    submit = {
        "spark.driver.extraClassPath": jar(),
        "spark.executor.extraClassPath": jar(),
        "spark.regions.enabled": "true",
        **planner_python(),
    }
    assert_active_once(run(tmp_path, "SparkSession.builder.getOrCreate()", submit=submit))


def test_plugins(tmp_path: Path) -> None:
    submit = {"spark.jars": jar(), "spark.plugins": PLUGIN, "spark.regions.enabled": "true", **planner_python()}
    assert_active_once(run(tmp_path, "SparkSession.builder.getOrCreate()", submit=submit))


def test_configure_in_a_plain_process(tmp_path: Path) -> None:
    outcome = run(tmp_path, f"spark_regions.configure({BUILDER}).getOrCreate()")
    assert_active_once(outcome)
    assert outcome.answer["jars"] == jar()
    assert outcome.answer["extensions"] == EXTENSIONS


def test_configure_under_spark_submit(tmp_path: Path) -> None:
    """The driver JVM runs already, so its class path has to be extended."""
    assert_active_once(run(tmp_path, f"spark_regions.configure({BUILDER}).getOrCreate()", submit={}))


def test_configure_after_a_stopped_session(tmp_path: Path) -> None:
    """A notebook: the kernel's first session was plain."""
    plain = f"{BUILDER}.getOrCreate()"
    outcome = run(tmp_path, f"({plain}.stop(), spark_regions.configure({BUILDER}).getOrCreate())[1]")
    assert_active_once(outcome)


def test_everything_at_once(tmp_path: Path) -> None:
    submit = {
        "spark.jars": jar(),
        "spark.plugins": PLUGIN,
        "spark.sql.extensions": EXTENSIONS,
        "spark.regions.enabled": "true",
        **planner_python(),
    }
    outcome = run(tmp_path, f"spark_regions.configure({BUILDER}).getOrCreate()", submit=submit)
    assert_active_once(outcome)
    assert outcome.answer["extensions"] == EXTENSIONS


CONNECT = "SparkSession.builder.remote('local[2]')" + BUILDER.removeprefix("SparkSession.builder").replace(
    "'spark.master': 'local[2]', ", ""
)


def test_configure_with_a_local_connect_server(tmp_path: Path) -> None:
    assert_active_once(run(tmp_path, f"spark_regions.configure({CONNECT}).getOrCreate()"))


def test_a_connect_server_without_the_jar_is_inactive(tmp_path: Path) -> None:
    outcome = run(tmp_path, f"{CONNECT}.getOrCreate()")
    assert outcome.answer["active"] is False
    assert "jar is not on the driver's class path" in outcome.answer["reason"]
    assert outcome.answer["rows"] == ROWS


def test_not_enabled_is_inactive(tmp_path: Path) -> None:
    outcome = run(tmp_path, "SparkSession.builder.getOrCreate()", submit={"spark.jars": jar()})
    assert outcome.answer["active"] is False
    assert "spark.regions.enabled" in outcome.answer["reason"] + outcome.answer["hint"]
    assert outcome.answer["rows"] == ROWS


def test_no_jar_is_inactive(tmp_path: Path) -> None:
    outcome = run(tmp_path, "SparkSession.builder.getOrCreate()", submit={"spark.regions.enabled": "true"})
    assert outcome.answer["active"] is False
    assert "jar is not on the driver's class path" in outcome.answer["reason"]
    assert "--jars" in outcome.answer["hint"]
    assert outcome.answer["rows"] == ROWS


def test_configure_appends_to_lists_of_spark_defaults_and_submit_args(tmp_path: Path) -> None:
    own = tmp_path / "own.jar"
    with zipfile.ZipFile(own, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.sql.extensions  com.example.Own\n", encoding="utf-8")
    outcome = run(
        tmp_path,
        f"spark_regions.configure({BUILDER}).getOrCreate()",
        environ={"SPARK_CONF_DIR": str(tmp_path / "conf"), "PYSPARK_SUBMIT_ARGS": f"--jars {own} pyspark-shell"},
    )
    assert_active_once(outcome)
    assert outcome.answer["extensions"] == f"com.example.Own,{EXTENSIONS}"
    assert outcome.answer["jars"] == f"{own},{jar()}"


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


def test_configure_refuses_a_running_plain_application(tmp_path: Path) -> None:
    first = f"{BUILDER}.getOrCreate()"
    with pytest.raises(AssertionError, match=r"A Spark application runs already.*Hint: call spark\.stop\(\) first"):
        run(tmp_path, f"({first}, spark_regions.configure({BUILDER}).getOrCreate())[1]")


def test_spark_lists_the_same_confs(spark: SparkSession) -> None:
    listed = {row["key"]: row for row in spark.sql("SET -v").collect() if row["key"].startswith(conf.PREFIX)}
    assert set(listed) == {known.key for known in conf.CONFS}
    # The session's own values are shown in the place of defaults, so compare in a session that never set any.
    given = ("enabled", "planner.deadline", "planner.python", "recycle.dir")
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
        ("spark.regions.recycle.strategy", "markof"),
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
