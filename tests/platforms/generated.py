"""Queries by chance over tables with hostile values: another engine wherever it can be, against plain Spark.

python -m tests.platforms.generated [--queries 10000] [--seed 0] [--seconds S]; ends with 1 where rows, their order
where one is asked for, their schema or the class of an error differ.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.fuzz.lab import PLAIN
from tests.fuzz.templates import LITERALS, TEMPLATES
from tests.harness.session import ENGINE, settle, sibling, spark_session, status
from tests.platforms import values
from tests.tpc.rows import FAILURES, Outcome, difference, error_class, outcome

TYPES = {
    "i": "INT", "l": "BIGINT", "n": "DECIMAL(7,2)", "m": "DECIMAL(15,2)", "s": "STRING", "d": "DATE", "b": "BOOLEAN",
    "x": "DOUBLE", "t": "TIMESTAMP",
}  # fmt: skip
KINDS = {name: data_type.split("(")[0] for name, data_type in TYPES.items()}
HOLE = re.compile(r"\{([A-Z_]+)\}")
MORE = {
    "INT": (
        "month({DATE})", "hour({TIMESTAMP})", "-{INT}", "{INT} * {INT}", "{INT} / 3", "CAST({BIGINT} AS INT)",
        "CAST({DECIMAL} AS INT)",
    ),
    "DATE": ("CAST({TIMESTAMP} AS DATE)",),
    "TIMESTAMP": ("date_trunc('MONTH', {TIMESTAMP})", "date_trunc('HOUR', {TIMESTAMP})", "CAST({DATE} AS TIMESTAMP)"),
    "BIGINT": ("{BIGINT} + {INT}", "{BIGINT} * 2", "abs({BIGINT})", "{BIGINT} % {INT}"),
    "DECIMAL": (
        "{DECIMAL} * {DECIMAL}", "{DECIMAL} + {DECIMAL}", "{DECIMAL} - {DECIMAL}", "{DECIMAL} / 7", "-{DECIMAL}",
        "{DECIMAL} * (1 - {DECIMAL})", "CASE WHEN {BOOLEAN} THEN {DECIMAL} * {DECIMAL} ELSE 0 END",
        "CAST({DECIMAL} AS DECIMAL(9,1))", "{DECIMAL} / {DECIMAL}", "CAST({INT} AS DECIMAL(12,3))",
    ),
    "STRING": ("substr({STRING}, 2)", "CASE WHEN {BOOLEAN} THEN {STRING} END", "CAST({BIGINT} AS STRING)"),
    "BOOLEAN": (
        "{DECIMAL} < {DECIMAL}", "{DATE} >= {DATE}", "{STRING} > 'a'", "{INT} BETWEEN -3 AND {INT}",
        "{INT} / {INT} > 1", "{STRING} LIKE '%b%'", "{DOUBLE} > 1", "{DOUBLE} BETWEEN -1 AND 2", "{DOUBLE} = 0",
        "{DOUBLE} IN (0, 1.5D)", "NOT {DOUBLE} < 0.5D", "coalesce({BOOLEAN}, {INT} > 1)",
    ),
}  # fmt: skip
AGGREGATES = {
    "INT": ("sum({0})", "avg({0})", "min({0})", "max({0})", "count({0})", "count(DISTINCT {0})"),
    "BIGINT": ("sum({0})", "avg({0})", "min({0})", "max({0})", "count({0})"),
    "DECIMAL": ("sum({0})", "avg({0})", "min({0})", "max({0})", "sum({0}) FILTER (WHERE {0} > 0)"),
    "STRING": ("min({0})", "max({0})", "count(DISTINCT {0})"),
    "DATE": ("min({0})", "max({0})", "count({0})"),
    "TIMESTAMP": ("max({0})",),
    "BOOLEAN": ("count({0})", "max({0})"),
    "DOUBLE": ("max({0})", "count({0})"),
}
PLAIN_AGAIN = 8
KEYS = ("INT", "BIGINT", "STRING", "DATE", "DECIMAL", "BOOLEAN")


@dataclass(frozen=True)
class Frame:
    """:param columns: kinds by name"""

    sql: str
    columns: dict[str, str]


@dataclass
class Totals:
    queries: int = 0
    routed: int = 0
    failed: int = 0
    fallbacks: int = 0
    rows: int = 0
    differing: list[tuple[str, str]] = field(default_factory=list)


class Generator:
    """A query from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._names = 0

    def query(self) -> str:
        frame = self._frame(self._random.choice((0, 1, 1, 2)))
        names = list(frame.columns)
        if self._chance(0.3):
            listed = self._random.sample(names, len(names))
            order = ", ".join(f"{name} {self._random.choice(('', 'DESC', 'ASC NULLS LAST'))}" for name in listed)
            limit = f" LIMIT {self._random.choice((0, 1, 5, 20))}" if self._chance(0.6) else ""
            return f"SELECT * FROM ({frame.sql}) ORDER BY {order}{limit}"
        return frame.sql

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _name(self) -> str:
        self._names += 1
        return f"c{self._names}"

    def _frame(self, depth: int) -> Frame:
        makers = [self._projected, self._projected, self._grouped, self._grouped, self._joined, self._joined]
        makers += [self._union, self._windowed, self._semi, self._grouped]
        return self._random.choice(makers)(depth)

    def _source(self, depth: int) -> Frame:
        if depth > 0:
            return self._frame(depth - 1)
        table = self._random.choice(("hostile", "mild", "mild", "other"))
        kept = self._random.sample(list(TYPES), self._random.randrange(3, len(TYPES) + 1))
        names = {self._name(): each for each in kept}
        listed = ", ".join(f"{each} AS {name}" for name, each in names.items())
        return Frame(f"SELECT {listed} FROM {table}", {name: KINDS[each] for name, each in names.items()})

    def _atom(self, columns: dict[str, str], kind: str) -> str:
        known = [name for name, each in columns.items() if each == kind]
        return self._random.choice(known if known and self._chance(0.9) else LITERALS[kind])

    def _value(self, columns: dict[str, str], kind: str, depth: int = 1) -> str:
        known = [
            text
            for text in (*TEMPLATES.get(kind, ()), *MORE.get(kind, ()))
            if {*HOLE.findall(text)} and {*HOLE.findall(text)} <= {*columns.values(), "BOOLEAN"}
        ]
        if not known or self._chance(0.3):
            return self._atom(columns, kind)

        def part(hole: re.Match[str]) -> str:
            deeper = depth > 0 and self._chance(0.3)
            return f"({self._value(columns, hole[1], depth - 1)})" if deeper else self._atom(columns, hole[1])

        return HOLE.sub(part, self._random.choice(known))

    def _where(self, columns: dict[str, str]) -> str:
        if self._chance(0.5):
            return ""
        return " WHERE " + " AND ".join(self._value(columns, "BOOLEAN") for _ in range(self._random.randrange(1, 3)))

    def _projected(self, depth: int) -> Frame:
        below = self._source(depth)
        made = {self._name(): self._random.choice(list(below.columns.values())) for _ in range(3)}
        listed = ", ".join(f"{self._value(below.columns, kind)} AS {name}" for name, kind in made.items())
        distinct = "DISTINCT " if self._chance(0.2) and "DOUBLE" not in made.values() else ""
        return Frame(f"SELECT {distinct}{listed} FROM ({below.sql}){self._where(below.columns)}", made)

    def _grouped(self, depth: int) -> Frame:
        below = self._source(depth)
        keys = [name for name, kind in below.columns.items() if kind in KEYS]
        keys = self._random.sample(keys, min(len(keys), self._random.choice((0, 1, 1, 2))))
        made = {name: below.columns[name] for name in keys}
        listed = list(keys)
        for _ in range(self._random.randrange(1, 4)):
            kind = self._random.choice(list(below.columns.values()))
            function = self._random.choice(AGGREGATES[kind])
            value = f"({self._value(below.columns, kind)})"
            name = self._name()
            made[name] = {"count": "BIGINT", "sum": kind, "avg": "DOUBLE"}.get(function.split("(")[0], kind)
            if made[name] == "INT" and function.startswith("sum"):
                made[name] = "BIGINT"
            if function.startswith("avg") and kind == "DECIMAL":
                made[name] = "DECIMAL"
            listed.append(f"{function.format(value)} AS {name}")
        group = ""
        if keys:
            group = f" GROUP BY {', '.join(keys)}"
            if len(keys) > 1 and self._chance(0.2):
                group = f" GROUP BY ROLLUP ({', '.join(keys)})"
        having = " HAVING count(*) > 1" if keys and self._chance(0.2) else ""
        return Frame(f"SELECT {', '.join(listed)} FROM ({below.sql}){self._where(below.columns)}{group}{having}", made)

    def _pair(self, left: Frame, right: Frame) -> str | None:
        pairs = [
            f"l.{one} = r.{other}"
            for one, kind in left.columns.items()
            for other, its in right.columns.items()
            if kind == its and kind in KEYS and kind != "BOOLEAN"
        ]
        return " AND ".join(self._random.sample(pairs, min(len(pairs), self._random.choice((1, 1, 2))))) or None

    def _joined(self, depth: int) -> Frame:
        left, right = self._source(depth), self._source(0)
        on = self._pair(left, right)
        if on is None:
            return left
        kind = self._random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        both = left.columns | right.columns
        more = f" AND {self._value(both, 'BOOLEAN')}" if self._chance(0.3) else ""
        return Frame(f"SELECT * FROM ({left.sql}) l {kind} ({right.sql}) r ON {on}{more}", both)

    def _semi(self, depth: int) -> Frame:
        left, right = self._source(depth), self._source(0)
        pairs = [
            (one, other)
            for one, kind in left.columns.items()
            for other, its in right.columns.items()
            if kind == its and kind in KEYS
        ]
        if not pairs:
            return left
        one, other = self._random.choice(pairs)
        condition = self._random.choice(
            (
                f"{one} IN (SELECT {other} FROM ({right.sql}))",
                f"{one} NOT IN (SELECT {other} FROM ({right.sql}){self._where(right.columns)})",
                f"EXISTS (SELECT 1 FROM ({right.sql}) r WHERE r.{other} = l.{one})",
                f"NOT EXISTS (SELECT 1 FROM ({right.sql}) r WHERE r.{other} = l.{one})",
                f"{one} > (SELECT max({other}) FROM ({right.sql}))",
                f"{one} = (SELECT {other} FROM ({right.sql}) WHERE {other} IS NOT NULL LIMIT 1)",
                f"{one} <= (SELECT {other} FROM ({right.sql}){self._where(right.columns)} GROUP BY {other})",
            )
        )
        return Frame(f"SELECT * FROM ({left.sql}) l WHERE {condition}", left.columns)

    def _union(self, depth: int) -> Frame:
        left, right = self._source(depth), self._source(0)
        made = {self._name(): kind for kind in left.columns.values()}
        first = ", ".join(f"{one} AS {name}" for one, name in zip(left.columns, made, strict=True))
        second = ", ".join(self._value(right.columns, kind) for kind in made.values())
        word = "UNION" if self._chance(0.3) and "DOUBLE" not in made.values() else "UNION ALL"
        return Frame(f"SELECT {first} FROM ({left.sql}) {word} SELECT {second} FROM ({right.sql})", made)

    def _windowed(self, depth: int) -> Frame:
        below = self._source(depth)
        keys = [name for name, kind in below.columns.items() if kind in KEYS]
        if not keys:
            return below
        value = self._random.choice(list(below.columns))
        by = self._random.choice(keys)
        order = ", ".join(self._random.sample(keys, len(keys)))
        name = self._name()
        function, kind = self._random.choice(
            (
                ("count(*)", "BIGINT"),
                (f"max({value})", below.columns[value]),
                ("rank()", "INT"),
                ("dense_rank()", "INT"),
            )
        )
        over = (
            f"PARTITION BY {by} ORDER BY {order}" if "rank" in function or self._chance(0.5) else f"PARTITION BY {by}"
        )
        return Frame(f"SELECT *, {function} OVER ({over}) AS {name} FROM ({below.sql})", below.columns | {name: kind})


