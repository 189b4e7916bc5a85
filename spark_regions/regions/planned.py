"""What a method answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from spark_regions.dag.region_plan import RegionPlan


@dataclass(frozen=True)
class Planned:
    """A region plan and what is known about it.

    :param cost: in the unit of the cost model; infinite for an unschedulable plan
    :param bound: no schedulable plan costs less
    :param proven: no schedulable plan costs less than this one
    :param states: region plans that were looked at
    :param notes: what else the method found, ready for JSON
    """

    method: str
    cost_model: str
    best: RegionPlan
    cost: float
    bound: float
    proven: bool
    states: int
    seconds: float
    notes: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Ready for JSON: names in place of positions."""
        plan, found = self.best.plan, self.best
        operators, edges = plan.operators, plan.edges
        schedulable = found.schedulable
        return {
            "name": plan.name,
            "operators": len(operators),
            "edges": len(edges),
            "method": self.method,
            "cost_model": self.cost_model,
            "cost": self.cost if math.isfinite(self.cost) else None,
            "bound": self.bound,
            "proven": self.proven,
            "schedulable": schedulable,
            "bytes_materialized": found.bytes_materialized,
            "materialized": [edges[edge].id for edge in sorted(found.materialized)],
            "materialized_non_blocking": [edges[edge].id for edge in sorted(found.materialized - plan.blocking)],
            "regions": [
                {
                    "operators": [operators[place].id for place in region],
                    "rank": found.ranks[number] if schedulable else None,
                }
                for number, region in enumerate(found.regions)
            ],
            "ranks": max(found.ranks, default=0) if schedulable else None,
            "states": self.states,
            "seconds": self.seconds,
            **self.notes,
        }
