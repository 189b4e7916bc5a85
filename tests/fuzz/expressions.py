"""Typed SQL expressions over the columns of a frame, as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.templates import LITERALS, TEMPLATES

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
    return filled(draw, columns, draw(st.sampled_from(templates)))


def predicate(draw: Draw, columns: list[Column]) -> str:
    templates = applicable(columns, "BOOLEAN")
    if not templates:
        return f"({draw(st.sampled_from(columns)).name} IS NOT NULL)"
    chosen = draw(st.lists(st.sampled_from(templates), min_size=1, max_size=2))
    return " AND ".join(f"({filled(draw, columns, template)})" for template in chosen)


ROUNDED = "ROUNDED"
"""Kind of what is added up of doubles. It is shown and counted, but nothing is computed from it."""
ROUNDED_PREFIX = "r"
ORDERABLE = frozenset(LITERALS) - {"MAP", "VARIANT", ROUNDED}
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
