"""Skewed stages are arranged otherwise, whatever the keys are made of, and the rows stay the same."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness import chance
from tests.harness.session import decisions, settle, sibling, status
from tests.spark.test_same_rows import OFF
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "12",
    "spark.sql.files.maxPartitionBytes": "64k",
    "spark.sql.planChangeValidation": "true",
}
PLAIN = OFF | SHUFFLED | {"spark.regions.skew.enabled": "false"}
# Nothing is stored or loaded, so that every difference is the skew repair's.
ALWAYS = (
    SHUFFLED
    | {"spark.regions.recycle.strategy": "off", "spark.regions.skew.strategy": "always"}
    | {"spark.regions.skew.enabled": "true", "spark.regions.recycle.rowOrder": "any"}
)
SPLITS = "split_by_records"

KEYS = {
    "int": "IF(n % 23 = 0, NULL, {k})",
    "double": "CASE WHEN n % 29 = 0 THEN NULL WHEN {k} = 3 THEN double('NaN') WHEN {k} = 4 THEN IF(n % 2 = 0, 0D, -0D)"
    " ELSE {k} / 2 END",
    "decimal": "CAST(IF(n % 31 = 0, NULL, {k}) / 4 AS DECIMAL(38, 18))",
    "text": "CASE WHEN {k} = 5 THEN NULL WHEN n % 2 = 0 THEN concat('Key ', {k}) ELSE concat('KEY ', {k}) END"
    " COLLATE UTF8_LCASE",
    "record": "IF({k} = 6, NULL, named_struct('a', {k}, 'b', IF({k} % 2 = 0, NULL, double({k}))))",
}
JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
SIDES = {"both": ("TRUE", "TRUE"), "no left": ("FALSE", "TRUE"), "no right": ("TRUE", "FALSE")}


def write(spark: SparkSession, folder: Path, seed: int) -> None:
    """Two tables: heavy has 60 % of its rows in one key and null among the others, light about two rows a key."""
    plain = sibling(spark, PLAIN)
    heavy = f"CASE WHEN rand({seed}) < 0.6 THEN 1 ELSE int(pow(rand({seed + 1}), 3) * 120) END"
    light = f"int(rand({seed + 2}) * 150)"
    for name, rows, key, files in (("heavy", 2000, heavy, seed % 3 + 1), ("light", 200, light, 2)):
        base = plain.range(rows).selectExpr("id AS n", f"{key} AS k")
        columns = [f"{text.format(k='k')} AS k_{kind}" for kind, text in KEYS.items()]
        table = base.selectExpr("n", "n % 11 AS v", "repeat('x', int(n % 50)) AS padding", *columns)
        table.repartition(files).write.parquet(str(folder / f"{name}{seed}"))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skew")
    for seed in range(3):
        write(spark, folder, seed)
    return folder


def session_of(spark: SparkSession, tables: Path, confs: dict[str, str]) -> SparkSession:
    session = sibling(spark, confs)
    for file in sorted(tables.iterdir()):
        session.read.parquet(str(file)).createOrReplaceTempView(file.name)
    return session


def repairs(spark: SparkSession) -> int:
    settle(spark)
    return int(status(spark)["counter.skewRepairs"])


REPAIRED = ("SPLIT_BY_RECORDS", "LONGEST_FIRST", "TWO_PHASES", "TIES_SPREAD")


def seen(spark: SparkSession) -> int:
    """The last query that anything was decided on. Of the decisions themselves only the newest are kept."""
    settle(spark)
    return max((int(each["query"]) for each in decisions(spark)), default=-1)


def kinds(spark: SparkSession, before: int) -> Counter[tuple[str, str]]:
    """What was done to stages of queries after that one: operator and kind."""
    found = [each for each in decisions(spark) if each["code"] in REPAIRED and each["query"] > before]
    return Counter((str(each["operator"]), str(each["kind"])) for each in found)


def a_join(seed: int) -> str:
    """A query about one key type, join, algorithm and filter, by chance."""
    chance = random.Random(seed)
    kind, number = chance.choice(sorted(KEYS)), chance.randrange(3)
    left, right = chance.choice([("heavy", "light"), ("light", "heavy"), ("heavy", "light"), ("heavy", "heavy")])
    some_left, some_right = SIDES[chance.choice(["both", "both", "both", *SIDES])]
    limited = " AND r.n % 401 = 1" if (left, right) == ("heavy", "heavy") else ""
    how = chance.choice(JOINS)
    columns = "l.n, l.v, l.padding" + ("" if how in ("LEFT SEMI", "LEFT ANTI") else ", r.n AS m, r.v AS w")
    residual = chance.choice(["", "", " AND l.v <> r.v"])
    hint = chance.choice(["MERGE", "SHUFFLE_HASH"])
    sides = (
        f"(SELECT * FROM {left}{number} WHERE {some_left}) l {how} JOIN "
        f"(SELECT * FROM {right}{number} r WHERE {some_right}{limited}) r ON l.k_{kind} = r.k_{kind}{residual}"
    )
    if kind == "record":
        hint = "SHUFFLE_HASH"
    top = chance.choice(["rows", "rows", "group", "window"])
    if top == "group":
        return f"SELECT /*+ {hint}(r) */ l.k_{kind} AS k, count(*) AS n, sum(l.n) AS s FROM {sides} GROUP BY l.k_{kind}"
    if top == "window":
        over = f"OVER (PARTITION BY l.k_{kind})"
        return f"SELECT /*+ {hint}(r) */ {columns}, max(l.n) {over} AS most, count(*) {over} AS c FROM {sides}"
    return f"SELECT /*+ {hint}(r) */ {columns} FROM {sides}"


def same(plain: SparkSession, always: SparkSession, text: str) -> None:
    assert difference(outcome(plain.sql(text)), outcome(always.sql(text))) is None, text


def test_a_heavy_key_shows_where_its_bytes_do_not(
    spark: SparkSession, plain: SparkSession, always: SparkSession
) -> None:
    """Eight tenths of the rows are equal and compress to nothing."""
    text = (
        "SELECT l.k, count(*) AS n, max(text) AS t, sum(w) AS s FROM (SELECT IF(id % 10 < 8, 7, id % 100) AS k, "
        "IF(id % 10 < 8, '', repeat(md5(string(id)), 4)) AS text FROM range(0, 60000, 1, 4)) l "
        "LEFT JOIN (SELECT id AS k, id % 3 AS w FROM range(50)) r ON l.k = r.k GROUP BY l.k"
    )
    before = seen(spark)
    same(plain, always, text)
    cut = [
        re.search(r"partition \d+ \((\d+) % of the left input\)", each["detail"])
        for each in decisions(spark)
        if each["query"] > before and each["code"] == "SPLIT_BY_RECORDS"
    ]
    assert [found for found in cut if found and int(found[1]) >= 75], cut
    plan = always.sql(text)
    plan.collect()
    explained = plan._jdf.queryExecution().executedPlan().toString()
    assert "RowCounts of 12 partitions" in explained


def test_joins_by_chance(spark: SparkSession, plain: SparkSession, always: SparkSession) -> None:
    before, tried = repairs(spark), 0
    for seed in chance.seeds("joins", at_least=20, seconds=45):
        with chance.trying("joins", seed):
            same(plain, always, a_join(seed))
        tried += 1
    assert repairs(spark) - before >= 0.4 * tried, f"vacuous: hardly any stage of {tried} was changed"


@pytest.mark.parametrize(
    ("text", "join"),
    [
        ("SELECT l.n, r.n FROM heavy0 l FULL JOIN light0 r ON l.k_int = r.k_int", "SortMergeJoin FullOuter"),
        ("SELECT l.n, r.n FROM heavy1 l RIGHT JOIN light1 r ON l.k_double = r.k_double", "SortMergeJoin RightOuter"),
        ("SELECT l.n, r.n FROM light2 l LEFT JOIN heavy2 r ON l.k_text = r.k_text", "SortMergeJoin LeftOuter"),
        (
            "SELECT /*+ SHUFFLE_HASH(r) */ l.n, r.n FROM heavy0 l FULL JOIN light0 r ON l.k_decimal = r.k_decimal",
            "ShuffledHashJoin FullOuter",
        ),
        (
            "SELECT l.k_int, count(r.n) AS c FROM heavy0 l JOIN light0 r ON l.k_int = r.k_int GROUP BY l.k_int",
            "SortMergeJoin Inner",
        ),
        ("SELECT n FROM heavy0 l WHERE k_int IN (SELECT k_int FROM light0)", "SortMergeJoin LeftSemi"),
        ("SELECT n FROM light0 l LEFT SEMI JOIN heavy0 r ON l.k_int = r.k_int", "SortMergeJoin LeftSemi"),
        ("SELECT n FROM light1 l LEFT ANTI JOIN heavy1 r ON l.k_double = r.k_double", "SortMergeJoin LeftAnti"),
        (
            "SELECT n FROM light0 l WHERE n < 9 OR EXISTS (SELECT 1 FROM heavy0 r WHERE r.k_int = l.k_int)",
            "SortMergeJoin ExistenceJoin",
        ),
        (
            "SELECT /*+ SHUFFLE_HASH(r) */ n FROM light2 l LEFT ANTI JOIN heavy2 r ON l.k_text = r.k_text",
            "ShuffledHashJoin LeftAnti",
        ),
    ],
)
def test_a_skewed_join_is_split(
    spark: SparkSession, plain: SparkSession, always: SparkSession, text: str, join: str
) -> None:
    start, before = seen(spark), repairs(spark)
    same(plain, always, text)
    assert repairs(spark) == before + 1
    assert (join, SPLITS) in kinds(spark, start)


def test_a_group_by_above_a_cut_join_moves_states(plain: SparkSession, always: SparkSession) -> None:
    """The sort-merge join's order lets Spark aggregate in one step; the slices need two, and an exchange between.

    The first is in one compiled function with the join of the slices, and of the other partitions.
    """
    text = (
        "SELECT /*+ MERGE(r) */ l.k_int, count(*) AS c, sum(l.n) FILTER (WHERE r.n % 2 = 0) AS s "
        "FROM heavy0 l JOIN light0 r ON l.k_int = r.k_int GROUP BY l.k_int"
    )
    same(plain, always, text)
    executed = explained(always, text).split("== Physical Plan ==")[1].split("== Initial Plan ==")[0]
    lines = [line.lstrip(" :+-") for line in executed.splitlines()]
    steps = [line for line in lines if "Aggregate(" in line or line.startswith("Union")]
    assert ["partial_sum" in step for step in steps] == [False, False, True, True], executed
    assert steps[1].startswith("Union"), executed
    function = {line.split()[0] for line in lines if "Join(" in line}
    assert {step.split()[0] for step in steps[2:]} == function, executed
    assert "by a hash table" in explained(always, text)


@pytest.mark.parametrize(
    "text",
    [
        # Part by part, in other parts with us: nothing may be arranged.
        "SELECT sum(l.v / 7.0D) FROM heavy0 l FULL JOIN light0 r ON l.k_int = r.k_int",
        # Key by key, in the order of the partition: only its rows must stay together.
        "SELECT l.k_int, avg(l.n) FROM heavy0 l JOIN light0 r ON l.k_int = r.k_int GROUP BY l.k_int",
    ],
)
def test_sums_that_round_keep_their_digits(
    spark: SparkSession, plain: SparkSession, always: SparkSession, text: str
) -> None:
    start = seen(spark)
    expected, found = (session.sql(text).collect() for session in (plain, always))
    assert sorted(map(repr, expected)) == sorted(map(repr, found))
    settle(spark)
    codes = {str(each["code"]) for each in decisions(spark) if each["query"] > start}
    assert "FLOAT_AGGREGATE" in codes
    assert "SPLIT_BY_RECORDS" not in codes


GROUPED = {
    "window": "SELECT n, k_int, row_number() OVER (PARTITION BY k_int ORDER BY n) AS r FROM heavy0",
    "collected": "SELECT k_int, sort_array(collect_list(n)) AS all FROM heavy1 GROUP BY k_int",
    "three inputs": "SELECT a.n, b.n, c.n FROM heavy0 a JOIN light0 b ON a.k_int = b.k_int"
    " FULL JOIN light1 c ON a.k_int = c.k_int",
    "hints": "SELECT /*+ REPARTITION(k_int) */ k_int, count(*) AS c FROM heavy2 GROUP BY k_int",
    "a broadcast join above": "SELECT /*+ BROADCAST(c) */ a.n, b.n, c.v FROM heavy0 a LEFT JOIN light0 b"
    " ON a.k_int = b.k_int JOIN (SELECT n, v FROM light1) c ON a.v = c.n",
    "a union": "SELECT a.n, b.n FROM heavy0 a FULL JOIN light0 b ON a.k_int = b.k_int"
    " UNION ALL SELECT b.n, a.n FROM light1 b LEFT JOIN heavy1 a ON a.k_int = b.k_int",
}


@pytest.mark.parametrize("name", GROUPED)
def test_other_stages_by_partitions(spark: SparkSession, plain: SparkSession, always: SparkSession, name: str) -> None:
    before = repairs(spark)
    same(plain, always, GROUPED[name])
    assert repairs(spark) > before


def test_groups_of_a_python_function(spark: SparkSession, plain: SparkSession, always: SparkSession) -> None:
    def spread_of(session: SparkSession) -> object:
        def largest(group):  # type: ignore[no-untyped-def]
            return group.nlargest(2, "n")[["k_int", "n"]]

        return session.table("heavy0").groupBy("k_int").applyInPandas(largest, "k_int int, n long")

    before = seen(spark)
    assert difference(outcome(spread_of(plain)), outcome(spread_of(always))) is None  # type: ignore[arg-type]
    assert ("FlatMapGroupsInPandas", "order") in kinds(spark, before)


def test_cached_and_bucketed_inputs(spark: SparkSession, plain: SparkSession, always: SparkSession) -> None:
    joined = "SELECT l.k_int AS k, l.n, r.n AS m FROM heavy0 l FULL JOIN light0 r ON l.k_int = r.k_int"
    expected = outcome(plain.sql(f"SELECT a.*, b.n AS o FROM ({joined}) a JOIN light1 b ON a.k = b.k_int"))
    before = repairs(spark)
    cached = always.sql(joined).cache()
    cached.createOrReplaceTempView("cached")
    try:
        found = outcome(always.sql("SELECT a.*, b.n AS o FROM cached a JOIN light1 b ON a.k = b.k_int"))
        assert difference(expected, found) is None
        assert repairs(spark) > before
    finally:
        cached.unpersist(blocking=True)
    plain.table("light0").write.mode("overwrite").bucketBy(4, "k_int").saveAsTable("bucketed")
    same(plain, always, "SELECT l.n, r.n FROM heavy0 l FULL JOIN bucketed r ON l.k_int = r.k_int")
    plain.sql("DROP TABLE bucketed")


@pytest.mark.parametrize(("partitioned", "split"), [([], True), (["v"], True), ([], False)])
def test_a_repartition_before_a_write(
    spark: SparkSession, always: SparkSession, tmp_path: Path, partitioned: list[str], split: bool
) -> None:
    table = always.table("heavy1").select("n", "v", "k_int", "padding")
    placed = table.repartition("k_int") if split else table.repartition(7, "k_int")
    before = seen(spark)
    placed.write.partitionBy(*partitioned).parquet(str(tmp_path / "out"))
    found = sibling(spark, PLAIN).read.parquet(str(tmp_path / "out")).select("n", "v", "k_int", "padding")
    expected = sibling(spark, PLAIN).read.parquet(str(tables_of(always, "heavy1"))).select("n", "v", "k_int", "padding")
    assert Counter(map(str, found.selectExpr("n", "int(v) AS v", "k_int", "padding").collect())) == Counter(
        map(str, expected.selectExpr("n", "int(v) AS v", "k_int", "padding").collect())
    )
    done = {kind for _, kind in kinds(spark, before)}
    assert done == ({SPLITS} if split else set())


# Filtered at run time only, so that adaptive execution turns the join of a written shuffle into a broadcast join.
FEW = "(SELECT * FROM light0 WHERE padding = repeat('x', int(n % 50)) AND v < 9)"
STREAMED = {
    "joined, then grouped by its key": (
        "SELECT l.k_int, count(*) AS c, sum(r.n) AS s FROM heavy0 l "
        f"JOIN {FEW} r ON l.k_int = r.k_int GROUP BY l.k_int",
        {"spark.sql.adaptive.autoBroadcastJoinThreshold": "10m"},
        "BroadcastHashJoin",
    ),
    "placed by hand, joined, grouped by another key": (
        "SELECT /*+ BROADCAST(r) */ r.v, count(*) AS c, max(l.n) AS m FROM (SELECT /*+ REPARTITION(k_int) */ * "
        "FROM heavy1) l LEFT JOIN light1 r ON l.k_int = r.k_int AND l.v <= r.v GROUP BY r.v",
        {},
        "BroadcastHashJoin",
    ),
    "placed by hand, compared with each, exploded, grouped": (
        "SELECT /*+ BROADCAST(r) */ l.k_int, max(x) AS m, count(r.n) AS c FROM (SELECT /*+ REPARTITION(k_int) */ *, "
        "array(n, v) AS a FROM heavy2) l LEFT JOIN (SELECT * FROM light2 WHERE n < 3) r ON l.v < r.v "
        "LATERAL VIEW explode(l.a) AS x GROUP BY l.k_int",
        {},
        "BroadcastNestedLoopJoin",
    ),
    "placed by hand, its strings compared": (
        "SELECT k_int, max(padding) AS p, count(*) AS c FROM (SELECT /*+ REPARTITION(k_int) */ * FROM heavy1)"
        " GROUP BY k_int",
        {},
        "SortAggregate",
    ),
}


@pytest.mark.parametrize("name", STREAMED)
def test_rows_that_go_their_own_way_are_cut(spark: SparkSession, tables: Path, name: str) -> None:
    text, confs, operator = STREAMED[name]
    start = seen(spark)
    same(session_of(spark, tables, PLAIN | confs), session_of(spark, tables, ALWAYS | confs), text)
    assert (operator, SPLITS) in kinds(spark, start)


def test_rows_placed_by_hand_stay_where_they_can_be_seen(spark: SparkSession, always: SparkSession) -> None:
    """The user asked for all rows of a key in one partition, and a function, or the caller, may count on it."""
    placed = always.table("heavy0").select("n", "v", "k_int").repartition("k_int")
    small = always.table("light0").select("v", "n").withColumnRenamed("n", "m").hint("broadcast")
    start = seen(spark)

    def keys(batches):  # type: ignore[no-untyped-def]
        import pandas

        found = pandas.concat(list(batches) or [pandas.DataFrame({"k_int": []})])["k_int"]
        yield pandas.DataFrame({"k_int": found.drop_duplicates().astype("Int32")})

    once = placed.mapInPandas(keys, "k_int int").collect()
    assert len(once) == len({row.k_int for row in once}), "a key came in two partitions"
    partitions = placed.join(small, "v").rdd.map(lambda row: row.k_int).glom().collect()
    assert sum(len(set(each)) for each in partitions) == len({key for each in partitions for key in each})
    assert SPLITS not in {kind for _, kind in kinds(spark, start)}


def tables_of(session: SparkSession, name: str) -> str:
    """The folder of a table."""
    return session.table(name).inputFiles()[0].removeprefix("file://").rpartition("/")[0]


FULL = "SELECT l.n, r.n FROM heavy0 l FULL JOIN light0 r ON l.k_int = r.k_int"


def test_what_is_left_alone(spark: SparkSession, tables: Path) -> None:
    """Without adaptive execution, switched off, only observed, with a limit, or a fixed number of partitions."""
    for confs, text in (
        ({"spark.sql.adaptive.enabled": "false"}, FULL),
        ({"spark.regions.skew.enabled": "false"}, FULL),
        ({"spark.regions.mode": "observe"}, FULL),
        ({}, "SELECT k_int, count(*) AS c FROM heavy0 GROUP BY k_int LIMIT 5"),
        ({}, "SELECT k_int, count(*) AS c FROM heavy0 GROUP BY k_int ORDER BY c DESC, k_int LIMIT 7"),
        ({}, "SELECT k_int, n, rand(3) > 2 AS r FROM (SELECT /*+ REPARTITION(5, k_int) */ * FROM heavy0)"),
        ({}, "SELECT /*+ REPARTITION(5, k_int) */ k_int FROM heavy0"),
    ):
        before = repairs(spark)
        same(session_of(spark, tables, PLAIN), session_of(spark, tables, ALWAYS | confs), text)
        assert repairs(spark) == before, (confs, text)
    off = sibling(spark, {"spark.sql.adaptive.enabled": "false"})
    assert status(off)["skew"] == "off: spark.sql.adaptive.enabled is false"
    assert status(spark)["skew"] == "on"
    assert "OBSERVE_ONLY" in {d["code"] for d in decisions(spark)}


def test_small_stages_are_not_asked_about(spark: SparkSession, plain: SparkSession, tables: Path) -> None:
    session = session_of(spark, tables, SHUFFLED | {"spark.regions.recycle.strategy": "off"})
    before = repairs(spark)
    same(plain, session, FULL)
    assert repairs(spark) == before
    assert "a skewed stage" not in explained(session, FULL)


def explained(session: SparkSession, text: str) -> str:
    """EXPLAIN of a query that has run."""
    execution = session.sql(text)._jdf.queryExecution()
    execution.executedPlan().executeCollect()
    settle(session)
    mode = session._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("extended")  # type: ignore[union-attr]
    return str(execution.explainString(mode))


def test_the_heaviest_keys_are_told(spark: SparkSession, tables: Path, always: SparkSession) -> None:
    """By a sample of the rows of cut partitions: a key, its share of the input's rows, and how far that may be off."""
    start = seen(spark)
    always.sql(FULL).collect()
    settle(spark)
    found = [str(each["detail"]) for each in decisions(spark) if each["query"] > start and each["code"] == "MEASURED"]
    told = [re.search(r"; k_int = 1: ([0-9.]+) % of the rows \(± ([0-9.]+) %\)", each) for each in found]
    (shares,) = {each.groups() for each in told if each}
    share, error = map(float, shares)
    true = next(100 * row.n / 2000 for row in always.sql("SELECT count(*) AS n FROM heavy0 WHERE k_int = 1").collect())
    assert abs(share - true) <= error < 25
    start = seen(spark)
    quiet = session_of(spark, tables, ALWAYS | {"spark.regions.skew.keys": "false"})
    quiet.sql(FULL).collect()
    settle(spark)
    found = [str(each["detail"]) for each in decisions(spark) if each["query"] > start and each["code"] == "MEASURED"]
    assert found and not any("k_int" in each for each in found)


