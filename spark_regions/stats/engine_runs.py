"""What an engine took for the rows of a lineage."""

from __future__ import annotations

from spark_regions.dag.records import GraphView, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.stats.estimate import Estimate, estimate

ENGINE = "Engine "


def engine_run(lineage: str, platform: str, seconds: float, rows: float, now: float) -> OperatorStatistics:
    """:param seconds: of the wall clock, without the engine's start"""
    took, found = RunningStatistics.of(seconds), RunningStatistics.of(rows)
    return OperatorStatistics(
        lineage, ENGINE + platform, "", lineage, frozenset(), (), rows=found, seconds=took, last=now
    )  # fmt: skip


def engine_seconds(lineage: str, platform: str, view: GraphView) -> Estimate | None:
    """What it took in earlier runs, where it was asked."""
    merged = RunningStatistics()
    for variant in view.variants.get(lineage, ()):
        if variant.kind == ENGINE + platform:
            merged = merged.merge(variant.seconds)
    return estimate(merged)
