"""What a plan is to be expected to take before any of it ran, from the sizes of its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_regions.costs.rates import SCAN_BYTES_PER_SECOND, SECONDS_PER_ROW, SHUFFLED_SECONDS_PER_ROW
from spark_regions.dag.plan import Node, Plan
from spark_regions.stats.cardinality import UNKNOWN_SOURCE_BYTES, guessed_rows
from spark_regions.stats.operators import COLUMNAR

_MOVES = ("Aggregate", "Distinct", "Window", "Sort", "Repartition")


def moves(node: Node) -> bool:
    """Whether rows are moved, sorted or hashed for it."""
    return len(node.children) > 1 or node.operator.startswith(_MOVES)


def passes_on_files(plan: Plan, number: int) -> bool:
    """Whether rows of columnar files are passed on, filtered or not: they are about as quick to read as a copy of them,
    until something else was seen."""
    node = plan.nodes[number]
    if not node.children:
        return node.operator.startswith(COLUMNAR)
    return node.operator in ("Filter", "Project") and passes_on_files(plan, node.children[0])


@dataclass(frozen=True, slots=True)
class Guess:
    """:param rows: of each node\'s result
    :param task_seconds: of each node alone
    """

    rows: Mapping[int, float]
    task_seconds: Mapping[int, float]


def guessed(plan: Plan) -> Guess:
    """Rows and task-seconds of each node: good enough to tell a join of large tables from a look at a small one."""
    rows = guessed_rows(plan)
    seconds: dict[int, float] = {}
    for number in rows:
        node = plan.nodes[number]
        if node.children:
            rate = SHUFFLED_SECONDS_PER_ROW if moves(node) else SECONDS_PER_ROW
            seconds[number] = sum(rows[child] for child in node.children) * rate
        else:
            size = node.source_bytes if node.source_bytes is not None else UNKNOWN_SOURCE_BYTES
            seconds[number] = size / SCAN_BYTES_PER_SECOND
    return Guess(rows, seconds)
