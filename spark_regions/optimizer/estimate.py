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
from spark_regions.stats.operators import inclusive_seconds, self_seconds

RECORDED = 0.5
"""Trust in the time of an operator in the one run that is followed."""
COLUMNAR = ("Scan parquet", "Scan orc")
"""Files that take as long to read as stored ones; lines of text and databases take longer."""


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
    """Seconds to read so many bytes as fast as the files that they come from were read, at most what these took.

    Rates are of a machine, what is measured of this query's first run, with cold code, of that run: without this, files
    that are stored once more, less a few rows, seem to save what it takes to read them.
    Worked example: files of 6 MB took 0.8 task-seconds to scan, 5 MB of rows pass a filter: on two cores 0.33 s.
    """
    plan, alone = question.plan, draft.self_seconds
    seconds = files = 0.0
    for each in plan.below(number):
        node = plan.nodes[each]
        if node.operator.startswith(COLUMNAR) and node.source_bytes and each in alone:
            seconds += alone[each].value
            files += node.source_bytes
    return seconds / max(question.cores, 1) * min(1.0, size / files) if files else 0.0
