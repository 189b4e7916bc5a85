"""Strategy `always`: act at every eligible point, whatever it costs. It exists for tests."""

from __future__ import annotations

from spark_regions.costs.rates import WRITE_OVERHEAD_SECONDS
from spark_regions.decision.values import MaterializationCandidate, Selection, StrategyInput, unmeasured


def choose(given: StrategyInput) -> Selection:
    """Load what can be loaded, topmost first; then store the topmost eligible node of every branch, above loads too.

    Needs no history: an unmeasured point is stored with the whole remaining budget reserved.
    """
    plan = given.plan
    loads: dict[int, str] = {}
    stack = [plan.root]
    while stack:
        number = stack.pop()
        if number in given.matches:
            loads[number] = "ALWAYS"
        else:
            stack.extend(plan.nodes[number].children)
    measured = {point.node: point for point in given.candidates if point.ref is None}
    stores: list[tuple[MaterializationCandidate, str]] = []
    lineages: set[str] = set()
    stack = [plan.root]
    while stack:
        number = stack.pop()
        if number in loads:
            continue
        signature = plan.nodes[number].signature
        if number in given.eligible and signature is not None:
            if signature.lineage not in lineages:
                lineages.add(signature.lineage)
                stores.append((measured.get(number) or unmeasured(number, signature, WRITE_OVERHEAD_SECONDS), "ALWAYS"))
            continue
        stack.extend(reversed(plan.nodes[number].children))
    return Selection(loads, tuple(stores), ())