def test_the_same_rows_are_counted_once(spark: SparkSession, tables: Path, always: SparkSession) -> None:
    """What was counted is kept by the lineage of the rows, and told where they are read again; of others it is not."""

    def told(session: SparkSession, table: str) -> str:
        start = seen(spark)
        session.sql(f"SELECT /*+ MERGE(r) */ l.n, r.v FROM {table} l FULL JOIN light2 r ON l.k_int = r.k_int").collect()
        settle(spark)
        found = [each for each in decisions(spark) if each["query"] > start and each["code"] == "MEASURED"]
        return "; ".join(str(each["detail"]) for each in found)

    quiet = session_of(spark, tables, ALWAYS | {"spark.regions.skew.keys": "false"})
    first, again = told(always, "heavy2"), told(always, "heavy2")
    assert "k_int = 1: " in first and "earlier run" not in first
    assert "counted in an earlier run" in again
    assert re.findall(r"k_int = [^;,]*", again) == re.findall(r"k_int = [^;,]*", first)
    assert "k_int" not in told(quiet, "heavy2")
    other = told(always, "heavy1")
    assert "k_int = 1: " in other and "earlier run" not in other


def test_a_job_of_some_partitions_tells_no_shares(spark: SparkSession, tables: Path, always: SparkSession) -> None:
    text = "SELECT /*+ MERGE(r) */ l.n, r.n AS m FROM heavy2 l FULL JOIN light1 r ON l.k_int = r.k_int"
    start = seen(spark)
    assert next(always.sql(text).toLocalIterator())
    settle(spark)
    found = [str(each["detail"]) for each in decisions(spark) if each["query"] > start and each["code"] == "MEASURED"]
    few = [each for each in found if "in 1 tasks" in each]
    assert few and not [each for each in few if "% of the rows" in each]


