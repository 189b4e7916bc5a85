"""Candidate materialization points of one plan (Piglet §4.1), with their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from spark_regions.costs.rates import Rates, carried_seconds
from spark_regions.dag.plan import Plan, Shared, Signature
from spark_regions.dag.records import Entry, GraphView, Variant
from spark_regions.recycle.frequency import expected_uses, session_uses, total_probabilities, unserved_shares
from spark_regions.recycle.matching import Cover, Match, cover, serves
from spark_regions.stats.cardinality import rows, rows_for
from spark_regions.stats.estimate import Estimate, estimate
from spark_regions.stats.operators import bytes_of

MIN_BENEFIT_SECONDS = 0.05
PRICE_OF_OTHER_COLUMNS = 0.5
"""What columns of a DataFrame that no query has read by now may cost, as a part of what a use of it saves."""


@dataclass(frozen=True, slots=True)
class Decline:
    node: int
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """The result of a node, or of a wider DataFrame in its place.

    :param recompute: seconds to compute it with what is loadable now
    :param bytes: expected size of the files
    :param past: executions that an entry would have served, and that no stored point above would have spared
    :param expected: uses expected from earlier runs; 0 where there are none
    :param session: uses expected from this session's own repeats
    :param probability: eq. 6
    :param extra_seconds: what computing it now costs beyond the node that it replaces
    :param held: nothing is known of it: stored if that adds little to the query
    """

    node: int
    signature: Signature
    recompute: Estimate
    read_seconds: float
    write_seconds: float
    bytes: float
    past: float
    expected: float
    session: float
    probability: float
    ref: str | None = None
    extra_seconds: float = 0.0
    held: bool = False

    @property
    def benefit(self) -> float:
        """Eq. 1: t_total - t_read, for one use."""
        return self.recompute.value - self.read_seconds

    @property
    def uses(self) -> float:
        return max(self.expected, self.session)


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a strategy may look at.

    :param loads: the best entry of every node that one serves
    :param load_gains: what loading it saves now, in seconds
    :param points: what could be stored
    :param eligible: nodes that may be stored, measured or not
    :param first_uses: what nobody has used before: DataFrames that the program holds, the small result of much work
    """

    plan: Plan
    loads: Mapping[int, Match]
    load_gains: Mapping[int, float]
    points: tuple[Point, ...]
    eligible: frozenset[int]
    first_uses: tuple[Point, ...] = ()
    confs: Mapping[str, str] = field(default_factory=dict)


def eligible(plan: Plan, served: Mapping[int, Match]) -> frozenset[int]:
    """Nodes whose result may be stored: not a source, nor a source's own columns passed on.

    Piglet's sink writes or prints; the root of our plans comes before that, so it is a point. A node that an
    entry serves
    as it is needs no second one.
    """
    found = set()
    for number, node in plan.nodes.items():
        if node.signature is None or not node.storable or node.session or not node.children:
            continue
        if _same_as_source(plan, number) or (
            number in served and not served[number].residual and not served[number].computed
        ):
            continue
        found.add(number)
    return frozenset(found)


def points(
    plan: Plan,
    view: GraphView,
    candidates: Iterable[int],
    recompute: Mapping[int, Estimate],
    rates: Rates,
    parallelism: int,
    loadable: Collection[str] = (),
) -> tuple[list[Point], list[Decline]]:
    """Every candidate with its numbers, and a decline where there are none."""
    probabilities = total_probabilities(plan, view)
    shares = unserved_shares(plan, view, loadable)
    found: list[Point] = []
    declines: list[Decline] = []
    for number in sorted(candidates):
        node = plan.nodes[number]
        assert node.signature is not None
        signed = node.signature
        size = bytes_of(node, view)
        seconds = recompute.get(number)
        variants = view.variants.get(signed.lineage, [])
        if size is None or seconds is None or not any(v.executions for v in variants):
            declines.append(Decline(number, "NO_HISTORY"))
            continue
        served, all_demands, past = _served(signed, variants, plan.expressions)
        fraction = served / all_demands if all_demands else 1.0
        share = shares.get(signed.lineage, 1.0)
        stored = size.value * rates.stored_ratio
        probability = probabilities.get(signed.lineage, 0.0)
        found.append(
            Point(
                node=number,
                signature=signed,
                recompute=seconds,
                read_seconds=rates.read_seconds(stored, parallelism),
                write_seconds=rates.write_seconds(stored, parallelism),
                bytes=stored,
                past=past * share,
                expected=expected_uses(signed.lineage, probability, view) * fraction * share,
                session=session_uses(signed.lineage, view) * fraction * share,
                probability=probability,
            )
        )
    return found, declines


