"""Strategy `off`: store nothing, load nothing."""

from __future__ import annotations

from spark_regions.recycle.antichain import Choice
from spark_regions.recycle.points import Decline, Situation


def choose(situation: Situation) -> Choice:
    """Nothing, with the reason at the root."""
    return Choice({}, (), (Decline(situation.plan.root, "RECYCLE_OFF", "recycle.strategy=off"),))
