"""What storing results before any use of them was known has brought an application in its earlier runs.

Results over other files, or of other values, are new each time, and numbers of one say nothing of the next. What they
have in common is the application and the operators that compute them.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_regions.dag.digests import digest
from spark_regions.dag.plan import Plan
from spark_regions.dag.records import GraphView, OperatorStatistics
from spark_regions.stats.plain_runs import outcome, saved

HELD = "HELD"
_REASONS = (HELD, "REFRESHED")
"""Of results stored at their first use, and in the places of such."""
_FIRST_USE = "first use"
_PASSING = frozenset({"Project", "Filter"})
"""Operators that a query and the DataFrame in it may have more or less of."""


def family(application: str, plan: Plan, node: int, reason: str = HELD) -> str:
    """The name under which that is kept: the same for results of such operators, whatever is scanned.

    :param application: its name, not its id
    :param reason: why it is stored; "" for one of no first use
    """
    if reason not in _REASONS:
        return ""
    kinds = [plan.nodes[below].kind for below in plan.below(node)]
    return digest([_FIRST_USE, application, *(kind for kind in kinds if kind not in _PASSING)])


def settled(balance: Mapping[str, float], now: float) -> list[OperatorStatistics]:
    """A run's balance by name: seconds that reads saved, less those that writing took."""
    return [outcome(_FIRST_USE, name, seconds, now) for name, seconds in balance.items()]


def wasted(name: str, view: GraphView) -> str | None:
    """What writing took more than reads saved, in all earlier runs; None where it did not."""
    seen = saved(name, [_FIRST_USE], view)
    lost = -seen.mean * seen.count
    return f"{lost:.2f} s more than it saved, in {seen.count} runs" if lost > 0 else None
