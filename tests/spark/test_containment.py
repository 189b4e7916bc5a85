"""Which stored rows serve which queries (docs/containment.md): by which rule, and with plain Spark's rows."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_regions.matching.implies import implied, ranges
from spark_regions.wire.messages import Comparison, Predicate
from tests.harness import chance
from tests.harness.session import committed, decisions, sibling
from tests.spark.test_same_rows import OFF, ON
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, x int, d decimal(12,2), f double, s string, day date, at timestamp, flag boolean, b binary"
POOLS: dict[str, list[Any]] = {
    "x": [None, -(2**31), -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2**31 - 1],
    "d": [None, *map(Decimal, ("-9999999999.99", "-0.01", "0.00", "0.01", "3.00", "5.50", "9999999999.99"))],
    "f": [None, float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 5e-324, -1.5, 1.5, 1e300],
    "s": [None, "", " ", "a", "ab", "abc", "ac", "b", "B", "ä", "äb", "日本", "😀", "\uffff"],
    "day": [None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    "at": [None, dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 12, 30, 0, 1), dt.datetime(2024, 2, 29, 12, 30)],
    "flag": [None, True, False],
    "b": [None, b"", b"\x00", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff"],
}


@dataclass(frozen=True)
class Sides:
    off: SparkSession
    on: SparkSession
    path: str

    def both(self, stored: str, asked: str) -> list[str]:
        """Assert that `asked` gives plain Spark's rows after `stored` was run; by which rules its reads served."""
        committed(self.on)
        self.query(self.on, stored).collect()
        committed(self.on)
        before = max(int(str(each["query"])) for each in decisions(self.on))
        expected = outcome(self.query(self.off, asked))
        assert difference(expected, outcome(self.query(self.on, asked))) is None
        committed(self.on)
        loads = (each for each in decisions(self.on) if each["kind"] == "load" and each["execution"] is not None)
        return [str(each["detail"]) for each in loads if int(str(each["query"])) > before]

    def query(self, spark: SparkSession, text: str) -> DataFrame:
        spark.read.parquet(self.path).createOrReplaceTempView("t")
        return spark.sql(text)


def write(spark: SparkSession, folder: Path, count: int) -> str:
    draw = random.Random(count)
    rows = [(n, *(draw.choice(pool) for pool in POOLS.values())) for n in range(count)]
    spark.createDataFrame(rows, SCHEMA).repartition(2).write.parquet(str(folder))
    return str(folder)


@pytest.fixture
def sides(spark: SparkSession, tmp_path: Path) -> Sides:
    return Sides(sibling(spark, OFF), sibling(spark, ON), write(sibling(spark, OFF), tmp_path / "t", 200))


IMPLIED = [
    ("x > 3", "x > 5"),
    ("x > 3", "x >= 4"),
    ("x >= 4", "x > 3"),
    ("x <= 7", "x < 7 and flag"),
    ("x between 1 and 8", "x > 1 and x < 5"),
    ("x in (1, 2, 3, 4)", "x in (3, 1)"),
    ("x in (1, 2, 3, null)", "x = 2"),
    ("x in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)", "x between 2 and 6"),
    ("x <> 3", "x > 3"),
    ("x not in (3, 4)", "x not in (3, 4, 5)"),
    ("x < 2 or x > 7", "x = 9"),
    ("x < 2 or x > 7", "x in (1, 8) or x = 0"),
    ("x is not null", "x < 5"),
    ("d > 0.5", "d > 3"),
    ("d >= -0.01", "d = 0"),
    ("f >= 0", "f = 0"),
    ("f > 1.5", "f = double('NaN')"),
    ("f < double('NaN')", "f <= 1.5"),
    ("s like 'a%'", "s like 'ab%'"),
    ("s like 'a%'", "s = 'ac'"),
    ("s >= 'a'", "s like 'ä%'"),
    ("s < 'b'", "s in ('', 'abc')"),
    ("day >= date'1969-01-01'", "day = date'2024-02-29'"),
    ("at > timestamp'2000-01-01'", "at >= timestamp'2024-02-29 12:30:00.000001'"),
    ("flag is not null", "not flag"),
    ("b < x'80'", "b = x'7f'"),
    ("x % 10 > 3", "x % 10 > 5"),
    ("length(s) > 0", "length(s) = 2"),
]