def write_tables(folder: Path, seed: int) -> None:
    """`hostile` is of edges and random values; the others are of few small ones, which join and do not overflow."""
    random = Random(seed)
    hostile = values.rows(tuple(TYPES.values()), 60, seed)
    few = {name: [values.small(each, random) for _ in range(6)] for name, each in TYPES.items()}

    def mild(count: int) -> list[tuple[object, ...]]:
        return [
            tuple(None if random.random() < 0.1 else random.choice(few[name]) for name in TYPES) for _ in range(count)
        ]

    for name, rows in {"hostile": hostile, "mild": mild(80), "other": mild(15)}.items():
        columns = {
            each: pa.array([row[at] for row in rows], values.arrow_type(data_type))
            for at, (each, data_type) in enumerate(TYPES.items())
        }
        (folder / name).mkdir()
        # Of several groups, whose statistics do not tell of NaN: Spark skips some.
        pq.write_table(pa.table(columns), folder / name / "part.parquet", row_group_size=20)


class Pair:
    """A plain session, and one with another engine, in one application."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, ansi: bool) -> None:
        write_tables(folder, seed)
        more = {"spark.sql.ansi.enabled": str(ansi).lower()}
        self.plain, self.routed = (sibling(spark, confs | more) for confs in (PLAIN, ENGINE))
        # One table as Spark itself writes it, with timestamps as INT96.
        writer = sibling(spark, PLAIN | {"spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED"})
        frame = writer.read.parquet(str(folder / "mild")).coalesce(1)
        frame.write.parquet(str(folder / "written"))
        (folder / "mild").rename(folder / "mild by pyarrow")
        (folder / "written").rename(folder / "mild")
        for session in (self.plain, self.routed):
            for name in ("hostile", "mild", "other"):
                session.read.parquet(str(folder / name)).createOrReplaceTempView(name)

    def compare(self, text: str, totals: Totals) -> None:
        expected, found = outcome_of(self.plain, text), outcome_of(self.routed, text)
        totals.queries += 1
        totals.failed += expected.error is not None
        totals.rows += len(expected.rows)
        reason = difference(expected, found)
        if reason and not self._plain_may(found, text):
            totals.differing.append((reason, text))

    def _plain_may(self, found: Outcome, text: str) -> bool:
        """What plain Spark itself leaves open is no difference: whether a part that raises ran before another one that
        makes adaptive execution do away with it."""
        return any(difference(outcome_of(self.plain, text), found) is None for _ in range(PLAIN_AGAIN))


def outcome_of(session: SparkSession, text: str) -> Outcome:
    try:
        return outcome(session.sql(text))
    except FAILURES as error:
        return Outcome((), (), error_class(error), None)
    except (ValueError, OverflowError) as error:  # a date that Python does not have
        return Outcome((), (), type(error).__name__, None)


def compared(spark: SparkSession, folder: Path, seeds: Iterator[int], until: float) -> Totals:
    """As many as there are seeds, or time; other tables and another mode every hundred."""
    totals, pair = Totals(), None
    before = Counter(counted(spark))
    for number, seed in enumerate(seeds):
        if time.monotonic() > until:
            break
        if pair is None or number % 100 == 0:
            place = folder / str(number)
            place.mkdir()
            pair = Pair(spark, place, seed, ansi=number % 200 < 100)
        pair.compare(Generator(seed).query(), totals)
    done = Counter(counted(spark)) - before
    totals.routed, totals.fallbacks = done["routes"], done["fallbacks"]
    return totals


def counted(spark: SparkSession) -> dict[str, int]:
    settle(spark)
    known = status(spark)
    return {name: int(known[f"counter.{name}"]) for name in ("routes", "fallbacks")}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.platforms.generated", description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, spark_session(Path(name) / "store", {}) as spark:
        # Errors are a part of the queries.
        spark.sparkContext.setLogLevel("OFF")
        logging.getLogger("SQLQueryContextLogger").disabled = True
        began = time.monotonic()
        seeds = iter(range(options.seed, options.seed + options.queries))
        totals = compared(spark, Path(name), seeds, began + options.seconds)
    for reason, text in totals.differing:
        print(f"DIFFERS: {reason}\n{text}\n")
    print(
        f"{totals.queries} queries in {time.monotonic() - began:.0f} s: {totals.routed} parts on another engine,"
        f" {totals.fallbacks} given back, {totals.failed} that raise, {totals.rows} rows;"
        f" {len(totals.differing)} differ"
    )
    return int(bool(totals.differing))


if __name__ == "__main__":
    sys.exit(main())
