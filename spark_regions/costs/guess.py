"""What a plan is to be expected to take before any of it ran, from the sizes of its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_regions.costs.rates import SCAN_BYTES_PER_SECOND, SECONDS_PER_ROW, SHUFFLED_SECONDS_PER_ROW
from spark_regions.dag.plan import Plan

UNKNOWN_SOURCE_BYTES = 10e6
FILTERED = 1 / 3
GROUPED = 0.1


@dataclass(frozen=True, slots=True)
class Guess:
    """:param rows: of each node\'s result
    :param task_seconds: of each node alone
    """

    rows: Mapping[int, float]
    task_seconds: Mapping[int, float]


def guessed(plan: Plan) -> Guess:
    """Rows and task-seconds of each node.

    A join has as many rows as its larger input, each filter keeps a third, a group-by a tenth. Only good enough to tell
    a join of large tables from a look at a small one.
    """
    rows: dict[int, float] = {}
    seconds: dict[int, float] = {}
    for number in plan.bottom_up():
        node = plan.nodes[number]
        below = [rows[child] for child in node.children]
        if not below:
            size = node.source_bytes if node.source_bytes is not None else UNKNOWN_SOURCE_BYTES
            rows[number] = size / max(node.row_bytes, 1.0)
            seconds[number] = size / SCAN_BYTES_PER_SECOND
            continue
        moved = len(below) > 1 or node.operator.startswith(("Aggregate", "Distinct", "Window", "Sort", "Repartition"))
        rows[number] = max(below)
        if node.operator == "Filter":
            rows[number] *= FILTERED
        elif node.operator.startswith(("Aggregate", "Distinct")):
            rows[number] *= GROUPED
        seconds[number] = sum(below) * (SHUFFLED_SECONDS_PER_ROW if moved else SECONDS_PER_ROW)
    return Guess(rows, seconds)
