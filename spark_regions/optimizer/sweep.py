"""What the iterations of a loop have in common, where nobody told that it is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from spark_regions.costs.rates import SECOND_ITERATION, SECOND_ITERATION_OVERHEAD
from spark_regions.dag.plan import CandidateDataFrame, Plan, Signature
from spark_regions.dag.records import GraphView
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline, MaterializationCandidate
from spark_regions.matching.subsumes import ColumnMapping, column_mapping, subsumes
from spark_regions.optimizer.candidates import measured
from spark_regions.optimizer.estimate import as_its_files, estimate
from spark_regions.optimizer.price import price
from spark_regions.stats.cardinality import rows

Numbers = Callable[[int], MaterializationCandidate | None]


def sweep(question: Question, draft: Draft) -> Draft:
    """After all that finds candidates: of those that the last iteration had, too, as many uses are expected as there
    were iterations (`lindy`). Before `charge`, since more are added, with numbers of the last iteration: results under
    filters that let less pass each time, so that they contain what comes, and those without the filters that change.

    Not where an earlier run tells how often something is used, nor with a plan of the run.
    """
    found = question.sweep
    if found is None or question.planned:
        return draft
    earlier = replace(question, plan=found.before)
    before = price(earlier, estimate(earlier, Draft(matches=draft.matches)))

    def numbers(node: int) -> MaterializationCandidate | None:
        return measured(earlier, before, {}, node)

    def again(each: MaterializationCandidate) -> MaterializationCandidate:
        if each.expected > 0:
            return each
        return replace(each, iteration=found.iteration, session=max(each.session, float(found.iteration)))

    last = Last(question.plan, found.before)
    more = [*_narrowing(question, draft, found.before, numbers), *_weaker(question, earlier, before, numbers)]
    candidates = [again(each) if last.had(each.signature) else each for each in draft.candidates]
    candidates += map(again, more)
    private = [again(each) if last.had(each.signature) else each for each in draft.private]
    if not candidates and not private:
        return draft
    # The second iteration may be the last one, which makes this a twentieth of what both take.
    most = SECOND_ITERATION_OVERHEAD * max((each.value for each in before.seconds.values()), default=0.0)
    dear = [each for each in (*candidates, *private) if each.iteration == SECOND_ITERATION and each.price > most]
    added = {each.node for each in more}
    return replace(
        draft,
        candidates=tuple(each for each in candidates if each not in dear),
        private=tuple(each for each in private if each not in dear),
        unknown=tuple(number for number in draft.unknown if number not in added),
    ).declined(*(Decline(each.node, "YOUNG_SWEEP", f"{each.price:.2f} s, at most {most:.2f} s") for each in dear))


class Last:
    """What the last iteration asked for."""

    def __init__(self, plan: Plan, before: Plan) -> None:
        self._expressions = {**before.expressions, **plan.expressions}
        self._columns: dict[str, list[tuple[str, ...]]] = {}
        for node in before.nodes.values():
            if node.signature:
                self._columns.setdefault(node.signature.lineage, []).append(node.signature.columns)

    def had(self, signature: Signature) -> bool:
        """Whether a result would have served it: the same rows with other values are no use to it."""
        asked = self._columns.get(signature.lineage, ())
        return any(not column_mapping(each, signature.columns, self._expressions).missing for each in asked)


def _narrowing(question: Question, draft: Draft, before: Plan, numbers: Numbers) -> Iterable[MaterializationCandidate]:
    """Nodes that the last iteration's result would serve, as its filters are implied: so will theirs the next one."""
    for number in draft.unknown:
        now, last = question.plan.nodes[number].signature, before.nodes[number].signature
        if now is None or last is None or now.core != last.core or now.columns != last.columns:
            continue
        serves = subsumes(question.plan, now, last, before.predicates.values())
        if isinstance(serves, ColumnMapping) and (like := numbers(number)):
            yield replace(like, signature=now, past=0.0)


def _weaker(
    question: Question, earlier: Question, priced: Draft, numbers: Numbers
) -> Iterable[MaterializationCandidate]:
    """Nodes without the filters that change, where it is known how many rows these let pass.

    Worked example: a join took 2 s under a filter that let half of a table pass, and has 10,000 rows: without it twice
    as many are written, and this iteration takes 2 s more at most.
    """
    plan, view, rates, before = question.plan, question.view, question.rates, earlier.plan
    for frame in (each for each in plan.shared if each.weaker):
        last = before.nodes[frame.node].signature
        like, share = numbers(frame.node), _passing(question, before, frame)
        count = rows(last.lineage, view) if last else None
        if like is None or count is None or share is None:
            continue
        every = count.value / share
        size = every * max(frame.row_bytes, 1.0) * rates.stored_ratio
        moved = (size, question.cores, every, len(frame.signature.columns))
        yield replace(
            like,
            signature=frame.signature,
            ref=frame.ref,
            bytes=size,
            read_seconds=max(rates.read_seconds(*moved), as_its_files(earlier, priced, frame.node, size)),
            write_seconds=rates.write_seconds(*moved),
            extra_seconds=like.recompute.value * (1 / share - 1),
            past=0.0,
        )


def _passing(question: Question, before: Plan, frame: CandidateDataFrame) -> float | None:
    """Share of rows that the filters which change let pass in the last iteration; None where that was not seen."""
    share, seen = 1.0, False
    for number in before.below(frame.node):
        node = before.nodes[number]
        now, last = question.plan.nodes[number].signature, node.signature
        if node.operator != "Filter" or now is None or last is None or last.lineage == now.lineage:
            continue
        below = before.nodes[node.children[0]].signature
        if below is None or last.conjuncts - below.conjuncts <= now.conjuncts:
            continue
        left, all_rows = rows(last.lineage, question.view), _rows_of(question.plan, node.children[0], question.view)
        if left is None or all_rows is None or left.value <= 0:
            return None
        share, seen = share * min(1.0, left.value / max(all_rows, 1.0)), True
    return share if seen else None


def _rows_of(plan: Plan, number: int, view: GraphView) -> float | None:
    """Seen, else of the source: what a filter was pushed into does not tell how many rows it has."""
    node = plan.nodes[number]
    seen = rows(node.signature.lineage, view) if node.signature else None
    if seen is not None:
        return seen.value
    return _rows_of(plan, node.children[0], view) if node.operator == "Project" else node.source_rows
