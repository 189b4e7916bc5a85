"""Bad rows that a person is asked about: left out, nulled, fixed or failed, and all others as in plain Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from spark_regions import ControlError, RunningJob, control
from spark_regions.cli.commands import commands
from tests.harness.control import CONTROLLED
from tests.harness.session import counters, settle_writes, sibling, spark_session, status
from tests.platforms.test_engine import until
from tests.spark import control_cases as cases
from tests.spark.test_platforms import apart

pytestmark = pytest.mark.spark

folder, session, job, pool = cases.folder, cases.session, cases.job, cases.pool

PAUSE = {"spark.regions.control.onBadRow": "pause"}
CULPRITS = (7, 700)
GOOD = {number: number for number in range(1000) if number not in CULPRITS}
Make = Callable[[], DataFrame]


@pytest.fixture
def asking(session: SparkSession, folder: Path) -> SparkSession:
    """Its files say "secret-7" and "secret-700" where there should be a number."""
    if not (folder / "texts").exists():
        texts(session, folder)
    return sibling(session, PAUSE | {"spark.regions.control.splitBatches": "true"})


def texts(spark: SparkSession, folder: Path) -> None:
    text = F.when(F.col("id").isin(*CULPRITS), F.concat(F.lit("secret-"), "id")).otherwise(F.col("id").cast("string"))
    rows = spark.range(0, 1000, 1, 2).select("id", text.alias("text"))
    rows.write.parquet(str(folder / "texts"))
    rows.write.csv(str(folder / "csv"))


def rows_of(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder / "texts"))


def started(pool: ThreadPoolExecutor, frame: DataFrame) -> Future[dict[int, Any]]:
    return pool.submit(lambda: {row[0]: row[1] for row in frame.collect()})


def answering(job: RunningJob, running: Future[Any], answer: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows that waited, in order of their tasks; each is answered, until the query has ended."""
    met: dict[tuple[str, int], dict[str, Any]] = {}
    while not running.done():
        for row in job.rows:
            if met.setdefault((row["name"], row["ordinal"]), row) is row:
                try:
                    answer(row["name"])
                except ControlError as error:
                    # The query has failed on another row meanwhile.
                    assert "expected one that waits" in str(error)
        try:
            job.resume()
        except ControlError as error:
            assert "without an answer" in str(error)
        time.sleep(0.02)
    return [met[key] for key in sorted(met)]


number = F.udf(int, LongType(), useArrow=False)
by_arrow = F.udf(int, LongType(), useArrow=True)
twice = F.udf(lambda value: 2 * value, LongType(), useArrow=False)


def numbers(text: pd.Series) -> pd.Series:
    return text.astype("int64")


in_batches = F.pandas_udf(numbers, LongType())  # type: ignore[attr-defined]


def table(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        yield batch.assign(text=batch["text"].astype("int64"))


FRAMES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "cast": lambda rows: rows.selectExpr("id", "CAST(text AS BIGINT) AS n"),
    "filter": lambda rows: rows.where("CAST(text AS BIGINT) = id").selectExpr("id", "id AS n"),
    "nested": lambda rows: rows.selectExpr("id", "CAST(text AS BIGINT) + id * 0 AS n"),
    "sum": lambda rows: rows.groupBy("id").agg(F.expr("sum(CAST(text AS BIGINT))")),
    "pickled": lambda rows: rows.select("id", number("text")),
    "arrow": lambda rows: rows.select("id", by_arrow("text")),
    "pandas": lambda rows: rows.select("id", in_batches("text")),
    "argument": lambda rows: rows.select("id", (twice(F.expr("CAST(text AS BIGINT)")) / 2).cast("long")),
}
FUNCTIONS = ("pickled", "arrow", "pandas")


@pytest.mark.parametrize("whole_stage", ["true", "false"])
@pytest.mark.parametrize("answer", ["skip", "null", "fix"])
@pytest.mark.parametrize("name", FRAMES)
def test_answers(
    asking: SparkSession,
    job: RunningJob,
    pool: ThreadPoolExecutor,
    folder: Path,
    name: str,
    answer: str,
    whole_stage: str,
) -> None:
    if whole_stage == "false" and name in FUNCTIONS:
        return
    asking.conf.set("spark.sql.codegen.wholeStage", whole_stage)
    asking.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY" if whole_stage == "true" else "NO_CODEGEN")
    running = started(pool, FRAMES[name](rows_of(asking, folder)))
    fixed = 700 if name == "filter" else -1
    answers = {"skip": job.skip, "null": job.null, "fix": lambda row: job.fix(row, fixed)}
    met = answering(job, running, answers[answer])
    if name == "argument" and answer == "null":
        # As with `null`, the function is called with None, and fails in turn.
        assert [row["ordinal"] for row in met] == [1, 2, 1, 2]
        met = met[::2]
    assert [row["values"]["text"] for row in met] == ["*********(redacted)"] * 2
    assert all("secret" not in str(row) and row["nullable"] for row in met)
    assert all(("invalid literal" if name in FUNCTIONS else "CAST_INVALID_INPUT") in row["error"] for row in met)
    (shown,) = {(kind, *row["types"].values()) for row in met for kind in row["types"]}
    assert shown == (met[0]["why"] if name not in FUNCTIONS else shown[0], "BIGINT")
    kept = {"skip": {}, "null": dict.fromkeys(CULPRITS), "fix": dict.fromkeys(CULPRITS, fixed)}[answer]
    if name == "filter":
        kept = {700: 700} if answer == "fix" else {}
    assert running.result() == GOOD | kept
    became = job.answers[-len(met) :]
    assert {row["answer"] for row in became} == {answer}
    assert all(row["fixed"] == ({shown[0]: str(fixed)} if answer == "fix" else {}) for row in became)