@pytest.mark.parametrize(("stored", "asked"), IMPLIED)
def test_a_filter_that_implies_the_stored_one_is_served(sides: Sides, stored: str, asked: str) -> None:
    assert sides.both(f"SELECT * FROM t WHERE {stored}", f"SELECT * FROM t WHERE {asked}") == ["IMPLIED"]


NOT_IMPLIED = [
    ("x > 5", "x > 3"),
    ("x > 3", "d > 5"),
    ("x in (1, 2)", "x in (1, 2, 3)"),
    ("x <> 3", "x >= 3"),
    ("x > 3", "x > 5 or x is null"),
    ("x > 3", "x > 5 or d > 5"),
    ("x is not null", "d is not null"),
    ("f > 0", "f >= 0"),
    ("f <= 1.5", "f > 1"),
    ("s like 'ab%'", "s like 'a%'"),
    ("s like '%b'", "s like '%ab'"),
    ("s collate utf8_lcase >= 'b'", "s collate utf8_lcase = 'B'"),
    ("x > 3", "x % 10 > 5"),
    ("x > 3 or rand(1) > 0.5", "x > 5"),
]


@pytest.mark.parametrize(("stored", "asked"), NOT_IMPLIED)
def test_a_filter_that_does_not_is_not(sides: Sides, stored: str, asked: str) -> None:
    assert sides.both(f"SELECT * FROM t WHERE {stored}", f"SELECT * FROM t WHERE {asked}") == []


UNION = """SELECT 'a' AS what, id, x, s, day FROM t WHERE flag
    UNION ALL SELECT 'b', id * 2, CAST(id % 10 AS int), upper(s), day FROM t
    UNION ALL SELECT 'c', -id, x, concat(s, 'b'), date'2024-02-29' FROM t WHERE x <> 7"""
SERVED = {
    "a part of a union": (UNION, f"SELECT s, day FROM ({UNION}) WHERE x > 3 AND id IS NOT NULL", ["FILTERED"]),
    "a smaller part of a union": (
        f"SELECT * FROM ({UNION}) WHERE x > 3",
        f"SELECT what, id + 1 FROM ({UNION}) WHERE x > 5",
        ["IMPLIED"],
    ),
    "groups of a part of a union": (
        UNION,
        f"SELECT what, count(*), max(s) FROM ({UNION}) WHERE x % 2 = 1 GROUP BY what ORDER BY what",
        ["FILTERED"],
    ),
    "not a part of a union by another": (
        f"SELECT * FROM ({UNION}) WHERE x > 3",
        f"SELECT * FROM ({UNION}) WHERE id > 3",
        [],
    ),
    "the very same": ("SELECT * FROM t WHERE x > 3", "SELECT * FROM t WHERE 3 < x", ["SAME_ROWS"]),
    "more filters": ("SELECT * FROM t WHERE x > 3", "SELECT id, x FROM t WHERE x > 3 AND flag", ["FILTERED"]),
    "fewer columns, one of them computed": (
        "SELECT id, x, s FROM t WHERE x > 3",
        "SELECT upper(s) FROM t WHERE x > 5",
        ["IMPLIED"],
    ),
    "a column of the filter is not stored": ("SELECT id FROM t WHERE x > 3", "SELECT id FROM t WHERE x > 5", []),
    "groups": (
        "SELECT x, count(*), sum(d) FROM t WHERE x > 3 GROUP BY x",
        "SELECT x, count(*), sum(d) FROM t WHERE x > 5 GROUP BY x ORDER BY x",
        ["IMPLIED"],
    ),
    "a join, filtered on one side": (
        "SELECT l.id, l.x, r.d FROM t l JOIN t r ON l.id = r.id WHERE l.x > 3",
        "SELECT l.id, r.d FROM t l JOIN t r ON l.id = r.id WHERE l.x > 5 ORDER BY l.id",
        ["IMPLIED"],
    ),
    "a branch of a union": (
        "SELECT id, x FROM t WHERE x > 3",
        "SELECT id, x FROM t WHERE x > 3 UNION ALL SELECT id, x FROM t WHERE flag",
        ["SAME_ROWS"],
    ),
    "two branches of a union, each by a rule of its own": (
        "SELECT id, x, flag FROM t WHERE x > 3",
        "SELECT id, x FROM t WHERE x > 5 UNION ALL SELECT id, x FROM t WHERE x > 3 AND flag",
        ["IMPLIED", "FILTERED"],
    ),
    "branches under a filter on their union": (
        "SELECT id, x FROM t WHERE x > 3",
        "SELECT * FROM (SELECT id, x FROM t WHERE x > 3 UNION ALL SELECT id, x FROM t WHERE flag) WHERE x > 5",
        ["FILTERED"],
    ),
    "a union as a whole": (
        "SELECT id, x FROM t WHERE x > 3 UNION ALL SELECT x, id FROM t WHERE flag",
        "SELECT id, x FROM t WHERE x > 3 UNION ALL SELECT x, id FROM t WHERE flag",
        ["SAME_ROWS"],
    ),
    "not a longer union by a shorter one, which was stored as a whole": (
        "SELECT id, x FROM t WHERE x > 3 UNION ALL SELECT x, id FROM t WHERE flag",
        "SELECT id, x FROM t WHERE x > 3 UNION ALL SELECT x, id FROM t WHERE flag UNION ALL SELECT 1, 2",
        [],
    ),
    "not of what was filtered below a global aggregate": (
        "SELECT count(*), max(d) FROM t WHERE x > 3",
        "SELECT count(*), max(d) FROM t WHERE x > 5",
        [],
    ),
}


