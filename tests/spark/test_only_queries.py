"""The plugin acts inside of queries that run, and nowhere else: what is only looked at keeps Spark's own nodes."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.session import committed, settle, sibling, status
from tests.spark.test_same_rows import OFF, ON, Sides
from tests.tpc.rows import FAILURES, Outcome, difference, error_class, outcome

pytestmark = pytest.mark.spark

SCRIPTING = {"spark.sql.scripting.enabled": "true"}
WORK = "SELECT k, count(*) AS n, sum(v) AS s FROM facts WHERE {} GROUP BY k"


@pytest.fixture
def sides(spark: SparkSession, tmp_path: Path) -> Sides:
    """`facts` has 1,000 rows in two files, new ones for each test, so that nothing is stored yet; `keys` has 7."""
    both = Sides(sibling(spark, OFF | SCRIPTING), sibling(spark, ON | SCRIPTING))
    facts = both.off.range(0, 1000, 1, 2).selectExpr(
        "id", "id % 7 AS k", "cast(id * 3 AS int) AS v", "concat('t', id % 13) AS text"
    )
    facts.write.parquet(str(tmp_path / "facts"))
    both.off.range(7).selectExpr("id AS k", "concat('key ', id) AS name").write.parquet(str(tmp_path / "keys"))
    for session in (both.off, both.on):
        for name in ("facts", "keys"):
            session.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    return both


def decided(spark: SparkSession) -> int:
    """How many plans were decided on so far; asking is a query over nothing, and adds none."""
    settle(spark)
    return int(status(spark)["counter.queries"])


# Arguments


def columns() -> dict[str, Column]:
    return {
        "literal": F.lit(30),
        "decimal": F.lit(Decimal("30.5")),
        "null": F.lit(None),
        "array": F.array(F.lit(30), F.lit(60)),
        "struct": F.struct(F.lit(30).alias("low"), F.lit("t1").alias("text")),
        "map": F.create_map(F.lit("low"), F.lit(30)),
        "map_from_arrays": F.map_from_arrays(F.array(F.lit("low")), F.array(F.lit(30))),
        "nested": F.array(F.struct(F.array(F.lit(30)).alias("many"))),
        # Refused by Spark, with its own error.
        "arithmetic": F.lit(30) + F.lit(1),
        "column": F.col("v"),
        "rand": F.rand(5),
        "aggregate": F.sum(F.lit(1)),
    }


ARGUMENTS: dict[str, tuple[str, dict[str, Any] | list[Any]]] = {
    "int": ("v > :a", {"a": 30}),
    "two": ("v > :a AND text != :b", {"a": 30, "b": "t1"}),
    "one twice": ("v > :a AND id > :a", {"a": 30}),
    "unused": ("v > 30", {"a": 30}),
    "positional": ("v > ? AND text != ?", [30, "t1"]),
    "float": ("v > :a", {"a": 30.5}),
    "exact": ("v > :a", {"a": Decimal("30.25")}),
    "bool": ("(v > 30) = :a", {"a": True}),
    "none": ("v > coalesce(:a, 30)", {"a": None}),
    "bytes": ("cast(text AS binary) != :a", {"a": b"t1"}),
    "date": ("date_add(date'2020-01-01', cast(k AS int)) > :a", {"a": datetime.date(2020, 1, 3)}),
    "timestamp": (
        "cast(date_add(date'2020-01-01', cast(k AS int)) AS timestamp) > :a",
        {"a": datetime.datetime(2020, 1, 3, 4, 5)},
    ),
    "interval": ("make_dt_interval(k) > :a", {"a": datetime.timedelta(days=2)}),
    "in a subquery": ("v > (SELECT max(k) * :a FROM keys)", {"a": 5}),
    "identifier": ("identifier(:a) > 30", {"a": "v"}),
    "limit": ("id IN (SELECT id FROM facts ORDER BY id LIMIT :a)", {"a": 100}),
    "missing": ("v > :a", {}),
    "missing, another given": ("v > :a", {"b": 30}),
    "too few": ("v > ? AND k > ?", [30]),
    "wrong type": ("v > :a", {"a": object()}),
}
FORMS = {
    "literal": "v > :a",
    "decimal": "v > :a",
    "null": "v > coalesce(:a, 30)",
    "array": "v > :a[0]",
    "struct": "v > :a.low AND text != :a.text",
    "map": "v > :a['low']",
    "map_from_arrays": "v > :a['low']",
    "nested": "v > :a[0].many[0]",
}
QUIET = {"limit"}  # Which rows a limit lets through is not ours to know.
REFUSED = {"missing", "missing, another given", "too few", "wrong type"}


def asked(spark: SparkSession, condition: str, args: dict[str, Any] | list[Any]) -> Outcome:
    """`outcome`, but `spark.sql` itself may fail, too."""
    try:
        return outcome(spark.sql(WORK.format(condition), args=args))
    except (*FAILURES, AttributeError) as error:
        return Outcome((), (), type(error).__name__ if isinstance(error, AttributeError) else error_class(error), None)


def compared(sides: Sides, run: Callable[[SparkSession], Sequence[Outcome]], acts: bool = True) -> list[Outcome]:
    """Off, on, on again, all the same; with `acts`, something was stored and then read."""
    expected = run(sides.off)
    start = committed(sides.off)
    for _ in range(2):
        found = run(sides.on)
        assert [difference(*pair) for pair in zip(expected, found, strict=True)] == [None] * len(expected)
        committed(sides.off)
    did = committed(sides.off) - start
    assert not acts or (did.stores > 0 and did.loads > 0), f"vacuous: {did}"
    return list(expected)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(sides: Sides, name: str) -> None:
    condition, args = ARGUMENTS[name]
    result = compared(sides, lambda spark: [asked(spark, condition, args)], acts=name not in REFUSED | QUIET)
    assert (result[0].error is not None) == (name in REFUSED)


@pytest.mark.parametrize("name", [*FORMS, "arithmetic", "column", "rand", "aggregate"])
def test_arguments_that_are_columns(sides: Sides, name: str) -> None:
    condition = FORMS.get(name, "v > :a")
    result = compared(sides, lambda spark: [asked(spark, condition, {"a": columns()[name]})], acts=name in FORMS)
    assert (result[0].error is None) == (name in FORMS)


# Statements


@dataclass(frozen=True)
class Program:
    """Statements in order; `{dir}` is a folder of the program's own. `acts`: with the plugin, it stores and reads."""

    statements: Sequence[str]
    acts: bool = True
    clean: Sequence[str] = ()
    errors: Sequence[str] = ()


