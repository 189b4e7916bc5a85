"""What a decision asks the driver to do, as it goes over the wire (docs/protocol.md, `decision`)."""

from __future__ import annotations

import msgspec

from spark_regions.wire.base import Long, Record


class Load(Record, frozen=True, tag="load", tag_field="kind"):
    """Read a stored result in a node's place.

    :param saving: seconds
    :param instead: seconds that the node would take
    :param rule: by which it serves the node, a code of `reasons`
    :param implied: of `conjuncts`, those that the node does not have, but its own imply
    :param merged: its groups are merged into the node's
    :param refreshed: they are merged with those of files that the entry lacks
    :param functions: where its groups alone are merged, each to the column with its value
    """

    node: int
    entry: str
    location: str
    columns: tuple[str, ...]
    conjuncts: tuple[str, ...]
    saving: float
    instead: float
    reason: str
    rule: str = ""
    implied: tuple[str, ...] = ()
    merged: bool = False
    refreshed: bool = False
    functions: dict[str, str] = msgspec.field(default_factory=dict)


class ReadPersisted(Record, frozen=True, tag="recall", tag_field="kind"):
    """Read a persisted result in a node's place; `release` it after this query.

    :param rule, implied: as of `Load`
    """

    node: int
    entry: str
    saving: float
    reason: str
    release: bool = False
    rule: str = ""
    implied: tuple[str, ...] = ()


class Store(Record, frozen=True, tag="store", tag_field="kind"):
    """Write a node's rows, or those of the DataFrame `ref` in its place, while they are computed.

    :param max_bytes: of the files; more is given up
    :param max_overhead: share of the query's own work that writing may take; no bound where it is None
    :param spare_seconds: that it may take beside: its part of what other engines save in the query
    :param in_memory: give up what is more than tasks hold in memory, and what the query had quickly
    :param detail: beside the reason: the iteration of a sweep
    """

    node: int
    ref: str | None
    entry: str
    location: str
    columns: tuple[str, ...]
    max_bytes: Long
    max_overhead: float | None
    saving: float
    reason: str
    in_memory: bool = False
    detail: str = ""
    spare_seconds: float = 0.0


class Persist(Record, frozen=True, tag="persist", tag_field="kind"):
    """Keep a node's rows, or those of the DataFrame `ref` in its place, in the block manager.

    :param columnar: in Spark's own format, which takes longer to make and is read by the columns that are wanted
    """

    node: int
    ref: str | None
    entry: str
    columns: tuple[str, ...]
    level: str
    max_bytes: Long
    saving: float
    reason: str
    release: bool = False
    detail: str = ""
    columnar: bool = False


class Unpersist(Record, frozen=True, tag="unpersist", tag_field="kind"):
    entry: str


class Share(Record, frozen=True, tag="share", tag_field="kind"):
    """Compute a node's rows once for all nodes of the group."""

    node: int
    group: tuple[int, ...]
    saving: float
    reason: str
    detail: str


class RouteTable(Record, frozen=True):
    """What a statement reads: the files of a relation.

    :param name: in the statement
    :param node: the relation, whose files the driver knows
    :param columns: of the files that are read, as Spark's schema calls them
    :param partition: columns with one value a file that are read
    """

    name: str
    node: int
    columns: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()


class RouteColumn(Record, frozen=True):
    """:param attribute: its id; empty for a column of the statement's own
    :param data_type: of Spark
    """

    attribute: str
    data_type: str


class FinishedFunction(Record, frozen=True):
    """An aggregate function that Spark finishes.

    :param function: how many others come before it in the aggregate's list, in pre-order
    :param columns: positions of its value, or of its buffers in the order in which Spark's function has them
    :param buffers: which of the two
    """

    function: int
    columns: tuple[int, ...]
    buffers: bool = False


class Route(Record, frozen=True, tag="route", tag_field="kind"):
    """Run a statement of another engine in a node's place.

    Its first columns are those of `columns`; with `tied`, one more tells of each row whether Spark may have the
    next one in its place. With `limit` there may be one row more than that, which is there to be compared with.

    :param tables: what it reads
    :param finish: of an aggregate whose result expressions Spark computes: the columns are its keys, then these
    :param ordered: its rows come in the order of the node's; else in any
    :param disabled: optimizers of the engine that could leave out rows on which an expression raises
    :param zone: of the session, where the statement may depend on it
    :param saving: seconds
    :param instead: seconds that the node would take in Spark
    :param predicted_seconds: of the statement, with its rows, once the engine runs
    :param rows, bytes: of the result, as expected
    :param limit_bytes: of the result; more is given up
    :param deadline_seconds: of the statement; what takes longer is given up
    :param ref: of a DataFrame that is stored in the place of a node above: the statement stands for its node of the
        same rows, with the columns that it has there
    """

    node: int
    platform: str
    sql: str
    tables: tuple[RouteTable, ...]
    columns: tuple[RouteColumn, ...]
    saving: float
    instead: float
    reason: str
    predicted_seconds: float
    rows: float
    bytes: float
    limit_bytes: Long
    deadline_seconds: float
    finish: tuple[FinishedFunction, ...] = ()
    limit: Long | None = None
    tied: bool = False
    ordered: bool = False
    disabled: tuple[str, ...] = ()
    zone: str = ""
    ref: str | None = None


NodeAction = Load | ReadPersisted | Store | Persist | Share | Route
Action = NodeAction | Unpersist
