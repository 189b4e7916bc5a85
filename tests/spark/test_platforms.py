"""Parts of a query that another engine computes: the rows are plain Spark's, and so are errors, cancels, changed files.

What is proven of single expressions has its tests in tests/platforms.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.processes import ROOT
from tests.harness.session import (
    ENGINE,
    Fallbacks,
    NewDecisions,
    committed,
    decisions,
    routes,
    settle,
    sibling,
    spark_session,
    status,
)
from tests.platforms.test_engine import until
from tests.spark.test_same_rows import OFF
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

PLAIN = OFF | {"spark.regions.platforms": "off"}
ROUTED = ENGINE | {"spark.sql.planChangeValidation": "true"}
MODULE = "spark_regions.platforms.duckdb"

QUERIES = {
    "filter and projection": "SELECT id, k + 1 AS n, text FROM facts WHERE v > 100 AND text LIKE 't1%'",
    "aggregate": "SELECT k, count(*) AS n, sum(v) AS s, min(text) AS low, max(price) AS high FROM facts GROUP BY k",
    "sums of decimals": "SELECT k, sum(price) AS s, sum(price * 2) AS d FROM facts GROUP BY k",
    "averages": "SELECT k, avg(v) AS a, avg(price) AS p, avg(cast(price AS decimal(20,4))) AS q FROM facts GROUP BY k",
    "no rows": "SELECT count(*) AS n, sum(v) AS s FROM facts WHERE v < 0",
    "join": "SELECT f.id, d.name FROM facts f JOIN names d ON f.k = d.k WHERE f.v % 3 = 0",
    "left join with nulls": "SELECT f.id, d.name FROM facts f LEFT JOIN names d ON f.k = d.k AND d.name > 'b'",
    "in": "SELECT id FROM facts WHERE k IN (SELECT k FROM names)",
    "not in, with a null among them": "SELECT id FROM facts WHERE k NOT IN (SELECT k FROM names)",
    "not exists": "SELECT id FROM facts f WHERE NOT EXISTS (SELECT 1 FROM names n WHERE n.k = f.k)",
    "in, as a value": "SELECT id FROM facts WHERE id < 5 OR k IN (SELECT k FROM names)",
    "a scalar subquery": "SELECT id FROM facts WHERE v > (SELECT avg(v) FROM facts) AND k = 3",
    "union": "SELECT k, text FROM facts WHERE v < 50 UNION ALL SELECT k, name FROM names",
    "distinct": "SELECT DISTINCT k, length(text) AS l FROM facts",
    "grouping sets": "SELECT k, p, count(*) AS n FROM facts GROUP BY GROUPING SETS ((k), (p), ())",
    "sorted": "SELECT id, text FROM facts WHERE v > 2900 ORDER BY text DESC, id",
    "sorted by floating-point numbers": """SELECT id, x FROM (SELECT id, CASE id % 6 WHEN 0 THEN double('NaN')
        WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D WHEN 3 THEN double('Infinity') WHEN 4 THEN double('-Infinity')
        ELSE id / 7D END AS x FROM facts) ORDER BY x DESC, id""",
    "a condition that may raise": "SELECT id FROM facts WHERE k <> 0 AND v / k > 100",
    "a join on what may raise": "SELECT f.id, n.name FROM facts f JOIN names n ON f.k = n.k AND f.v / (n.k + 1) > n.k",
    "a value with a condition that may raise": "SELECT id, CASE WHEN k = 0 OR v / k > 100 THEN 1 END AS c FROM facts",
    "the first in an order": "SELECT id, text FROM facts ORDER BY text, id LIMIT 7",
    "rank": "SELECT k, id, rank() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM facts",
    "of one partition": "SELECT p, sum(v) AS s FROM facts WHERE p = 'ü 1' GROUP BY p",
    "by years": "SELECT year(day) AS y, count(DISTINCT k) AS n FROM facts GROUP BY year(day)",
}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("routed")
    rows = sibling(spark, PLAIN).range(0, 1000, 1, 3)
    rows.selectExpr(
        "id",
        "cast(if(id % 11 = 0, null, id % 7) AS int) AS k",
        "cast(id * 3 AS int) AS v",
        "concat('t', id % 13, 'ß') AS text",
        "cast(id / 8 AS decimal(9,2)) AS price",
        "date_add(date'2023-11-05', cast(id % 500 AS int)) AS day",
        "timestamp_seconds(id * 977 - 900000) AS at",
        "concat('ü ', id % 2) AS p",
    ).write.partitionBy("p").parquet(str(folder / "facts"))
    names = "SELECT * FROM VALUES (1, 'a'), (2, 'b'), (2, 'c'), (null, 'd'), (9, 'e') AS t(k, name)"
    sibling(spark, PLAIN).sql(names).coalesce(1).write.parquet(str(folder / "names"))
    return folder


def session_of(spark: SparkSession, folder: Path, confs: dict[str, str]) -> SparkSession:
    session = sibling(spark, confs)
    for name in ("facts", "names"):
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return session


@pytest.fixture
def plain(spark: SparkSession, folder: Path) -> SparkSession:
    return session_of(spark, folder, PLAIN)


@pytest.fixture
def routed(spark: SparkSession, folder: Path) -> SparkSession:
    return session_of(spark, folder, ROUTED)


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("name", QUERIES)
def test_same_rows(spark: SparkSession, folder: Path, plain: SparkSession, name: str, adaptive: str) -> None:
    session = session_of(spark, folder, ROUTED | {"spark.sql.adaptive.enabled": adaptive})
    expected = outcome(plain.sql(QUERIES[name]))
    before, fallbacks = routes(spark), Fallbacks(spark)
    found = outcome(session.sql(QUERIES[name]))
    assert difference(expected, found) is None
    assert routes(spark) > before, "vacuous: nothing ran on the engine"
    assert fallbacks() == [], "vacuous: Spark ran it after all"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, sum(v / (id - 500)) AS s, sum(9223372036854775807 - id + v) AS b FROM facts GROUP BY k",
        "SELECT id FROM facts WHERE v / k > 100 AND k <> 0",
        "SELECT id FROM facts WHERE v / k > 100 OR id < 2000",
        "SELECT f.id, g.id FROM facts f JOIN facts g ON f.id = g.id AND f.v / g.k > 1 AND g.k <> 0",
        "SELECT id, CASE WHEN v / k > 100 AND k <> 0 THEN 1 END AS c FROM facts",
        "SELECT id, CASE WHEN NOT (v / k > 100 OR k IS NOT NULL) THEN 1 END AS c FROM facts",
    ],
)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_errors_are_sparks_own(spark: SparkSession, folder: Path, text: str, ansi: str) -> None:
    both = [session_of(spark, folder, confs | {"spark.sql.ansi.enabled": ansi}) for confs in (PLAIN, ROUTED)]
    expected, found = (outcome(session.sql(text)) for session in both)
    assert difference(expected, found) is None


def test_the_plan_above_a_part_is_plain_sparks(
    spark: SparkSession, folder: Path, plain: SparkSession, routed: SparkSession
) -> None:
    # Built from the engine's side, the join would not compute the other one for rows without a partner.
    zeros = plain.range(0, 500, 1, 1).selectExpr("0 AS k", "cast(id + 100000 AS decimal(15,2)) AS m")
    zeros.write.mode("overwrite").parquet(str(folder / "zeros"))
    text = """SELECT * FROM (SELECT k / k AS c, try_multiply(m, 2.00BD) AS b FROM zeros) l
        JOIN (SELECT price, text, day FROM facts WHERE v > 2900) r ON l.b = r.price"""
    for session in (plain, routed):
        session.read.parquet(str(folder / "zeros")).createOrReplaceTempView("zeros")
    before = routes(spark)
    for session in (plain, routed):
        with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
            session.sql(text).collect()
    assert routes(spark) > before, "vacuous: nothing ran on the engine"


@pytest.mark.parametrize(("zone", "engine"), [("UTC", True), ("+00:00", True), ("Europe/Berlin", False)])
def test_times_of_instants_are_told_in_utc(spark: SparkSession, folder: Path, zone: str, engine: bool) -> None:
    text = """SELECT date_trunc('WEEK', at) AS week, hour(at) AS hour, max(CAST(at AS date)) AS day, count(*) AS n
        FROM facts WHERE minute(at) < 30 GROUP BY week, hour"""
    confs = {"spark.sql.session.timeZone": zone}
    expected = outcome(session_of(spark, folder, PLAIN | confs).sql(text))
    before = routes(spark)
    assert difference(expected, outcome(session_of(spark, folder, ROUTED | confs).sql(text))) is None
    assert (routes(spark) > before) is engine


MOMENTS = (-62135596800000000, -12219292800000001, -2208988800000001, -1, 0, 1, 951827696000001, 253402300799999999)


@pytest.mark.parametrize(("calendar", "fallback"), [("CORRECTED", []), ("LEGACY", ["FILE_SCHEMA"])])
def test_instants_as_spark_writes_them(
    spark: SparkSession, folder: Path, plain: SparkSession, routed: SparkSession, calendar: str, fallback: list[str]
) -> None:
    writer = sibling(spark, PLAIN | {"spark.sql.parquet.int96RebaseModeInWrite": calendar})
    rows = writer.createDataFrame([(each,) for each in MOMENTS], "n BIGINT").selectExpr(
        "n", "timestamp_micros(n) AS at"
    )
    place = str(folder / f"int96 {calendar}")
    rows.coalesce(1).write.parquet(place)
    (file,) = Path(place).glob("*.parquet")
    assert pq.read_schema(file).field("at").type == pa.timestamp("ns"), "vacuous: not INT96"
    before, fallbacks = routes(spark), Fallbacks(spark)
    both = [
        outcome(
            each.read.parquet(place)
            .where("at <= timestamp'9999-12-31'")
            .groupBy("at")
            .agg(F.max("n").alias("n"))
            .selectExpr("n", "unix_micros(at) AS at")
        )
        for each in (plain, routed)
    ]
    assert difference(*both) is None and len(both[0].rows) == len(MOMENTS) - 1
    assert (routes(spark) > before, fallbacks()) == (True, fallback)


def test_a_limit_without_an_order_is_left_to_spark(
    spark: SparkSession, plain: SparkSession, routed: SparkSession
) -> None:
    text = "SELECT id, text FROM facts WHERE v % 2 = 0 LIMIT 5"
    before = routes(spark)
    assert routed.sql(text).collect() == plain.sql(text).collect()
    assert routed.table("facts").where("v > 9").take(3) == plain.table("facts").where("v > 9").take(3)
    assert routes(spark) == before


def test_what_sees_the_order_of_rows_above_a_part_is_left_to_spark(
    spark: SparkSession, plain: SparkSession, routed: SparkSession
) -> None:
    def listed(session: SparkSession) -> list[object]:
        rows = session.table("facts").where("v > 9").groupBy("k").agg(F.collect_list("id").alias("ids"))
        numbered = session.table("facts").where("v > 9").withColumn("n", F.monotonically_increasing_id())
        return [*rows.collect(), *numbered.collect()]

    assert listed(routed) == listed(plain)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, name FROM names ORDER BY k LIMIT 3",
        "SELECT k, name FROM names ORDER BY k DESC LIMIT 4",
        "SELECT k, name FROM names ORDER BY k DESC NULLS FIRST",
    ],
)
def test_rows_with_equal_keys_are_sparks(
    spark: SparkSession, plain: SparkSession, routed: SparkSession, text: str
) -> None:
    before, fallbacks = routes(spark), Fallbacks(spark)
    assert routed.sql(text).collect() == plain.sql(text).collect()
    assert (routes(spark) - before, fallbacks()) == (1, ["TIED"])
    assert routed.sql(text).collect() == plain.sql(text).collect()
    assert fallbacks() == ["TIED"], "it is not tried again"


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("{0} > 5", "NOT_IN_STATISTICS"),
        ("{0} > 5 AND NOT isnan({0})", None),
        ("NOT {0} < 5 OR id = 1", "NOT_IN_STATISTICS"),
        ("{0} = 0", "NOT_IN_STATISTICS"),
        ("{0} IN (0.0D, 7.0D)", "NOT_IN_STATISTICS"),
        ("{0} > -3 AND {0} < 3", None),
        ("{0} > (SELECT max(x) FROM number WHERE id < 3) AND id < 5", None),
    ],
)
def test_rows_that_spark_loses_by_the_statistics_of_files_are_sparks(
    spark: SparkSession, folder: Path, plain: SparkSession, routed: SparkSession, condition: str, code: str | None
) -> None:
    # The first row group's maximum is 2.0, and its dictionary has one zero.
    name = "x" + hashlib.sha256(condition.encode()).hexdigest()[:8]
    values = [1.0, math.nan, 2.0, -0.0, None] + [10.0 + each for each in range(5)]
    file = folder / f"{name}.parquet"
    pq.write_table(pa.table({"id": range(10), name: values}), file, row_group_size=5)
    for session in (plain, routed):
        session.read.parquet(str(file)).createOrReplaceTempView(name)
        session.sql(f"SELECT id, {name} AS x FROM {name}").createOrReplaceTempView("number")
    text = f"SELECT id, count(*) AS n FROM {name} WHERE {condition.format(name)} GROUP BY id"
    before, fallbacks = routes(spark), Fallbacks(spark)
    expected = outcome(plain.sql(text))
    for _ in range(2):
        assert difference(expected, outcome(routed.sql(text))) is None
    assert fallbacks() == [code] * (code is not None), "once, and not again"
    assert routes(spark) > before, "vacuous: nothing ran on the engine"


def test_plain_spark_loses_rows_by_the_statistics_of_files(plain: SparkSession, folder: Path) -> None:
    """Else what the engine does about it would be for nothing."""
    pq.write_table(pa.table({"x": [1.0, math.nan, 2.0, 10.0]}), folder / "lost.parquet", row_group_size=3)
    frame = plain.read.parquet(str(folder / "lost.parquet"))
    assert [frame.where(each).count() for each in ("x > 5", "x * 1 > 5")] == [1, 2]


def test_equal_rows_may_change_places(spark: SparkSession, plain: SparkSession, routed: SparkSession) -> None:
    text = "SELECT k FROM (SELECT k, name FROM names WHERE name < 'd') ORDER BY k + 0 LIMIT 4"
    before, fallbacks = routes(spark), Fallbacks(spark)
    assert routed.sql(text).collect() == plain.sql(text).collect()
    assert (routes(spark) - before, fallbacks()) == (1, [])


def test_every_way_to_ask_for_the_rows(plain: SparkSession, routed: SparkSession, spark: SparkSession) -> None:
    def frame(session: SparkSession) -> DataFrame:
        return session.sql("SELECT id, price, day FROM facts WHERE v % 5 = 0 ORDER BY id")

    before = routes(spark)
    expected = frame(plain).collect()
    assert frame(routed).collect() == expected
    assert list(frame(routed).toLocalIterator()) == expected
    assert frame(routed).count() == len(expected)
    assert frame(routed).toPandas().equals(frame(plain).toPandas())
    assert frame(routed).tail(3) == expected[-3:]
    same = frame(routed)
    assert same.collect() == same.collect() == expected
    cached = frame(routed).cache()
    try:
        assert cached.collect() == expected
        assert cached.where("id > 500").count() == frame(plain).where("id > 500").count()
    finally:
        cached.unpersist()
    assert routes(spark) - before >= 6


HOLDS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "cache": lambda frame: frame.cache(),
    "localCheckpoint": lambda frame: frame.localCheckpoint(),
    "checkpoint": lambda frame: frame.checkpoint(),
    "rdd": lambda frame: frame.sparkSession.createDataFrame(frame.rdd, frame.schema),
}


@pytest.mark.parametrize("text", ["SELECT k, count(*) AS n FROM facts GROUP BY k", QUERIES["join"]])
@pytest.mark.parametrize("hold", HOLDS)
def test_rows_that_are_held_keep_their_order(
    spark: SparkSession, plain: SparkSession, routed: SparkSession, folder: Path, text: str, hold: str
) -> None:
    """A limit takes the first of them, so that another order has other rows."""
    spark.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    before = routes(spark)
    assert difference(outcome(plain.sql(text)), outcome(routed.sql(text))) is None
    assert routes(spark) == before + 1, "vacuous: nobody asked for it runs on the engine"
    expected, found = (HOLDS[hold](session.sql(text)) for session in (plain, routed))
    try:
        assert found.limit(5).collect() == expected.limit(5).collect()
        assert found.collect() == expected.collect()
        assert routes(spark) == before + 1
    finally:
        expected.unpersist()
        found.unpersist()


def test_a_collect_needs_no_job(routed: SparkSession) -> None:
    # The first statement takes longer, and what takes long has a job.
    routed.sql("SELECT count(*) AS n FROM facts").collect()
    frame = routed.sql("SELECT k, count(*) AS n FROM facts GROUP BY k")
    context = routed.sparkContext
    context.setJobGroup("routed", "no job")
    try:
        assert len(frame.collect()) == 8
        settle(routed)
        assert list(context.statusTracker().getJobIdsForGroup("routed")) == []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def test_what_was_expected_of_a_part_and_what_it_took_is_told(
    spark: SparkSession, routed: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> dict[str, Any]:
        actions = [each for decision in spark_regions.decisions(routed) for each in decision["actions"]]
        return dict([each["engine"] for each in actions if each["kind"] == "route"][-1])

    text = "SELECT k, p, count(*) AS n FROM facts GROUP BY k, p"
    routed.sql(text).explain()
    assert [each is None for each in run().values()] == [False] * 3 + [True] * 3, "it has not run"
    before = int(status(spark)["engine.statements"])
    frame = routed.sql(text)
    rows = len(frame.collect())
    settle(spark)
    took = run()
    assert min(took["predictedSeconds"], took["predictedRows"], took["predictedBytes"]) > 0
    assert took["measuredRows"] == rows
    assert 0 < took["measuredSeconds"] < 10
    assert took["measuredBytes"] > rows
    told = [each["engine"] for each in decisions(spark) if each["kind"] == "route"][-1]
    assert list(told) == list(took.values())
    frame.explain()
    assert f"; took {took['measuredSeconds']:.2f} s, {rows} rows" in capsys.readouterr().out
    assert int(status(spark)["engine.statements"]) == before + 1
    assert "Another engine took" in str(spark_regions.report(spark))


def test_results_go_into_other_queries_and_files(
    spark: SparkSession, plain: SparkSession, routed: SparkSession, tmp_path: Path
) -> None:
    def build(session: SparkSession) -> DataFrame:
        part = session.sql("SELECT k, count(*) AS n, max(text) AS t FROM facts GROUP BY k")
        return part.join(session.range(20).withColumnRenamed("id", "k"), "k").withColumn("u", F.upper("t"))

    assert difference(outcome(build(plain)), outcome(build(routed))) is None
    build(routed).write.parquet(str(tmp_path / "out"))
    assert difference(outcome(build(plain)), outcome(plain.read.parquet(str(tmp_path / "out")))) is None


@pytest.mark.parametrize(
    ("conf", "value", "codes"),
    [
        ("maxResultBytes", "1", {"RESULT_TOO_LARGE"}),
        ("timeout", "1ms", {"DEADLINE"}),
    ],
)
def test_beyond_a_limit_spark_runs_in_the_same_query(
    spark: SparkSession, folder: Path, plain: SparkSession, conf: str, value: str, codes: set[str]
) -> None:
    session = session_of(spark, folder, ROUTED | {f"spark.regions.platforms.{conf}": value})
    text = "SELECT k, count(DISTINCT text) AS n FROM facts GROUP BY k"
    fallbacks = Fallbacks(spark)
    assert difference(outcome(plain.sql(text)), outcome(session.sql(text))) is None
    assert set(fallbacks()) <= codes


def test_parts_of_a_dataframe_that_is_stored_are_computed_by_the_engine(
    spark: SparkSession, folder: Path, plain: SparkSession
) -> None:
    """The engine has the join of which a Python function computes a column; the DataFrame with it is stored."""
    confs = {"spark.regions.platforms": "duckdb", "spark.regions.recycle.firstUseOverhead": "1"}
    session = session_of(spark, folder, confs | {"spark.sql.planChangeValidation": "true"})
    loud = F.udf(lambda text: text.upper() + "!")

    def lines(of: SparkSession) -> DataFrame:
        joined = of.table("facts").join(of.table("names"), "k").where("v > 30")
        return joined.select("id", "v", "price", "name", "day", loud("text").alias("loud"))

    # Neither of the first two may be stored itself, so that the DataFrame is what is left to store.
    asked: list[Callable[[DataFrame], DataFrame]] = [
        lambda frame: frame.orderBy(F.desc("v"), "id", "name").limit(7),
        lambda frame: frame.orderBy("id", "name").limit(5),
        lambda frame: frame.where("price > 7").groupBy("loud").agg(F.sum("price"), F.max("day")),
        lambda frame: frame.groupBy("name", "loud").agg(F.max("v")),
    ]
    ours, plains, fallbacks = lines(session), lines(plain), Fallbacks(spark)
    seen = []
    for query in asked:
        new = NewDecisions(spark)
        if seen:  # however little that saves
            session.conf.set("spark.regions.recycle.strategy", "always")
        assert difference(outcome(query(plains)), outcome(query(ours))) is None
        committed(spark)
        seen.append({(each["kind"], each["operator"]) for each in new()})
    assert ("route", "Join") in seen[0]
    assert any({("route", "Join"), ("store", "Project")} <= each for each in seen[:2])
    assert all(("load", "Project") in each for each in seen[2:])
    assert fallbacks() == []


def test_inputs_above_the_limit_are_not_given_to_the_engine(spark: SparkSession, folder: Path) -> None:
    session = session_of(spark, folder, ROUTED | {"spark.regions.platforms.maxInputBytes": "100"})
    before = routes(spark)
    assert session.sql("SELECT count(*) FROM facts").first() is not None
    assert routes(spark) == before


def test_a_file_that_changes_between_two_executions(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "changing")
    writer = sibling(spark, PLAIN)
    writer.range(100).write.parquet(path)

    def sums(session: SparkSession) -> DataFrame:
        return session.read.parquet(path).selectExpr("sum(id) AS s")

    routed, plain = sums(sibling(spark, ROUTED)), sums(sibling(spark, PLAIN))
    assert routed.collect() == plain.collect()
    writer.range(100, 200).write.mode("append").parquet(path)
    # Both list the files once.
    assert routed.collect() == plain.collect()
    assert sums(sibling(spark, ROUTED)).collect() == sums(sibling(spark, PLAIN)).collect()


# All of it is the engine's. Spark's own tasks would go on after a cancel: they do not look for one inside such a join.
HEAVY = """SELECT count(*) AS n FROM facts a, facts b, facts c, facts d, facts e
    WHERE a.v < b.v AND b.v < c.v AND c.v < d.v AND d.v < e.v"""
CANCELS: dict[str, Callable[[SparkSession], object]] = {
    "group": lambda session: session.sparkContext.cancelJobGroup("heavy"),
    "tag": lambda session: session.sparkContext.cancelJobsWithTag("heavy"),
    "session": lambda session: session._jsparkSession.interruptAll(),
    "all": lambda session: session.sparkContext.cancelAllJobs(),
}


@pytest.mark.parametrize("how", CANCELS)
def test_a_query_that_is_cancelled_ends(spark: SparkSession, routed: SparkSession, how: str) -> None:
    """Whoever cancels jobs, once: while the engine works there is one that waits for it."""
    context = routed.sparkContext
    fallbacks = Fallbacks(spark)
    frame = routed.sql(HEAVY)
    plan = str(frame._jdf.queryExecution().executedPlan())
    assert "EngineScan" in plan, plan
    assert "Join" not in plan, plan

    def run() -> object:
        context.setJobGroup("heavy", "")
        context.addJobTag("heavy")
        return frame.collect()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        try:
            until(lambda: context.statusTracker().getActiveJobsIds(), 20)
            (engine,) = engines(routed)
            until(lambda: busy(engine))
            began = time.monotonic()
            CANCELS[how](routed)
            with pytest.raises(Exception, match=r"(?i)cancel"):
                running.result(timeout=10)
            assert time.monotonic() - began < 1.0
        finally:
            context.cancelAllJobs()
    assert not busy(engine), "the statement goes on"
    assert fallbacks() == [], "vacuous: Spark ran it"


def engines(session: SparkSession) -> list[int]:
    """Processes of the engine that the session's JVM has started."""
    jvm = int(session.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    return [
        int(each.name)
        for each in Path("/proc").iterdir()
        if each.name.isdigit() and _parent(each) == jvm and MODULE.encode() in _read(each / "cmdline")
    ]


def busy(process: int) -> bool:
    """Whether it computes: for more than a tenth of half a second."""

    def ticks() -> int:
        return sum(map(int, _stat(Path("/proc", str(process)))[11:13]))

    before = ticks()
    time.sleep(0.5)
    return ticks() - before > os.sysconf("SC_CLK_TCK") * 0.05


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        # It has ended meanwhile.
        return b""


def _parent(process: Path) -> int:
    fields = _stat(process)
    return int(fields[1]) if len(fields) > 1 else -1


def _stat(process: Path) -> list[bytes]:
    """From its state on."""
    return _read(process / "stat").rpartition(b")")[2].split()


def life(folder: str) -> None:
    """In an application of its own, whose engine's process nobody has started yet."""
    data = str(Path(folder, "t"))
    with spark_session(Path(folder, "store"), ROUTED) as alone:
        alone.range(1000).selectExpr("id", "id % 7 AS k").write.parquet(data)

        def rows() -> list[object]:
            return sorted(alone.read.parquet(data).groupBy("k").agg(F.sum("id").alias("s")).collect())

        alone.read.parquet(data).groupBy("k").count().explain(True)
        assert engines(alone) == [], "what is only explained starts nothing"
        expected = rows()
        (first,) = engines(alone)
        os.kill(first, signal.SIGKILL)
        assert rows() == expected
        assert rows() == expected
        (second,) = engines(alone)
        assert second != first
    deadline = time.monotonic() + 20
    while Path(f"/proc/{second}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{second}").exists()
    print("it lived")


def hang(folder: str) -> None:
    """As before, where the least deadline is a second."""
    data = str(Path(folder, "t"))
    with spark_session(Path(folder, "store"), ROUTED) as alone:
        alone.range(1000).selectExpr("id", "id % 7 AS k").write.parquet(data)

        def rows(function: Callable[[str], Column]) -> list[object]:
            return sorted(alone.read.parquet(data).groupBy("k").agg(function("id").alias("v")).collect())

        fallbacks = Fallbacks(alone)
        expected = rows(F.sum)
        (first,) = engines(alone)
        os.kill(first, signal.SIGSTOP)
        began = time.monotonic()
        assert rows(F.sum) == expected
        assert 1 < time.monotonic() - began < 20
        assert fallbacks() == ["DEADLINE"]
        assert rows(F.sum) == expected
        asked = NewDecisions(alone)
        assert rows(F.sum) == expected
        assert ("decline", "DEADLINE") in {(each["kind"], each["code"]) for each in asked()}
        assert len(rows(F.max)) == 7, "another part is for the engine, which is started again"
        assert fallbacks() == ["DEADLINE"]
        assert set(engines(alone)).isdisjoint({first})
    print("it was given up")


def apart(
    function: Callable[[str], None], folder: Path, *more: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with further arguments on its command line."""
    code = f"import sys; from {function.__module__} import {function.__name__} as run; run(sys.argv[1])"
    command = [sys.executable, "-c", code, str(folder), *more]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)


def test_the_life_of_the_process(tmp_path: Path) -> None:
    done = apart(life, tmp_path)
    assert "it lived" in done.stdout, done.stderr[-4000:]


def test_an_engine_that_hangs_is_given_up(tmp_path: Path) -> None:
    patch = "from spark_regions.costs import rates\nrates.ENGINE_DEADLINE_LEAST_SECONDS = 1.0\n"
    Path(tmp_path, "sitecustomize.py").write_text(patch)
    done = apart(hang, tmp_path, PYTHONPATH=str(tmp_path))
    assert "it was given up" in done.stdout, done.stderr[-4000:]
    assert done.stderr.count("is not used (DEADLINE") == 1
