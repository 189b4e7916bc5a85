"""Strategy `off`: store nothing, load nothing."""

from __future__ import annotations

from spark_regions.decision.values import Decline, Selection, StrategyInput


def choose(given: StrategyInput) -> Selection:
    """Nothing, with the reason at the root."""
    return Selection({}, (), (Decline(given.plan.root, "RECYCLE_OFF", "recycle.strategy=off"),))
