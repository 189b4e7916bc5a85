"""Typed SQL expressions over the columns of a frame, as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Draw = Any


@dataclass(frozen=True)
class Column:
    name: str
    kind: str


def kind_of(declared: str) -> str:
    """A declared type as what matters for expressions: `INT`, `STRING`, `LCASE`, …"""
    head = declared.split("<")[0].split("(")[0].strip()
    special = {
        "SMALLINT": "INT",
        "CHAR": "STRING",
        "VARCHAR": "STRING",
        "STRING COLLATE UTF8_LCASE": "LCASE",
        "STRING COLLATE UNICODE_CI": "CI",
        "INTERVAL DAY TO SECOND": "SPAN",
        "INTERVAL YEAR TO MONTH": "MONTHS",
    }
    return special.get(head, head)


LITERALS: dict[str, tuple[str, ...]] = {
    "INT": ("0", "1", "3", "7", "-3"),
    "BIGINT": ("0L", "5L", "-1L", "24L"),
    "DOUBLE": ("0.0D", "double('-0.0')", "double('NaN')", "1.5D"),
    "FLOAT": ("float('NaN')", "float('0.0')"),
    "DECIMAL": ("0.00BD", "2.5BD", "-1.10BD"),
    "STRING": ("'a'", "'abc'", "''", "'a '", "'ä'"),
    "LCASE": ("'ABC' COLLATE UTF8_LCASE", "'a' COLLATE UTF8_LCASE"),
    "CI": ("'ABC' COLLATE UNICODE_CI", "'A' COLLATE UNICODE_CI"),
    "DATE": ("DATE'1582-10-10'", "DATE'2020-02-29'"),
    "TIMESTAMP": ("TIMESTAMP'2020-03-29 02:30:00'", "TIMESTAMP'1582-10-05 00:00:00'"),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ'2020-03-29 02:30:00'",),
    "BOOLEAN": ("true", "false"),
    "BINARY": ("X'00FF'", "X''"),
    "SPAN": ("INTERVAL '1' DAY",),
    "MONTHS": ("INTERVAL '1' MONTH",),
    "ARRAY": ("array(1, 2)",),
    "STRUCT": ("named_struct('x', 1, 'y', 'a')",),
    "MAP": ("map('a', 1)",),
    "VARIANT": ("parse_json('2')",),
}

# {KIND} is a column of that kind or a literal. What is last in a list is rare, and may fail under ANSI.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "INT": (
        "coalesce({INT}, 0)",
        "pmod({INT}, 5)",
        "try_add({INT}, {INT})",
        "nullif({INT}, 3)",
        "length({STRING})",
        "CASE WHEN {BOOLEAN} THEN {INT} ELSE {INT} END",
        "year({DATE})",
        "size({ARRAY})",
        "{STRUCT}.x",
        "try_element_at({MAP}, 'a')",
        "aggregate({ARRAY}, 0, (total, x) -> coalesce(try_add(total, x), 0))",
        "try_cast({STRING} AS INT)",
        "try_variant_get({VARIANT}, '$.a', 'INT')",
        "hour({TIMESTAMP})",
        "datediff({DATE}, {DATE})",
        "greatest({INT}, {INT})",
        "if({LCASE} = 'abc', 1, 0)",
        "if({CI} = 'ABC', 1, 0)",
        "octet_length({BINARY})",
        "{INT} + 1",
    ),
    "BIGINT": (
        "coalesce({BIGINT}, 0)",
        "try_multiply({BIGINT}, 2L)",
        "{BIGINT} % 10",
        "xxhash64({STRING}, {INT})",
        "CAST({INT} AS BIGINT)",
        "{BIGINT} - 1",
    ),
    "DOUBLE": ("{DOUBLE} + 0.0D", "{DOUBLE} / 3.0D", "nanvl({DOUBLE}, 0.0D)", "-{DOUBLE}", "CAST({FLOAT} AS DOUBLE)", "abs({DOUBLE})"),
    "DECIMAL": ("round({DECIMAL}, 1)", "coalesce({DECIMAL}, 0.5BD)", "try_add({DECIMAL}, 1.0BD)", "try_multiply({DECIMAL}, 2.00BD)", "{DECIMAL} * 3.0BD"),
    "STRING": (
        "upper({STRING})",
        "concat({STRING}, '-', {STRING})",
        "coalesce({STRING}, 'none')",
        "rpad({STRING}, 4, ' ')",
        "trim({STRING})",
        "substring({STRING}, 1, 2)",
        "CAST({INT} AS STRING)",
        "CAST({DECIMAL} AS STRING)",
        "CAST({DOUBLE} AS STRING)",
        "CAST({TIMESTAMP} AS STRING)",
        "CAST({TIMESTAMP_NTZ} AS STRING)",
        "CAST({SPAN} AS STRING)",
        "CAST({MONTHS} AS STRING)",
        "date_format({TIMESTAMP}, 'yyyy-MM-dd HH')",
        "to_json({STRUCT})",
        "to_json({VARIANT})",
        "{STRUCT}.y",
        "hex({BINARY})",
        "lower({LCASE}) COLLATE UTF8_BINARY",
        "array_join(transform({ARRAY}, x -> x % 3), ',', '?')",
        "regexp_replace({STRING}, '[a-c]', '#')",
    ),
    "DATE": ("date_add({DATE}, 1)", "coalesce({DATE}, DATE'2000-01-01')", "trunc({DATE}, 'MM')", "CAST({TIMESTAMP} AS DATE)", "last_day({DATE})"),
    "TIMESTAMP": ("date_trunc('HOUR', {TIMESTAMP})", "coalesce({TIMESTAMP}, TIMESTAMP'2000-01-01 00:00:00')", "CAST({DATE} AS TIMESTAMP)", "{TIMESTAMP} + {SPAN}"),
    "TIMESTAMP_NTZ": ("CAST({TIMESTAMP} AS TIMESTAMP_NTZ)", "date_trunc('DAY', {TIMESTAMP_NTZ})"),
    "ARRAY": ("transform({ARRAY}, x -> try_add(x, 1))", "filter({ARRAY}, x -> x > 1)", "array({INT}, {INT})", "sort_array({ARRAY})", "array_distinct({ARRAY})", "sequence(1, pmod(coalesce({INT}, 0), 3) + 1)"),
    "STRUCT": ("named_struct('x', {INT}, 'y', {STRING})",),
    "MAP": ("map_filter({MAP}, (key, value) -> value > 1)", "map('a', {INT})", "transform_values({MAP}, (key, value) -> coalesce(value, 0))"),
    "BINARY": ("CAST({STRING} AS BINARY)",),
    "LCASE": ("{STRING} COLLATE UTF8_LCASE",),
    "SPAN": ("coalesce({SPAN}, INTERVAL '1' HOUR)",),
    "MONTHS": ("coalesce({MONTHS}, INTERVAL '2' MONTH)",),
    "VARIANT": ("variant_get({VARIANT}, '$')",),
    "BOOLEAN": (
        "{INT} > 3",
        "{INT} <= 2",
        "{INT} IN (1, 2, 3)",
        "{INT} IS NOT NULL",
        "{STRING} = 'a'",
        "{STRING} LIKE 'a%'",
        "{STRING} IN ('a ', 'abc', 'ä𝄞')",
        "{BIGINT} < 24L",
        "{BIGINT} % 2 = 0",
        "{DOUBLE} >= 0.0D",
        "{DOUBLE} = double('NaN')",
        "{FLOAT} < float('1.0')",
        "{DECIMAL} > 0",
        "{DATE} < DATE'1582-10-15'",
        "{TIMESTAMP} >= TIMESTAMP'2020-01-01 00:00:00'",
        "{TIMESTAMP_NTZ} IS NULL",
        "{LCASE} = 'ABC'",
        "{CI} = 'a'",
        "exists({ARRAY}, x -> x > 1)",
        "{MAP} IS NOT NULL",
        "{STRUCT}.x IS NOT NULL",
        "is_variant_null({VARIANT})",
        "{SPAN} > INTERVAL '1' HOUR",
        "{BINARY} = X'00FF'",
        "{INT} <=> {INT}",
        "NOT {BOOLEAN}",
        "{BOOLEAN} AND {INT} > 0",
        "{BOOLEAN} OR {INT} < 5",
        "CAST({STRING} AS INT) > 0",
    ),
}  # fmt: skip

_HOLE = re.compile(r"\{([A-Z_]+)\}")


def of_kind(columns: list[Column], kind: str) -> list[str]:
    return [column.name for column in columns if column.kind == kind]


def atom(draw: Draw, columns: list[Column], kind: str) -> str:
    """A column of the kind, or else a literal."""
    names = of_kind(columns, kind)
    if names:
        return str(draw(st.sampled_from(names)))
    return str(draw(st.sampled_from(LITERALS[kind])))


def applicable(columns: list[Column], kind: str) -> list[str]:
    """Templates that read a column, so that what they give is no constant; a condition needs a true column, too."""
    kinds = {column.kind for column in columns}
    known = [(text, set(_HOLE.findall(text))) for text in TEMPLATES.get(kind, ())]
    return [text for text, holes in known if holes & kinds and ("BOOLEAN" not in holes or "BOOLEAN" in kinds)]


def filled(draw: Draw, columns: list[Column], template: str) -> str:
    return _HOLE.sub(lambda hole: atom(draw, columns, hole[1]), template)


def value(draw: Draw, columns: list[Column], kind: str) -> str:
    """An expression of the kind; deeper than one template through columns that earlier steps computed."""
    templates = applicable(columns, kind)
    if not templates or draw(st.integers(0, 4)) == 0:
        return atom(draw, columns, kind)
    text = filled(draw, columns, draw(st.sampled_from(templates)))
    return text


def predicate(draw: Draw, columns: list[Column]) -> str:
    templates = applicable(columns, "BOOLEAN")
    chosen = draw(st.lists(st.sampled_from(templates), min_size=1, max_size=2))
    return " AND ".join(f"({filled(draw, columns, template)})" for template in chosen)


ORDERABLE = frozenset(LITERALS) - {"MAP", "VARIANT"}
EXACT = ORDERABLE - {"DOUBLE", "FLOAT", "LCASE", "CI"}
"""Kinds whose values are the same where they are equal: -0.0 equals 0.0, and 'a' equals 'A' under some collations."""


def exact(column: Column) -> str:
    """The column, or of values that are equal and not the same: what tells them apart no more."""
    match column.kind:
        case "DOUBLE" | "FLOAT":
            return f"{column.name} + 0"
        case "LCASE" | "CI":
            return f"lower({column.name}) COLLATE UTF8_BINARY"
    return column.name


def total_order(columns: list[Column]) -> str | None:
    """Sort keys under which only rows tie that are the same; None where there are none."""
    keys = []
    for column in columns:
        if column.kind not in ORDERABLE:
            return None
        keys.append(column.name)
        if column.kind in ("DOUBLE", "FLOAT"):
            keys.append(f"CAST({column.name} AS STRING)")
        elif column.kind in ("LCASE", "CI"):
            keys.append(f"{column.name} COLLATE UTF8_BINARY")
    return ", ".join(keys)


def shown(column: Column) -> str:
    """The column as Python can hold it: without loss, and over all of its range."""
    match column.kind:
        case "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ" | "MONTHS" | "SPAN":
            return f"CAST({column.name} AS STRING) AS {column.name}"
        case "VARIANT":
            return f"to_json({column.name}) AS {column.name}"
    return column.name
