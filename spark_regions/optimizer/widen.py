"""DataFrames of the user's, wider than the node that each would replace, as further candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from spark_regions.costs.rates import Rates, carried_seconds
from spark_regions.dag.plan import CandidateDataFrame, Plan, Signature
from spark_regions.dag.records import Entry, GraphView, OperatorStatistics
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import MaterializationCandidate
from spark_regions.matching.subsumes import ColumnMapping, column_mapping, subsumes
from spark_regions.optimizer.candidates import same_as_source
from spark_regions.optimizer.match import unusable
from spark_regions.stats.cardinality import rows, rows_for
from spark_regions.stats.estimate import Estimate, estimate
from spark_regions.stats.frequency import expected_uses, session_uses

PRICE_OF_OTHER_COLUMNS = 0.5
"""What columns of a DataFrame that no query has read by now may cost, as a part of what a use of it saves."""


def widen(question: Question, draft: Draft) -> Draft:
    """After `candidates`: of a node and the DataFrame in its place, `choose` takes one.

    DataFrames that this session has used at least twice, this query included, or that were measured earlier. Their rows
    and times come from whatever was measured on the same core; else from the replaced node, scaled by width. A later
    use reads only the columns that it needs, about the node's width. Where the columns that no query has read by now
    are dear (`PRICE_OF_OTHER_COLUMNS`), only the others are stored. What a stored entry answers is no use of another.
    """
    exact = {each.node: each for each in draft.candidates}
    stored = [entry for entry in question.entries if unusable(entry, question) is None]
    likeliest = max(draft.probabilities.values(), default=0.0)
    found = (
        _measured(question, draft, shared, stored, likeliest, exact.get(shared.node)) for shared in question.plan.shared
    )
    more = tuple(each for each in found if each)
    return replace(draft, candidates=draft.candidates + more) if more else draft


def _measured(
    question: Question,
    draft: Draft,
    shared: CandidateDataFrame,
    stored: Collection[Entry],
    likeliest: float,
    exact: MaterializationCandidate | None,
) -> MaterializationCandidate | None:
    plan, view = question.plan, question.view
    node = plan.nodes[shared.node]
    if (shared.seen < 2 and not shared.held) or node.signature is None or node.session or not node.children:
        return None
    if not (node.storable or node.counted) or same_as_source(plan, shared.node):
        return None
    reads = _reads(plan, node.signature, shared)
    kin = [v for v in view.by_core.get(shared.signature.core, ()) if shared.signature.conjuncts <= v.conjuncts]
    cardinality = rows_for(shared.signature, node.signature, view, kin)
    seconds = _seconds(shared.node, draft.seconds, kin, question.cores)
    if reads is None or cardinality is None or seconds is None:
        return None
    here = draft.seconds.get(shared.node)
    lineages = {v.lineage for v in kin} | {shared.signature.lineage, node.signature.lineage}
    open_uses = _open_share(kin, stored, plan.expressions)
    before = max(shared.seen - 1, 0, sum(session_uses(each, view) for each in lineages)) * open_uses
    whole = MaterializationCandidate(
        node=shared.node,
        signature=shared.signature,
        recompute=seconds,
        read_seconds=0.0,
        write_seconds=0.0,
        bytes=0.0,
        past=before,
        expected=sum(expected_uses(each, likeliest, view) for each in lineages) * open_uses,
        session=before,
        probability=max(likeliest, exact.probability if exact else 0.0),
        ref=shared.ref,
        extra_seconds=max(0.0, seconds.value - here.value) if here else 0.0,
    )
    joined = _joined_bytes(plan, shared, view)
    widening = _Widening(node.row_bytes, shared.row_bytes, cardinality.value, joined, question.rates, question.cores)
    return _chosen_columns(plan, shared, reads, kin, widening, whole)


def _reads(plan: Plan, node: Signature, shared: CandidateDataFrame) -> ColumnMapping | None:
    """What the node reads of the DataFrame; None where it cannot stand in for the node."""
    if shared.signature.core != node.core:
        return None
    found = subsumes(plan, node, shared.signature)
    return found if isinstance(found, ColumnMapping) else None


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
    cores: int

    def priced(self, candidate: MaterializationCandidate, row_bytes: float) -> MaterializationCandidate:
        """With what `row_bytes` of each row cost to carry and to write, and the columns of one query to read."""
        width = max(row_bytes, self.needed, 1.0)
        part = (width - self.needed) / max(self.every - self.needed, 1.0)
        carried = carried_seconds(max(self.rows * (width - self.needed), part * self.joined), self.cores)
        stored = self.rows * width * self.rates.stored_ratio
        narrow = self.rows * max(self.needed, 1.0) * self.rates.stored_ratio
        return replace(
            candidate,
            read_seconds=self.rates.read_seconds(narrow, self.cores, self.rows),
            write_seconds=self.rates.write_seconds(stored, self.cores, self.rows, len(candidate.signature.columns)),
            bytes=stored,
            extra_seconds=max(carried, candidate.extra_seconds),
        )


def _joined_bytes(plan: Plan, shared: CandidateDataFrame, view: GraphView) -> float:
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


def _open_share(
    kin: Iterable[OperatorStatistics], stored: Collection[Entry], expressions: Mapping[str, tuple[str, ...]]
) -> float:
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
            and not column_mapping(variant.columns, entry.columns, expressions).missing
            for entry in stored
        ):
            answered[variant.kind] += variant.demands
    top, most = max(answered.items(), key=lambda each: each[1], default=("", 0))
    return 1.0 - most / demands[top] if most else 1.0


def _chosen_columns(
    plan: Plan,
    shared: CandidateDataFrame,
    here: ColumnMapping,
    kin: Iterable[OperatorStatistics],
    widening: _Widening,
    whole: MaterializationCandidate,
) -> MaterializationCandidate:
    """All columns, as any may be asked for next; only those read by now, if the others are dear."""
    every = widening.priced(whole, shared.row_bytes)
    read = set(here.reads)
    for variant in kin:
        read |= column_mapping(variant.columns, shared.signature.columns, plan.expressions).reads
    kept = tuple(column for column in shared.signature.columns if column in read)
    if not kept or len(kept) == len(shared.signature.columns):
        return every
    narrow = replace(whole, signature=replace(shared.signature, columns=kept))
    some = widening.priced(narrow, shared.row_bytes * len(kept) / len(shared.signature.columns))
    others = _cost(every) - _cost(some)
    return every if others <= PRICE_OF_OTHER_COLUMNS * max(every.benefit, 0.0) else some


def _cost(candidate: MaterializationCandidate) -> float:
    return candidate.write_seconds + candidate.extra_seconds


def _seconds(
    node: int, recompute: Mapping[int, Estimate], kin: list[OperatorStatistics], cores: int
) -> Estimate | None:
    """What computing its rows took in the queries seen.

    Their median: a later use saves what its own columns take, and what ran first in a JVM took several times as long.
    """
    totals = sorted(
        (found.scaled(1 / max(cores, 1), 0.7) for v in kin if (found := estimate(v.total)) is not None),
        key=lambda each: each.value,
    )
    return totals[len(totals) // 2] if totals else recompute.get(node)
