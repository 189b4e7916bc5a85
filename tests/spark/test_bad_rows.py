"""Rows that fail: nulled, left out or kept, and all others as in plain Spark without the culprits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.daemons import standalone_cluster
from tests.harness.session import ENGINE, NewDecisions, committed, counters, routes, sibling

pytestmark = pytest.mark.spark
ROWS = 3000
CULPRITS = {7, 1501, 2999}
PREFIX = "spark.regions.control."


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers as text, in two files of each kind; the culprits' is no number."""
    path = tmp_path_factory.mktemp("bad_rows")
    text = F.when(F.col("id").isin(*CULPRITS), "x").otherwise(F.col("id").cast("string")).alias("text")
    rows = sibling(spark, {"spark.regions.mode": "observe"}).range(0, ROWS, 1, 2).select("id", text)
    rows.write.parquet(str(path / "parquet"))
    rows.where("text <> 'x'").write.parquet(str(path / "good"))
    rows.write.csv(str(path / "csv"))
    rows.selectExpr("CASE WHEN text = 'x' THEN '{\"id\": ' ELSE to_json(struct(id)) END").write.text(str(path / "json"))
    return path


def handling(spark: SparkSession, kept: Path, action: str = "quarantine", **confs: str) -> SparkSession:
    given = {PREFIX + "onBadRow": action, PREFIX + "quarantinePath": str(kept)}
    return sibling(spark, given | {PREFIX + key: value for key, value in confs.items()})


def ids(frame: DataFrame) -> list[int]:
    """With all columns: Spark does not compute those that nobody asks for."""
    return sorted(row["id"] for row in frame.collect())


def shown(session: SparkSession) -> list[tuple[str, str]]:
    """The number and the operator of each row that is kept."""
    return sorted((row.row.get("id", ""), row.operator) for row in spark_regions.bad_rows(session).collect())


