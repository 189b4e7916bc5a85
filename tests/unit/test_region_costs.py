"""Cost models: our own by hand, those of others by entry point, and what happens to unfit ones."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest
from region_oracle import ids, labelled, workflow

from spark_regions.costs.cost_models import GROUP, cost_model
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.errors import ConfError, CostModelError
from spark_regions.regions.planning import plan

FIGURE = workflow(
    "e1 v1 v2 4", "e2 v1 v3 5", "e3 v3 v4 2", "e4 v2 v4 1 !", "e5 v4 v5 3",
    seconds={"v1": 1, "v2": 2, "v3": 30, "v4": 4, "v5": 5}, first={"v3": 0.5, "v4": 0.25, "v5": 0.125},
)  # fmt: skip


class Doubled:
    """Twice the bytes."""

    name = "doubled"
    condition_one = True
    condition_two = True

    def cost(self, found: RegionPlan) -> float:
        return 2 * found.bytes_materialized

    def edge_cost(self, plan: PhysicalPlan, edge: int) -> float:
        return 2 * plan.edges[edge].bytes


def test_our_own_by_hand() -> None:
    found = labelled(FIGURE, "e2")
    assert cost_model("bytes").cost(found) == 6.0
    # {v1, v2} and {v3, v4, v5}.
    assert cost_model("seconds").cost(found) == 2 + 30
    # {v1, v2} ends, then a first row passes v3, v4 and v5; what e4 holds is read before.
    assert cost_model("first-response").cost(found) == 2 + 0.5 + 0.25 + 0.125


def test_conditions_of_our_own() -> None:
    declared = {name: cost_model(name) for name in ("bytes", "seconds", "first-response")}
    assert {name: (model.condition_one, model.condition_two) for name, model in declared.items()} == {
        "bytes": (True, True),
        "seconds": (True, False),
        "first-response": (False, False),
    }


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("Doubled", "NoConditions", "NoEdgeCost", "instance", "Negative")
    points = EntryPoints(EntryPoint(name, f"{__name__}:{name}", GROUP) for name in names)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **given: points.select(**given))


class NoConditions:
    name = "none"

    def cost(self, found: RegionPlan) -> float:
        return 0.0


class NoEdgeCost(NoConditions):
    condition_one = condition_two = True


class Negative(Doubled):
    def edge_cost(self, plan: PhysicalPlan, edge: int) -> float:
        return -1.0


instance = Doubled()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["Doubled", "instance"])
def test_a_cost_of_ones_own(name: str) -> None:
    found = plan(FIGURE, name)
    assert (found.cost_model, found.cost, found.proven) == ("doubled", 6.0, True)
    assert ids(FIGURE, found.best.materialized) == {"e3", "e4"}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NoConditions", "Cost model none does not declare condition_one, expected true or false"),
        ("NoEdgeCost", "Cost model none declares condition II, so it needs a method edge_cost"),
        ("Unknown", "Found cost 'Unknown', expected one of bytes, first-response, seconds or an entry point of"),
        ("Negative", r"Edge e1 costs -1; condition I asks for zero or above"),
    ],
)
def test_unfit_costs(name: str, said: str) -> None:
    with pytest.raises(CostModelError, match=said):
        plan(FIGURE, name)


def test_unknown_methods_and_techniques() -> None:
    with pytest.raises(ConfError, match="Found 'best', expected one of exact, top-down"):
        plan(FIGURE, method="best")
    with pytest.raises(ConfError, match="Found 'luck', expected one of chains, clean, hopeless, early-stop"):
        plan(FIGURE, without=("luck",))
