"""A part of a typed plan as one statement of DuckDB's, whose rows are those of the node at its top.

Where Spark may raise on a row, DuckDB has to evaluate that row as well. Filters, joins and limits above could spare it
the row, and so could its optimizer: what may raise is computed as a whole first, as a materialized expression, into
which no filter is pushed (filter_pushdown.cpp goes on with the second child alone), whose columns are all asked for,
and the optimizers of `SKIPPING` are off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from spark_regions.platforms.duckdb.operators import (
    BELOW,
    OPERATORS,
    Making,
    Translated,
    expressions,
    subqueries,
    walk,
)
from spark_regions.platforms.duckdb.repeated import read, repeated
from spark_regions.platforms.duckdb.rows import Rows, column
from spark_regions.platforms.equivalents import Table, Unproven
from spark_regions.platforms.typed import Args, Attribute, Expression, Node, TypedPlan
from spark_regions.wire.actions import FinishedFunction, RouteColumn, RouteTable

SKIPPING = (
    "cte_filter_pusher",
    "cte_inlining",
    "empty_result_pullup",
    "join_elimination",
    "late_materialization",
    "statistics_propagation",
    "sum_rewriter",
)
"""Optimizers that leave out rows or operations which an error could come from: rows of materialized expressions by
filters on them, expressions that nothing names any more once a filter is known to be false, inputs of empty joins and
inputs that add neither row nor column, columns of rows beyond a limit, rows by minima and maxima, and additions whose
sum is had otherwise. `join_filter_pushdown` stays: it drops rows without a partner where a file is read, below the join
(join_filter_pushdown_optimizer.cpp ends at a materialized expression), and what may raise below a join is one."""
MOST_NODES = 500


@dataclass(frozen=True)
class Statement:
    """A whole cut; the fields are those of `wire.actions.Route`.

    :param rows: of the outermost SELECT
    :param names: of its columns
    :param nodes: that it stands for
    :param zoned: it has columns of instants
    """

    rows: Rows
    names: tuple[str, ...]
    tables: tuple[RouteTable, ...]
    columns: tuple[RouteColumn, ...]
    nodes: frozenset[int]
    finish: tuple[FinishedFunction, ...] = ()
    limit: int | None = None
    tied: bool = False
    ordered: bool = False
    disabled: tuple[str, ...] = ()
    session_zone: str = ""
    zoned: bool = False

    @property
    def zone(self) -> str:
        """Of the session, where a value depends on it."""
        return self.session_zone if self.zoned or "TIMESTAMPTZ" in self.sql else ""

    @cached_property
    def sql(self) -> str:
        sql = final(self.rows, self.names, self.limit, self.tied)
        shared = self.rows.shared
        if not shared:
            return sql
        return f"WITH {', '.join(f'{name} AS MATERIALIZED ({each})' for name, each in shared.items())} {sql}"


class Statements:
    """Of all nodes of a plan. What it has several times is computed once."""

    def __init__(self, plan: TypedPlan, table: Table, untold: frozenset[str] = frozenset()) -> None:
        self.plan = plan
        nodes = {node.id: node for node in plan.nodes}
        if len(nodes) > MOST_NODES:
            raise Unproven("PLAN_TOO_LARGE", f"{len(nodes)} operators")
        order = bottom_up(nodes)
        self._repeated = repeated(nodes, order)
        self.known = Translated(nodes, frozenset(_read(plan)) | read(self._repeated.values()), table, untold)
        self._inside: dict[int, frozenset[int]] = {}
        self._zoned = {each.id for each in plan.nodes if any(column.type == "TIMESTAMP" for column in each.output)}
        for number in order:
            below = (*nodes[number].children, *subqueries(nodes[number]))
            self._inside[number] = frozenset({number}).union(*(self._inside.get(each, ()) for each in below))
            try:
                self.known.rows[number] = self._shared(nodes[number])
            except Unproven as refusal:
                self.known.rows[number] = refusal.with_traceback(None)

    def refusal(self, number: int) -> Unproven | None:
        """Why nothing above a node has a statement with it, where that is not for what is below it."""
        found = self.known.rows.get(number)
        return found if isinstance(found, Unproven) and found.code != BELOW else None

    def cut(self, number: int) -> Statement:
        """The statement that stands for a node and all below it.

        :raises Unproven: there is none
        """
        known, node = self.known, self.known.nodes[number]
        finish: tuple[FinishedFunction, ...] = ()
        limit = None
        columns = tuple(RouteColumn(each.id, each.type) for each in node.output)
        if number in known.limits:
            rows, limit = known.limits[number]
        elif number in known.finished:
            found = known.finished[number]
            rows, columns, finish = found.rows, found.columns, found.functions
        else:
            rows = known.of(number, own=True)
        rows.needs_order()
        if not finish and not {each.id for each in node.output} <= {each.id for each in rows.output}:
            raise Unproven("UNPROVEN_TYPE", "a column that is handed on")
        if not columns:
            raise Unproven("NO_COLUMNS", "")
        if rows.order and rows.raising:
            rows = rows.materialized(f"x{number}")
        return Statement(
            rows,
            tuple(column(each.attribute) if each.attribute else f"f{at}" for at, each in enumerate(columns)),
            rows.tables,
            columns,
            self._inside[number],
            finish,
            limit,
            tied=limit is not None or (bool(rows.order) and not rows.determined),
            ordered=bool(rows.order) or frozenset() in rows.unique,
            disabled=SKIPPING if rows.raises else (),
            session_zone=self.plan.zone,
            zoned=not self._zoned.isdisjoint(self._inside[number]),
        )

    def _shared(self, node: Node) -> Rows:
        """The node's rows; what the plan has several times is a materialized expression, whose columns it names."""
        if node.id not in self._repeated:
            return self._new(node)
        found = self._repeated[node.id]
        # No node of the plan has this number.
        whole = -1 - found.node.id
        if whole not in self.known.rows:
            try:
                self.known.rows[whole] = self._new(found.node).materialized(f"x{found.node.id}")
            except Unproven as refusal:
                self.known.rows[whole] = refusal.with_traceback(None)
                # They are for all that is told of these rows.
                self.known.limits.pop(found.node.id, None)
                self.known.finished.pop(found.node.id, None)
        rows = self.known.rows[whole]
        there = {each.id: each for each in rows.output} if isinstance(rows, Rows) else {}
        named = [(each, there.get(name)) for each, name in zip(node.output, found.columns[node.id], strict=True)]
        if not there or any(one is None and each.id in self.known.read for each, one in named):
            return self._new(node)
        listed = tuple(alias(one, each) for each, one in named if one is not None)
        output = tuple(each for each, one in named if one is not None)
        return self._new(Node(node.id, "Project", (whole,), output, Args(expressions=listed)))

    def _new(self, node: Node) -> Rows:
        make = OPERATORS.get(node.operator)
        if make is None:
            raise Unproven("NOT_IN_TABLE", node.operator)
        return make(Making(self.known, node))


