"""Queries that are paused, looked into and stopped at breakpoints, and give the rows that they give undisturbed."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf

from spark_regions import ControlError, RunningJob, control, param
from spark_regions.cli.commands import commands
from spark_regions.cli.debug import posted
from tests.harness.control import CONTROLLED, ROWS, facts, held_at_start, kinds, started
from tests.harness.session import counters, settle_writes, spark_session, status
from tests.platforms.test_engine import until
from tests.spark.test_platforms import apart

pytestmark = pytest.mark.spark

PAUSES = 4


def rows_passed(job: RunningJob) -> int:
    return sum(operator.rows for operator in job.operators())


def stands(job: RunningJob, name: str) -> int:
    found = job.pause(20)
    assert not found.running, f"{name}: {found}"
    return found.standing


def paused_and_resumed(spark: SparkSession, folder: Path, name: str) -> None:
    make = kinds(spark, folder)[name]
    job = control(spark)
    expected = sorted(map(tuple, make().collect()))
    spark.catalog.clearCache()
    with ThreadPoolExecutor(1) as pool:
        running, pauses = started(pool, make), 0
        try:
            while not running.done() and pauses < PAUSES:
                if until(lambda: stands(job, name) or running.done(), 30) is not True:
                    pauses += 1
                    before = rows_passed(job)
                    time.sleep(0.3)
                    assert rows_passed(job) == before, name
                job.resume()
                time.sleep(0.1)
        finally:
            job.resume()
        assert running.result() == expected, name
    spark.catalog.clearCache()
    assert pauses, f"{name} was never met"


def ten_kinds(folder: str) -> None:
    with spark_session(Path(folder, "store"), CONTROLLED) as spark:
        facts(spark, Path(folder))
        for name in kinds(spark, Path(folder)):
            paused_and_resumed(spark, Path(folder), name)
            print("same rows:", name, flush=True)


def test_rows_stay_in_ten_kinds_of_work(tmp_path: Path) -> None:
    done = apart(ten_kinds, tmp_path)
    assert done.stdout.count("same rows:") == 10, done.stdout + done.stderr[-6000:]


def plans(spark: SparkSession, folder: Path) -> dict[str, str]:
    """Of the ten kinds of work, as they ran, without the numbers of columns and plans."""
    shown = {}
    for name, make in kinds(spark, folder).items():
        frame = make()
        frame.collect()
        text = frame._jdf.queryExecution().executedPlan().toString()
        shown[name] = re.sub(r"#\d+L?|plan_id=\d+|RDD\[\d+\]", "", text)
        spark.catalog.clearCache()
    return shown


KEY = "spark.regions.control.enabled"
OTHERS = ("persist", "sharing", "skew")
"""What else changes plans without anything stored."""
UNSET = {name: value for name, value in CONTROLLED.items() if name != KEY} | {
    f"spark.regions.{name}.enabled": "false" for name in OTHERS
}


def texts(spark: SparkSession, folder: Path) -> dict[str, str]:
    """Of the ten kinds of work, and of a filter by a value that may be changed."""
    frame = spark.range(10).where(F.col("id") >= param("least", 7))
    assert frame.count() == 3
    kept = re.sub(r"#\d+L?", "", frame._jdf.queryExecution().optimizedPlan().toString())
    return plans(spark, folder) | {"param": kept}


def without(folder: str) -> None:
    """No plugin at all, in a JVM that never had it."""
    with spark_session(None, UNSET) as spark:
        assert "regions" not in spark.conf.get("spark.sql.extensions", "")
        facts(spark, Path(folder))
        Path(folder, "plain.json").write_text(json.dumps(texts(spark, Path(folder))))


def with_and_without(folder: str) -> None:
    """Control off, unset and on."""
    ui = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
    plain, shown = json.loads(Path(folder, "plain.json").read_text()), {}
    for how, confs in ("false", UNSET | {KEY: "false"}), ("unset", UNSET), ("true", UNSET | {KEY: "true"}):
        with spark_session(Path(folder, how), confs | ui) as spark:
            if how != "true":
                with pytest.raises(ControlError, match=r"expected spark\.regions\.control\.enabled=true"):
                    control(spark).pause()
                with pytest.raises(ControlError, match=r"expected spark\.regions\.control\.enabled=true"):
                    posted(page(spark), {"command": "pause", "by": "anna"}, 1)
            shown[how] = texts(spark, Path(folder))
    on = shown["true"]
    assert shown["false"] == shown["unset"] == plain and len(plain) == 11
    assert "spark_regions_param(least, 7)" in on.pop("param")
    assert all("Probe" in text and "Probe" not in plain[name] for name, text in on.items())
    print("planted only if enabled")


def test_nothing_is_planted_where_it_is_off(tmp_path: Path) -> None:
    plain = apart(without, tmp_path)
    assert (tmp_path / "plain.json").exists(), plain.stderr[-4000:]
    done = apart(with_and_without, tmp_path)
    assert "planted only if enabled" in done.stdout, done.stderr[-4000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("control")


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[SparkSession]:
    """Of this module's own; the tests below share it."""
    confs = CONTROLLED | {
        "spark.regions.control.replaceFunctions": "true",
        "spark.redaction.string.regex": "secret-[0-9]+",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
    }
    with spark_session(folder / "store", confs) as spark:
        facts(spark, folder)
        yield spark


