"""Which stored or persisted result serves which node (Piglet §4.3; docs/protocol.md, "Identifiers")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spark_regions.costs.rates import (
    PLANNED_AGAIN_SECONDS_PER_NODE,
    SECONDS_PER_ROW_AND_CONJUNCT,
    SECONDS_PER_ROW_AND_EXPRESSION,
)
from spark_regions.dag.plan import Node, Plan
from spark_regions.dag.records import Entry
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline
from spark_regions.matching.subsumes import (
    Match,
    MatchFailure,
    entry_signature,
    subsumes,
)
from spark_regions.optimizer.estimate import as_its_files, load_seconds
from spark_regions.optimizer.withdraw import READS, weighs, withheld
from spark_regions.stats.estimate import Estimate
from spark_regions.store.admission import expired, shadowed

PASSES_ON = ("Project", "Filter", "GlobalLimit", "LocalLimit", "Sort")


def match(question: Question, draft: Draft) -> Draft:
    """After `estimate`, before all that chooses: what can be read changes what everything above it takes.

    The cheapest usable entry for every node that one serves. For the others a decline: the entry that would serve it
    and cannot be used now, or the nearest miss.
    """
    by_core: dict[str, list[Entry]] = {}
    refused: dict[str, str] = {}
    for entry in question.entries:
        if entry.persisted or question.confs.recycling:
            by_core.setdefault(entry.core, []).append(entry)
            if (why := unusable(entry, question)) is not None:
                refused[entry.id] = why
    if not by_core:
        return draft
    found: dict[int, Match] = {}
    useless: dict[int, Match] = {}
    missed: dict[int, MatchFailure] = {}
    stops: list[Decline] = []
    for number, node in question.plan.nodes.items():
        if not readable(node):
            continue
        assert node.signature is not None
        known = by_core.get(node.signature.core, ())
        if known and (stop := withheld(question, node.signature.lineage, READS)) is not None:
            stops.append(Decline(number, *stop))
            continue
        for entry in known:
            if node.session and not entry.persisted:
                continue
            usable = entry.id not in refused
            if usable and (number, entry.id) in question.unordered:
                continue
            result = served(question, draft, node, entry)
            if isinstance(result, Match):
                best = found if usable else useless
                if number not in best or result.seconds < best[number].seconds:
                    best[number] = result
            elif isinstance(result, MatchFailure) and usable:
                missed.setdefault(number, result)
    declines = stops + [
        Decline(number, refused[each.entry.id], each.entry.id)
        for number, each in useless.items()
        if number not in found
    ]
    declines += [
        Decline(number, miss.code, f"{miss.detail}: {miss.entry}")
        for number, miss in missed.items()
        if number not in found
    ]
    return replace(draft, matches=found).declined(*declines) if found or declines else draft


def unusable(entry: Entry, question: Question) -> str | None:
    """Why an entry cannot be read now, whatever it holds."""
    if entry.persisted:
        return None
    if entry.state == "pending":
        return "PENDING_ELSEWHERE"
    if shadowed(entry) and weighs(question):
        return "SHADOWED"
    if entry.lineage in question.view.off:
        return "DIFFERS"
    if entry.state != "committed" or expired(entry, question.confs.ttl_seconds, question.now):
        return "EXPIRED"
    return None


def readable(node: Node) -> bool:
    """Whether anything stored could be read in a node's place."""
    return node.signature is not None and bool(node.children) and not node.one_of_several


def merges(node: Node) -> bool:
    """Whether groups of something stored could be merged into a node's: one place of a floating-point aggregate may
    only be what all of them are.
    """
    return readable(node) and not (node.session or node.as_it_is)


def served(question: Question, draft: Draft, node: Node, entry: Entry) -> Match | MatchFailure | None:
    """What an entry on the node's core serves; None where it would do with a filter or an expression on top, and only
    the node's very rows are read.

    Residual filters and expressions cost something: cheap ones by the row; where columns have to be computed again,
    also what the node's own operators on that core were measured at, since a Python function may be among them.
    """
    assert node.signature is not None
    found = subsumes(question.plan, node.signature, entry_signature(entry), entry.predicates)
    if isinstance(found, MatchFailure):
        return replace(found, entry=entry.id)
    residual = node.signature.conjuncts - entry.conjuncts
    seconds = load_seconds(entry, len(found.reads), question.rates, question.cores)
    if not entry.persisted:
        share = min(1.0, len(found.reads) / max(len(entry.columns), 1))
        seconds = max(seconds, as_its_files(question, draft, node.id, entry.bytes * share))
    if not _on_top(question.plan, node):
        seconds += len(question.plan.nodes) * PLANNED_AGAIN_SECONDS_PER_NODE
    seconds += residual_seconds(
        question.plan, node.id, entry.rows, len(residual), found.computed, question.cores, draft.self_seconds
    )
    if node.as_it_is and (residual or found.computed):
        return None
    implied = entry.conjuncts - node.signature.conjuncts
    return Match(node.id, entry, found.reads, residual, found.computed, seconds, implied)


def _on_top(plan: Plan, node: Node) -> bool:
    """Whether nothing above a node asks how its rows are partitioned."""
    above = plan.parents.get(node.id)
    while above is not None and plan.nodes[above].operator.startswith(PASSES_ON):
        above = plan.parents.get(above)
    return above is None


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
