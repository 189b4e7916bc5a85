"""Which stored entry serves which node (docs/protocol.md, "Identifiers")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from spark_regions.costs.rates import SECONDS_PER_ROW_AND_CONJUNCT, SECONDS_PER_ROW_AND_EXPRESSION, Rates
from spark_regions.dag.plan import Plan, Signature
from spark_regions.dag.records import Entry
from spark_regions.stats.estimate import Estimate

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Cover:
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
    """

    node: int
    entry: Entry
    reads: frozenset[str]
    residual: frozenset[str]
    computed: frozenset[str]
    seconds: float


@dataclass(frozen=True, slots=True)
class NearMiss:
    """An entry on the same core that does not serve the node, and why."""

    code: str
    detail: str
    entry: str


def cover(wanted: Iterable[str], stored: Iterable[str], expressions: Mapping[str, tuple[str, ...]]) -> Cover:
    """A column is covered if it is stored, or if `expressions` names its inputs and all of them are covered.

    >>> rule = {"sum": ("a", "b")}
    >>> cover(["sum"], ["a", "b"], rule).missing
    frozenset()
    >>> cover(["sum"], ["a"], rule).missing
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
    return Cover(frozenset(reads), frozenset(missing), frozenset(computed))


def serves(plan: Plan, node: Signature, stored: Signature) -> Cover | NearMiss:
    """Cover of `node` by `stored`, or why there is none. Cores must be equal."""
    if not stored.conjuncts <= node.conjuncts:
        extra = len(stored.conjuncts - node.conjuncts)
        return NearMiss("CONJUNCTS_DIFFER", f"{extra} filters that the query does not have", "")
    residual = node.conjuncts - stored.conjuncts
    wanted = set(node.columns)
    for conjunct in residual:
        reads = plan.conjunct_columns.get(conjunct)
        if reads is None:
            return NearMiss("NOT_COVERED", "a filter whose columns are unknown", "")
        wanted.update(reads)
    found = cover(wanted, stored.columns, plan.expressions)
    if found.missing and (same := stand_ins(plan, stored)):
        found = cover(wanted, stored.columns, {**plan.expressions, **same})
        found = replace(found, computed=found.computed - same.keys())
    if found.missing:
        of_filters = len(found.missing - set(node.columns))
        detail = f"{len(found.missing)} columns missing" + (f", {of_filters} of them for filters" if of_filters else "")
        return NearMiss("NOT_COVERED", detail, "")
    return found


def stand_ins(plan: Plan, stored: Signature) -> dict[str, tuple[str]]:
    """Columns that are not stored, each with one that equals it in every stored row: the other key of a join."""
    pairs = [plan.equal[conjunct] for conjunct in sorted(stored.conjuncts) if conjunct in plan.equal]
    both = {column for pair in pairs for column in pair}
    found: dict[str, tuple[str]] = {}
    while pairs:
        missing = cover(both, stored.columns, {**plan.expressions, **found}).missing
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


def match(
    plan: Plan,
    entries: Iterable[Entry],
    rates: Rates,
    parallelism: int,
    own: Mapping[int, Estimate],
    unordered: Collection[tuple[int, str]] = (),
) -> tuple[dict[int, Match], dict[int, NearMiss]]:
    """The cheapest entry for every node that one serves, and for the others the nearest miss.

    Only committed entries take part. Residual filters and expressions cost something: cheap ones by the row;
    where columns
    have to be computed again, also what the node's own operators on that core were measured at, since a Python function
    may be among them.

    :param unordered: nodes, each with an entry whose rows the driver cannot read in its place in plain Spark's order
    """
    by_core: dict[str, list[Entry]] = {}
    for entry in entries:
        by_core.setdefault(entry.core, []).append(entry)
    found: dict[int, Match] = {}
    missed: dict[int, NearMiss] = {}
    for number, node in plan.nodes.items():
        if node.signature is None or not node.children:
            continue
        for entry in by_core.get(node.signature.core, ()):
            if (node.session and not entry.persisted) or (number, entry.id) in unordered:
                continue
            result = serves(plan, node.signature, entry_signature(entry))
            if isinstance(result, NearMiss):
                missed.setdefault(number, NearMiss(result.code, result.detail, entry.id))
                continue
            residual = node.signature.conjuncts - entry.conjuncts
            seconds = load_seconds(entry, len(result.reads), rates, parallelism)
            seconds += residual_seconds(plan, number, entry.rows, len(residual), result.computed, parallelism, own)
            if number not in found or seconds < found[number].seconds:
                found[number] = Match(number, entry, result.reads, residual, result.computed, seconds)
    return found, {number: miss for number, miss in missed.items() if number not in found}


def entry_signature(entry: Entry) -> Signature:
    return Signature(entry.lineage, entry.core, entry.conjuncts, entry.columns)


def load_seconds(entry: Entry, columns: int, rates: Rates, parallelism: int) -> float:
    """Eq. 4 for the columns that are read: Parquet leaves the others on the disk."""
    share = max(columns, 1) / max(len(entry.columns), 1)
    return rates.level_read_seconds(entry.bytes * min(share, 1.0), parallelism, entry.persisted)


def residual_seconds(
    plan: Plan,
    node: int,
    rows: float,
    conjuncts: int,
    computed: frozenset[str],
    parallelism: int,
    own: Mapping[int, Estimate],
) -> float:
    cores = max(parallelism, 1)
    seconds = rows * SECONDS_PER_ROW_AND_CONJUNCT * conjuncts
    seconds += rows * SECONDS_PER_ROW_AND_EXPRESSION * len(computed)
    if computed:
        core = _core(plan, node)
        producers = [each for each in _same_core(plan, node, core) if _produces(plan, each, computed)]
        seconds += sum(own[each].value for each in producers if each in own)
    return seconds / cores


def _core(plan: Plan, node: int) -> str:
    signature = plan.nodes[node].signature
    return signature.core if signature else ""


def _same_core(plan: Plan, node: int, core: str) -> Iterable[int]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(child for child in plan.nodes[current].children if _core(plan, child) == core)


def _produces(plan: Plan, node: int, computed: frozenset[str]) -> bool:
    """Whether a computed column appears at `node` and not below it."""
    signature = plan.nodes[node].signature
    if signature is None:
        return False
    below: set[str] = set()
    for child in plan.nodes[node].children:
        under = plan.nodes[child].signature
        below.update(under.columns if under else ())
    return bool(computed.intersection(signature.columns) - below)