PROGRAMS = {
    "EXECUTE IMMEDIATE": Program(
        [
            "DECLARE OR REPLACE VARIABLE low INT DEFAULT 30",
            "DECLARE OR REPLACE VARIABLE found BIGINT",
            f"EXECUTE IMMEDIATE '{WORK.format('v > ?')}' USING low",
            f"EXECUTE IMMEDIATE '{WORK.format('v > :a AND k < :b')}' USING low AS a, 5 AS b",
            f"EXECUTE IMMEDIATE '{WORK.format('v > :a[1]')}' USING array(1, 30) AS a",
            "EXECUTE IMMEDIATE 'SELECT max(n) FROM (SELECT k, count(*) AS n FROM facts GROUP BY k)' INTO found",
            "SELECT found",
            "EXECUTE IMMEDIATE 'SELECT ? + 1' USING low",
            "EXECUTE IMMEDIATE 'SELECT nothing FROM facts WHERE v > ?' USING low",
            "EXECUTE IMMEDIATE 'SELECT * FROM facts WHERE v > ?' USING (SELECT 1)",
        ],
        errors=["UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNSUPPORTED_EXPR_FOR_PARAMETER"],
    ),
    "variables": Program(
        [
            "DECLARE OR REPLACE VARIABLE most BIGINT DEFAULT 1 + 2",
            "SET VAR most = (SELECT max(s) FROM (SELECT k, sum(v) AS s FROM facts WHERE v > 30 GROUP BY k))",
            "SELECT most",
            WORK.format("v < most"),
            "SET VAR most = most + 1",
            "SET VAR most = DEFAULT",
            "SELECT most",
            "DECLARE OR REPLACE VARIABLE other STRING DEFAULT (SELECT max(text) FROM facts)",
            "DECLARE OR REPLACE VARIABLE many ARRAY<INT> DEFAULT array(1, 2 + 3)",
            "SELECT many[1]",
            "SET VAR (most, many) = (SELECT count(*), array(1) FROM facts JOIN keys USING (k))",
            "SELECT most, many",
        ],
        errors=["INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION"],
    ),
    "script with WHILE and IF": Program(
        [
            """
            BEGIN
              DECLARE i INT DEFAULT 0;
              DECLARE total BIGINT DEFAULT 1 + 2;
              WHILE i < 3 DO
                SET total = total + (SELECT max(n) FROM (SELECT k, count(*) AS n FROM facts WHERE v > i GROUP BY k));
                SET i = i + 1;
              END WHILE;
              IF total > (SELECT count(*) FROM keys) THEN
                SELECT k, sum(v) + total AS s FROM facts JOIN keys USING (k) GROUP BY k;
              ELSE
                SELECT -1;
              END IF;
            END
            """
        ]
    ),
    "script with FOR, CASE and a handler": Program(
        [
            """
            BEGIN
              DECLARE total BIGINT DEFAULT 0;
              FOR each AS SELECT k, sum(v) AS s FROM facts GROUP BY k DO
                CASE WHEN each.k > 3 THEN SET total = total + each.s;
                     ELSE SET total = total - (SELECT count(*) FROM keys);
                END CASE;
              END FOR;
              SELECT total;
            END
            """,
            """
            BEGIN
              DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO BEGIN SELECT 'handled', count(*) FROM facts; END;
              SELECT k, sum(v / (k - k)) FROM facts GROUP BY k;
            END
            """,
            "BEGIN DECLARE x INT DEFAULT 1; REPEAT SET x = x * 2; UNTIL x > 9 END REPEAT; SELECT x; END",
        ]
    ),
    "defaults of columns": Program(
        [
            "CREATE TABLE made (id INT, x INT DEFAULT 1 + 2, y STRING DEFAULT upper('a'))"
            " USING parquet LOCATION '{dir}'",
            "INSERT INTO made (id) SELECT cast(k AS int) FROM (SELECT k, count(*) FROM facts GROUP BY k)",
            "INSERT INTO made VALUES (100, DEFAULT, DEFAULT)",
            "ALTER TABLE made ADD COLUMN z INT DEFAULT 5 * 2",
            "ALTER TABLE made ALTER COLUMN x SET DEFAULT 40 + 2",
            "INSERT INTO made (id) VALUES (101)",
            "SELECT x, y, z, count(*), sum(id) FROM made GROUP BY x, y, z",
            "ALTER TABLE made ADD COLUMN w INT DEFAULT (SELECT 1)",
            "ALTER TABLE made ADD COLUMN u INT DEFAULT rand()",
        ],
        clean=["DROP TABLE IF EXISTS made"],
        errors=["INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION", "INVALID_DEFAULT_VALUE.DATA_TYPE"],
    ),
    "views": Program(
        [
            f"CREATE OR REPLACE TEMP VIEW sums AS {WORK.format('v > 30')}",
            "SELECT * FROM sums JOIN keys USING (k)",
            "CREATE OR REPLACE VIEW seen AS SELECT k, max(v) AS m FROM parquet.`{facts}` GROUP BY k",
            "SELECT sum(m) FROM seen WHERE k > (SELECT avg(k) FROM sums)",
            "DESCRIBE seen",
            "ALTER VIEW seen AS SELECT k, min(v) AS m FROM parquet.`{facts}` GROUP BY k",
            "SELECT sum(m) FROM seen",
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
            "WITH RECURSIVE t(n) AS (SELECT max(k) FROM facts UNION ALL SELECT n - 1 FROM t WHERE n > 0) TABLE t",
        ],
        clean=["DROP VIEW IF EXISTS seen"],
    ),
    "partitions": Program(
        [
            "CREATE TABLE made (v INT, k BIGINT) USING parquet PARTITIONED BY (k) LOCATION '{dir}'",
            "INSERT INTO made SELECT v, k FROM facts",
            "SELECT k, sum(v) FROM made WHERE k > 2 GROUP BY k",
            "ALTER TABLE made DROP PARTITION (k = 3)",
            "ALTER TABLE made DROP PARTITION (k = 4)",
            "DESCRIBE made PARTITION (k = 5)",
            "SHOW PARTITIONS made PARTITION (k = 5)",
            "SELECT k, sum(v) FROM made WHERE k > 2 GROUP BY k",
            "SELECT name, sum(v) FROM made JOIN keys USING (k) WHERE name IN ('key 5', 'key 6') GROUP BY name",
            "INSERT OVERWRITE made PARTITION (k = 6) SELECT max(v) FROM facts",
            "SELECT k, sum(v) FROM made GROUP BY k",
            "ALTER TABLE made DROP PARTITION (k = 99)",
        ],
        clean=["DROP TABLE IF EXISTS made"],
        errors=["PARTITIONS_NOT_FOUND"],
    ),
    "commands": Program(
        [
            f"CREATE TABLE made USING parquet LOCATION '{{dir}}' AS {WORK.format('v > 30')}",
            "ANALYZE TABLE made COMPUTE STATISTICS FOR ALL COLUMNS",
            "SELECT n, max(s) FROM made GROUP BY n",
            f"DESCRIBE QUERY {WORK.format('v > 30')}",
            "SELECT assert_true(count(*) = 7) FROM made",
            "CACHE TABLE kept AS SELECT n, count(*) AS c FROM made GROUP BY n",
            "SELECT * FROM kept",
            "UNCACHE TABLE kept",
            f"INSERT INTO made {WORK.format('v > 60')}",
            "SELECT n, max(s) FROM made GROUP BY n",
            "INSERT OVERWRITE made SELECT 1, 2, 3",
            "SELECT n, max(s) FROM made GROUP BY n",
        ],
        clean=["DROP VIEW IF EXISTS kept", "DROP TABLE IF EXISTS made"],
    ),
    "rows of nothing": Program(
        [
            "SELECT 1 + 2 AS x",
            "SELECT x, count(*) FROM (SELECT 1 AS x UNION ALL SELECT 1) GROUP BY x",
            "SELECT explode(sequence(1, 5))",
            "SELECT count(*) FROM VALUES (1), (2)",
            "SELECT (SELECT 1) + 1",
        ],
        acts=False,
    ),
}


