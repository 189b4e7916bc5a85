"""Stored DataFrames lose the columns that nobody will read."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import MaterializationCandidate
from spark_regions.runs.run_view import RunView


def prune(question: Question, draft: Draft) -> Draft:
    """After `choose` and `first_use`, whose DataFrames have all columns, as nobody tells them what comes: the plan of
    the run does.
    """
    run = question.run
    if run is None or not question.planned:
        return draft
    stores = tuple((_pruned(each, run), reason) for each, reason in draft.stores)
    return draft if stores == draft.stores else replace(draft, stores=stores)


def _pruned(candidate: MaterializationCandidate, run: RunView) -> MaterializationCandidate:
    """Worked example: of ten columns of equal width the run reads two: a fifth of the bytes, and of the seconds."""
    read = run.columns_read(candidate.signature) if candidate.ref is not None else None
    columns = candidate.signature.columns
    kept = tuple(column for column in columns if read is None or column in read)
    if not kept or len(kept) == len(columns):
        return candidate
    share = len(kept) / len(columns)
    return replace(
        candidate,
        signature=replace(candidate.signature, columns=kept),
        bytes=candidate.bytes * share,
        write_seconds=candidate.write_seconds * share,
    )