def shared_points(
    plan: Plan,
    view: GraphView,
    nodes: Mapping[int, Point],
    recompute: Mapping[int, Estimate],
    rates: Rates,
    parallelism: int,
    stored: Collection[Entry] = (),
) -> list[Point]:
    """Wider DataFrames that this session has used at least twice, this query included, or that were measured earlier.

    Their rows and times come from whatever was measured on the same core; else from the replaced node, scaled by width.
    A later use reads only the columns that it needs, about the node's width. Where the columns that no query
    has read by now are dear (`PRICE_OF_OTHER_COLUMNS`), only the others are stored. What an entry in `stored` answers
    is no use of another one.
    """
    found: list[Point] = []
    for shared in plan.shared:
        node = plan.nodes[shared.node]
        if (
            (shared.seen < 2 and not shared.held)
            or node.signature is None
            or node.session
            or not (node.storable or node.counted)
            or not node.children
        ):
            continue
        reads = served_by(plan, node.signature, shared)
        if reads is None or _same_as_source(plan, shared.node):
            continue
        kin = [v for v in view.by_core.get(shared.signature.core, ()) if shared.signature.conjuncts <= v.conjuncts]
        cardinality = _shared_rows(shared, node.signature, view, kin)
        seconds = _shared_seconds(shared.node, recompute, kin, parallelism)
        if cardinality is None or seconds is None:
            continue
        probability = max((p for p in total_probabilities(plan, view).values()), default=0.0)
        exact = nodes.get(shared.node)
        here = recompute.get(shared.node)
        lineages = {v.lineage for v in kin} | {shared.signature.lineage, node.signature.lineage}
        open_uses = _open_share(kin, stored, plan.expressions)
        before = max(shared.seen - 1, 0, sum(session_uses(each, view) for each in lineages)) * open_uses
        whole = Point(
            node=shared.node,
            signature=shared.signature,
            recompute=seconds,
            read_seconds=0.0,
            write_seconds=0.0,
            bytes=0.0,
            past=before,
            expected=sum(expected_uses(each, probability, view) for each in lineages) * open_uses,
            session=before,
            probability=max(probability, exact.probability if exact else 0.0),
            ref=shared.ref,
            extra_seconds=max(0.0, seconds.value - here.value) if here else 0.0,
        )

        widening = _Widening(
            node.row_bytes, shared.row_bytes, cardinality.value, _joined_bytes(plan, shared, view), rates, parallelism
        )
        found.append(_chosen_columns(plan, shared, reads, kin, widening, whole))
    return found


@dataclass(frozen=True, slots=True)
class _Widening:
    """What it takes to keep a DataFrame while a narrower node is computed.

    :param needed: bytes of a row that the query needs
    :param every: bytes of a row with all columns
    :param joined: what all columns add to the largest input of a join, in bytes
    """

    needed: float
    every: float
    rows: float
    joined: float
    rates: Rates
    parallelism: int

    def priced(self, point: Point, row_bytes: float) -> Point:
        """With what `row_bytes` of each row cost to carry and to write, and the columns of one query to read."""
        width = max(row_bytes, self.needed, 1.0)
        part = (width - self.needed) / max(self.every - self.needed, 1.0)
        carried = carried_seconds(max(self.rows * (width - self.needed), part * self.joined), self.parallelism)
        stored = self.rows * width * self.rates.stored_ratio
        narrow = self.rows * max(self.needed, 1.0) * self.rates.stored_ratio
        return replace(
            point,
            read_seconds=self.rates.read_seconds(narrow, self.parallelism),
            write_seconds=self.rates.write_seconds(stored, self.parallelism),
            bytes=stored,
            extra_seconds=max(carried, point.extra_seconds),
        )


def _joined_bytes(plan: Plan, shared: Shared, view: GraphView) -> float:
    """What its further columns add to the largest input of a join below: they are shuffled there, perhaps with many
    more rows than the result has.
    """
    widths: dict[str, float] = {}
    for number in plan.below(shared.node):
        if len(plan.nodes[number].children) > 1:
            for child in (plan.nodes[each] for each in plan.nodes[number].children):
                if child.signature is not None:
                    widths[child.signature.lineage] = max(widths.get(child.signature.lineage, 0.0), child.row_bytes)
    most = 0.0
    for lineage, row_bytes in shared.inputs:
        cardinality = rows(lineage, view)
        if cardinality is not None and lineage in widths:
            most = max(most, cardinality.value * (row_bytes - widths[lineage]))
    return most


