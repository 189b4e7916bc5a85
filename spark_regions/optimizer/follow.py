"""What the plan of the whole run says of this query (Pasta §5 over the queries of a run; DESIGN §8)."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.dag.plan import ROW_ORDER, Signature
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import PlannedMaterialization, RunDecision
from spark_regions.runs.program import Make
from spark_regions.runs.run_matcher import columns_of
from spark_regions.runs.run_view import RunView
from spark_regions.runs.solution import key_of


def follow(question: Question, draft: Draft) -> Draft:
    """First, since with a plan of the run nothing is stored on suspicion: the later passes ask whether there is one.

    Worked example: the recorded run reads a join in its steps 2 and 4; in step 2 it is wanted, and after step 4 what is
    kept of it is finished.
    """
    run = question.run
    if run is None or run.schedule is None or run.predicted is None:
        return draft
    schedule, step = run.schedule, run.step
    still = {key_of(result) for result in schedule.results if any(p.step in run.ahead for p in result.places)}
    # Queries of a batch run side by side: another one may still read it.
    released = frozenset[int]() if run.together else schedule.releases.get(step, frozenset())
    finished = {key for key in run.kept if key not in still} | {key_of(schedule.results[n]) for n in released}
    wanted: list[PlannedMaterialization] = []
    paired: list[tuple[Signature, Signature]] = []
    for make in schedule.makes.get(step, ()):
        if key_of(schedule.results[make.result]) not in run.kept:
            found, pair = _wanted(question, run, make)
            wanted += [found] if found else []
            paired += [pair] if pair else []
    chosen, plain = run.predicted
    decided = RunDecision(
        step, len(run.queries), tuple(wanted), frozenset(finished), chosen, plain, tuple(paired)
    )  # fmt: skip
    return replace(draft, run=decided)


def _wanted(
    question: Question, run: RunView, make: Make
) -> tuple[PlannedMaterialization | None, tuple[Signature, Signature] | None]:
    """A planned result with the identifiers of this run, None where the driver does not offer the DataFrame; and the
    DataFrame with the recorded one that it is.
    """
    assert run.schedule is not None
    result = run.schedule.results[make.result]
    recorded_query = run.queries[run.step]
    node = question.plan.nodes[run.numbers[make.node]]
    recorded = recorded_query.plan.nodes[make.node]
    if node.signature is None or recorded.signature is None or node.refusal == ROW_ORDER:
        return None, None
    ref, pair = None, None
    if result.wide is None:
        signature = node.signature
        there = columns_of(signature, recorded.signature)
    else:
        offered = (each for each in question.plan.shared if each.node == node.id)
        shared = next((each for each in offered if run.is_recorded(each.signature, result.wide)), None)
        if shared is None:
            return None, None
        ref, signature = shared.ref, shared.signature
        there = columns_of(signature, result.wide)
        pair = signature, result.wide
    if not all(column in there for column in result.signature.columns):
        return None, pair
    columns = tuple(there[column] for column in result.signature.columns)
    later = sorted(run.queries[p.step].prefix_seconds[p.node] for p in result.places if p.step in run.ahead)
    found = PlannedMaterialization(
        key_of(result), node.id, ref,
        Signature(signature.lineage, signature.core, signature.conjuncts, columns),
        make.level, result.rows, result.bytes, recorded_query.prefix_seconds[make.node], sum(later), len(later),
    )  # fmt: skip
    return found, pair
