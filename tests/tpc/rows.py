"""Exact comparison of two results of one query: multiset of rows, types, and order where the query asks for one."""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

Key = tuple[Hashable, ...]
FAILURES = (PySparkException, Py4JJavaError)
ROUNDING = 1e-12
"""Of a value: how far sums of doubles in two orders may be apart."""


@dataclass(frozen=True)
class Sorting:
    """A query's outermost ORDER BY.

    :param columns: positions of the output columns that are sort keys
    :param cut: a LIMIT follows
    """

    columns: tuple[int, ...]
    cut: bool


@dataclass(frozen=True)
class Outcome:
    """What a query came to: rows, or an error class."""

    schema: tuple[tuple[str, str], ...]
    rows: tuple[Key, ...]
    error: str | None
    sorting: Sorting | None


def canonical(value: Any) -> Hashable:
    """A value as something that is equal exactly when Spark's values are: NaN is itself, -0.0 is not 0.0.

    >>> canonical(float("nan")) == canonical(float("nan"))
    True
    >>> canonical(0.0) == canonical(-0.0)
    False
    """
    match value:
        case float():
            return "NaN" if value != value else struct.pack(">d", value)
        case Decimal():
            return "decimal", str(value)
        case bool() | date() | datetime() | timedelta():
            return type(value).__name__, value
        case bytearray() | bytes():
            return bytes(value)
        case dict():
            return "map", tuple(sorted(((canonical(key), canonical(item)) for key, item in value.items()), key=repr))
        case list() | tuple():
            return tuple(canonical(item) for item in value)
    return str(value) if not isinstance(value, (int, str, type(None))) else value


def outcome(frame: DataFrame) -> Outcome:
    """Run a query to its end."""
    try:
        rows = tuple(tuple(canonical(value) for value in row) for row in frame.collect())
        schema = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    except FAILURES as error:
        return Outcome((), (), error_class(error), None)
    return Outcome(schema, rows, None, sorting(frame))


def sorting(frame: DataFrame) -> Sorting | None:
    """The outermost ORDER BY, found by walking down the analyzed plan through LIMIT and projections."""
    plan = frame._jdf.queryExecution().analyzed()
    positions = {attribute: position for position, attribute in enumerate(_expression_ids(plan.output()))}
    cut = False
    while plan.nodeName() in ("GlobalLimit", "LocalLimit", "Project", "Offset"):
        cut = cut or plan.nodeName() in ("GlobalLimit", "LocalLimit", "Offset")
        plan = plan.children().head()
    if plan.nodeName() != "Sort":
        return None
    keys = []
    for position in range(plan.order().size()):
        expression = plan.order().apply(position).child()
        if expression.nodeName() != "AttributeReference" or expression.exprId().id() not in positions:
            break  # a hidden key: later ones say nothing about the order of visible rows
        keys.append(positions[expression.exprId().id()])
    return Sorting(tuple(keys), cut)


def difference(expected: Outcome, found: Outcome, rounded: Collection[str] = ()) -> str | None:
    """Why two outcomes are not the same, or None. Rows that tie may change places, also over a LIMIT's edge.

    :param rounded: columns of doubles whose last digits depend on the order in which they were added up
    """
    if expected.error != found.error:
        return f"error {found.error}, expected {expected.error}"
    if expected.schema != found.schema:
        return f"schema {found.schema}, expected {expected.schema}"
    if len(expected.rows) != len(found.rows):
        return f"{len(found.rows)} rows, expected {len(expected.rows)}"
    if rounded and expected.schema:
        found = _with_digits_of(expected, found, rounded)
    if expected.sorting is None:
        return _multiset_difference(expected.rows, found.rows)
    columns = expected.sorting.columns
    ties = [list(_ties(side.rows, columns)) for side in (expected, found)]
    if [(key, len(rows)) for key, rows in ties[0]] != [(key, len(rows)) for key, rows in ties[1]]:
        return "other order: " + (_multiset_difference(expected.rows, found.rows) or "the same rows")
    last = len(ties[0]) - 1 if expected.sorting.cut else len(ties[0])
    for (_, left), (_, right) in zip(ties[0][:last], ties[1][:last], strict=True):
        if reason := _multiset_difference(left, right):
            return reason
    return None


def _with_digits_of(expected: Outcome, found: Outcome, rounded: Collection[str]) -> Outcome:
    """What was found, with the expected value wherever that is as good as the same."""
    inexact = [position for position, (name, _) in enumerate(expected.schema) if name in rounded]

    def ranked(rows: Sequence[Key]) -> list[int]:
        def rank(at: int) -> tuple[Any, ...]:
            exact = [value for position, value in enumerate(rows[at]) if position not in inexact]
            return repr(exact), [_number(rows[at][position]) for position in inexact]

        return sorted(range(len(rows)), key=rank)

    rows = list(found.rows)
    for one, other in zip(ranked(expected.rows), ranked(found.rows), strict=True):
        row = list(rows[other])
        for position in inexact:
            if _close(expected.rows[one][position], row[position]):
                row[position] = expected.rows[one][position]
        rows[other] = tuple(row)
    return replace(found, rows=tuple(rows))


def _number(value: Hashable) -> tuple[int, float]:
    """For sorting: nulls and NaN before the numbers."""
    return (1, struct.unpack(">d", value)[0]) if isinstance(value, bytes) else (0, float(value is None))


def _close(one: Hashable, other: Hashable) -> bool:
    """Whether two doubles differ by less than what another order of a sum may change.

    >>> _close(canonical(1.0), canonical(1.0 + 1e-13)), _close(canonical(1.0), canonical(1.0 + 1e-11))
    (True, False)
    """
    if not isinstance(one, bytes) or not isinstance(other, bytes):
        return one == other
    left, right = struct.unpack(">d", one)[0], struct.unpack(">d", other)[0]
    return left == right or math.isclose(left, right, rel_tol=ROUNDING)


def digest(found: Outcome) -> str:
    """Of all that `difference` compares: two outcomes have one digest exactly when it finds no difference."""
    columns = found.sorting.columns if found.sorting else ()
    ties = [(key, sorted(map(repr, rows)), len(rows)) for key, rows in _ties(found.rows, columns)]
    if found.sorting and found.sorting.cut and ties:
        key, _, size = ties[-1]
        ties[-1] = key, [], size
    return hashlib.sha256(repr((found.error, found.schema, ties)).encode()).hexdigest()[:16]


def _ties(rows: Sequence[Key], columns: tuple[int, ...]) -> list[tuple[Key, list[Key]]]:
    def sort_key(row: Key) -> Key:
        return tuple(row[column] for column in columns)

    return [(key, list(group)) for key, group in groupby(rows, key=sort_key)]


def _multiset_difference(expected: Sequence[Key], found: Sequence[Key]) -> str | None:
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    if not missing and not extra:
        return None
    return f"{missing.total()} rows missing, {extra.total()} unexpected, e.g. {[*missing][:1]} / {[*extra][:1]}"


def _expression_ids(attributes: Any) -> list[int]:
    return [attributes.apply(position).exprId().id() for position in range(attributes.size())]


def error_class(error: Exception) -> str:
    """The error condition of a failed query; that of the innermost cause where PySpark does not translate the error."""
    if isinstance(error, PySparkException):
        return error.getCondition() or type(error).__name__
    if not isinstance(error, Py4JJavaError):
        raise error
    condition, cause = error.java_exception.getClass().getName(), error.java_exception
    while cause is not None:
        if is_instance_of(SparkContext._gateway, cause, "org.apache.spark.SparkThrowable"):
            condition = cause.getCondition() or condition
        cause = cause.getCause()
    return str(condition)
