"""What a statement reads by a name: the files of a relation with the columns that Spark sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from spark_regions.platforms.duckdb.footers import Failed, Present, engine_type, quoted
from spark_regions.platforms.typed import FLOATING, decimal_of
from spark_regions.wire.engine import EngineColumn, EngineTable

MOST_BRANCHES = 2_000
"""Each is planned for itself, which takes 0.15 ms, and 0.1 ms more where it is read."""
OPTIONS = "hive_partitioning = false, union_by_name = false"
"""Partition values are told, and equal columns are checked."""
_NO_COLUMN = 'true AS "any"'
"""For a statement that only counts rows."""
_WORDS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+""")


def with_tables(sql: str, tables: Mapping[str, str]) -> str:
    """The statement with the SELECT of each table in its place. As common table expressions they would be read as a
    whole, and filters not be pushed into them, where the statement has DuckDB inline none (`cte_inlining`).

    >>> with_tables("SELECT 't1' FROM t1, t10", {"t1": "SELECT 1 AS a"})
    "SELECT 't1' FROM (SELECT 1 AS a), t10"
    """

    def placed(word: re.Match[str]) -> str:
        found = tables.get(word[0])
        return word[0] if found is None else f"({found})"

    return _WORDS.sub(placed, sql)


def source(table: EngineTable, present: Iterable[frozenset[Present]]) -> str:
    """A SELECT of the table's columns, with a branch for the files that have the same columns and partition values.

    Partition values are those that Spark listed, whatever a path says; the engine prunes branches by them.

    :param present: of each file, the asked columns that are in it
    """
    branches: dict[tuple[frozenset[Present], tuple[str | None, ...]], list[str]] = {}
    for file, stored in zip(table.files, present, strict=True):
        if len(file.values) != len(table.partition):
            raise Failed("FILE_SCHEMA", f"{len(file.values)} partition values, {len(table.partition)} expected")
        branches.setdefault((stored, file.values), []).append(file.path)
    if len(branches) > MOST_BRANCHES:
        raise Failed("FILE_SCHEMA", f"{len(branches)} partitions, at most {MOST_BRANCHES} expected")
    if not branches:
        return _select(table, frozenset(), (None,) * len(table.partition)) + " WHERE false"
    return " UNION ALL ".join(
        f"{_select(table, stored, values)} FROM read_parquet([{_list(paths)}], {OPTIONS})"
        for (stored, values), paths in branches.items()
    )


def _select(table: EngineTable, present: frozenset[Present], values: Sequence[str | None]) -> str:
    """Columns that are not present are null."""
    int96 = dict(present)
    found = [
        _stored(each, int96[each.name]) if each.name in int96 else literal(None, each.data_type)
        for each in table.columns
    ]
    found += [literal(value, each.data_type) for each, value in zip(table.partition, values, strict=True)]
    names = [identifier(each.name) for each in (*table.columns, *table.partition)]
    columns = ", ".join(f"{value} AS {name}" for value, name in zip(found, names, strict=True))
    return f"SELECT {columns or _NO_COLUMN}"


def _stored(column: EngineColumn, int96: bool) -> str:
    """Floating point numbers by an expression that leaves each as it is: the engine believes their minima and maxima.

    It skips rows by them, and takes them for `min` and `max`. Of NaN and of the sign of zero they do not tell, and with
    `can_have_nan` every maximum is NaN.
    """
    name = identifier(column.name)
    if int96:
        return f"make_timestamptz(epoch_us({name}))"
    return f"{name} * CAST(1 AS {column.data_type})" if column.data_type in FLOATING else name


def _list(paths: Sequence[str]) -> str:
    return ", ".join(map(quoted, paths))


def literal(value: str | None, spark_type: str) -> str:
    """A partition's value in the engine's SQL.

    >>> literal("5", "INT"), literal("19000", "DATE"), literal(None, "STRING")
    ('CAST(5 AS INTEGER)', 'make_date(19000)', 'CAST(NULL AS VARCHAR)')
    """
    name = engine_type(spark_type)
    if value is None:
        return f"CAST(NULL AS {name})"
    digits = decimal_of(spark_type)
    if spark_type == "STRING":
        return f"CAST({quoted(value)} AS {name})"
    if spark_type == "BOOLEAN" and value in ("true", "false"):
        return value
    if spark_type in ("TINYINT", "SMALLINT", "INT", "BIGINT") and re.fullmatch("-?[0-9]+", value):
        return f"CAST({value} AS {name})"
    if spark_type == "DATE" and re.fullmatch("-?[0-9]+", value):
        return f"make_date({value})"
    if digits and re.fullmatch(rf"-?[0-9]+(\.[0-9]{{0,{digits[1]}}})?", value):
        return f"CAST('{value}' AS {name})"
    raise Failed("FILE_SCHEMA", f"partition value {value!r} of type {spark_type}")


def identifier(name: str) -> str:
    """
    >>> identifier('a"b')
    '"a""b"'
    """
    if "\0" in name or not name:
        raise Failed("FILE_SCHEMA", f"name {name!r}")
    return '"' + name.replace('"', '""') + '"'
