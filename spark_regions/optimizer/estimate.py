"""What the operators of the plan take, each alone and with what is below it, and how likely their rows are to be used
again, from what the graph has seen.
"""

from __future__ import annotations

from dataclasses import replace

from spark_regions.costs.rates import Rates
from spark_regions.dag.records import Entry
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.stats.estimate import Estimate
from spark_regions.stats.frequency import total_probabilities
from spark_regions.stats.operators import files_below, inclusive_seconds, self_seconds

RECORDED = 0.5
"""Trust in the time of an operator in the one run that is followed."""


def estimate(question: Question, draft: Draft) -> Draft:
    """Before `match`: what is left to do above a stored result is judged by what its operators took."""
    plan, view = question.plan, question.view
    alone = self_seconds(plan, view)
    if question.planned and question.run is not None:
        for number, seconds in question.run.seconds.items():
            if number in plan.nodes:
                alone.setdefault(number, Estimate(seconds * question.cores, RECORDED))
    return replace(
        draft,
        self_seconds=alone,
        inclusive_seconds=inclusive_seconds(plan, view),
        probabilities=total_probabilities(plan, view),
    )


def load_seconds(entry: Entry, columns: int, rates: Rates, parallelism: int) -> float:
    """Eq. 4 for the columns that are read: Parquet leaves the others on the disk."""
    share = max(columns, 1) / max(len(entry.columns), 1)
    return rates.level_read_seconds(
        entry.bytes * min(share, 1.0), parallelism, entry.persisted, entry.rows, max(columns, 1)
    )


def as_its_files(question: Question, draft: Draft, number: int, size: float) -> float:
    """Seconds to read so many bytes as fast as the files that they come from were read (`files_below`)."""
    alone = draft.self_seconds
    files = files_below(question.plan, number, lambda node: alone[node].value if node in alone else None)
    return files.read_seconds(size) / max(question.cores, 1)
