"""A signed plan as the driver sends it (docs/protocol.md, `decide`)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from spark_regions.dag.digests import shape
from spark_regions.errors import InvalidRequest

MAX_NODES = 20_000
ROW_ORDER = "ROW_ORDER"
"""Refusal of a node whose rows, once kept, could not be read in plain Spark's order."""


@dataclass(frozen=True)
class Signature:
    """What rows and which columns of them; see docs/protocol.md, "Identifiers"."""

    lineage: str
    core: str
    conjuncts: frozenset[str]
    columns: tuple[str, ...]

    @cached_property
    def shape(self) -> str:
        return shape(self.columns)


@dataclass(frozen=True, slots=True)
class Node:
    """
    :param operator: as Spark calls it; a source is "Scan" and its name
    :param source_bytes: of a source, as Spark estimates it
    """

    id: int
    operator: str
    children: tuple[int, ...]
    signature: Signature | None
    storable: bool
    refusal: str
    session: bool
    row_bytes: float
    source_bytes: float | None = None

    @property
    def kind(self) -> str:
        """The operator; of a source without its name, which may be another one every day."""
        return self.operator if self.children else self.operator.partition(" ")[0]

    @property
    def copy(self) -> Hashable:
        """The same for nodes of one query that bring out the same rows and columns."""
        signed = self.signature
        return (signed.lineage, self.operator, frozenset(signed.columns)) if signed else self.id

    @property
    def counted(self) -> bool:
        """Whether only its number of rows is needed: nothing to store, but what is kept with columns serves it."""
        return self.signature is not None and self.refusal == "NO_COLUMNS"


@dataclass(frozen=True, slots=True)
class RepeatedSubplan:
    """Nodes that one subplan can stand in for, each under the rest of its own filters.

    :param copies: for each node the first of them with the same plan, of which Spark may reuse the exchange
    :param signature: of the subplan
    :param exact: whether every row of the subplan is a row of some node
    :param row_bytes: of the subplan
    :param exchange: whether an exchange is added; an aggregate ends with one of its own
    """

    nodes: tuple[int, ...]
    copies: tuple[int, ...]
    signature: Signature
    exact: bool
    row_bytes: float
    exchange: bool = True


