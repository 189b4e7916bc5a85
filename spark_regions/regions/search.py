"""Pasta's searches over region plans: top-down (alg. 1) and bottom-up (§5.1), exhaustive and greedy, anytime.

A state is the set of non-blocking edges that are materialized, as bits of an integer. Top-down takes bits away,
bottom-up adds them. Every pruning is inherited: what leads on from a pruned state is pruned too, whichever way it is
reached. So instead of a set of visited states each state has one parent, that without its highest flipped bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from spark_regions.costs.cost_models import BoundedCost, CostModel, SeparableCost
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.regions.kernel import CHAINS, CLEAN
from spark_regions.regions.properties import EARLY_STOP, HOPELESS, Pruning, pruning, valid_techniques

TOP_DOWN = "top-down"
BOTTOM_UP = "bottom-up"


@dataclass(frozen=True, slots=True)
class Searched:
    """
    :param complete: the search came to its end, so that, unless it was greedy, nothing is cheaper
    :param techniques: those that were asked for and are valid under the cost
    """

    best: RegionPlan
    cost: float
    complete: bool
    states: int
    techniques: frozenset[str]


def search(
    plan: PhysicalPlan,
    model: CostModel,
    direction: str,
    techniques: Collection[str],
    deadline: float,
    greedy: bool = False,
    candidates: Iterable[RegionPlan] = (),
) -> Searched:
    """The best schedulable plan that the search meets before the deadline (of `time.monotonic`).

    The plan with every edge materialized is always met: it is schedulable.

    :param candidates: schedulable plans that are met before the search starts
    """
    usable = valid_techniques(model) & frozenset(techniques)
    run = _Search(plan, model, direction, usable, deadline)
    for candidate in candidates:
        run.consider(candidate)
    complete = run.greedy() if greedy else run.exhaustive()
    return Searched(run.best, run.best_cost, complete, run.states, usable)


class _Search:
    def __init__(
        self, plan: PhysicalPlan, model: CostModel, direction: str, techniques: frozenset[str], deadline: float
    ) -> None:
        self.plan, self.model, self.deadline = plan, model, deadline
        self.down = direction == TOP_DOWN
        pruned = pruning(plan, model, techniques & {CHAINS, CLEAN})
        free = [edge for edge in range(len(plan.edges)) if edge not in plan.blocking and edge not in pruned.pipelined]
        separable = model if model.condition_two and isinstance(model, SeparableCost) else None
        self.weights = [separable.edge_cost(plan, edge) for edge in free] if separable else [0.0] * len(free)
        self.free = free
        self.chains = _chain_masks(pruned, free) if not self.down else [0] * len(free)
        self.stop_at_schedulable = not self.down and EARLY_STOP in techniques
        self.memoize = self.down and HOPELESS in techniques
        self.hopeless: list[int] = []
        self.seed = (1 << len(free)) - 1 if self.down else 0
        self.states = 0
        self.best = RegionPlan(plan, frozenset(range(len(plan.edges))))
        self.best_cost = model.cost(self.best)
        self.least = model.least(plan) if isinstance(model, BoundedCost) else -math.inf

    def exhaustive(self) -> bool:
        """Depth first; whether all states that are not pruned were met."""
        # (state, first bit that may still be flipped). Large sets come first: what is hopeless there is hopeless below.
        frontier = [(self.seed, 0)]
        while frontier and self.best_cost > self.least:
            if time.monotonic() > self.deadline:
                return False
            state, first = frontier.pop()
            if self._known_hopeless(state):
                continue
            found = self._visit(state)
            if not self._goes_on(state, found):
                continue
            if state == self.seed:
                self._descend()
            frontier += [(child, bit + 1) for child, bit in self._neighbours(state, first)]
        return True

    def _descend(self) -> None:
        """One plan to improve on, so that an early deadline finds a good one: edges are pipelined one by one, the
        dearest first, where that is not hopeless. Its states are not counted: the search meets them again."""
        state, states = (1 << len(self.free)) - 1, self.states
        for bit in sorted(range(len(self.free)), key=lambda bit: -self.weights[bit]):
            if time.monotonic() > self.deadline:
                break
            if not self._visit(state ^ 1 << bit).hopeless:
                state ^= 1 << bit
        self.states = states

    def greedy(self) -> bool:
        """Only the cheapest neighbour is followed; an unschedulable one where no other is left."""
        state, found = self.seed, self._visit(self.seed)
        while self._goes_on(state, found):
            step: tuple[float, float, int, RegionPlan] | None = None
            for child, bit in sorted(self._neighbours(state, 0), key=self._price):
                if time.monotonic() > self.deadline:
                    return False
                if self._known_hopeless(child):
                    continue
                reached = self._visit(child)
                if self.memoize and reached.hopeless:
                    self._remember(child)
                    continue
                cost = self._cost(reached)
                if step is None or (cost, self._price((child, bit))) < step[:2]:
                    step = (cost, self._price((child, bit)), child, reached)
                if math.isfinite(cost) and self.model.condition_two:
                    # Neighbours come cheapest first.
                    break
            if step is None:
                break
            _, _, state, found = step
        return True

    def _price(self, neighbour: tuple[int, int]) -> float:
        """What a step adds to a separable cost; else the order of edges decides."""
        weight = self.weights[neighbour[1]]
        return -weight if self.down else weight

    def _visit(self, state: int) -> RegionPlan:
        self.states += 1
        materialized = self.plan.blocking.union(edge for bit, edge in enumerate(self.free) if state >> bit & 1)
        found = RegionPlan(self.plan, materialized)
        self.consider(found)
        return found

    def consider(self, found: RegionPlan) -> None:
        cost = self._cost(found)
        if cost < self.best_cost:
            self.best, self.best_cost = found, cost

    def _cost(self, found: RegionPlan) -> float:
        return self.model.cost(found) if found.schedulable else math.inf

    def _goes_on(self, state: int, found: RegionPlan) -> bool:
        if self.stop_at_schedulable and found.schedulable:
            return False
        if self.memoize and found.hopeless:
            self._remember(state)
            return False
        return True

    def _remember(self, hopeless: int) -> None:
        """Keeps a hopeless state, and none that follow from it."""
        self.hopeless = [known for known in self.hopeless if known & hopeless != known]
        self.hopeless.append(hopeless)

    def _known_hopeless(self, state: int) -> bool:
        return any(state & known == state for known in self.hopeless)

    def _neighbours(self, state: int, first: int) -> Iterator[tuple[int, int]]:
        for bit in range(first, len(self.free)):
            flipped = state ^ (1 << bit)
            if (flipped < state) == self.down and not state & self.chains[bit]:
                yield flipped, bit


def _chain_masks(pruned: Pruning, free: list[int]) -> list[int]:
    """Of each edge the bits of its chain, where only one of them may be materialized."""
    masks: dict[int, int] = {}
    for bit, edge in enumerate(free):
        if edge in pruned.chain_of:
            chain = pruned.chain_of[edge]
            masks[chain] = masks.get(chain, 0) | 1 << bit
    return [masks[pruned.chain_of[edge]] if edge in pruned.chain_of else 0 for edge in free]