@pytest.mark.parametrize("name", FRAMES)
def test_a_row_fails_as_in_plain_spark(
    asking: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path, name: str
) -> None:
    running = started(pool, FRAMES[name](rows_of(asking, folder)))
    met = answering(job, running, job.fail)
    assert len({row["name"] for row in met}) == len(met), "asked once"
    told: Any = running.exception()
    with pytest.raises(type(told)) as plain:
        FRAMES[name](rows_of(sibling(asking, {"spark.regions.control.onBadRow": "fail"}), folder)).collect()
    assert told.getCondition() == plain.value.getCondition()
    assert ("ValueError: invalid literal" if name in FUNCTIONS else "CAST_INVALID_INPUT") in str(told)


def test_chained_functions(asking: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    """What is fixed is the column that comes of them."""
    frame = rows_of(asking, folder).select("id", twice(number("text")).alias("n"), by_arrow("text").alias("m"))
    running = pool.submit(lambda: {row["id"]: (row["n"], row["m"]) for row in frame.collect()})
    met = answering(job, running, lambda row: job.fix(row, 5))
    assert running.result() == {n: (2 * n, n) for n in GOOD} | dict.fromkeys(CULPRITS, (5, 5))
    assert {kind for row in met for kind in row["types"]} == {"<lambda>(int(text))", "int(text)"}


@pytest.mark.parametrize("kind", ["pickled", "arrow", "pandas"])
def test_a_function_that_was_replaced(
    asking: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path, kind: str
) -> None:
    name = f"better_{kind}"
    if kind == "pandas":
        make = F.pandas_udf(cases.named(lambda text: text.astype("int64"), name), LongType())  # type: ignore[attr-defined]
    else:
        make = F.udf(cases.named(lambda text: int(text), name), LongType(), useArrow=kind == "arrow")
    frame = lambda: rows_of(asking, folder).select("id", make("text"))  # noqa: E731
    for times in (1, 10):
        running = started(pool, frame())
        met = answering(job, running, job.skip)
        assert running.result() == {n: n * times for n in GOOD}
        shown = sorted(((row["values"].pop("id"), row["values"]) for row in met), key=lambda each: int(each[0]))
        assert shown == [(str(n), {"text": "*********(redacted)"}) for n in CULPRITS]
        assert {each for row in met for each in row["types"]} == {f"{name}(text)"}
        job.replace(name, lambda text: (text.astype("int64") if kind == "pandas" else int(text)) * 10)


def test_a_function_of_tables(asking: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    def answer(row: str) -> None:
        with pytest.raises(ControlError, match="Found the answer 'null', expected skip or fail"):
            job.null(row)
        job.skip(row)

    running = started(pool, rows_of(asking, folder).mapInPandas(table, "id long, text long"))
    met = answering(job, running, answer)
    assert running.result() == GOOD and {row["values"]["id"] for row in met} == {"7", "700"}
    running = started(pool, rows_of(asking, folder).mapInPandas(table, "id long, text long"))
    answering(job, running, job.fail)
    with pytest.raises(PythonException, match="invalid literal"):
        running.result()


def test_lines(asking: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    read = asking.read.schema("id INT, number INT").option("mode", "FAILFAST").csv(str(folder / "csv"))
    running = started(pool, read)
    met = answering(job, running, lambda row: job.fix(row, {"id": -1 - int(row.split(".")[1]), "number": None}))
    assert running.result() == GOOD | {-1: None, -2: None}
    assert met[0]["types"] == {"id": "INT", "number": "INT"} and met[0]["why"].endswith(".csv")
    running = started(pool, read)
    answering(job, running, job.skip)
    assert running.result() == GOOD
    running = started(pool, read)
    answering(job, running, job.fail)
    with pytest.raises(Exception, match="MALFORMED_RECORD_IN_PARSING"):
        running.result()


def test_what_does_not_fit(asking: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    frame = rows_of(asking, folder).selectExpr("id", "2147483647 + IF(text = 'secret-7', 1, 0) AS n")
    running = started(pool, frame)
    (row,) = until(lambda: job.rows, 30)
    assert row["types"] == {row["why"]: "INT NOT NULL"} and not row["nullable"]
    for answer, found in (
        (lambda: job.fix(row["name"], "many"), "Found 'many', expected INT. Hint: .*CAST_INVALID_INPUT"),
        (lambda: job.fix(row["name"], 1e10), "Found '10000000000.0', expected INT"),
        (lambda: job.fix(row["name"], None), "Found NULL for .*, expected INT NOT NULL"),
        (lambda: job.fix(row["name"], {"other": 1}), "Found 'other' to fix, expected a value of .*2147483647"),
        (lambda: job.fix("9.9.9", 1), "Found the row '9.9.9', expected one that waits"),
        (lambda: job.null(row["name"]), "Found the answer 'null', expected skip or fix or fail"),
        (job.resume, "Found the bad row .* without an answer, expected skip or fix or fail"),
    ):
        with pytest.raises(ControlError, match=found):
            answer()
    assert job.paused
    job.fix(row["name"], 5)
    job.resume()
    assert running.result() == dict.fromkeys(range(1000), 2147483647) | {7: 5}


def test_debug_in_a_terminal(asking: SparkSession, job: RunningJob, pool: ThreadPoolExecutor, folder: Path) -> None:
    def told(*words: str) -> str:
        done = CliRunner().invoke(commands, ["debug", cases.page(asking), *words])
        assert done.exit_code == 0, done.output
        return done.output

    running = started(pool, FRAMES["cast"](rows_of(asking, folder).where("id < 500")))
    (row,) = until(lambda: job.rows, 30)
    job.leave()
    assert f"{row['name']}: bad row 1 of Project, CAST(text AS BIGINT): [CAST_INVALID_INPUT]" in told("rows")
    assert "rows that wait: 1" in told("list")
    assert "null, once resumed" in told("null", row["name"])
    assert "fix, once resumed" in told("fix", row["name"], "77")
    told("resume")
    assert "fix: CAST(text AS BIGINT) = 77" in told("answers")
    told("leave")
    assert running.result() == {n: n for n in range(500)} | {7: 77}


def alone(folder: str) -> None:
    """What needs settings of its own: nobody answers, a task that is tried again, nothing kept."""
    confs = CONTROLLED | PAUSE | {"spark.master": "local[2,3]", "spark.regions.recycle.strategy": "always"}
    with spark_session(Path(folder, "store"), confs | {"spark.regions.control.pauseTimeout": "2s"}) as spark:
        texts(spark, Path(folder))
        settle_writes(spark)
        frame = FRAMES["cast"](rows_of(spark, Path(folder)))
        before, job = counters(spark), control(spark)
        with ThreadPoolExecutor(1) as pool:
            running = started(pool, frame.where("id < 500"))
            until(lambda: job.rows, 30)
            began = time.monotonic()
            assert "CAST_INVALID_INPUT" in str(running.exception()) and not job.paused
            # Other attempts have the same answer.
            assert time.monotonic() - began < 5 and [row["answer"] for row in job.answers] == ["pass"]
            running = started(pool, frame)
            met = answering(job, running, job.skip)
            assert running.result() == GOOD and len(met) == 2
            running = started(pool, frame.where("id < 500"))
            (row,) = answering(job, running, job.fail)
            assert "CAST_INVALID_INPUT" in str(running.exception())
            stage = int(row["name"].split(".")[0])
            until(lambda: spark._jsc.sc().statusStore().lastStageAttempt(stage).numFailedTasks() == 3, 30)
        settle_writes(spark)
        assert (counters(spark) - before).stores == 0 and status(spark)["badRows"] == "2"
        print("answered once")
    with spark_session(Path(folder, "store"), CONTROLLED | PAUSE | {"spark.regions.control.enabled": "false"}) as spark:
        with pytest.raises(Exception, match=r"onBadRow=pause, expected spark\.regions\.control\.enabled=true with it"):
            FRAMES["cast"](rows_of(spark, Path(folder))).collect()
    with spark_session(Path(folder, "store"), CONTROLLED | PAUSE | {"spark.speculation": "true"}) as spark:
        with pytest.raises(Exception, match=r"Found spark\.speculation=true"):
            FRAMES["pickled"](rows_of(spark, Path(folder))).collect()
    print("refused")


def test_nobody_answers(tmp_path: Path) -> None:
    done = apart(alone, tmp_path)
    assert "answered once" in done.stdout and "refused" in done.stdout, done.stdout + done.stderr[-6000:]
