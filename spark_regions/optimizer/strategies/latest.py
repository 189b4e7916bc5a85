"""Strategy `latest` (Piglet §4.4): the last candidate before each sink."""

from __future__ import annotations

from spark_regions.decision.values import Decline, Selection, StrategyInput
from spark_regions.optimizer.strategies.antichain import ancestry, best_antichain, too_cheap


def choose(given: StrategyInput) -> Selection:
    """The topmost point of each branch that is not loaded, whatever it is worth beyond nothing. As in the paper's
    evaluation (§6), it is one that was measured before: a point that never returns is not written.
    """
    loads = dict(best_antichain(given, lambda point: Decline(point.node, "NOT_CHOSEN")).loads)
    by_node = {point.node: point for point in given.candidates if point.ref is None}
    declines = [refused for point in by_node.values() if (refused := too_cheap(point))]
    worth = {number: point for number, point in by_node.items() if not too_cheap(point)}
    chosen: dict[int, str] = dict.fromkeys(loads, "load")
    lineages: set[str] = set()
    stack = [given.plan.root]
    while stack:
        number = stack.pop()
        if number in chosen:
            continue
        if number in worth and worth[number].signature.lineage not in lineages:
            chosen[number] = "store"
            lineages.add(worth[number].signature.lineage)
            continue
        stack.extend(reversed(given.plan.nodes[number].children))
    place = ancestry(given.plan, chosen)
    for number in worth:
        if chosen.get(number) != "store":
            declines.append(Decline(number, place.get(number, "NOT_CHOSEN")))
    stores = tuple((worth[number], "LATEST") for number in sorted(chosen) if chosen[number] == "store")
    return Selection(loads, stores, tuple(declines))
