"""The typed plan of a `decide` request: the signed plan's nodes with their expressions and types (docs/protocol.md).

>>> plan = '{"nodes":[{"id":0,"operator":"Filter","children":[1],"args":{"condition":{"kind":"IsNotNull",'
>>> plan += '"type":"BOOLEAN","children":[{"kind":"AttributeReference","type":"INT","fields":{"id":"7"}}]}}}]}'
>>> decode(plan).nodes[0].args.condition.children[0].fields["id"]
'7'
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from spark_regions.errors import InvalidRequest
from spark_regions.wire.base import Long, Record


class Expression(Record, frozen=True):
    """
    :param kind: name of Catalyst's class
    :param type: as `DataType.sql` has it: "INT", "DECIMAL(7,2)"
    :param fields: constructor arguments that are neither expressions nor types, as text
    :param plan: of a subquery, the id of its root
    :param unknown: it has something that has no name here
    """

    kind: str
    type: str
    nullable: bool = True
    children: tuple[Expression, ...] = ()
    fields: dict[str, str] = msgspec.field(default_factory=dict)
    plan: int | None = None
    unknown: bool = False


class Attribute(Record, frozen=True):
    """:param id: `exprId.id` as text"""

    id: str
    name: str
    type: str
    nullable: bool = True


class SortKey(Record, frozen=True):
    child: Expression
    ascending: bool
    nulls_first: bool


class SourceFile(Record, frozen=True):
    """:param modified: milliseconds since 1970
    :param values: literals of the partition columns
    """

    path: str
    bytes: Long
    modified: Long
    values: tuple[Expression, ...] = ()


class Args(Record, frozen=True):
    """What an operator has beside its children; which of these, by operator, is in docs/protocol.md.

    :param partition: expressions of a window, names of a relation's partition columns
    :param limit: an expression, or the number of a window group limit
    :param exists: id of the attribute that an existence join adds
    """

    expressions: tuple[Expression, ...] = msgspec.field(default=(), name="list")
    condition: Expression | None = None
    keys: tuple[Expression, ...] = ()
    kind: str = ""
    exists: str | None = None
    order: tuple[SortKey, ...] = ()
    whole: bool = msgspec.field(default=False, name="global")
    limit: Expression | int | None = None
    partition: tuple[Expression | str, ...] = ()
    rank: str = ""
    projections: tuple[tuple[Expression, ...], ...] = ()
    files: tuple[SourceFile, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Expression, ...], ...] = ()


class Node(Record, frozen=True):
    """:param operator: name of Catalyst's class"""

    id: int
    operator: str
    children: tuple[int, ...] = ()
    output: tuple[Attribute, ...] = ()
    args: Args = Args()


class TypedPlan(Record, frozen=True):
    """:param zone: of the session
    :param ansi: of the session; expressions have their own
    :param in_order: nodes whose rows have to come in Spark's order
    """

    nodes: tuple[Node, ...]
    zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False
    in_order: frozenset[int] = frozenset()


def decode(text: str | bytes) -> TypedPlan:
    """The plan of a JSON text.

    :raises InvalidRequest: with the place in the text that is not as it should be
    """
    try:
        return msgspec.json.decode(text, type=TypedPlan)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"typed plan: {error}") from error


INTEGRAL_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
"""Decimal digits that hold every value of the type."""
FLOATING = frozenset({"FLOAT", "DOUBLE"})
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
MAX_PRECISION = 38


@lru_cache(1024)
def decimal_of(data_type: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, None of any other.

    >>> decimal_of("DECIMAL(7,2)"), decimal_of("INT")
    ((7, 2), None)
    """
    found = _DECIMAL.fullmatch(data_type)
    return (int(found[1]), int(found[2])) if found else None


def decimal_type(precision: int, scale: int) -> str:
    """
    >>> decimal_type(7, 2)
    'DECIMAL(7,2)'
    """
    return f"DECIMAL({precision},{scale})"