@pytest.mark.parametrize("name", SERVED)
def test_by_which_rule(sides: Sides, name: str) -> None:
    stored, asked, rules = SERVED[name]
    assert sides.both(stored, asked) == rules


GUARDED = {
    "a divisor": "x <> 0 AND 10 / x > 1",
    "two steps": "length(s) > 0 AND x <> 0 AND x > -5 AND 12 / x > 2 AND 100 / (12 / x) > 1",
    "a cast": "s IN ('1', '2') AND cast(s AS int) > 1",
    "below and above": "x > 3 AND 7 / (x - 3) > 0",
}


@pytest.mark.parametrize("name", GUARDED)
def test_filters_on_top_keep_each_other_from_failing(sides: Sides, name: str) -> None:
    """With ANSI rules; the digests of filters, by which they used to be sorted, differ with the files."""
    for stored in ("SELECT id, x, s FROM t WHERE id >= 0", "SELECT id, x, s FROM t WHERE x > -2147483648"):
        rules = sides.both(stored, f"SELECT id FROM t WHERE id >= 0 AND {GUARDED[name]}")
        assert rules, "vacuous: nothing was read"
    unguarded = "SELECT id FROM t WHERE id >= 0 AND 10 / x > 1"
    plain = outcome(sides.query(sides.off, unguarded))
    assert plain.error == "DIVIDE_BY_ZERO"
    assert difference(plain, outcome(sides.query(sides.on, unguarded))) is None


def test_what_may_fail_on_rows_that_are_not_stored_is_not_computed_of_the_others(sides: Sides) -> None:
    """The entry stays, and so are the query's own rows stored."""
    some = "SELECT id, s FROM t WHERE id IN (SELECT id FROM t WHERE x = 4)"
    for fails, condition in ((True, "cast(s AS int) > 0"), (False, "id + 1 > 9")):
        asked = f"SELECT count(*) AS n FROM ({some} AND {condition})"
        assert (outcome(sides.query(sides.off, asked)).error == "CAST_INVALID_INPUT") == fails
        assert "FILTERED" not in sides.both(some, asked)
        assert "MAY_FAIL" in {each["code"] for each in decisions(sides.on)[-10:]}
        assert sides.both(some, some)[0] == "SAME_ROWS"
    assert sides.both(asked, asked)[0] == "SAME_ROWS"


