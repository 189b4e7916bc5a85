"""Rows of a node as a SELECT, with what has to be known of them above."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_regions.platforms.equivalents import Unproven
from spark_regions.platforms.typed import Attribute
from spark_regions.wire.actions import RouteTable

ANY = "true AS nothing"
"""SQL has no SELECT of no column."""


@dataclass(frozen=True, slots=True)
class Key:
    """A column by which rows are sorted."""

    column: str
    ascending: bool
    nulls_first: bool

    @property
    def term(self) -> str:
        """
        >>> Key("c1", False, True).term
        'c1 DESC NULLS FIRST'
        """
        return f"{self.column} {'ASC' if self.ascending else 'DESC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a node.

    :param sql: a SELECT; beside `output` it may have columns of `order`
    :param tables: what it reads
    :param shared: materialized expressions that it names, in an order in which they can be computed
    :param unique: sets of attributes in which no two rows are equal; with the empty one there is at most one row
    :param order: what the rows are to be sorted by, where that is seen
    :param disorder: why the order in which Spark has them is not known
    :param raising: columns of this very SELECT on whose values Spark may raise
    :param raises: whether there are any, or were any below
    :param name: of the materialized expression that it is
    """

    sql: str
    output: tuple[Attribute, ...]
    tables: tuple[RouteTable, ...] = ()
    shared: Mapping[str, str] = field(default_factory=dict)
    unique: frozenset[frozenset[str]] = frozenset()
    order: tuple[Key, ...] = ()
    disorder: Unproven | None = None
    raising: frozenset[str] = frozenset()
    raises: bool = False
    name: str = ""

    @property
    def source(self) -> str:
        """What stands behind FROM."""
        return self.name or f"({self.sql})"

    def materialized(self, name: str) -> Rows:
        """The same rows, computed as a whole before anything that reads them.

        Columns that nobody reads are left out, but for those that a filter asks for: a hash is never null.
        """
        if self.name:
            return self
        sql = self.sql
        if self.raising:
            sql = f"SELECT * FROM ({sql}) WHERE hash({', '.join(sorted(self.raising))}) IS NOT NULL"
        shared = {**self.shared, name: sql}
        return replace(self, sql=f"SELECT * FROM {name}", shared=shared, name=name, raising=frozenset())

    def needs_order(self) -> None:
        """:raises Unproven: the order in which Spark has them is not known"""
        if self.disorder is not None:
            raise Unproven(self.disorder.code, self.disorder.detail)

    @property
    def determined(self) -> bool:
        """Whether no two rows have the same sort keys."""
        by = {each.column for each in self.order}
        return any({column(each) for each in keys} <= by for keys in self.unique)


def column(attribute: str) -> str:
    if not attribute.isdecimal():
        raise Unproven("NOT_IN_TABLE", f"attribute {attribute!r}")
    return f"c{attribute}"


def first_rows(limit: int | None) -> str:
    return "" if limit is None else f" LIMIT {limit}"
