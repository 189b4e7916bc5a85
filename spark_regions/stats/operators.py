"""Width and time of a plan's operators, from what the graph has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spark_regions.dag.plan import Node, Plan
from spark_regions.dag.records import GraphView, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.stats.cardinality import rows
from spark_regions.stats.estimate import Estimate, estimate

OTHER_COLUMNS = 0.5
"""Trust in the time of the same operator on the same rows with other columns."""
PROJECT = "Project"
AGGREGATE = "Aggregate"
"""Its time is that of its own columns: one with a costly expression says nothing of another without it."""
COLUMNAR = ("Scan parquet", "Scan orc")
"""Files that take as long to read as stored ones; lines of text and databases take longer."""


class Files(NamedTuple):
    """Columnar files: what scanning them took, and their size."""

    seconds: float
    bytes: float

    def read_seconds(self, size: float) -> float:
        """To read so many bytes as fast, at most what all of them took.

        Rates are of some machine, what a query's first run took is of this one, with cold code: without this, files
        that are stored once more, less a few rows, seem to save what it takes to read them.

        >>> round(Files(0.8, 6e6).read_seconds(5e6), 2)
        0.67
        """
        return self.seconds * min(1.0, size / self.bytes) if self.bytes else 0.0


NO_FILES = Files(0.0, 0.0)


def files_below(plan: Plan, node: int, seconds: Callable[[int], float | None]) -> Files:
    """Those that a node's rows come from, where it was seen how long they take."""
    took = size = 0.0
    for each in plan.below(node):
        leaf = plan.nodes[each]
        if leaf.operator.startswith(COLUMNAR) and leaf.source_bytes and (known := seconds(each)) is not None:
            took, size = took + known, size + leaf.source_bytes
    return Files(took, size)


def self_seconds(plan: Plan, view: GraphView) -> dict[int, Estimate]:
    """Task-seconds of each operator alone, where known: of the same columns, else of others, of a Project the least."""
    known: dict[int, Estimate] = {}
    for number, node in plan.nodes.items():
        found = _exact_or_kin(node, view, "seconds")
        if found is not None:
            known[number] = found
    return known


def inclusive_seconds(plan: Plan, view: GraphView) -> dict[int, Estimate]:
    """Task-seconds of each operator with everything below it, where it once ran without a load."""
    known: dict[int, Estimate] = {}
    for number, node in plan.nodes.items():
        found = _exact_or_kin(node, view, "total")
        if found is not None:
            known[number] = found
    return known


def bytes_of(node: Node, view: GraphView) -> Estimate | None:
    """Size of a node's result: observed, else cardinality times width (the factors of eq. 4)."""
    if node.signature is None:
        return None
    for variant in view.variants.get(node.signature.lineage, ()):
        if variant.bytes.count and variant.has_columns(node.signature):
            return estimate(variant.bytes)
    cardinality = rows(node.signature.lineage, view)
    if cardinality is None:
        return None
    return cardinality.scaled(max(node.row_bytes, 1.0), 0.7)


def _exact_or_kin(node: Node, view: GraphView, field: str) -> Estimate | None:
    if node.signature is None:
        return None
    kin: list[OperatorStatistics] = [
        v for v in view.variants.get(node.signature.lineage, ()) if v.kind == node.operator
    ]
    for variant in kin:
        if variant.has_columns(node.signature):
            exact = estimate(getattr(variant, field))
            if exact is not None:
                return exact
    others = [getattr(variant, field) for variant in sorted(kin, key=lambda each: each.last)]
    if field == "seconds" and node.operator == PROJECT:
        others = sorted((each for each in others if each.count), key=lambda each: each.mean)[:1]
    merged = RunningStatistics()
    for each in others:
        merged = merged.merge(each)
    return estimate(merged, OTHER_COLUMNS)
