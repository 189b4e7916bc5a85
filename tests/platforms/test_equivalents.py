"""Each entry of the table against real Spark, over hostile values: the same values and types, wherever the engine gives
any. What it raises on is left to Spark, so those rows are only counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_regions.platforms import typed
from spark_regions.platforms.duckdb import EQUIVALENTS, TABLE
from spark_regions.platforms.duckdb.text import cast, engine_type
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql, Table, Translation
from spark_regions.platforms.installed import PROVEN
from spark_regions.platforms.typed import Expression, TypedPlan
from tests.harness import chance
from tests.platforms import values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = 1_200
LEAST_KEPT = 20
"""One row of so many, or group, is one that the engine does not raise on."""
SETTINGS = {"spark.regions.platforms": "off", "spark.sql.session.timeZone": "UTC"}
WITH_EXAMPLES = [each for each in EQUIVALENTS if each.examples]


@dataclass(frozen=True)
class Outcome:
    """:param raised: rows or groups on which only the engine raised, or both"""

    kept: int
    raised: int


class Lab:
    """Spark and DuckDB over the same files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.engine = duckdb.connect()
        self.engine.execute("SET TimeZone = 'UTC'")
        self.files: dict[tuple[tuple[str, ...], bool], Path] = {}

    def file(self, types: tuple[str, ...], grouped: bool) -> Path:
        key = (types, grouped)
        if key not in self.files:
            path = self.folder / f"{len(self.files)}.parquet"
            pq.write_table(values.table(types, ROWS, chance.seed_of(f"equivalents {types}"), grouped), path)
            self.files[key] = path
        return self.files[key]

    def plan(self, query: str) -> TypedPlan:
        shim = self.spark.sparkContext._jvm.org.apache.spark.sql.regions.RegionsApi
        return typed.decode(str(shim.typedPlan(self.spark.sql(query)._jdf)))

    @contextmanager
    def ansi(self, value: bool) -> Iterator[None]:
        confs = {**SETTINGS, "spark.sql.ansi.enabled": str(value).lower()}
        before = {key: self.spark.conf.get(key, None) for key in confs}
        for key, text in confs.items():
            self.spark.conf.set(key, text)
        try:
            yield
        finally:
            for key, earlier in before.items():
                if earlier is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, earlier)

    def rows(self, query: str) -> pa.Table | None:
        """Spark's, None where it raises."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            return self.spark.sql(query).toArrow()
        except (PySparkException, Py4JJavaError):
            return None

    def raises(self, sql: str, *parameters: Any) -> bool:
        try:
            self.engine.execute(sql, list(parameters)).fetchall()
        except duckdb.Error:
            return True
        return False


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(spark, tmp_path_factory.mktemp("values"))
    yield made
    made.engine.close()


def check(lab: Lab, entry: Equivalent, example: Example, ansi: bool, table: Table = TABLE) -> Outcome:
    """Both engines give the same values of an example, wherever the engine gives any.

    :raises AssertionError: they differ, or the entry was not used
    """
    path = lab.file(example.types, example.grouped)
    text = example.spark.format(*(f"c{at}" for at in range(len(example.types))))
    key, group = ("g", " GROUP BY g") if example.grouped else ("k", "")
    query = f"SELECT {key} AS k, {text} AS r FROM {{}}{group}"
    with lab.ansi(ansi):
        lab.spark.read.parquet(str(path)).createOrReplaceTempView("hostile")
        plan = lab.plan(query.format("hostile"))
        translation = Translation(columns_of(plan), table)
        found = translation.of(result_of(plan))
        assert entry in translation.used, f"{example.spark} uses {[each.kind for each in translation.used]}"
        source = f"read_parquet('{path}')"
        # A window looks at other rows: none of them can be left out.
        skipped = [] if "OVER" in example.spark else raising(lab, found, source, key, group)
        kept = f"(SELECT * FROM {source} WHERE {key} NOT IN (SELECT unnest({skipped}::INTEGER[])))"
        engine = lab.engine.execute(f"SELECT {key} AS k, {found.text} AS r FROM {kept}{group}").to_arrow_table()
        frame = lab.spark.table("hostile")
        frame.where(~frame[key].isin(skipped)).createOrReplaceTempView("kept")
        ours = lab.rows(query.format("kept"))
        assert ours is not None, f"{example.spark} raises in Spark alone"
        differences = list(compared(ours, engine))
        assert not differences, f"{example.spark}: {len(differences)} of {ours.num_rows} differ: {differences[:5]}"
        assert engine.schema.field("r").type == ours.schema.field("r").type
        assert values.arrow_type(found.type) == ours.schema.field("r").type
        assert found.raises or not skipped or lab.rows(query.format("hostile")) is not None, f"{example.spark} raises"
    assert (ours.num_rows + len(skipped)) <= ours.num_rows * LEAST_KEPT, f"{example.spark}: {len(skipped)} rows raise"
    return Outcome(ours.num_rows, len(skipped))


def raising(lab: Lab, found: Sql, source: str, key: str, group: str) -> list[int]:
    """Rows or groups on which the engine raises, each looked at by itself."""
    if not lab.raises(f"SELECT {found.text} FROM {source}{group}"):
        return []
    # An error is null for TRY, so only nulls are to be looked at. It does not take aggregates.
    tried = f"SELECT k FROM {source} WHERE TRY({found.text}) IS NULL"
    asked = f"SELECT DISTINCT g FROM {source}" if group else tried
    suspects = [each for (each,) in lab.engine.execute(asked).fetchall()]
    alone = f"SELECT {found.text} FROM (SELECT * FROM {source} WHERE {key} = ?){group}"
    return sorted(each for each in suspects if lab.raises(alone, each))


def result_of(plan: TypedPlan) -> Expression:
    """What is called `r`."""
    (found,) = (
        item.children[0]
        for node in plan.nodes
        for item in node.args.expressions
        if item.kind == "Alias" and item.fields.get("name") == "r"
    )
    return found


def columns_of(plan: TypedPlan) -> dict[str, Sql]:
    return {
        each.id: Sql(f'"{each.name}"', each.type) for node in plan.nodes if not node.children for each in node.output
    }


def compared(spark: pa.Table, engine: pa.Table) -> Iterator[tuple[Any, Any, Any]]:
    """Keys with values that differ; -0.0 and 0.0 do, NaN and NaN do not."""
    ours, theirs = (dict(zip(each["k"].to_pylist(), plain(each["r"]), strict=True)) for each in (spark, engine))
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        if repr(value) != repr(theirs[key]):
            yield key, value, theirs[key]


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Python's values; days and microseconds as numbers, since Python has no dates beyond the year 9999."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def name_of(entry: Equivalent) -> str:
    return f"{entry.kind} of {entry.args}"


@pytest.mark.parametrize("entry", WITH_EXAMPLES, ids=name_of)
def test_an_entry_gives_what_spark_gives(lab: Lab, entry: Equivalent) -> None:
    for example in entry.examples:
        for ansi in (True, False) if example.ansi is None else (example.ansi,):
            outcome = check(lab, entry, example, ansi)
            print(f"{example.spark} {example.types} {'ANSI' if ansi else 'legacy'}: {outcome}")


def test_quotients_of_sums_and_counts_are_rounded_as_java_writes_them(lab: Lab) -> None:
    """Counts of powers of two and five have many ties; others are close to one."""
    random = Random(chance.seed_of("quotients"))
    counts = [2**power * 5**more for power in range(12) for more in range(4)]
    sums = [random.randrange(-(10 ** random.randrange(3, 10)), 10**9) for _ in range(100_000)]
    numbers = {
        "k": range(len(sums)),
        "s": sums,
        "n": [random.choice((*counts, random.randrange(1, 2000))) for _ in sums],
    }
    path = lab.folder / "quotients.parquet"
    pq.write_table(pa.table({name: pa.array(each, pa.int64()) for name, each in numbers.items()}), path)
    query = "SELECT k, CAST(CAST(s AS DOUBLE) / CAST(n AS DOUBLE) / 100.0D AS DECIMAL(15,6)) AS r FROM quotients"
    with lab.ansi(True):
        lab.spark.read.parquet(str(path)).createOrReplaceTempView("quotients")
        plan = lab.plan(query)
        found = Translation(columns_of(plan), TABLE).of(result_of(plan))
        # Smaller ones raise.
        big = "WHERE s = 0 OR abs(s) / n > 0.02"
        engine = lab.engine.execute(f"SELECT k, {found.text} AS r FROM read_parquet('{path}') {big}").to_arrow_table()
        assert engine.num_rows > 90_000
        ours = lab.rows(f"{query} {big}")
        assert not list(compared(ours, engine))


def planted(kind: str, text: str) -> Equivalent:
    """An entry that says what looks right."""

    def rule(call: Call) -> Sql:
        call.seen.update(call.expression.fields)
        return call.sql(text.format(*call.texts, to=engine_type(call.type)))

    return Equivalent(kind, "planted", "", "", (), rule)


WRONG = [
    pytest.param("Cast", "CAST({0} AS {to})", Example("CAST({0} AS INT)", ("DOUBLE",)), id="a cast that rounds"),
    pytest.param("StringTrim", "trim({0})", Example("trim({0})", ("STRING",)), id="a trim of all white space"),
    pytest.param("Length", "CAST(strlen({0}) AS INTEGER)", Example("length({0})", ("STRING",)), id="bytes as a length"),
    pytest.param("Remainder", "({0} % {1})", Example("{0} % {1}", ("INT", "INT")), id="null for a remainder by 0"),
    pytest.param("IsNaN", "isnan({0})", Example("isnan({0})", ("DOUBLE",)), id="null for a null"),
    pytest.param("Max", "min({0})", Example("max({0})", ("INT",), grouped=True), id="another aggregate"),
]


@pytest.mark.parametrize(("kind", "text", "example"), WRONG)
def test_a_wrong_entry_is_found(lab: Lab, kind: str, text: str, example: Example) -> None:
    wrong = planted(kind, text)
    with pytest.raises(AssertionError, match=r"differ|raises in Spark alone"):
        check(lab, wrong, example, True, {**TABLE, kind: (wrong,)})


def test_it_runs_on_a_version_that_was_read() -> None:
    assert re.match(r"\d+\.\d+", duckdb.__version__)[0] in PROVEN


def test_the_engine_has_the_types_of_spark(lab: Lab) -> None:
    for data_type in ("BOOLEAN", *values.BITS, "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP_NTZ", "DECIMAL(7,2)"):
        found = lab.engine.execute(f"SELECT {cast('NULL', engine_type(data_type))} AS r").to_arrow_table()
        assert found.schema.field("r").type == values.arrow_type(data_type)
