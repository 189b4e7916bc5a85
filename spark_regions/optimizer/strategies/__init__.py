"""Strategies by name: our own, and those of entry point group `spark_regions.strategies`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from spark_regions.decision.values import Selection, StrategyInput
from spark_regions.errors import StrategyUnknown

GROUP = "spark_regions.strategies"
OURS = ("always", "latest", "markov", "maxbenefit", "off")

Strategy = Callable[[StrategyInput], Selection]


def installed() -> tuple[str, ...]:
    """Names that installed packages add."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def strategy(name: str) -> Strategy:
    """The `choose` of a strategy. An entry point names a module with `choose`, or such a function itself.

    :raises StrategyUnknown: neither is there
    """
    if name in OURS:
        return _choose(import_module(f"spark_regions.optimizer.strategies.{name}"))
    # Listing entry points reads every installed distribution, so our own names do not come this way.
    for point in entry_points(group=GROUP):
        if point.name.lower() == name.lower():
            return _choose(point.load())
    known = ", ".join(sorted({*OURS, *installed()}))
    raise StrategyUnknown(f"Found recycle.strategy={name!r}, expected one of {known}. Others come by {GROUP}.")


def _choose(found: Any) -> Strategy:
    chosen: Strategy = getattr(found, "choose", found)
    return chosen