def test_explain_tells_the_rule(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    sides.both("SELECT * FROM t WHERE x > 3", "SELECT * FROM t WHERE x > 5")
    sides.query(sides.on, "SELECT id FROM t WHERE x > 6 AND x < 9").explain()
    assert "[ALWAYS]: IMPLIED" in capsys.readouterr().out


def test_parts_of_unions_by_chance(sides: Sides) -> None:
    draw = random.Random(chance.seed_of("unions"))
    values = {
        "x": ["x", "-x % 7", "CAST(id % 10 AS int)", "coalesce(x, 3)"],
        "s": ["s", "upper(s)", "concat(s, 'b')", "CAST(x AS string)"],
        "day": ["day", "date_add(day, 1)", "date'2024-02-29'"],
    }

    def branch(filters: float) -> str:
        columns = ", ".join(f"{draw.choice(found)} AS {name}" for name, found in values.items())
        own = f"WHERE {drawn(draw, draw.choice(['x', 's', 'f']))}" if draw.random() < filters else ""
        # What overflows is not of interest here.
        return f"SELECT {columns} FROM (SELECT * FROM t WHERE x BETWEEN 0 AND 9 AND year(day) < 9000) {own}"

    read = 0
    for _ in range(15):
        union = " UNION ALL ".join(branch(0.4) for _ in range(draw.randint(2, 4)))
        filters = [drawn(draw, draw.choice(list(values))) for _ in range(draw.randint(1, 2))]
        stored = union if draw.random() < 0.7 else f"SELECT * FROM ({union}) WHERE {filters[0]}"
        columns = ", ".join(draw.sample(list(values), draw.randint(1, 3)))
        read += len(sides.both(stored, f"SELECT {columns} FROM ({union}) WHERE {' AND '.join(filters)}"))
    print(f"{read} reads")
    assert read >= 3, "vacuous: hardly anything was read"


# What filters say, by chance


def literal_of(draw: random.Random, column: str) -> str:
    value = draw.choice([each for each in POOLS[column] if each is not None])
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, dt.datetime):
        return f"timestamp'{value}'"
    if isinstance(value, dt.date):
        return f"date'{value}'"
    return f"double('{value}')" if isinstance(value, float) else str(value)


def drawn(draw: random.Random, column: str, depth: int = 0) -> str:
    """A filter on one column, of any kind that is told and some that are not."""
    one = lambda: literal_of(draw, column)  # noqa: E731
    kinds: list[Callable[[], str]] = [
        lambda: f"{column} {draw.choice(['=', '<=>', '<>', '<', '<=', '>', '>='])} {one()}",
        lambda: f"{one()} {draw.choice(['=', '<', '<=', '>', '>='])} {column}",
        lambda: f"{column} {draw.choice(['', 'NOT '])}IN ({', '.join(one() for _ in range(draw.randint(1, 4)))})",
        lambda: f"{column} {draw.choice(['', 'NOT '])}BETWEEN {one()} AND {one()}",
        lambda: f"{column} IS {draw.choice(['', 'NOT '])}NULL",
        lambda: f"{column} {draw.choice(['', 'NOT '])}IN ({', '.join(one() for _ in range(14))}, NULL)",
    ]
    if column == "s":
        kinds += [lambda: f"s LIKE {one()[:-1]}%'", lambda: f"startswith(s, {one()})", lambda: f"s LIKE '%{one()[1:]}"]
    if column == "flag":
        kinds += [lambda: "flag", lambda: "NOT flag"]
    if depth < 2:
        inner = lambda: drawn(draw, column, depth + 1)  # noqa: E731
        joined = lambda word: f"({inner()} {word} {inner()})"  # noqa: E731
        kinds += [lambda: joined("OR"), lambda: joined("AND"), lambda: f"NOT {joined(draw.choice(['OR', 'AND']))}"]
    return draw.choice(kinds)()


@dataclass(frozen=True)
class Told:
    """What the shim says of a query's filters."""

    core: str
    conjuncts: frozenset[str]
    predicates: dict[str, Predicate]

    def implies(self, stored: Told) -> bool:
        """As the planner finds it: each stored filter is among these, or implied."""
        given = tuple(self.predicates.values())
        return self.core == stored.core and all(
            each in self.conjuncts or (each in stored.predicates and implied(stored.predicates[each], given))
            for each in stored.conjuncts
        )


