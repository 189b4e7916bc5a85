"""Rows of a node as a SELECT, with what has to be known of them above."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from spark_regions.platforms.equivalents import Unproven
from spark_regions.platforms.typed import Attribute
from spark_regions.wire.actions import RouteTable

ANY = "true AS nothing"
"""SQL has no SELECT of no column."""


class Key(msgspec.Struct, frozen=True):
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


class Rows(msgspec.Struct, frozen=True):
    """Rows of a node.

    Their columns are `c` and the attribute's id, and there may be others, by which they are sorted. What a node adds to
    plain columns of its inputs, a join and filters, is not nested: DuckDB orders the joins of one SELECT.

    :param columns: of the SELECT, as it lists them
    :param items: behind FROM
    :param exposed: all columns that these have
    :param where: conditions, all of which hold
    :param behind: what follows these
    :param tables: what it reads
    :param shared: materialized expressions that it names, in an order in which they can be computed
    :param unique: sets of attributes in which no two rows are equal; with the empty one there is at most one row
    :param order: what the rows are to be sorted by, where that is seen
    :param disorder: why the order in which Spark has them is not known
    :param raising: columns of this very SELECT on whose values Spark may raise
    :param raises: whether there are any, or were any below
    :param narrow: columns whose decimals fit into 64 bits, or it raises where they are read as such
    """

    columns: tuple[str, ...]
    items: tuple[str, ...]
    exposed: frozenset[str]
    output: tuple[Attribute, ...]
    where: tuple[str, ...] = ()
    behind: str = ""
    tables: tuple[RouteTable, ...] = ()
    shared: Mapping[str, str] = msgspec.field(default_factory=dict)
    unique: frozenset[frozenset[str]] = frozenset()
    order: tuple[Key, ...] = ()
    disorder: Unproven | None = None
    raising: frozenset[str] = frozenset()
    raises: bool = False
    narrow: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns, each once."""
        return tuple(dict.fromkeys([*(column(each.id) for each in self.output), *(key.column for key in self.order)]))

    @property
    def sql(self) -> str:
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"SELECT {', '.join(self.columns) or ANY} FROM {', '.join(self.items)}{where}{self.behind}"

    @property
    def opened(self) -> Rows:
        """The same rows as plain columns, which others can be joined to."""
        if self.columns == self.names and not self.behind and self.columns:
            return self
        names = self.names
        return replace(
            self, columns=names, items=(f"({self.sql})",), exposed=frozenset(names), where=(), behind=""
        )  # fmt: skip

    @property
    def closed(self) -> Rows:
        """The same without an order, and without columns beside the output that could be taken for others."""
        alone = replace(self.opened, order=(), disorder=None)
        alone = replace(alone, columns=alone.names)
        names = frozenset(alone.names)
        return alone if alone.exposed <= names else replace(alone, items=(f"({alone.sql})",), exposed=names, where=())

    @property
    def source(self) -> str:
        """As one item."""
        found = self.opened
        return found.items[0] if len(found.items) == 1 and not found.where else f"({found.sql})"

    def materialized(self, name: str) -> Rows:
        """The same rows, computed as a whole before anything that reads them.

        Columns that nobody reads are left out, but for those that a filter asks for: a hash is never null. With a
        column that is volatile in it, the filter does not go down below the columns (pushdown_projection.cpp), where it
        would compute them once more, and on rows that conditions or a join there leave out.
        """
        if self.items == (name,):
            return self
        sql = self.sql
        if self.raising:
            sql = replace(self, columns=(*self.columns, "random() AS r")).sql
            sql = f"SELECT * EXCLUDE (r) FROM ({sql}) WHERE hash({', '.join(sorted(self.raising))}, r) IS NOT NULL"
        whole = replace(self, columns=self.names, items=(name,), exposed=frozenset(self.names), where=(), behind="")
        return replace(whole, raising=frozenset(), shared={**self.shared, name: sql})

    def needs_order(self) -> None:
        """:raises Unproven: the order in which Spark has them is not known"""
        if self.disorder is not None:
            raise Unproven(self.disorder.code, self.disorder.detail)

    @property
    def determined(self) -> bool:
        """Whether no two rows have the same sort keys."""
        by = {each.column for each in self.order}
        return any({column(each) for each in keys} <= by for keys in self.unique)


@lru_cache(8192)
def column(attribute: str) -> str:
    if not attribute.isdecimal():
        raise Unproven("NOT_IN_TABLE", f"attribute {attribute!r}")
    return f"c{attribute}"