def test_the_values_of_keys_are_redacted(spark: SparkSession, tables: Path) -> None:
    session = session_of(spark, tables, ALWAYS | {"spark.sql.redaction.string.regex": "k_int = [0-9]+"})
    start = seen(spark)
    session.sql(FULL).collect()
    settle(spark)
    found = [str(each["detail"]) for each in decisions(spark) if each["query"] > start and each["code"] == "MEASURED"]
    assert any("*********(redacted): " in each for each in found)
    assert not any("k_int = " in each for each in found)


def test_explain_says_what_was_done(spark: SparkSession, always: SparkSession) -> None:
    text = explained(always, FULL)
    assert "a skewed stage, decided in" in text
    assert "split_by_records at SortMergeJoin FullOuter [SPLIT_BY_RECORDS]: predicted" in text
    assert "unmatched rows apart" in text
    assert "SkewRead" in text
    assert "measured at SortMergeJoin FullOuter [MEASURED]: stage" in text


@pytest.mark.parametrize(
    ("text", "arranged"),
    [
        ("SELECT l.n, r.n AS m FROM heavy0 l JOIN light0 r ON l.k_int = r.k_int", False),
        ("SELECT count(*), sum(l.n) FROM heavy0 l JOIN light0 r ON l.k_int = r.k_int", True),
        ("SELECT n, row_number() OVER (PARTITION BY k_int ORDER BY n) AS i FROM heavy0", False),
        ("SELECT k_int, count(*) AS n FROM heavy0 GROUP BY k_int", False),
        ("SELECT k_int, count(*) AS n FROM heavy0 GROUP BY k_int ORDER BY k_int, n", None),
        ("SELECT n, v FROM heavy0 ORDER BY v", False),
    ],
)
def test_nothing_is_arranged_where_somebody_sees_the_order(
    spark: SparkSession, tables: Path, text: str, arranged: bool | None
) -> None:
    """Where several executors shuffle, each run of plain Spark has an order of its own; here it has one."""
    ordered = session_of(spark, tables, ALWAYS | {"spark.regions.recycle.rowOrder": "plain"})
    plain = session_of(spark, tables, PLAIN)
    before = seen(spark)
    assert ordered.sql(text).collect() == plain.sql(text).collect()
    if arranged is not None:
        assert (sum(kinds(spark, before).values()) > 0) is arranged
