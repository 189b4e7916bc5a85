"""What generated programs read: columns whose few values are the awkward ones of their type.

Row `id` of a column has the value number `(id * step + shift) % len(values)` of its list, so that a data set is one
line of SQL for each column: in the files that are written for ten thousand programs, and in the script of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

FILES = 5
"""Of each data set; a program starts with the first INITIAL of them, changes bring the others."""
INITIAL = 3
ROWS_PER_FILE = 12


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    values: tuple[str, ...]

    def sql(self, position: int) -> str:
        """The column as an expression over `id`."""
        listed = ", ".join(f"CAST({value} AS {self.type})" for value in self.values)
        step, shift = 2 * position + 1, position
        while gcd(step, len(self.values)) > 1:
            step += 1
        return (
            f"element_at(array({listed}), CAST((id * {step} + {shift}) % {len(self.values)} + 1 AS INT)) AS {self.name}"
        )


KEY = Column("k", "INT", ("1", "2", "3", "2", "1", "NULL", "4"))
INT = Column("i", "INT", ("0", "NULL", "7", "-3", "2147483647", "-2147483648", "42", "3", "7"))
LONG = Column("b", "BIGINT", ("9223372036854775807", "-9223372036854775808", "0", "NULL", "5", "1000000007", "-1"))
DOUBLE = Column("d", "DOUBLE", ("'NaN'", "'-0.0'", "0.0", "NULL", "'Infinity'", "'-Infinity'", "4.9E-324", "0.1"))
TEXT = Column("s", "STRING", ("'a'", "''", "'a '", "'ä𝄞'", "NULL", "'Abc'", "'abc'", "'7'", "' 7'", "'x%_'"))
DAY = Column("day", "DATE", ("'0001-01-01'", "'1582-10-04'", "'1582-10-15'", "NULL", "'2020-02-29'", "'9999-12-31'"))
FLAG = Column("flag", "BOOLEAN", ("true", "false", "NULL"))

SCHEMAS: dict[str, tuple[Column, ...]] = {
    "simple": (KEY, INT, TEXT, FLAG, Column("w", "INT", ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"))),
    "numbers": (
        KEY,
        INT,
        LONG,
        DOUBLE,
        Column("f", "FLOAT", ("'NaN'", "'-0.0'", "0.0", "NULL", "'Infinity'", "1.5", "0.1")),
        Column("t", "SMALLINT", ("32767", "-32768", "NULL", "1", "0")),
        FLAG,
    ),
    "decimals": (
        KEY,
        Column("p", "DECIMAL(38,0)", ("'" + "9" * 38 + "'", "'-" + "9" * 38 + "'", "0", "NULL", "1")),
        Column(
            "q",
            "DECIMAL(38,18)",
            ("'99999999999999999999.999999999999999999'", "'-0.000000000000000001'", "NULL", "2.5"),
        ),
        Column("r", "DECIMAL(9,2)", ("0.00", "-1.10", "1234567.89", "NULL", "-0.01", "9999999.99")),
        TEXT,
    ),
    "times": (
        KEY,
        DAY,
        Column(
            "at",
            "TIMESTAMP",
            (
                "'0001-01-01 00:00:00'",
                "'1582-10-04 23:59:59.999999'",
                "'2020-03-29 02:30:00.123456'",
                "NULL",
                "'9999-12-31 12:00:00'",
                "'1970-01-01 00:00:00'",
            ),
        ),
        Column(
            "local",
            "TIMESTAMP_NTZ",
            ("'0001-01-01 00:00:00'", "'2020-10-25 02:30:00'", "NULL", "'1582-10-10 00:00:00'"),
        ),
        Column(
            "span", "INTERVAL DAY TO SECOND", ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "NULL", "INTERVAL '0' SECOND")
        ),
        Column("months", "INTERVAL YEAR TO MONTH", ("INTERVAL '1-2' YEAR TO MONTH", "NULL", "INTERVAL '-3' MONTH")),
    ),
    "texts": (
        KEY,
        TEXT,
        Column("bin", "BINARY", ("X'00FF'", "X''", "NULL", "X'C3A4'", "X'FFFE00'")),
        Column("lc", "STRING COLLATE UTF8_LCASE", ("'a'", "'A'", "'Abc'", "'aBC'", "NULL", "''", "'b'")),
        Column("ci", "STRING COLLATE UNICODE_CI", ("'a'", "'A'", "'Abc'", "'aBC'", "NULL", "''", "'b'")),
        INT,
    ),
    "nested": (
        KEY,
        Column(
            "st",
            "STRUCT<x: INT, y: STRING>",
            ("named_struct('x', 1, 'y', 'a')", "NULL", "named_struct('x', NULL, 'y', '')"),
        ),
        Column("arr", "ARRAY<INT>", ("array(3, 1, 2)", "array()", "NULL", "array(NULL, 7)", "array(1, 1)")),
        Column("m", "MAP<STRING, INT>", ("map('a', 1, 'b', NULL)", "map()", "NULL", "map('b', 2, 'a', 1)")),
        TEXT,
        INT,
    ),
    "variants": (
        KEY,
        Column(
            "v",
            "VARIANT",
            (
                'parse_json(\'{"a": 1, "b": [1, 2]}\')',
                "parse_json('null')",
                "NULL",
                "parse_json('\"x\"')",
                "parse_json('1.5')",
            ),
        ),
        INT,
        TEXT,
    ),
    "chars": (
        KEY,
        Column("c", "CHAR(6)", ("'ab'", "'ab    '", "NULL", "''", "'abcdef'")),
        Column("vc", "VARCHAR(8)", ("'ab'", "'ab '", "NULL", "''", "'ääää'")),
        INT,
    ),
}

FORMATS: dict[str, tuple[str, ...]] = {
    "simple": ("parquet", "orc", "json", "csv"),
    "numbers": ("parquet", "orc", "json"),
    "decimals": ("parquet", "orc"),
    "texts": ("parquet",),
    "nested": ("parquet", "orc", "json"),
}
"""Where not Parquet alone."""
PARTITIONED = ("simple", "numbers", "nested")
"""What is also read from a directory for each key."""
TABLES_ONLY = ("chars",)
"""What only a table of the catalog can declare."""


def columns(schema: str) -> list[tuple[str, str]]:
    """Names and types, the row's number first."""
    return [("id", "BIGINT"), *((column.name, column.type) for column in SCHEMAS[schema])]


def declared(schema: str) -> str:
    """The columns as DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in columns(schema))


def selected(schema: str) -> list[str]:
    """The data set, as expressions over `id`."""
    return ["id", *(column.sql(position) for position, column in enumerate(SCHEMAS[schema], 1))]


def spread_over_files(kinds: Iterable[str]) -> bool:
    """Whether the rows that are read back of ORC files with such columns depend on which rows share a file: statistics
    know no NaN, so that a filter leaves out rows, and zeros beside each other get the sign of the first.
    """
    return not {"DOUBLE", "FLOAT", "ROUNDED"}.isdisjoint(kinds)