GOOD = [number for number in range(ROWS) if number not in CULPRITS]
TOLD = sorted(map(str, CULPRITS))


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_by_default_nothing_of_it_is_in_a_plan(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """The plan is that of a session in which no rule of ours changes any, and the query fails as there."""
    observed = {"spark.regions.mode": "observe"}
    plans = []
    for session in (sibling(spark, observed), sibling(spark, {}), handling(spark, tmp_path)):
        frame = session.read.parquet(str(folder / "parquet")).selectExpr("id", "CAST(text AS INT)")
        if session.conf.get(PREFIX + "onBadRow") == "fail":
            with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
                frame.collect()
        plans.append(re.sub(r"#\d+", "", plan(frame)))
    assert plans[0] == plans[1] and "Checked" not in plans[0] and "CheckedProject" in plans[2]
    with pytest.raises(Exception, match="should be one of"):
        spark.conf.set(PREFIX + "onBadRow", "wait")


@pytest.mark.parametrize("arrow", [False, True])
@pytest.mark.parametrize("action", ["null", "skip", "quarantine"])
def test_python_functions_of_a_row(spark: SparkSession, folder: Path, tmp_path: Path, arrow: bool, action: str) -> None:
    session = handling(spark, tmp_path, action)
    number = F.udf(int, "long", useArrow=arrow)
    frame = session.read.parquet(str(folder / "parquet")).select("id", number("text").alias("number"))
    rows = {row["id"]: row["number"] for row in frame.collect()}
    good = {number: number for number in GOOD}
    assert rows == (good | dict.fromkeys(CULPRITS) if action == "null" else good)
    kept = spark_regions.bad_rows(session).collect()
    if action != "quarantine":
        assert kept == []
        return
    assert sorted(int(row.row["id"]) for row in kept) == sorted(CULPRITS)
    for row in kept:
        assert (row.function, row.arguments, row.row["text"]) == ("int", {"0": "'x'"}, "x")
        assert row.error == "ValueError: invalid literal for int() with base 10: 'x'"
        assert row.trace.startswith("Traceback") and row.partition in (0, 1)


@pytest.mark.parametrize("arrow", [False, True])
def test_python_functions_anywhere(spark: SparkSession, folder: Path, tmp_path: Path, arrow: bool) -> None:
    """In a filter, in a join's condition, below an aggregate and a sort, chained, and twice in a row."""
    session = handling(spark, tmp_path)
    number = F.udf(int, "long", useArrow=arrow)
    twice = F.udf(lambda value: 2 * value, "long", useArrow=arrow)
    rows = session.read.parquet(str(folder / "parquet"))
    few = session.range(3).withColumnRenamed("id", "other")
    keys = {
        "filter": (rows.where(number("text") >= 0), GOOD),
        "chain": (rows.select("id", twice(number("text")).alias("n")).where("n = 2 * id"), GOOD),
        "twice": (rows.select("id", number("text"), twice(number("text")).alias("n")).where("n >= 0"), GOOD),
        "sort": (rows.select("id", number("text").alias("n")).orderBy("n"), GOOD),
        "join": (rows.join(few, number("text") == F.col("other")), [0, 1, 2]),
        "cast argument": (rows.where(twice(F.col("text").cast("long")) >= 0), GOOD),
    }
    for name, (frame, expected) in keys.items():
        before = len(shown(session))
        assert ids(frame) == expected, name
        # Also of the join: Spark computes a key of one side before it joins.
        assert len(shown(session)) - before == 3, name
    total = rows.groupBy((F.col("id") % 2).alias("k")).agg(F.sum(number("text")).alias("s")).orderBy("k").collect()
    assert [row["s"] for row in total] == [sum(n for n in GOOD if n % 2 == k) for k in (0, 1)]


@pytest.mark.parametrize("whole_stage", ["true", "false"])
def test_expressions(spark: SparkSession, folder: Path, tmp_path: Path, whole_stage: str) -> None:
    session = handling(spark, tmp_path)
    session.conf.set("spark.sql.codegen.wholeStage", whole_stage)
    rows = session.read.parquet(str(folder / "parquet"))
    frames = {
        "Project": rows.selectExpr("id", "CAST(text AS INT) + 1 AS n", "CAST(text AS INT) AS m"),
        "Filter": rows.where("id >= 0 AND CAST(text AS INT) = id OR isnull(text)"),
        "division": rows.selectExpr("id", "1 / (CASE WHEN text = 'x' THEN 0 ELSE 1 END) AS n"),
        "element": rows.selectExpr("id", "transform(split(text, ','), t -> CAST(t AS INT))[0] AS n"),
    }
    for name, frame in frames.items():
        before = len(shown(session))
        assert ids(frame) == GOOD, name
        assert [row[0] for row in shown(session)[before:]] != [] and len(shown(session)) - before == 3, name
    assert rows.selectExpr("sum(CAST(text AS INT)) AS s", "count(1) AS n").collect() == [(sum(GOOD), len(GOOD))]
    (one, *_) = [row for row in spark_regions.bad_rows(session).collect() if row.operator == "Filter"]
    assert one.condition == "CAST_INVALID_INPUT" and one.function == "CAST(text AS INT)" and one.row["text"] == "x"
    assert one.file.startswith("file:") and one.file.endswith(".parquet")


FAILING = {
    "date": "CAST(if(text = 'x', text, '2020-01-01') AS DATE)",
    "format": "to_timestamp(if(text = 'x', text, '2020-01-01'), 'yyyy-MM-dd')",
    "no such day": "make_date(2000, if(text = 'x', 13, 1), 1)",
    "overflow": "2147483647 + if(text = 'x', 1, 0)",
    "decimal": "CAST(if(text = 'x', 10000000000, id) AS DECIMAL(6, 2))",
    "remainder": "id % if(text = 'x', 0, 7)",
    "index": "array(id)[if(text = 'x', 1, 0)]",
    "element": "element_at(array(id), if(text = 'x', 2, 1))",
    "JSON": """from_json(concat('{"a":', text, '}'), 'a INT', map('mode', 'FAILFAST')).a""",
    "CSV": "from_csv(text, 'a INT', map('mode', 'FAILFAST')).a",
    "pattern": "text RLIKE if(text = 'x', '(', '1')",
    "split": "split(text, if(text = 'x', '(', '1'))",
    "raised": "if(text = 'x', raise_error('none'), id)",
    "once": "CAST(text AS INT) + CAST(text AS INT) / (1 + CAST(text AS INT))",
}


@pytest.mark.parametrize("whole_stage", ["true", "false"])
def test_what_may_fail(spark: SparkSession, folder: Path, tmp_path: Path, whole_stage: str) -> None:
    session, plain = handling(spark, tmp_path), sibling(spark, {"spark.regions.mode": "observe"})
    for each in (session, plain):
        each.conf.set("spark.sql.codegen.wholeStage", whole_stage)
        each.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY" if whole_stage == "true" else "NO_CODEGEN")
        each.conf.set("spark.sql.codegen.fallback", "false")
    for name, text in FAILING.items():
        before = len(shown(session))
        rows = session.read.parquet(str(folder / "parquet")).selectExpr("id", f"{text} AS n").collect()
        good = plain.read.parquet(str(folder / "good")).selectExpr("id", f"{text} AS n").collect()
        assert sorted(rows, key=str) == sorted(good, key=str), name
        assert len(shown(session)) - before == 3, name
        with pytest.raises(Exception, match=r"\w"):
            plain.read.parquet(str(folder / "parquet")).selectExpr(f"{text} AS n").collect()


PLACES = {
    "keys of groups": ("SELECT CAST(text AS INT) % 3 AS k, count(*) AS n FROM t GROUP BY 1", 3),
    "distinct": ("SELECT DISTINCT CAST(text AS INT) % 3 AS k FROM t", 3),
    "having": ("SELECT id % 3 AS k, sum(CAST(text AS INT)) AS s FROM t GROUP BY 1 HAVING s / count(*) > 0", 3),
    "of a group": ("SELECT id, 10 / sum(if(text = 'x', 0, 1)) AS n FROM t GROUP BY id", 3),
    "of all rows": ("SELECT 10 / sum(if(text = 'x', 0, 0)) AS n FROM t WHERE id > 2 AND text <> 'x'", 1),
    "generated": ("SELECT id, e FROM t LATERAL VIEW explode(array(CAST(text AS INT), 0)) AS e", 3),
    "window": ("SELECT id, sum(CAST(text AS INT)) OVER (PARTITION BY id % 3 ORDER BY id) AS s FROM t", 3),
    "union": ("SELECT id FROM t WHERE CAST(text AS INT) > 5 UNION ALL SELECT CAST(text AS INT) FROM t", 6),
    "subquery": ("SELECT * FROM t WHERE text <> 'x' AND id > (SELECT avg(CAST(text AS INT)) FROM t)", 3),
    "reused": (
        "WITH a AS (SELECT id % 50 AS k, sum(CAST(text AS INT)) AS s FROM t GROUP BY 1)"
        " SELECT a.k, a.s, b.s AS z FROM a JOIN a AS b ON a.k = b.k",
        3,
    ),
    "limit": ("SELECT * FROM (SELECT CAST(text AS INT) % 1 AS n FROM t) LIMIT 2000", None),
}


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_places(spark: SparkSession, folder: Path, tmp_path: Path, adaptive: str) -> None:
    session, plain = handling(spark, tmp_path), sibling(spark, {"spark.regions.mode": "observe"})
    for each, name in ((session, "parquet"), (plain, "good")):
        each.conf.set("spark.sql.adaptive.enabled", adaptive)
        each.read.parquet(str(folder / name)).createOrReplaceTempView("t")
    for name, (text, bad) in PLACES.items():
        before = len(shown(session))
        rows = sorted(session.sql(text).collect())
        assert rows == ([] if name == "of all rows" else sorted(plain.sql(text).collect())), name
        assert bad in (None, len(shown(session)) - before), name


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_python_functions_below_a_reused_exchange(
    spark: SparkSession, folder: Path, tmp_path: Path, adaptive: str
) -> None:
    """It is computed as often as without us."""
    number = F.udf(int, "long")
    reused, session = [], handling(spark, tmp_path)
    for each, name in ((sibling(spark, {"spark.regions.mode": "observe"}), "good"), (session, "parquet")):
        each.conf.set("spark.sql.adaptive.enabled", adaptive)
        rows = each.read.parquet(str(folder / name))
        sums = rows.groupBy((F.col("id") % 50).alias("k")).agg(F.sum(number("text")).alias("s"))
        found = sums.union(sums)
        assert sum(row["s"] for row in found.collect()) == 2 * sum(GOOD)
        reused.append(plan(found).count("ReusedExchange"))
    assert reused[0] == reused[1] and len(shown(session)) == 3 * (2 - min(reused[0], 1))
    assert adaptive == "true" or reused[0] == 1


def test_rows_of_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    """Which the optimizer would compute with."""
    session = handling(spark, tmp_path)
    values = "SELECT CAST(text AS INT) AS n FROM VALUES ('1'), ('x'), ('3') AS t(text)"
    frame = session.createDataFrame(pd.DataFrame({"text": ["1", "x", "3"]}))
    for rows in (
        session.sql(values),
        session.sql(f"SELECT * FROM ({values}) WHERE n > 0"),
        session.sql(f"SELECT id AS n FROM range(4) WHERE id IN ({values})"),
        frame.selectExpr("CAST(text AS INT) AS n"),
    ):
        before = len(shown(session))
        assert sorted(rows.collect()) == [(1,), (3,)]
        kept = rows.cache()
        assert kept.count() == kept.count() == 2
        assert len(shown(session)) - before == 2
        kept.unpersist()
    assert session.sql(values.replace("'x'", "'2'")).count() == 3


def test_values_by_chance_are_drawn_once(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    session = handling(spark, tmp_path)
    rows = session.read.parquet(str(folder / "parquet")).withColumn("r", F.rand(7))
    text = "id", "r", "CAST(text AS INT) + r AS n", "CAST(text AS INT) * CAST(r * 1000 AS INT) AS m"
    for row in rows.selectExpr(*text).collect():
        assert row["n"] == row["id"] + row["r"] and row["m"] == row["id"] * int(row["r"] * 1000)
    with_nulls = [f.replace("CAST(text", "try_cast(text") for f in text]
    plain = sibling(spark, {"spark.regions.mode": "observe"}).read.parquet(str(folder / "parquet"))
    drawn = plain.withColumn("r", F.rand(7)).selectExpr(*with_nulls).where("n IS NOT NULL")
    assert sorted(rows.selectExpr(*text).collect()) == sorted(drawn.collect())


def test_jobs_over_an_rdd(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Which are no queries: each is counted by itself."""
    session = handling(spark, tmp_path, maxBadRows="3")
    for _ in range(2):
        rows = session.read.parquet(str(folder / "parquet")).selectExpr("id", "CAST(text AS INT) AS n")
        assert sorted(row["n"] for row in rows.rdd.collect()) == GOOD
    assert [row[0] for row in shown(session)] == sorted([*TOLD, *TOLD])


def test_a_quarantine_that_cannot_be_written(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Is told of before the query runs, by its settings."""
    (tmp_path / "file").write_text("")
    session = handling(spark, tmp_path / "file" / "rows")
    frame = session.read.parquet(str(folder / "parquet")).selectExpr("CAST(text AS INT) AS n")
    with pytest.raises(Exception, match=r"for bad rows in .*, expected a folder .* Hint: spark.*quarantinePath"):
        frame.collect()
    # A file in its way, later: the task says so.
    session.conf.set(PREFIX + "quarantinePath", str(tmp_path / "gone"))
    assert session.read.parquet(str(folder / "parquet")).selectExpr("CAST(text AS INT) AS n").count() == ROWS
    found = session.read.parquet(str(folder / "parquet")).selectExpr("CAST(id + 1 AS INT) AS n")
    found.collect()
    (tmp_path / "gone" / "_pending").rmdir()
    (tmp_path / "gone" / "_pending").write_text("")
    with pytest.raises(Exception, match=r"Found .*for bad rows in .*/gone, expected a folder that executors can write"):
        session.read.parquet(str(folder / "parquet")).selectExpr("CAST(text AS INT) AS n").collect()


def test_no_other_engine_gets_what_may_fail(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    text = "SELECT id % 3 AS k, sum(id) AS s FROM parquet.`{}` GROUP BY 1".format(folder / "parquet")
    for engine in ("auto", "duckdb"):
        session = handling(spark, tmp_path)
        for key, value in (ENGINE | {"spark.regions.platforms": engine}).items():
            session.conf.set(key, value)
        before = routes(spark)
        rows = sorted(session.sql(text).collect())
        assert routes(spark) == before
    session.conf.set(PREFIX + "onBadRow", "fail")
    assert sorted(session.sql(text).collect()) == rows
    assert routes(spark) == before + 1


def test_tasks_that_run_again(folder: Path, tmp_path: Path) -> None:
    """On two executors: one task's first attempt dies behind its bad rows, another is overtaken by its copy."""
    with standalone_cluster(tmp_path, apart=True) as master:
        command = [sys.executable, "-m", "tests.spark.bad_rows_job", master, str(folder / "parquet"), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == [sum(GOOD), len(GOOD)]
    assert sorted(found["kept"]) == TOLD
    assert found["status"] == "3"
    assert {file.name for file in tmp_path.glob("[12]*-[01]")} == {"100-0", "100-1", "2998-0", "2998-1"}
    assert list((tmp_path / "kept" / "_pending").glob("*.json")) == []


def test_nulls(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """As in the `try_` form of each expression; where there can be no null, the query fails."""
    session = handling(spark, tmp_path, "null")
    rows = session.read.parquet(str(folder / "parquet"))
    for form in ("coalesce({}(text AS INT), -1) AS n", "{}(text AS INT) * 2 AS n", "{}(text AS INT) IS NULL AS n"):
        frame = rows.selectExpr("id", form.format("CAST"))
        assert frame.orderBy("id").collect() == rows.selectExpr("id", form.format("try_cast")).orderBy("id").collect()
    assert rows.where("CAST(text AS INT) IS NULL").count() == 3
    assert rows.selectExpr("sum(CAST(text AS INT))").collect() == [(sum(GOOD),)]
    with pytest.raises(Exception, match="CAST_OVERFLOW"):
        session.range(3).selectExpr("CAST(id + 2147483646 AS INT)").collect()


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_parsers(spark: SparkSession, folder: Path, tmp_path: Path, kind: str) -> None:
    session = handling(spark, tmp_path)
    schema = "id INT" if kind == "json" else "id INT, number INT"
    frame = session.read.schema(schema).option("mode", "FAILFAST").format(kind).load(str(folder / kind))
    assert ids(frame if kind == "json" else frame.where("number >= 0")) == GOOD
    kept = spark_regions.bad_rows(session).collect()
    # What Spark had parsed of the record.
    records = ["[null]"] * 3 if kind == "json" else [f"[{number},null]" for number in CULPRITS]
    assert sorted(row.arguments["record"] for row in kept) == sorted(records)
    assert all(row.file.endswith(f".{'txt' if kind == 'json' else 'csv'}") for row in kept)
    assert all(row.condition.startswith("MALFORMED_RECORD_IN_PARSING") for row in kept)
    assert all(("end-of-input" if kind == "json" else 'string: "x"') in row.error for row in kept)


def test_functions_of_batches(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    def number(text: pd.Series) -> pd.Series:
        return text.astype("int64")

    numbers = F.pandas_udf(number, "long")  # type: ignore[attr-defined]

    def table(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield batch.assign(number=batch["text"].astype("int64"))

    session = handling(spark, tmp_path, splitBatches="true")
    whole = handling(spark, tmp_path)
    for by in (session, whole):
        by.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "700")
    applied: dict[str, Callable[[DataFrame], DataFrame]] = {
        "pandas": lambda rows: rows.select("id", numbers("text").alias("number")),
        "map": lambda rows: rows.mapInPandas(table, "id long, text string, number long").select("id", "number"),
    }
    for name, apply in applied.items():
        before = spark_regions.bad_rows(session).count()
        found = apply(session.read.parquet(str(folder / "parquet"))).orderBy("id").collect()
        assert [tuple(row) for row in found] == [(number, number) for number in GOOD], name
        assert spark_regions.bad_rows(session).count() - before == 3, name
        with pytest.raises(PythonException, match="invalid literal"):
            apply(whole.read.parquet(str(folder / "parquet"))).collect()


def test_too_many(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Also where no single task has more than there may be."""
    for most, fails in (("3", False), ("2", True), ("0", True)):
        session = handling(spark, tmp_path, maxBadRows=most)
        frame = session.read.parquet(str(folder / "parquet")).selectExpr("id", "CAST(text AS INT) AS n")
        if fails:
            with pytest.raises((Py4JJavaError, Exception), match=f"bad rows .*, expected at most {most}. Hint: spark"):
                frame.collect()
        else:
            assert ids(frame) == GOOD


def test_what_may_lack_rows_is_nobody_elses(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    always = {"spark.regions.recycle.strategy": "always"}
    session = handling(spark, tmp_path / "kept")
    for key, value in always.items():
        session.conf.set(key, value)
    query = "SELECT k, sum(n) AS s FROM (SELECT id % 3 AS k, CAST(id AS INT) AS n FROM parquet.`{}`) GROUP BY k"
    text = query.format(folder / "parquet")
    before, told = committed(spark), NewDecisions(spark)
    rows = sorted(session.sql(text).collect())
    kept = session.read.parquet(str(folder / "parquet")).selectExpr("CAST(text AS INT) AS n").cache()
    assert kept.count() == kept.count() == len(GOOD)
    kept.groupBy((F.col("n") % 2).alias("k")).count().collect()
    assert (committed(spark) - before).stores == 0
    assert any("BAD_ROWS" in str(row) for row in told())
    kept.unpersist()
    plain = sibling(spark, always)
    assert sorted(plain.sql(text).collect()) == rows
    assert (committed(spark) - before).stores > 0
    # What a query without such rows has stored is read.
    loads = counters(spark).loads
    assert sorted(session.sql(text).collect()) == rows
    assert counters(spark).loads > loads


def test_writes(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    session = handling(spark, tmp_path / "kept")
    rows = session.read.parquet(str(folder / "parquet"))
    rows.selectExpr("id", "CAST(text AS INT) AS n").repartition(3).write.parquet(str(tmp_path / "out"))
    assert ids(session.read.parquet(str(tmp_path / "out"))) == GOOD
    assert [row[0] for row in shown(session)] == TOLD
    # The table is plain JSON, for whoever comes later, and nothing unfinished is left.
    lines = [json.loads(line) for file in (tmp_path / "kept").glob("*.json") for line in file.read_text().splitlines()]
    assert sorted(line["row"]["id"] for line in lines) == TOLD
    assert list((tmp_path / "kept" / "_pending").glob("*.json")) == []


def test_without_bad_rows_all_is_as_before(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    texts: list[Any] = [
        "SELECT id, CAST(id AS INT) + 1 AS a, CAST(id AS STRING) AS b, CAST(id AS DECIMAL(20, 2)) * 3 / 7 AS d FROM t",
        "SELECT id % 5 AS k, sum(CAST(id AS INT)) AS s, avg(id * 2) AS m, count(DISTINCT id) AS n FROM t GROUP BY 1",
        "SELECT a.id, b.id * 2 AS x FROM t a JOIN t b ON a.id = b.id + 1 WHERE CAST(a.id AS INT) % 7 = 1",
        "SELECT id, element_at(array(id, id + 1), 2) AS e, make_date(2000, 1, CAST(1 + id % 28 AS INT)) AS d FROM t",
        "SELECT id, row_number() OVER (PARTITION BY id % 3 ORDER BY id * 2) AS r FROM t",
        "SELECT count(*) AS n FROM t WHERE CAST(id AS SMALLINT) > 10 AND id IN (SELECT id + 1 FROM t)",
    ]
    for action in ("quarantine", "null"):
        session = handling(spark, tmp_path, action)
        for text in texts:
            both = []
            for by in (session, sibling(spark, {"spark.regions.mode": "observe"})):
                by.read.parquet(str(folder / "parquet")).createOrReplaceTempView("t")
                both.append(sorted(by.sql(text).collect()))
            assert both[0] == both[1], text
    assert spark_regions.bad_rows(session).count() == 0