@dataclass(frozen=True, slots=True)
class CandidateDataFrame:
    """A DataFrame of the user's, wider than the node that it would replace.

    :param seen: queries of this session built on it, this one included
    :param held: the first of them, and the program still refers to the DataFrame
    :param inputs: lineage and bytes of a row of what its joins read
    """

    ref: str
    node: int
    seen: int
    signature: Signature
    row_bytes: float
    held: bool = False
    inputs: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A tree of nodes, in pre-order.

    :param parents: node to its parent; the root has none
    :param equal: a conjunct to two columns that have the same value in each row that it lets pass
    """

    root: int
    nodes: Mapping[int, Node]
    parents: Mapping[int, int]
    expressions: Mapping[str, tuple[str, ...]]
    conjunct_columns: Mapping[str, tuple[str, ...]]
    shared: tuple[CandidateDataFrame, ...] = ()
    repeated: tuple[RepeatedSubplan, ...] = ()
    equal: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def without(self, refused: Collection[tuple[int, str]]) -> Plan:
        """The plan without what the driver cannot keep: nodes, each with the DataFrame in its place or ""."""
        if not refused:
            return self
        gone = {node for node, name in refused if not name}
        nodes = {
            number: replace(node, storable=False, session=False, refusal=ROW_ORDER) if number in gone else node
            for number, node in self.nodes.items()
        }
        shared = tuple(each for each in self.shared if (each.node, each.ref) not in refused)
        return replace(self, nodes=nodes, shared=shared)

    def below(self, node: int) -> Iterator[int]:
        """`node` and everything below it, in pre-order."""
        stack = [node]
        while stack:
            current = stack.pop()
            yield current
            stack.extend(reversed(self.nodes[current].children))

    def under(self, nodes: Iterable[int]) -> set[int]:
        """Every node that is one of `nodes`, or below one of them."""
        return {below for node in nodes for below in self.below(node)}

    def bottom_up(self) -> list[int]:
        """Every node, children first."""
        return list(reversed(list(self.below(self.root))))

    def above(self, nodes: Iterable[int]) -> set[int]:
        """Every node that has one of `nodes` below it."""
        found: set[int] = set()
        for node in nodes:
            parent = self.parents.get(node)
            while parent is not None and parent not in found:
                found.add(parent)
                parent = self.parents.get(parent)
        return found

    def edges(self) -> Iterator[tuple[str, str]]:
        """Steps from one lineage to the next above it; the top one steps to "".

        Operators that keep the lineage (a Project) and operators without one are passed over.
        """
        above: dict[int, str] = {}
        for number in self.below(self.root):
            node = self.nodes[number]
            outer = above.get(self.parents.get(number, -1), "")
            if node.signature is None:
                above[number] = outer
                continue
            above[number] = node.signature.lineage
            if node.signature.lineage != outer:
                yield node.signature.lineage, outer

    def edge_map(self) -> dict[str, set[str]]:
        """Each lineage to those that it steps to; from the root downwards."""
        found: dict[str, set[str]] = {}
        for child, parent in self.edges():
            found.setdefault(child, set()).add(parent)
        return found


def parse_plan(message: Mapping[str, Any]) -> Plan:
    """Read the plan of a `decide` request.

    :raises InvalidRequest: a field is missing, has another type, or the nodes are no tree
    """
    try:
        raw = message["nodes"]
        if len(raw) > MAX_NODES:
            raise InvalidRequest(f"{len(raw)} nodes, at most {MAX_NODES} expected")
        nodes = {node.id: node for node in map(_node, raw)}
        root = int(message.get("root", raw[0]["id"] if raw else 0))
        expressions = {str(k): tuple(map(str, v)) for k, v in message.get("expressions", {}).items()}
        conjunct_columns = {str(k): tuple(map(str, v)) for k, v in message.get("conjunctColumns", {}).items()}
        equal = {str(k): (str(one), str(other)) for k, (one, other) in message.get("equal", {}).items()}
        shared = tuple(_shared(each) for each in message.get("shared", ()))
        repeated = tuple(_repeated(each) for each in message.get("repeated", ()))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InvalidRequest(f"plan: {type(error).__name__}: {error}") from error
    parents = _parents(root, nodes)
    shared = tuple(each for each in shared if each.node in parents or each.node == root)
    for each in repeated:
        if len(each.nodes) < 2 or any(n not in nodes or nodes[n].signature is None for n in each.nodes):
            raise InvalidRequest(f"plan: repeated {each.nodes} are not at least two signed nodes")
    return Plan(root, nodes, parents, expressions, conjunct_columns, shared, repeated, equal)


def signature(raw: Mapping[str, Any]) -> Signature | None:
    """The signature in a message, if it has one."""
    if raw.get("lineage") is None or raw.get("core") is None:
        return None
    conjuncts = frozenset(map(str, raw.get("conjuncts") or ()))
    return Signature(str(raw["lineage"]), str(raw["core"]), conjuncts, tuple(map(str, raw.get("columns") or ())))


def _node(raw: Mapping[str, Any]) -> Node:
    refusal = raw.get("refusal") or {}
    return Node(
        id=int(raw["id"]),
        operator=str(raw.get("operator", "")),
        children=tuple(int(child) for child in raw.get("children") or ()),
        signature=signature(raw),
        storable=bool(raw.get("storable", False)),
        refusal=str(refusal.get("code", "")),
        session=bool(raw.get("session", False)),
        row_bytes=float(raw.get("rowBytes") or 0.0),
        source_bytes=None if raw.get("sourceBytes") is None else float(raw["sourceBytes"]),
    )


def _repeated(raw: Mapping[str, Any]) -> RepeatedSubplan:
    signed = signature(raw)
    nodes, copies = tuple(map(int, raw["nodes"])), tuple(map(int, raw["copies"]))
    if signed is None or len(nodes) != len(copies) or not set(copies) <= set(nodes):
        raise ValueError("a repeated subplan without lineage, or with copies that are not among its nodes")
    return RepeatedSubplan(
        nodes, copies, signed, bool(raw.get("exact", False)), float(raw.get("rowBytes") or 0.0),
        bool(raw.get("exchange", True)),
    )  # fmt: skip


def _shared(raw: Mapping[str, Any]) -> CandidateDataFrame:
    signed = signature(raw)
    if signed is None:
        raise ValueError("a shared DataFrame without lineage")
    return CandidateDataFrame(
        ref=str(raw["ref"]),
        node=int(raw["node"]),
        seen=int(raw.get("seen", 0)),
        signature=signed,
        row_bytes=float(raw.get("rowBytes") or 0.0),
        held=bool(raw.get("held", False)),
        inputs=tuple((str(lineage), float(row_bytes)) for lineage, row_bytes in raw.get("inputs") or ()),
    )


def _parents(root: int, nodes: Mapping[int, Node]) -> dict[int, int]:
    if root not in nodes:
        raise InvalidRequest(f"plan: root {root} is not among the nodes")
    parents: dict[int, int] = {}
    stack = [root]
    while stack:
        current = stack.pop()
        for child in nodes[current].children:
            if child not in nodes or child == root or child in parents:
                raise InvalidRequest(f"plan: child {child} of node {current} is missing or has two parents")
            parents[child] = current
            stack.append(child)
    return parents