def alias(one: Attribute, other: Attribute) -> Expression:
    """A column under the other's name."""
    value = Expression("AttributeReference", one.type, fields={"id": one.id})
    return Expression("Alias", one.type, children=(value,), fields={"id": other.id}) if one.id != other.id else value


def bottom_up(nodes: Mapping[int, Node], root: int | None = None) -> list[int]:
    """A node and all that it is made of, what its subqueries are made of too, before it; without one, all nodes."""
    found: list[int] = []
    entered: set[int] = set()
    stack = [(each, False) for each in (nodes if root is None else [root])]
    while stack:
        number, left = stack.pop()
        if left:
            found.append(number)
        elif number in nodes and number not in entered:
            entered.add(number)
            node = nodes[number]
            stack += [(number, True), *((each, False) for each in (*node.children, *sorted(subqueries(node))))]
    return found


def _read(plan: TypedPlan) -> Iterator[str]:
    """Attributes that something reads; a relation has those of its whole table."""
    outputs = {node.id: node.output for node in plan.nodes}
    yield from (each.id for node in plan.nodes[:1] for each in node.output)
    for node in plan.nodes:
        for expression in expressions(node):
            for each in walk(expression):
                if each.kind == "AttributeReference":
                    yield each.fields.get("id", "")
                if each.plan is not None:
                    yield from (value.id for value in outputs.get(each.plan, ()))
        if node.operator == "Union":
            yield from (each.id for child in node.children for each in outputs.get(child, ()))


def final(rows: Rows, names: Sequence[str], limit: int | None, tied: bool) -> str:
    """The outermost SELECT, with the order.

    Where rows can have the same sort keys, there is a column more that tells of each row whether the next one has the
    same keys and other values: Spark may have them the other way round. At a limit there is a row more, too, and its
    keys alone are compared: Spark may have another row at the end.

    Worked example, by the first column: (1, a), (1, a), (2, b), (2, c) with limit 3 have false, false, true, false.
    """
    listed = ", ".join(names)
    terms = ", ".join(each.term for each in rows.order)
    if not tied:
        return f"SELECT {listed} FROM {rows.source}{f' ORDER BY {terms}' if terms else ''}"
    source = rows.source if limit is None else f"(SELECT * FROM {rows.source} ORDER BY {terms} LIMIT {limit + 1})"
    numbered = f"SELECT *, row_number() OVER (ORDER BY {terms}) AS n FROM {source}"
    same = [f"{each.column} IS NOT DISTINCT FROM lead({each.column}) OVER w" for each in rows.order]
    other = [f"{name} IS DISTINCT FROM lead({name}) OVER w" for name in names]
    other += [] if limit is None else [f"n = {limit}"]
    equal = f"coalesce(lead(true) OVER w, false) AND {' AND '.join(same)} AND ({' OR '.join(other)})"
    compared = f"SELECT {listed}, n, {equal} AS tied FROM ({numbered}) WINDOW w AS (ORDER BY n)"
    return f"SELECT {listed}, tied FROM ({compared}) ORDER BY n"