def told(spark: SparkSession, path: str, condition: str) -> Told:
    runtime = spark._jvm.org.apache.spark.sql.regions.RegionsRuntime.current().get()  # type: ignore[union-attr]
    plan = spark.read.parquet(path).where(condition)._jdf.queryExecution().optimizedPlan()
    signed = runtime.recycling().sign(spark._jsparkSession, plan, False)
    root = signed.nodes().apply(0).signature().toOption().get()
    found = [
        Predicate(
            each.conjunct(), each.column(), each.dataType(),
            tuple(tuple(Comparison(c.operator(), c.literal()) for c in items(branch)) for branch in items(each.any())),
        )
        for each in items(signed.predicates())
    ]  # fmt: skip
    return Told(root.core(), frozenset(items(root.conjuncts())), {each.conjunct: each for each in found})


def items(sequence: Any) -> list[Any]:
    return [sequence.apply(n) for n in range(sequence.size())]


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, dt.datetime):
        return str((value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1))
    if isinstance(value, dt.date):
        return str((value - dt.date(1970, 1, 1)).days)
    return bytes(value).hex() if isinstance(value, (bytes, bytearray)) else str(value)


def lets_pass(predicates: Iterable[Predicate], value: Any) -> bool:
    """Whether all of the filters are true for a value, as the planner reads them."""
    if value is None:
        return False
    for each in predicates:
        text = value.encode().hex() if isinstance(value, str) else literal(value)
        ((at, _),) = ranges(Predicate("v", each.column, each.data_type, ((Comparison("=", text),),)))
        if not any(low <= at < high for low, high in ranges(each)):
            return False
    return True


def test_what_is_told_is_true_where_spark_says_so_and_what_is_implied_lets_no_other_row_pass(
    spark: SparkSession, tmp_path: Path
) -> None:
    off = sibling(spark, OFF | {"spark.sql.session.timeZone": "UTC"})
    path = write(off, tmp_path / "t", 300)
    draw = random.Random(chance.seed_of("containment"))
    conditions = [(column, drawn(draw, column)) for column in POOLS for _ in range(40)]
    said = [told(off, path, condition) for _, condition in conditions]
    frame = off.read.parquet(path)
    rows = frame.selectExpr(*[f"({condition}) AS p{n}" for n, (_, condition) in enumerate(conditions)]).collect()
    values = frame.selectExpr("* EXCEPT (at)", "unix_micros(at) AS at").collect()
    true = [frozenset(n for n, row in enumerate(rows) if row[p]) for p in range(len(conditions))]
    core = Counter(each.core for each in said).most_common(1)[0][0]
    # A filter may also speak of what another one says of the column, as `(d <> 1) IS NOT NULL`.
    spoken: dict[str, Counter[str]] = {column: Counter() for column in POOLS}
    for (column, _), filters in zip(conditions, said, strict=True):
        spoken[column].update(each.column for each in filters.predicates.values())
    own = {column: found.most_common(1)[0][0] for column, found in spoken.items()}
    kinds: Counter[str] = Counter()
    for (column, condition), filters, passed in zip(conditions, said, true, strict=True):
        of_column = all(each.column == own[column] for each in filters.predicates.values())
        if filters.core == core and filters.conjuncts == filters.predicates.keys() and of_column:
            kinds[column] += 1
            expected = {n for n, row in enumerate(values) if lets_pass(filters.predicates.values(), row[column])}
            assert passed == expected, condition
    assert min(kinds.get(column, 0) for column in POOLS) >= 10, "vacuous: few filters are told"
    pairs: Counter[str] = Counter()
    for p, q in permutations(range(len(conditions)), 2):
        if conditions[p][0] == conditions[q][0] and said[p].implies(said[q]):
            pairs[conditions[p][0]] += 1
            assert true[p] <= true[q], (conditions[p], conditions[q])
    assert min(pairs.get(column, 0) for column in POOLS) > 20, "vacuous: few filters imply others"
