"""One call for all methods: `plan(physical, cost="bytes", method="exact")`."""

from __future__ import annotations

import math
import time
from collections.abc import Collection

from spark_regions.costs.cost_models import BoundedCost, CostModel, SeparableCost, cost_model
from spark_regions.costs.first_response import FirstResponse
from spark_regions.costs.materialized_bytes import MaterializedBytes
from spark_regions.costs.region_seconds import RegionSeconds
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.errors import ConfError
from spark_regions.regions import baselines, exact, leaders, maestro, search
from spark_regions.regions.planned import Planned
from spark_regions.regions.properties import TECHNIQUES

METHODS = ("exact", "top-down", "bottom-up", "baseline", "tds", "bus", "maestro")


def plan(
    physical: PhysicalPlan,
    cost: str | CostModel = "bytes",
    method: str = "exact",
    *,
    greedy: bool = False,
    without: Collection[str] = (),
    deadline: float = math.inf,
) -> Planned:
    """A region plan by one of `METHODS`.

    :param cost: a cost model or its name
    :param greedy: of top-down and bottom-up: only the cheapest neighbour is followed
    :param without: of `TECHNIQUES`, those not to use
    :param deadline: seconds after which the best plan so far is returned, with whether it is proven
    :raises ConfError: an unknown method or technique
    :raises CostModelError: an unknown or unfit cost model
    """
    start = time.monotonic()
    model = cost_model(cost) if isinstance(cost, str) else cost
    unknown = [name for name in without if name not in TECHNIQUES]
    if method not in METHODS or unknown:
        found, expected = (method, METHODS) if method not in METHODS else (unknown[0], TECHNIQUES)
        raise ConfError(f"Found {found!r}, expected one of {', '.join(expected)}.")
    ends = start + deadline
    bound, proven, states = 0.0, False, 1
    notes: dict[str, object] = {}
    best: RegionPlan
    if method == "exact" and isinstance(model, SeparableCost) and model.condition_one and model.condition_two:
        solved = exact.solve(physical, model, ends, frozenset(without))
        best, bound = solved.best, solved.bound
        states += sum(programs for *_, programs in solved.kernels)
        keys = ("operators", "undecided_edges", "cycles", "programs")
        notes["kernels"] = [dict(zip(keys, kernel, strict=True)) for kernel in solved.kernels]
        proven = model.cost(best) <= bound * (1 + 1e-9)
    elif method == "exact" and isinstance(model, RegionSeconds):
        led = leaders.solve_leaders(physical, model, ends, frozenset(without))
        best, bound, states = led.best, led.bound, 1 + led.rounds
        notes["constraints"] = led.constraints
        proven = model.cost(best) <= bound * (1 + 1e-9)
    elif method == "maestro":
        return _by_maestro(physical, model, start, ends)
    elif method == "tds":
        best = baselines.top_down_seed(physical)
    elif method == "bus":
        best = baselines.bottom_up_seed(physical)
        proven = best.schedulable and model.condition_one
    elif method == "baseline":
        best = baselines.baseline(physical)
        states = 1 + len(physical.edges) - len(physical.blocking)
    else:
        direction = method if method != "exact" else search.BOTTOM_UP if model.condition_one else search.TOP_DOWN
        techniques = [name for name in TECHNIQUES if name not in without]
        candidates = _candidates(physical, ends) if method == "exact" else []
        searched = search.search(physical, model, direction, techniques, ends, greedy, candidates)
        best, states = searched.best, searched.states
        proven = searched.complete and not greedy
        notes |= {"complete": searched.complete, "techniques": sorted(searched.techniques)}
    spent = model.cost(best) if best.schedulable else math.inf
    if isinstance(model, BoundedCost):
        bound = max(bound, model.least(physical))
        proven = proven or spent <= bound
    bound = spent if proven else min(bound, spent)
    return Planned(method, model.name, best, spent, bound, proven, states, time.monotonic() - start, notes)


def _candidates(physical: PhysicalPlan, ends: float) -> list[RegionPlan]:
    """Plans that are good by other measures, for costs that only a search can minimise."""
    found = [baselines.bottom_up_seed(physical), baselines.baseline(physical)]
    found.append(exact.solve(physical, MaterializedBytes(), ends).best)
    found.append(leaders.solve_leaders(physical, RegionSeconds(), min(ends, time.monotonic() + 1)).best)
    return found


def _by_maestro(physical: PhysicalPlan, model: CostModel, start: float, ends: float) -> Planned:
    """Its cost is the model's; for region costs that of Maestro's own regions, which overlap."""
    done = maestro.schedule(physical, model.name, deadline=ends)
    found = RegionPlan(physical, physical.blocking.union(done.flow.materialized))
    if isinstance(model, RegionSeconds):
        spent = done.region_seconds
    elif isinstance(model, FirstResponse):
        spent = done.response_seconds
    else:
        spent = model.cost(found)
    states = 1 + sum(len(conflict.choices) for conflict in done.conflicts)
    seconds = time.monotonic() - start
    return Planned("maestro", model.name, found, spent, 0.0, False, states, seconds, done.document())