def statement(spark: SparkSession, text: str) -> Outcome:
    try:
        return outcome(spark.sql(text))
    except FAILURES as error:
        return Outcome((), (), error_class(error), None)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(sides: Sides, tmp_path: Path, name: str) -> None:
    program = PROGRAMS[name]

    def run(spark: SparkSession) -> list[Outcome]:
        folder = tmp_path / "made"
        shutil.rmtree(folder, ignore_errors=True)
        words = {"dir": str(folder), "facts": str(tmp_path / "facts")}
        try:
            return [statement(spark, text.format(**words)) for text in program.statements]
        finally:
            for text in program.clean:
                spark.sql(text)

    outcomes = compared(sides, run, program.acts)
    assert {result.error for result in outcomes if result.error} == set(program.errors)


# What only looks


def by_hand(tracked: str | None) -> Callable[[DataFrame], Any]:
    """Somebody's own call of the optimizer: plain, or with a tracker that is new or the query's."""

    def look(frame: DataFrame) -> Any:
        execution = frame._jdf.queryExecution()
        optimizer = frame.sparkSession._jsparkSession.sessionState().optimizer()
        if tracked is None:
            return optimizer.execute(execution.analyzed())
        jvm: Any = frame.sparkSession._jvm
        new = jvm.org.apache.spark.sql.catalyst.QueryPlanningTracker
        tracker = execution.tracker() if tracked == "own" else new(jvm.scala.Option.empty())
        return optimizer.executeAndTrack(execution.analyzed(), tracker)

    return look