@pytest.fixture
def job(session: SparkSession) -> Iterator[RunningJob]:
    """Nothing of it is left for the next test."""
    found = control(session, "anna")
    yield found
    found.take_over()
    for point in found.state["breakpoints"]:
        found.clear(point["number"])
    found.resume()
    found.leave()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    threads = ThreadPoolExecutor(2)
    yield threads
    threads.shutdown(wait=False)  # what is paused goes on with the end of `job`


def filtered(session: SparkSession, folder: Path) -> DataFrame:
    return session.read.parquet(str(folder / "facts")).where("id % 2 = 0").selectExpr("sum(id) AS s", "count(*) AS n")


ALL = [(sum(range(0, ROWS, 2)), ROWS // 2)]


def test_operators_of_a_paused_query(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path
) -> None:
    text = "concat('secret-', id) AS word"
    running = held_at_start(
        job,
        pool,
        lambda: (
            session.read.parquet(str(folder / "facts"))
            .selectExpr("id", text)
            .where("word LIKE '%7'")
            .selectExpr("count(*)")
        ),
        "Filter",
    )
    assert job.paused
    point = job.break_when("Filter", "id = 5007")
    job.resume()
    until(lambda: job.rows, 30)
    (scan,) = [each for each in job.operators() if each.name.startswith("Scan")]
    (kept,) = [each for each in job.operators() if each.name == "Filter"]
    assert kept.rows_in == scan.rows and 0 < kept.rows < scan.rows and scan.columns == {"id": "BIGINT"}
    task = next(each for each in kept.tasks if each.at == "Filter")
    assert task.stands and task.row["id"] == "5007"
    assert "secret-5007" not in str(job.operators()) + str(job.rows)
    job.clear(point)
    job.resume()
    assert running.result() == [(ROWS // 10,)]


def test_a_row_at_a_breakpoint_is_shown_and_passes(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path
) -> None:
    running = held_at_start(job, pool, lambda: filtered(session, folder), "Filter")
    job.break_when("Filter", "id = 300")
    job.resume()
    (row,) = until(lambda: job.rows, 30)
    assert row["operator"] == "Filter" and row["why"] == "id = 300" and row["values"] == {"id": "300"}
    assert row["ordinal"] % (ROWS // 8) == 151 and job.paused, "its file may be the second one of the task"
    job.resume()
    assert running.result() == ALL


def test_a_row_is_left_out(session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    running = held_at_start(job, pool, lambda: filtered(session, folder), "Filter")
    point = job.break_when("Filter", "id IN (300, 302)")
    job.resume()
    for expected in ("300", "302"):
        (row,) = until(lambda: job.rows, 30)
        assert row["values"] == {"id": expected}
        if expected == "300":
            job.skip(row["name"])
        job.resume()
        until(lambda name=expected: not any(each["values"]["id"] == name for each in job.rows), 30)
    assert running.result() == [(ALL[0][0] - 300, ALL[0][1] - 1)]
    job.clear(point)
    again = session.read.parquet(str(folder / "facts")).where("id % 2 = 0")
    running = held_at_start(job, pool, lambda: again.selectExpr("count(*)"), "Filter")
    job.break_when("Filter", "id < 1000", then="skip")
    job.resume()
    assert running.result() == [(ROWS // 2 - 500,)]


def test_a_query_fails_at_a_row(session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    running = held_at_start(job, pool, lambda: filtered(session, folder), "Filter")
    job.break_when("Filter", "id = 300", then="fail")
    job.resume()
    with pytest.raises(Exception, match=r"stopped at a breakpoint: row \d*151 of Filter: id = 300"):
        running.result(timeout=30)


@pytest.mark.parametrize("target", [1, 999, 77_777])
def test_a_count_over_tasks_never_overshoots(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path, target: int
) -> None:
    running = held_at_start(job, pool, lambda: filtered(session, folder), "Filter")
    job.break_when("Filter", f"count(*) = {target}")
    job.resume()
    until(lambda: job.paused, 60)
    (kept,) = [each for each in job.operators() if each.name == "Filter"]
    assert kept.rows == target and job.state["breakpoints"] == []
    assert job.state["note"] == f"Filter has given {target} rows"
    job.resume()
    assert running.result() == ALL


def test_a_sum_over_tasks_is_beyond_by_less_than_a_row(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path
) -> None:
    running = held_at_start(job, pool, lambda: filtered(session, folder), "Filter")
    job.break_when("Filter", "sum(id % 10) >= 100000")
    job.resume()
    until(lambda: job.paused, 60)
    note, _, total = job.state["note"].rpartition(" ")
    assert note == "sum(id % 10) of Filter is" and 100_000 <= float(total) < 100_008
    assert job.state["breakpoints"] == []
    job.resume()
    assert running.result() == ALL


def test_a_value_is_changed_while_a_query_runs(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor
) -> None:
    """Loosened: rows that come later and would not have passed do."""
    make = lambda: session.range(0, 10_000, 1, 1).where(F.col("id") % 10 >= param("least", 9))  # noqa: E731
    running = held_at_start(job, pool, make, "Range")
    job.break_when("Range", "count(*) = 1000")
    job.resume()
    until(lambda: job.paused, 30)
    job.set("least", 5)
    job.resume()
    assert running.result() == [(n,) for n in range(10_000) if n % 10 >= (9 if n < 1000 else 5)]
    assert job.params == {"least": "5"}
    (change,) = job.changes
    assert (change["name"], change["value"], change["row"]) == ("least", "5", 1001)
    assert make().count() == 5000, "also of queries that start later"
    in_sql = session.sql(
        "SELECT spark_regions_param('least', 9) AS a, spark_regions_param('from', DATE '2020-01-31') AS b"
    )
    assert [*in_sql.first()] == [5, date(2020, 1, 31)]
    for name, value, found in (
        ("lest", 1, "Found the parameter 'lest'.* did you mean least"),
        ("least", "many", "Found 'many', expected INT"),
        ("least", 1e10, "Found '10000000000.0', expected INT"),
    ):
        with pytest.raises(ControlError, match=found):
            job.set(name, value)
    with pytest.raises(Exception, match="Found the parameter least of STRING, expected INT as before"):
        session.range(1).select(param("least", "x")).collect()
    with pytest.raises(Exception, match="expected a name and a number, string, boolean or date"):
        session.sql("SELECT spark_regions_param('x', id) FROM range(1)").collect()
    with pytest.raises(Exception, match=r"Found the name least\(\), which ends as a function's"):
        session.range(1).select(param("least()", 1)).collect()


def changed_midway(
    job: RunningJob,
    pool: ThreadPoolExecutor,
    make: Callable[[], DataFrame],
    operators: tuple[str, str],
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Begins with 9, and has 5 from the 1,000th row on; `meanwhile` 2,000 rows later. The rows, and what tasks took."""
    before = len(job.changes)
    make()
    job.set("low", 9)
    first, operator = operators
    running = held_at_start(job, pool, make, first)
    job.break_when(operator, "count(*) = 1000")
    job.resume()
    until(lambda: job.paused, 30)
    job.set("low", 5)
    job.break_when(operator, "count(*) = 2000")
    job.resume()
    until(lambda: job.paused, 30)
    meanwhile()
    job.resume()
    return running.result(timeout=60), job.changes[before:]


def lost(session: SparkSession, job: RunningJob) -> set[int]:
    """Attempts that run, killed; others have begun."""

    def running() -> set[int]:
        return {task.attempt for each in job.operators() for task in each.tasks}

    before = running()
    for attempt in before:
        session.sparkContext._jsc.sc().killTaskAttempt(attempt, False, "a test")  # type: ignore[union-attr]
    until(lambda: running() - before, 30)
    return before


def test_a_task_that_comes_again_takes_values_at_the_same_rows(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path
) -> None:
    session.range(0, 10_000, 1, 1).write.parquet(str(folder / "one"))

    def scanned() -> DataFrame:
        rows = session.read.parquet(str(folder / "one")).selectExpr("id", "id % 10 AS digit")
        return rows.where(F.col("digit") >= param("low", 8)).select("id", F.spark_partition_id())

    scan = "Scan parquet", "Scan parquet"
    expected, plain = changed_midway(job, pool, scanned, scan)
    assert expected == [(n, 0) for n in range(10_000) if n % 10 >= (9 if n < 1000 else 5)]
    found, changes = changed_midway(job, pool, scanned, scan, lambda: (lost(session, job), lost(session, job)))
    taken = [(each["row"], each["value"]) for each in changes]
    assert found == expected and taken == [(1, "9"), (1001, "5")] * 2, changes
    assert [each["replayed"] for each in plain + changes] == [False] * 4 + [True] * 2
    assert len({each["attempt"] for each in changes}) == 2 and not any(each["reason"] for each in changes)

    def shuffled() -> DataFrame:
        return session.range(0, 10_000, 1, 4).repartition(1).where(F.col("id") % 10 >= param("low", 8))

    session.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        found, changes = changed_midway(job, pool, shuffled, ("Range", "ShuffleRead"), lambda: lost(session, job))
    finally:
        session.conf.unset("spark.sql.adaptive.enabled")
    assert found == [(n,) for n in range(10_000) if n % 10 >= 5]
    *first, last = changes
    assert [(each["row"], each["value"]) for each in first] == [(1, "9"), (1001, "5")]
    assert (last["row"], last["value"], last["replayed"]) == (1, "5", False)
    assert last["reason"] == f"rows of a shuffle come as they arrive: attempt {first[0]['attempt']} took 5 at row 1001"
    shown = CliRunner().invoke(commands, ["debug", page(session), "changes"]).output
    assert "low = 5 from row 1,001 on, as an earlier attempt did\n" in shown and last["reason"] in shown


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = name
    return function


def plus(added: int) -> Callable[[int], int]:
    return lambda value: value + added


def replaced_midway(
    session: SparkSession,
    job: RunningJob,
    pool: ThreadPoolExecutor,
    folder: Path,
    columns: Callable[[], list[Column]],
    new: Mapping[str, Callable[..., Any]],
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[list[Any], dict[str, list[int]]]:
    """Other functions once the filter of one task has given 2,000 rows. The rows, and from which on it took others."""
    if not (folder / "line").exists():
        session.range(0, 10_000, 1, 1).write.parquet(str(folder / "line"))
    before = len(job.changes)
    # Rows of a scan alone would go to Arrow in columns, and no probe would count them.
    make = lambda: session.read.parquet(str(folder / "line")).where("id % 2 < 2").select("id", *columns())  # noqa: E731
    running = held_at_start(job, pool, make, "Filter")
    job.break_when("Filter", "count(*) = 2000")
    job.resume()
    until(lambda: job.paused, 30)
    for name, function in new.items():
        job.replace(name, function)
    job.break_when("Filter", "count(*) = 3000")
    job.resume()
    until(lambda: job.paused, 30)
    meanwhile()
    job.resume()
    rows = running.result(timeout=60)
    found: dict[str, list[int]] = {}
    for each in job.changes[before:]:
        found.setdefault(each["name"], []).append(each["row"])
    return rows, found


@pytest.mark.parametrize("arrow", [False, True])
def test_a_function_is_replaced_while_a_query_runs(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path, arrow: bool
) -> None:
    name = f"add_{arrow}".lower()

    def added() -> list[Column]:
        one, two = (udf(f, "bigint", useArrow=arrow) for f in (named(plus(1), name), named(plus(100), f"{name}_outer")))
        return [two(one("id")).alias("chained"), one(F.col("id") * 2).alias("single")]

    new = {name: plus(2), f"{name}_outer": plus(500)}
    rows, taken = replaced_midway(session, job, pool, folder, added, new)
    assert {*taken} == {f"{each}()" for each in new} and {*taken[f"{name}()"], *taken[f"{name}_outer()"]} == {2001}
    assert rows == [(n, n + 101, n * 2 + 1) if n < 2000 else (n, n + 502, n * 2 + 2) for n in range(10_000)]
    assert job.functions[name] == 1
    again = session.range(1).select(*added()).first()
    assert again is not None and [*again] == [502, 2], "also of queries that start later"


@pytest.mark.parametrize("library", ["pandas", "arrow"])
def test_a_function_of_columns_is_replaced_between_batches(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path, library: str
) -> None:
    name = f"whole_{library}"

    def before(values):  # type: ignore[no-untyped-def]
        import pyarrow.compute

        return values + 1 if hasattr(values, "iloc") else pyarrow.compute.add(values, 1)

    def after(values):  # type: ignore[no-untyped-def]
        import pyarrow.compute

        return values - 1 if hasattr(values, "iloc") else pyarrow.compute.subtract(values, 1)

    make = {"pandas": F.pandas_udf, "arrow": F.arrow_udf}[library]
    columns = lambda: [make(named(before, name), "bigint")("id")]  # noqa: E731
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "300")
    try:
        rows, taken = replaced_midway(session, job, pool, folder, columns, {name: after})
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert taken == {f"{name}()": [2001]}
    assert rows == [(n, n + 1 if n < 2100 else n - 1) for n in range(10_000)], "the batch of 300 rows was begun"


def test_a_task_that_comes_again_takes_a_function_at_the_same_row(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path
) -> None:
    killed: list[int] = []
    columns = lambda: [udf(named(plus(1), "again"), "bigint")("id")]  # noqa: E731
    rows, taken = replaced_midway(
        session, job, pool, folder, columns, {"again": plus(2)}, lambda: killed.extend(lost(session, job))
    )
    assert killed and taken == {"again()": [2001, 2001]} and job.changes[-1]["replayed"]
    assert rows == [(n, n + 1 if n < 2000 else n + 2) for n in range(10_000)]


def test_what_cannot_take_a_functions_place(session: SparkSession, job: RunningJob) -> None:
    session.range(3).select(udf(named(plus(1), "known"), "bigint")("id")).collect()
    lock = threading.Lock()
    session.range(3).mapInPandas(named(lambda batches: batches, "tables"), "id bigint").collect()
    for name, function, found in (
        ("knwon", plus(2), "Found the function 'knwon', expected one of .* did you mean known"),
        ("tables", lambda batches: batches, "Found the function 'tables', expected one of .* takes rows or columns"),
        ("known", lambda a, b: a, "cannot be called with 1 arguments"),
        ("known", 7, "Found 7, expected a function"),
        ("known", lambda value: (lock, value), "Found a function that cannot be sent to workers"),
    ):
        with pytest.raises(ControlError, match=found):
            job.replace(name, function)  # type: ignore[arg-type]
    asked = {"command": "replace", "by": "anna", "name": "known"}
    with pytest.raises(ControlError, match="Found the command replace of anna, expected pause"):
        job._answer(**asked)  # type: ignore[arg-type]
    assert "error" in posted(page(session), asked, 1), "who may end a query may not run code"
    ben = control(session, "ben")
    ben.take_over()
    with pytest.raises(ControlError, match="in control of ben, expected anna"):
        job.replace("known", plus(2))


def test_a_paused_query_is_cancelled(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path
) -> None:
    running = held_at_start(job, pool, lambda: filtered(session, folder), "Filter")
    began = time.monotonic()
    session.sparkContext.cancelAllJobs()
    with pytest.raises(Exception, match=r"(?i)cancel"):
        running.result(timeout=10)
    until(lambda: not any(each.tasks for each in job.operators()), 5)
    assert time.monotonic() - began < 5
    job.resume()
    assert filtered(session, folder).collect() == ALL


def test_rows_without_columns(session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    make = lambda: session.read.parquet(str(folder / "facts")).selectExpr("count(*)")  # noqa: E731
    running = held_at_start(job, pool, make, "Scan parquet")
    job.break_when("Scan parquet", "count(*) = 1000")
    job.resume()
    until(lambda: job.paused, 30)
    job.resume()
    assert running.result() == [(ROWS,)]


def test_python_workers_are_stopped(
    session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path
) -> None:
    make = kinds(session, folder)["python"]
    running = started(pool, make)
    until(lambda: any(job.python_workers().values()), 60)
    assert not job.pause(20).running
    workers = [pid for each in job.python_workers().values() for pid in each]
    until(lambda: all(state_of(pid) == "T" for pid in workers), 5)
    job.resume()
    until(lambda: not any(state_of(pid) == "T" for pid in workers), 5)
    assert running.result() == [(sum(range(0, ROWS, 100)) + ROWS // 100,)]


def state_of(pid: int) -> str:
    stat = Path(f"/proc/{pid}/stat")
    return stat.read_text().rpartition(")")[2].split()[0] if stat.exists() else ""


def test_what_cannot_be_done(session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    until(lambda: not job.operators())
    with pytest.raises(ControlError, match=r"Found no running query .* a finished one has no rows to come"):
        job.break_when("Filter", "id = 1")
    running = held_at_start(job, pool, lambda: filtered(session, folder), "Filter")
    for operator, condition, found in (
        ("Fliter", "id = 1", "did you mean Filter"),
        ("Filter", "nothing = 1", "UNRESOLVED_COLUMN"),
        ("Filter", "id +", "PARSE_SYNTAX_ERROR"),
        ("Filter", "id + 1", "DATATYPE_MISMATCH"),
        ("Filter", "id IN (SELECT 1)", "(?s)expected what is computed of one row"),
        ("Filter", "sum(id) > 5", "expected of all rows a count or sum"),
        ("Filter", "sum(nothing) >= 5", "UNRESOLVED_COLUMN"),
        ("Filter", "sum(count(id)) >= 5", "expected what is computed of one row"),
    ):
        with pytest.raises(ControlError, match=found):
            job.break_when(operator, condition)
    with pytest.raises(ControlError, match=r"Found the breakpoint 99.* there is none"):
        job.clear(99)
    ben = control(session, "ben")
    with pytest.raises(ControlError, match="in control of anna, expected ben or nobody"):
        ben.resume()
    ben.take_over()
    with pytest.raises(ControlError, match="in control of ben, expected anna"):
        job.resume()
    ben.resume()
    assert running.result() == ALL


def page(spark: SparkSession) -> str:
    return f"http://127.0.0.1:{str(spark.sparkContext.uiWebUrl).rpartition(':')[2]}"


def test_debug_in_a_terminal(session: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    url = page(session)

    def told(*words: str, typed: str | None = None, status: int = 0) -> str:
        done = CliRunner().invoke(commands, ["debug", url, *words], input=typed)
        assert done.exit_code == status, done.output
        return done.output + str(done.exception or "")

    job.leave()
    assert "tasks stand" in told("pause")
    running = started(pool, lambda: filtered(session, folder))
    until(lambda: "Filter: 0 of 0 rows" in told("list"), 30)
    assert "breakpoint" in told("break", "Filter", "id = 300")
    with urllib.request.urlopen(f"{url}/regions/running/json") as answer:
        page_of = json.load(answer)
    assert page_of["state"]["paused"] and "Filter" in {each["name"] for each in page_of["operators"]}
    assert [each["sql"] for each in page_of["state"]["breakpoints"]] == ["id = 300"]
    told("resume")
    shown = until(lambda: "id = 300" in (rows := told("rows")) and rows, 30)
    name = shown.partition(":")[0]
    inspected = told("inspect")
    assert "stands before a row of Filter" in inspected
    assert re.search(r"^Scan parquet of query \d+:.* size of files read \d+\.\d [KM]iB", inspected, re.MULTILINE)
    assert "did you mean Filter" in told("break", "Fliter", "id = 1", status=1)
    assert "expected a command" in told("stop", status=1)
    typed = told(typed=f"skip {name}\nclear 1000\nresume\nleave\nquit\n")
    assert f"{name}: skip, once resumed" in typed and "error: Found the breakpoint 1000" in typed
    assert running.result() == [(ALL[0][0] - 300, ALL[0][1] - 1)]
    body = json.dumps({"command": "pause", "by": "page"}).encode()
    with pytest.raises(urllib.error.HTTPError, match="415"):
        urllib.request.urlopen(f"{url}/regions/control/", data=body)
    for command, found in (
        (body[:9], "Unexpected end"),
        (body.replace(b"page", b"driver"), "Found the command pause of driver"),
    ):
        request = urllib.request.Request(f"{url}/regions/control/", command, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert found in json.load(answer)["error"]
    assert not job.paused


def later_pauses(folder: str) -> None:
    """What needs settings of its own: timeouts, permissions, and what would end a paused query."""
    confs = CONTROLLED | {
        "spark.regions.control.pauseTimeout": "2s",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.acls.enable": "true",
        "spark.ui.view.acls": "*",
    }
    with spark_session(Path(folder, "store"), confs) as spark, ThreadPoolExecutor(1) as pool:
        facts(spark, Path(folder))
        job = control(spark)
        job.pause()
        running = started(pool, lambda: filtered(spark, Path(folder)))
        assert running.result(timeout=60) == ALL and not job.paused
        pid = int(status(spark)["planner.pid"])
        running = held_at_start(job, pool, lambda: filtered(spark, Path(folder)), "Filter")
        job.break_when("Filter", "count(*) = 77777")
        os.kill(pid, signal.SIGKILL)
        assert running.result(timeout=60) == ALL and not job.paused
        print("went on by itself")
        request = urllib.request.Request(
            f"{page(spark)}/regions/control/?doAs=bob",
            b'{"command": "pause", "by": "bob"}',
            {"Content-Type": "application/json"},
        )
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(request)
        assert "Found the user bob, expected one who may modify" in refused.value.read().decode()
        assert not job.paused
        spark.conf.set("spark.sql.execution.pyspark.udf.killOnIdleTimeout", "true")
        running = started(pool, lambda: kinds(spark, Path(folder))["python"]())
        until(lambda: job.operators(), 60)
        with pytest.raises(ControlError, match="killOnIdleTimeout=true, which ends paused Python workers"):
            job.pause()
        running.result()
    with spark_session(Path(folder, "store2"), CONTROLLED | {"spark.speculation": "true"}) as spark:
        with pytest.raises(ControlError, match=r"spark\.speculation=true"):
            control(spark).pause()
    with pytest.raises(ControlError, match="has ended"):
        job.pause()
    print("refused")


def test_timeouts(tmp_path: Path) -> None:
    done = apart(later_pauses, tmp_path)
    assert "went on by itself" in done.stdout and "refused" in done.stdout, done.stderr[-4000:]


def killed(folder: str) -> None:
    """The JVM, while Python workers are stopped."""
    with spark_session(Path(folder, "store"), CONTROLLED) as spark, ThreadPoolExecutor(1) as pool:
        facts(spark, Path(folder))
        job = control(spark)
        started(pool, kinds(spark, Path(folder))["python"])
        until(lambda: any(job.python_workers().values()), 60)
        assert not job.pause(20).running
        workers = [pid for each in job.python_workers().values() for pid in each]
        until(lambda: all(state_of(pid) == "T" for pid in workers), 5)
        os.kill(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)  # type: ignore[union-attr]
        until(lambda: not any(state_of(pid) in "TSR" for pid in workers if state_of(pid)), 30)
        print("nobody is left", flush=True)
        os._exit(0)


def test_a_driver_is_killed_while_paused(tmp_path: Path) -> None:
    done = apart(killed, tmp_path)
    assert "nobody is left" in done.stdout, done.stderr[-4000:]


def nothing_kept(folder: str) -> None:
    confs = CONTROLLED | {"spark.regions.recycle.strategy": "always"}
    with spark_session(Path(folder, "store"), confs) as spark, ThreadPoolExecutor(1) as pool:
        facts(spark, Path(folder))
        settle_writes(spark)
        before = counters(spark)
        job = control(spark)
        running = held_at_start(job, pool, lambda: filtered(spark, Path(folder)), "Filter")
        job.break_when("Filter", "id = 300", then="skip")
        job.resume()
        assert running.result() == [(ALL[0][0] - 300, ALL[0][1] - 1)]
        assert filtered(spark, Path(folder)).collect() != ALL, "the breakpoint holds still"
        for point in job.state["breakpoints"]:
            job.clear(point["number"])
        assert filtered(spark, Path(folder)).collect() == ALL
        settle_writes(spark)
        assert counters(spark) == before and status(spark)["counter.abandons"] == "1"
    with spark_session(Path(folder, "store"), confs) as spark:
        assert filtered(spark, Path(folder)).collect() == ALL
    print("nothing kept")


def test_nothing_of_an_altered_query_is_kept(tmp_path: Path) -> None:
    done = apart(nothing_kept, tmp_path)
    assert "nothing kept" in done.stdout, done.stdout + done.stderr[-4000:]
