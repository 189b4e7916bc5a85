"""What of a plan could be stored or persisted, with its numbers (Piglet §4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spark_regions.dag.plan import Plan, Signature
from spark_regions.dag.records import OperatorStatistics
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import MaterializationCandidate
from spark_regions.matching.subsumes import Match, column_mapping
from spark_regions.optimizer.estimate import as_its_files
from spark_regions.stats.cardinality import rows
from spark_regions.stats.frequency import expected_uses, session_uses, unserved_shares
from spark_regions.stats.operators import bytes_of


def candidates(question: Question, draft: Draft) -> Draft:
    """After `price`: a candidate's benefit is what computing it takes with what can be read."""
    plan = question.plan
    loadable = {signed.lineage for number in draft.matches if (signed := plan.nodes[number].signature)}
    unserved = unserved_shares(plan, question.view, loadable)
    eligible = eligible_nodes(plan, draft.matches)
    numbers = {number: measured(question, draft, unserved, number) for number in sorted(eligible)}
    private = [found for n in _private_nodes(question) if (found := measured(question, draft, unserved, n))]
    if not eligible and not private:
        return draft
    return replace(
        draft,
        eligible=eligible,
        candidates=tuple(found for found in numbers.values() if found),
        unknown=tuple(number for number, found in numbers.items() if not found),
        private=tuple(private),
    )


def eligible_nodes(plan: Plan, matches: Mapping[int, Match]) -> frozenset[int]:
    """Nodes whose result may be stored: not a source, nor a source's own columns passed on.

    Piglet's sink writes or prints; the root of our plans comes before that, so it is a candidate. A node that an entry
    serves as it is needs no second one.
    """
    found = set()
    for number, node in plan.nodes.items():
        if node.signature is None or not node.storable or node.session or not node.children:
            continue
        served = matches.get(number)
        if same_as_source(plan, number) or (served and not (served.residual or served.computed or served.merging)):
            continue
        found.add(number)
    return frozenset(found)


def _private_nodes(question: Question) -> Iterable[int]:
    """Nodes whose rows only this application could use again; none where nothing is persisted on suspicion."""
    if not question.confs.persist or question.confs.persist_max_bytes <= 0 or question.planned:
        return
    for number, node in sorted(question.plan.nodes.items()):
        if node.signature and node.children and (node.session or node.refusal == "TYPE_NOT_STORABLE"):
            yield number


def measured(
    question: Question, draft: Draft, unserved: Mapping[str, float], number: int
) -> MaterializationCandidate | None:
    """A node with its numbers; None where nothing was seen of it."""
    node, view, rates = question.plan.nodes[number], question.view, question.rates
    assert node.signature is not None
    signed = node.signature
    size = bytes_of(node, view)
    seconds = draft.seconds.get(number)
    variants = view.variants.get(signed.lineage, [])
    if size is None or seconds is None or not any(v.executions for v in variants):
        return None
    served, demands, past = _served(signed, variants, question.plan.expressions)
    share = unserved.get(signed.lineage, 1.0)
    fraction = served / demands if demands else 1.0
    stored = size.value * rates.stored_ratio
    probability = draft.probabilities.get(signed.lineage, 0.0)
    cardinality = rows(signed.lineage, view)
    moved = (stored, question.cores, cardinality.value if cardinality else 0.0, len(signed.columns))
    return MaterializationCandidate(
        node=number,
        signature=signed,
        recompute=seconds,
        read_seconds=max(rates.read_seconds(*moved), as_its_files(question, draft, number, stored)),
        write_seconds=rates.write_seconds(*moved),
        bytes=stored,
        past=past,
        expected=expected_uses(signed.lineage, probability, view) * fraction * share,
        session=session_uses(signed.lineage, view) * fraction * share,
        probability=probability,
    )


def _served(
    stored: Signature, variants: Iterable[OperatorStatistics], expressions: Mapping[str, tuple[str, ...]]
) -> tuple[int, int, int]:
    """Demands that the columns cover, all demands, and executions that they cover; of one operator kind a query."""
    served: dict[str, int] = {}
    demands: dict[str, int] = {}
    past: dict[str, int] = {}
    for variant in variants:
        demands[variant.kind] = demands.get(variant.kind, 0) + variant.demands
        if not column_mapping(variant.columns, stored.columns, expressions).missing:
            served[variant.kind] = served.get(variant.kind, 0) + variant.demands
            past[variant.kind] = past.get(variant.kind, 0) + variant.executions
    # A Project over a Join is one use of the lineage, not two: the operator kind asked for most stands for all.
    top = max(served, key=lambda kind: served[kind], default=None)
    if top is None:
        return 0, max(demands.values(), default=0), 0
    return served[top], demands[top], past[top]


def same_as_source(plan: Plan, node: int) -> bool:
    """A chain of operators that keeps a source's rows and adds no column."""
    top = plan.nodes[node].signature
    current = plan.nodes[node]
    while len(current.children) == 1:
        current = plan.nodes[current.children[0]]
    source = current.signature
    if top is None or source is None or current.children:
        return False
    return top.lineage == source.lineage and set(top.columns) <= set(source.columns)