LOOKS: dict[str, Callable[[DataFrame], Any]] = {
    "optimizer": by_hand(None),
    "optimizer, new tracker": by_hand("new"),
    "optimizer, tracker of the query": by_hand("own"),
    "schema": lambda frame: frame.schema,
    "storage level": lambda frame: frame.storageLevel,
    "is streaming, is local": lambda frame: (frame.isStreaming, frame.isLocal()),
    "semantic hash": lambda frame: frame.semanticHash(),
    "view": lambda frame: frame.createOrReplaceTempView("looked"),
    "unpersist": lambda frame: frame.unpersist(),
    "normalized": lambda frame: frame._jdf.queryExecution().normalized(),
    "why not": spark_regions.why_not,
}


@pytest.mark.parametrize("name", LOOKS)
def test_looking_decides_nothing(sides: Sides, name: str) -> None:
    text = WORK.format("v > (SELECT avg(v) FROM facts WHERE k IN (SELECT max(k) FROM keys))")
    before = decided(sides.off)
    for _ in range(2):
        seen = LOOKS[name](sides.on.sql(text))
        if name.startswith("optimizer"):
            assert not {"Tee", "MaterializedRead"} & set(seen.toString().replace("(", " ").split())
    assert decided(sides.off) == before
    # The same query, run: the subqueries and what is around them, each by itself.
    sides.on.sql(text).collect()
    assert decided(sides.off) > before + 1


