"""Which stored entry serves which node (docs/protocol.md, "Identifiers")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from spark_regions.dag.plan import Plan, Signature
from spark_regions.dag.records import Entry
from spark_regions.matching.implies import implied
from spark_regions.wire.messages import Predicate

MAX_DEPTH = 64
ROLLED_UP = "ROLLED_UP"
REFRESHED = "REFRESHED"


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """How stored columns produce wanted ones.

    :param reads: stored columns that are read
    :param missing: wanted columns that cannot be produced
    :param computed: columns that have to be computed from stored ones
    """

    reads: frozenset[str]
    missing: frozenset[str]
    computed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that serves a node.

    :param residual: conjuncts still to be applied
    :param seconds: to read the entry and apply the rest
    :param implied: conjuncts of the entry that those of the node imply
    :param merging: reason code of how an aggregate serves whose groups are merged
    :param functions: of an aggregate that is merged, each to the stored column with its value
    """

    node: int
    entry: Entry
    reads: frozenset[str]
    residual: frozenset[str]
    computed: frozenset[str]
    seconds: float
    implied: frozenset[str] = frozenset()
    merging: str = ""
    functions: Mapping[str, str] = field(default_factory=dict)

    @property
    def read_bytes(self) -> float:
        """Of the entry's: Parquet leaves other columns on the disk."""
        return self.entry.bytes * len(self.reads) / max(len(self.entry.columns), 1)

    @property
    def rule(self) -> str:
        """The rule of docs/containment.md by which the entry serves: a code of `reasons`."""
        return self.merging or ("IMPLIED" if self.implied else "FILTERED" if self.residual else "SAME_ROWS")


@dataclass(frozen=True, slots=True)
class MatchFailure:
    """An entry on the same core that does not serve the node, and why."""

    code: str
    detail: str
    entry: str


def column_mapping(
    wanted: Iterable[str], stored: Iterable[str], expressions: Mapping[str, tuple[str, ...]]
) -> ColumnMapping:
    """A column is covered if it is stored, or if `expressions` names its inputs and all of them are covered.

    >>> rule = {"sum": ("a", "b")}
    >>> column_mapping(["sum"], ["a", "b"], rule).missing
    frozenset()
    >>> column_mapping(["sum"], ["a"], rule).missing
    frozenset({'sum'})
    """
    have = frozenset(stored)
    known: dict[str, frozenset[str] | None] = {}
    computed: set[str] = set()

    def reads_of(column: str, depth: int) -> frozenset[str] | None:
        if column in have:
            return frozenset((column,))
        if column in known:
            return known[column]
        # A digest cannot contain itself, but a message can claim so.
        known[column] = None
        inputs = expressions.get(column)
        if inputs is None or depth >= MAX_DEPTH:
            return None
        reads: set[str] = set()
        for each in inputs:
            below = reads_of(each, depth + 1)
            if below is None:
                return None
            reads |= below
        known[column] = frozenset(reads)
        computed.add(column)
        return known[column]

    reads: set[str] = set()
    missing: set[str] = set()
    for column in wanted:
        found = reads_of(column, 0)
        if found is None:
            missing.add(column)
        else:
            reads |= found
    return ColumnMapping(frozenset(reads), frozenset(missing), frozenset(computed))


def subsumes(
    plan: Plan, node: Signature, stored: Signature, predicates: Iterable[Predicate] = ()
) -> ColumnMapping | MatchFailure:
    """ColumnMapping of `node` by `stored`, or why there is none. Cores must be equal.

    :param predicates: what simple filters of `stored` say; one may be implied by the node's, all of which are applied
    """
    if foreign := stored.conjuncts - node.conjuncts:
        given = plan.predicates_of(node.conjuncts)
        foreign -= {each.conjunct for each in predicates if each.conjunct in foreign and implied(each, given)}
    if foreign:
        return MatchFailure("CONJUNCTS_DIFFER", f"{len(foreign)} filters that the query does not have", "")
    residual = node.conjuncts - stored.conjuncts
    read = plan.columns_read(residual)
    if read is None:
        return MatchFailure("NOT_COVERED", "a filter whose columns are unknown", "")
    wanted = read.union(node.columns)
    found = column_mapping(wanted, stored.columns, plan.expressions)
    shared = replace(stored, conjuncts=stored.conjuncts & node.conjuncts)
    if found.missing and (same := equivalent_columns(plan, shared)):
        found = column_mapping(wanted, stored.columns, {**plan.expressions, **same})
        found = replace(found, computed=found.computed - same.keys())
    if found.missing:
        of_filters = len(found.missing - set(node.columns))
        detail = f"{len(found.missing)} columns missing" + (f", {of_filters} of them for filters" if of_filters else "")
        return MatchFailure("NOT_COVERED", detail, "")
    return found


def equivalent_columns(plan: Plan, stored: Signature) -> dict[str, tuple[str]]:
    """Columns that are not stored, each with one that equals it in every stored row: the other key of a join."""
    pairs = [plan.equal[conjunct] for conjunct in sorted(stored.conjuncts) if conjunct in plan.equal]
    both = {column for pair in pairs for column in pair}
    found: dict[str, tuple[str]] = {}
    while pairs:
        missing = column_mapping(both, stored.columns, {**plan.expressions, **found}).missing
        more = {
            absent: (present,)
            for pair in pairs
            for absent, present in (pair, pair[::-1])
            if absent in missing and present not in missing
        }
        if not more:
            break
        found |= more
    return found


def entry_signature(entry: Entry) -> Signature:
    return Signature(entry.lineage, entry.core, entry.conjuncts, entry.columns)
