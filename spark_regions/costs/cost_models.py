"""Costs of region plans by name: our own, and those of entry point group `spark_regions.cost_models`.

What a cost declares decides which properties of optimal plans a search may use (Pasta §5.3, fig. 14):

* condition I: changing a materialized edge to pipelined makes the plan unschedulable or no dearer;
* condition II: the cost is a sum of one constant for each materialized edge.

A declaration that does not hold makes plans that are called proven wrong; one that is missing only makes them late.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, runtime_checkable

from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.errors import CostModelError

GROUP = "spark_regions.cost_models"
OURS = {
    "bytes": "spark_regions.costs.materialized_bytes",
    "first-response": "spark_regions.costs.first_response",
    "seconds": "spark_regions.costs.region_seconds",
}


class CostModel(Protocol):
    """What a schedulable region plan costs, in any unit.

    A model that declares condition II also is a `SeparableCost`; any can be a `BoundedCost`.
    """

    name: str
    condition_one: bool
    condition_two: bool

    def cost(self, found: RegionPlan) -> float:
        """Of a schedulable plan, with the best of its execution orders (def. 2.6)."""


@runtime_checkable
class SeparableCost(Protocol):
    """A cost that is a sum over materialized edges."""

    def edge_cost(self, plan: PhysicalPlan, edge: int) -> float:
        """What materializing the edge costs; pipelining it costs nothing."""


@runtime_checkable
class BoundedCost(Protocol):
    """A cost that knows something of the optimum: a search that reaches it is at its end."""

    def least(self, plan: PhysicalPlan) -> float:
        """No schedulable plan costs less."""


def cost_model(name: str) -> CostModel:
    """The model of a name. An entry point names a `CostModel`, a class of such, or a module with `model`.

    :raises CostModelError: there is none, or it lacks what it must declare
    """
    if name in OURS:
        return checked(import_module(OURS[name]).model)
    # Listing entry points reads every installed distribution, so our own names do not come this way.
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        found = point.load()
        found = getattr(found, "model", found)
        return checked(found() if isinstance(found, type) else found)
    raise CostModelError(f"Found cost {name!r}, expected one of {', '.join(OURS)} or an entry point of {GROUP}.")


def checked(model: object) -> CostModel:
    """The model itself.

    :raises CostModelError: it lacks what it must declare
    """
    name = getattr(model, "name", None)
    if not isinstance(name, str) or not callable(getattr(model, "cost", None)):
        raise CostModelError(f"Found {model!r} as a cost model, expected an object with a name and a method cost.")
    for condition in ("condition_one", "condition_two"):
        if not isinstance(getattr(model, condition, None), bool):
            raise CostModelError(f"Cost model {name} does not declare {condition}, expected true or false.")
    if model.condition_two and not isinstance(model, SeparableCost):  # type: ignore[attr-defined]
        raise CostModelError(f"Cost model {name} declares condition II, so it needs a method edge_cost.")
    return model  # type: ignore[return-value]