def test_explain_has_its_section_and_why_not_its_nodes(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    frame = sides.on.sql(WORK.format("v > 30"))
    frame.explain()
    assert "[ALWAYS]" in capsys.readouterr().out
    assert "Aggregate" in {node.operator for node in spark_regions.why_not(frame).nodes}


TRIVIAL = [
    "SELECT 1 + 2 AS x",
    "SELECT x, count(*) FROM (SELECT 1 AS x UNION ALL SELECT 1) GROUP BY x",
    "SELECT count(*) FROM (SELECT (SELECT max(y) FROM (SELECT 2 AS y UNION ALL SELECT rand()))) WHERE rand() < 2",
    "SELECT current_date()",
]


@pytest.mark.parametrize("text", TRIVIAL)
def test_a_row_of_nothing_asks_nobody(sides: Sides, text: str) -> None:
    before = decided(sides.off)
    sides.on.sql(text).collect()
    assert decided(sides.off) == before


def test_a_row_of_nothing_with_data_in_a_subquery_is_a_query(sides: Sides) -> None:
    before = decided(sides.off)
    assert sides.on.sql("SELECT (SELECT max(n) FROM (SELECT count(*) AS n FROM facts GROUP BY k))").first()
    assert decided(sides.off) > before


# Queries by other ways


def checkpointed(frame: DataFrame) -> DataFrame:
    return frame.localCheckpoint()


def cached(frame: DataFrame) -> DataFrame:
    frame.cache().count()
    return frame


WAYS: dict[str, Callable[[DataFrame], Any]] = {
    "isEmpty": lambda frame: frame.isEmpty(),
    "not empty": lambda frame: frame.where("s < 0").isEmpty(),
    "count": lambda frame: frame.count(),
    "rdd": lambda frame: sorted(map(tuple, frame.rdd.collect())),
    "pandas": lambda frame: sorted(map(tuple, frame.toPandas().itertuples(index=False))),
    "iterator": lambda frame: sorted(map(tuple, frame.toLocalIterator())),
    "checkpoint": lambda frame: sorted(map(tuple, checkpointed(frame).groupBy("n").count().collect())),
    "cache": lambda frame: sorted(map(tuple, cached(frame).groupBy("n").count().collect())),
    "transpose": lambda frame: sorted(map(tuple, frame.selectExpr("k", "n").orderBy("k").transpose().collect())),
    "pivot": lambda frame: sorted(map(tuple, frame.groupBy("n").pivot("k").sum("s").collect()), key=str),
    "describe": lambda frame: [tuple(row) for row in frame.describe("n").collect()],
}


@pytest.mark.parametrize("name", WAYS)
def test_ways_to_run(sides: Sides, name: str) -> None:
    def run(spark: SparkSession) -> Any:
        frame = spark.sql(WORK.format("v > 30"))
        try:
            return WAYS[name](frame)
        finally:
            frame.unpersist(blocking=True)

    expected, start = run(sides.off), committed(sides.off)
    found = [run(sides.on)]
    committed(sides.off)
    found.append(run(sides.on))
    did = committed(sides.off) - start
    assert found == [expected, expected]
    # A limit reads no further than it must, and an iterator's query has ended before its rows are read.
    assert name in ("isEmpty", "not empty", "iterator") or (did.stores > 0 and did.loads > 0), f"vacuous: {did}"


def test_streams_are_left_alone_and_queries_inside_are_not(sides: Sides, tmp_path: Path) -> None:
    def run(spark: SparkSession, number: int) -> tuple[list[tuple[Any, ...]], int]:
        found: list[tuple[Any, ...]] = []
        before = decided(sides.off)

        def batch(frame: DataFrame, _: int) -> None:
            other = frame.sparkSession.sql(WORK.format("v > 30"))
            found.extend(map(tuple, other.collect()))
            found.extend(map(tuple, frame.collect()))

        source = spark.readStream.schema("id long, k long, v int, text string").parquet(str(tmp_path / "facts"))
        query = (
            source.groupBy("k")
            .sum("v")
            .writeStream.outputMode("complete")
            .option("checkpointLocation", str(tmp_path / f"checkpoint {number}"))
            .foreachBatch(batch)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert query.exception() is None
        plain = source.writeStream.format("memory").queryName(f"stream{number}").trigger(availableNow=True)
        plain.option("checkpointLocation", str(tmp_path / f"memory {number}")).start().awaitTermination()
        committed(sides.off)
        return sorted(found), decided(sides.off) - before

    expected, _ = run(sides.off, 0)
    start = committed(sides.off)
    again = [run(sides.on, 1), run(sides.on, 2)]
    did = committed(sides.off) - start
    assert [found for found, _ in again] == [expected, expected]
    assert did.stores > 0 and did.loads > 0, f"vacuous: {did}"


def test_a_pipeline_of_spark_ml(sides: Sides) -> None:
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import StringIndexer, VectorAssembler
    from pyspark.ml.regression import LinearRegression

    def run(spark: SparkSession) -> list[Outcome]:
        frame = spark.sql("SELECT text, k, sum(v) AS s FROM facts GROUP BY text, k")
        stages = [
            StringIndexer(inputCol="text", outputCol="number"),
            VectorAssembler(inputCols=["number", "k"], outputCol="features"),
            LinearRegression(labelCol="s", solver="normal"),
        ]
        made = Pipeline(stages=stages).fit(frame).transform(frame)
        return [outcome(made.selectExpr("text", "k", "number", "round(prediction, 3) AS p"))]

    compared(sides, run)


# The user's own errors

BROKEN: dict[str, Callable[[SparkSession], Any]] = {
    "no such table": lambda spark: spark.sql("SELECT * FROM nowhere").collect(),
    "no such column": lambda spark: spark.table("facts").select("nothing").collect(),
    "command that fails in analysis": lambda spark: spark.sql("INSERT INTO nowhere SELECT 1"),
    "command that fails": lambda spark: spark.sql("CREATE TABLE made USING nothing AS SELECT k FROM facts"),
    "drop what is not there": lambda spark: spark.sql("DROP TABLE nowhere"),
    "not optimized": lambda spark: spark.sql("SELECT count(*) FROM facts, keys").collect(),
    "not planned": lambda spark: spark.readStream.format("rate").load().collect(),
    "write of a stream": lambda spark: spark.readStream.format("rate").load().write.parquet("never"),
    "fails while it runs": lambda spark: spark.sql("SELECT k, sum(v / (k - k)) FROM facts GROUP BY k").collect(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_error_of_the_users_shows_nothing_of_ours(
    sides: Sides, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    jvm: Any = sides.on.sparkContext._jvm
    for spark in (sides.off, sides.on):
        spark.conf.set("spark.sql.crossJoin.enabled", "false")
    with pytest.raises(FAILURES) as plain:
        BROKEN[name](sides.off)
    settle(sides.off)
    capfd.readouterr()
    with pytest.raises(FAILURES) as failure:
        BROKEN[name](sides.on)
    # Listeners hear of it later, and whoever asks a failed query again is added to the very same exception.
    settle(sides.on)
    origin = getattr(failure.value, "_origin", None) or failure.value.java_exception  # type: ignore[attr-defined]
    trace = jvm.org.apache.spark.util.Utils.exceptionString(origin)
    assert error_class(failure.value) == error_class(plain.value)
    assert "at org.apache.spark.sql" in trace
    # A store that was planned is one of the operators that a later rule walked through, or that passed rows on.
    planned = name in ("not optimized", "fails while it runs")
    ours = "sql.regions.profile" if planned else "regions"
    assert not [line for line in trace.splitlines() if ours in line]
    assert "spark_regions failed" not in capfd.readouterr().err