def _open_share(kin: Iterable[Variant], stored: Collection[Entry], expressions: Mapping[str, tuple[str, ...]]) -> float:
    """Which share of the demands on a DataFrame's rows no entry answers, by the operator kind most answered.

    A Project over a Join asks once, though the Join has its keys as well.
    """
    demands: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for variant in kin:
        demands[variant.kind] += variant.demands
        if any(
            entry.core == variant.core
            and entry.conjuncts <= variant.conjuncts
            and not cover(variant.columns, entry.columns, expressions).missing
            for entry in stored
        ):
            answered[variant.kind] += variant.demands
    top, most = max(answered.items(), key=lambda each: each[1], default=("", 0))
    return 1.0 - most / demands[top] if most else 1.0


def _chosen_columns(
    plan: Plan, shared: Shared, here: Cover, kin: Iterable[Variant], widening: _Widening, whole: Point
) -> Point:
    """All columns, as any may be asked for next; only those read by now, if the others are dear."""
    every = widening.priced(whole, shared.row_bytes)
    read = set(here.reads)
    for variant in kin:
        read |= cover(variant.columns, shared.signature.columns, plan.expressions).reads
    kept = tuple(column for column in shared.signature.columns if column in read)
    if not kept or len(kept) == len(shared.signature.columns):
        return every
    narrow = replace(whole, signature=replace(shared.signature, columns=kept))
    some = widening.priced(narrow, shared.row_bytes * len(kept) / len(shared.signature.columns))
    others = _price(every) - _price(some)
    return every if others <= PRICE_OF_OTHER_COLUMNS * max(every.benefit, 0.0) else some


def _price(point: Point) -> float:
    return point.write_seconds + point.extra_seconds


def served_by(plan: Plan, node: Signature, shared: Shared) -> Cover | None:
    """What the node reads of the DataFrame; None where it cannot stand in for the node."""
    if shared.signature.core != node.core:
        return None
    found = serves(plan, node, shared.signature)
    return found if isinstance(found, Cover) else None


def _served(
    stored: Signature, variants: Iterable[Variant], expressions: Mapping[str, tuple[str, ...]]
) -> tuple[int, int, int]:
    """Demands that the columns cover, all demands, and executions that they cover; of one operator kind a query."""
    served: dict[str, int] = {}
    demands: dict[str, int] = {}
    past: dict[str, int] = {}
    for variant in variants:
        demands[variant.kind] = demands.get(variant.kind, 0) + variant.demands
        if not cover(variant.columns, stored.columns, expressions).missing:
            served[variant.kind] = served.get(variant.kind, 0) + variant.demands
            past[variant.kind] = past.get(variant.kind, 0) + variant.executions
    # A Project over a Join is one use of the lineage, not two: the operator kind asked for most stands for all.
    top = max(served, key=lambda kind: served[kind], default=None)
    if top is None:
        return 0, max(demands.values(), default=0), 0
    return served[top], demands[top], past[top]


def _same_as_source(plan: Plan, node: int) -> bool:
    """A chain of operators that keeps a source's rows and adds no column."""
    top = plan.nodes[node].signature
    current = plan.nodes[node]
    while len(current.children) == 1:
        current = plan.nodes[current.children[0]]
    source = current.signature
    if top is None or source is None or current.children:
        return False
    return top.lineage == source.lineage and set(top.columns) <= set(source.columns)


def _shared_rows(shared: Shared, node: Signature, view: GraphView, kin: list[Variant]) -> Estimate | None:
    return rows_for(shared.signature, node, view, kin)


def _shared_seconds(
    node: int, recompute: Mapping[int, Estimate], kin: list[Variant], parallelism: int
) -> Estimate | None:
    """What computing its rows took in the queries seen.

    Their median: a later use saves what its own columns take, and what ran first in a JVM took several times as long.
    """
    totals = sorted(
        (found.scaled(1 / max(parallelism, 1), 0.7) for v in kin if (found := estimate(v.total)) is not None),
        key=lambda each: each.value,
    )
    return totals[len(totals) // 2] if totals else recompute.get(node)
