"""A signed plan as the driver sends it (docs/protocol.md, `decide`)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from spark_regions.dag.digests import shape
from spark_regions.errors import InvalidRequest
from spark_regions.wire.messages import (
    Grouping,
    GrownEntry,
    PlanNode,
    Predicate,
    RanNode,
    RepeatedNodes,
    SharedFrame,
    SignedQuery,
)

MAX_NODES = 20_000
ROW_ORDER = "ROW_ORDER"
"""Refusal of a node whose rows, once kept, could not be read in plain Spark's order."""
REPEATED_FLOAT_AGGREGATE = "REPEATED_FLOAT_AGGREGATE"
"""Of a node that holds several places of an aggregate whose last digits depend on the order of rows."""


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

    @cached_property
    def column_set(self) -> frozenset[str]:
        return frozenset(self.columns)


@dataclass(frozen=True, slots=True)
class Node:
    """
    :param operator: as Spark calls it; a source is "Scan" and its name
    :param source_bytes: of a source, as Spark estimates it
    :param source_rows: of a source, as its files say, where they were asked
    :param grouping: of an aggregate
    :param grown: stored results that lack some of its files
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
    source_rows: float | None = None
    grouping: Grouping | None = None
    grown: tuple[GrownEntry, ...] = ()

    @property
    def kind(self) -> str:
        """The operator; of a source without its name, which may be another one every day."""
        return self.operator if self.children else self.operator.partition(" ")[0]

    @property
    def copy(self) -> Hashable:
        """The same for nodes of one query that bring out the same rows and columns."""
        signed = self.signature
        return (signed.lineage, self.operator, signed.column_set) if signed else self.id

    @property
    def counted(self) -> bool:
        """Whether only its number of rows is needed: nothing to store, but what is kept with columns serves it."""
        return self.signature is not None and self.refusal == "NO_COLUMNS"

    @property
    def one_of_several(self) -> bool:
        """Whether it may only be computed, once for all of its places or at each: other last digits would show."""
        return self.signature is not None and not self.storable and self.refusal == REPEATED_FLOAT_AGGREGATE

    @property
    def as_it_is(self) -> bool:
        """Whether only its very rows are read, since a filter on top of others would compute one of the places."""
        return self.storable and self.refusal == REPEATED_FLOAT_AGGREGATE


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
    :param weaker: no DataFrame, but the node without filters that change from iteration to iteration of a sweep
    :param typed: its nodes for another engine, as the driver told them
    :param places: nodes of the plan to those of the same rows in `typed`
    :param more_python: it calls Python functions that the node does not call
    """

    ref: str
    node: int
    seen: int
    signature: Signature
    row_bytes: float
    held: bool = False
    inputs: tuple[tuple[str, float], ...] = ()
    weaker: bool = False
    typed: str | None = None
    places: Mapping[int, int] = field(default_factory=dict)
    more_python: bool = False


@dataclass(frozen=True)
class Plan:
    """A tree of nodes, in pre-order.

    :param parents: node to its parent; the root has none
    :param equal: a conjunct to two columns that have the same value in each row that it lets pass
    :param predicates: what simple conjuncts say
    """

    root: int
    nodes: Mapping[int, Node]
    parents: Mapping[int, int]
    expressions: Mapping[str, tuple[str, ...]]
    conjunct_columns: Mapping[str, tuple[str, ...]]
    shared: tuple[CandidateDataFrame, ...] = ()
    repeated: tuple[RepeatedSubplan, ...] = ()
    equal: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    predicates: Mapping[str, Predicate] = field(default_factory=dict)

    def predicates_of(self, conjuncts: Iterable[str]) -> tuple[Predicate, ...]:
        """What the simple ones among them say."""
        return tuple(self.predicates[each] for each in sorted(conjuncts) if each in self.predicates)

    def columns_read(self, conjuncts: Iterable[str]) -> set[str] | None:
        """By filters, together; None where it is not known of one."""
        found: set[str] = set()
        for conjunct in conjuncts:
            columns = self.conjunct_columns.get(conjunct)
            if columns is None:
                return None
            found.update(columns)
        return found

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

    @cached_property
    def groupings(self) -> Mapping[str, Grouping]:
        """By the aggregate's core, which projections and filters above it share."""
        return {node.signature.core: node.grouping for node in self.nodes.values() if node.signature and node.grouping}

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


def parse_plan(query: SignedQuery) -> Plan:
    """The plan of a query as the driver signed it.

    :raises InvalidRequest: the nodes are no tree, or what is said of them contradicts itself
    """
    if len(query.nodes) > MAX_NODES:
        raise InvalidRequest(f"{len(query.nodes)} nodes, at most {MAX_NODES} expected")
    nodes = {node.id: _node(node) for node in query.nodes}
    root = query.root
    parents = _parents(root, nodes)
    shared = tuple(_shared(each) for each in query.shared if each.node in parents or each.node == root)
    repeated = tuple(map(_repeated, query.repeated))
    for each in repeated:
        if len(each.nodes) < 2 or any(n not in nodes or nodes[n].signature is None for n in each.nodes):
            raise InvalidRequest(f"plan: repeated {each.nodes} are not at least two signed nodes")
    predicates = {each.conjunct: each for each in query.predicates}
    return Plan(
        root, nodes, parents, query.expressions, query.conjunct_columns, shared, repeated, query.equal, predicates
    )  # fmt: skip


def signature(node: PlanNode | RanNode) -> Signature | None:
    """The signature of a node, if it has one."""
    if node.lineage is None or node.core is None:
        return None
    return Signature(node.lineage, node.core, frozenset(node.conjuncts), node.columns)


def _signed(told: SharedFrame | RepeatedNodes) -> Signature:
    return Signature(told.lineage, told.core, frozenset(told.conjuncts), told.columns)


def _node(told: PlanNode) -> Node:
    return Node(
        id=told.id,
        operator=told.operator,
        children=told.children,
        signature=signature(told),
        storable=told.storable,
        refusal=told.refusal.code if told.refusal else "",
        session=told.session,
        row_bytes=told.row_bytes,
        source_bytes=None if told.source_bytes is None else float(told.source_bytes),
        source_rows=None if told.source_rows is None else float(told.source_rows),
        grouping=told.grouping,
        grown=told.grown,
    )


def _repeated(told: RepeatedNodes) -> RepeatedSubplan:
    if len(told.nodes) != len(told.copies) or not set(told.copies) <= set(told.nodes):
        raise InvalidRequest("plan: a repeated subplan with copies that are not among its nodes")
    return RepeatedSubplan(told.nodes, told.copies, _signed(told), told.exact, told.row_bytes, told.exchange)


def _shared(told: SharedFrame) -> CandidateDataFrame:
    return CandidateDataFrame(
        told.ref, told.node, told.seen, _signed(told), told.row_bytes, told.held, told.inputs, told.weaker,
        told.typed, dict(told.places), told.more_python,
    )  # fmt: skip


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
