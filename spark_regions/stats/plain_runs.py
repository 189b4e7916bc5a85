"""Whole queries as plain Spark ran them, by the state of the machine, and what choices saved against them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import sqrt

from spark_regions.dag.records import GraphView, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.stats.engine_runs import ENGINE
from spark_regions.wire.messages import Baseline, QueryTop

COLD, WARM = "cold", "warm"
LOST_AFTER = 3
"""Runs in which a choice was measured before it is judged by them."""
_PLAIN = "Query plain "
_SAVED = "Saved by "


def plain_run(top: QueryTop, state: str, seconds: float, now: float) -> OperatorStatistics:
    """What a run without an action that spares work teaches; in wall seconds, deciding and storing taken off."""
    return _seen(top.key, _PLAIN + state, seconds, now)


def baseline(top: QueryTop, state: str, view: GraphView) -> Baseline:
    """What plain execution took in that state, where it was ever seen."""
    seen = _of(view.variants.get(top.key, ()), [_PLAIN + state])
    return Baseline(state, round(seen.mean, 4), seen.count) if seen.count else Baseline(state)


def parts(saved: float, predicted: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """What a query saved, divided over its choices by what each was predicted to save; evenly, where nothing was.

    >>> parts(3.0, {("load", "a"): 4.0, ("share", "b"): 2.0})
    {('load', 'a'): 2.0, ('share', 'b'): 1.0}
    """
    return {choice: part(saved, each, predicted.values()) for choice, each in predicted.items()}


def part(saved: float, predicted: float, of: Collection[float]) -> float:
    """The same for one of those with these predictions."""
    whole = sum(max(each, 0.0) for each in of)
    return saved * max(predicted, 0.0) / whole if whole > 0 else saved / len(of)


def outcome(kind: str, lineage: str, saved: float, now: float) -> OperatorStatistics:
    """What a choice saved in one run, as measured; negative where it lost."""
    return _seen(lineage, _SAVED + kind, saved, now)


def lost(lineage: str, kinds: Iterable[str], view: GraphView) -> str | None:
    """What such choices at a lineage took more than plain execution; None where they did not, or were not seen enough.

    Seen enough is what has lost even if the mean is a standard error too low. Storing is judged together with the reads
    that it is for.
    """
    seen = saved(lineage, kinds, view)
    if seen.count < LOST_AFTER or seen.mean + sqrt(seen.variance / seen.count) >= 0:
        return None
    return f"{-seen.mean:.2f} s more than plain Spark, in the mean of {seen.count} runs"


def saved(lineage: str, kinds: Iterable[str], view: GraphView) -> RunningStatistics:
    """What such choices at a lineage have saved, in seconds a run."""
    return _of(view.variants.get(lineage, ()), [_SAVED + kind for kind in kinds])


def is_whole_query(kind: str) -> bool:
    """Whether an operator's kind stands for a whole query, a choice or a statement, not for an operator of Spark's."""
    return kind.startswith((_PLAIN, _SAVED, ENGINE))


def _seen(lineage: str, kind: str, seconds: float, now: float) -> OperatorStatistics:
    observed = RunningStatistics.of(seconds)
    return OperatorStatistics(lineage, kind, "", lineage, frozenset(), (), seconds=observed, last=now)


def _of(variants: Iterable[OperatorStatistics], kinds: Iterable[str]) -> RunningStatistics:
    merged, wanted = RunningStatistics(), set(kinds)
    for variant in variants:
        if variant.kind in wanted:
            merged = merged.merge(variant.seconds)
    return merged
