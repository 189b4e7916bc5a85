"""The exact planner beyond the reach of brute force: against the program over potentials, and its own pieces."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest
from region_oracle import ids, schedulable, workflow
from scipy.optimize import Bounds, LinearConstraint, milp

from spark_regions.costs.region_seconds import RegionSeconds
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import Edge, Operator, PhysicalPlan, physical_plan
from spark_regions.regions.cover import cover
from spark_regions.regions.kernel import reduce_plan
from spark_regions.regions.leaders import solve_leaders
from spark_regions.regions.planning import plan


def random_plan(operators: int, edges: int, seed: int) -> PhysicalPlan:
    chance = random.Random(seed)
    ends = [(chance.randrange(max(0, head - 8), head), head) for head in range(1, operators)]
    while len(ends) < edges:
        tail, head = sorted(chance.sample(range(operators), 2))
        if head - tail < 15:
            ends.append((tail, head))
    blocks = [chance.random() < 0.2 for _ in range(operators)]
    return physical_plan(
        [Operator(f"v{place}", round(chance.lognormvariate(1, 1), 2)) for place in range(operators)],
        [Edge(f"e{n}", f"v{a}", f"v{b}", chance.randrange(1, 10_000), blocks[a]) for n, (a, b) in enumerate(ends)],
    )


def by_potentials(physical: PhysicalPlan) -> float:
    """min sum w x with x = 1 on blocking edges and x <= f(v) - f(u) <= L x: no reductions, no cycles."""
    edges, operators = len(physical.edges), len(physical.operators)
    longest = operators
    rows, low, high = [], [], []
    for edge, (tail, head) in enumerate(zip(physical.tails, physical.heads, strict=True)):
        for factor, bounds in ((1.0, (0.0, np.inf)), (float(longest), (-np.inf, 0.0))):
            row = np.zeros(edges + operators)
            row[edges + head], row[edges + tail], row[edge] = 1, -1, -factor
            rows.append(row)
            low.append(bounds[0])
            high.append(bounds[1])
    least = [float(edge in physical.blocking) for edge in range(edges)]
    weights = np.array([edge.bytes for edge in physical.edges])
    found = milp(
        np.concatenate([weights / weights.max(), np.zeros(operators)]),
        integrality=[1] * edges + [0] * operators,
        bounds=Bounds([*least, *[0.0] * operators], [1.0] * edges + [float(longest)] * operators),
        constraints=LinearConstraint(np.array(rows), low, high),
        options={"mip_rel_gap": 0.0},
    )
    assert found.success
    return float(found.fun * weights.max())


@pytest.mark.parametrize("seed", range(12))
def test_exact_agrees_with_the_program_over_potentials(seed: int) -> None:
    physical = random_plan(30, 50, seed)
    found = plan(physical)
    assert found.proven
    assert schedulable(physical, found.best.materialized)
    assert found.cost == pytest.approx(by_potentials(physical), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_reductions_do_not_change_the_optimum(seed: int) -> None:
    physical = random_plan(80, 128, seed)
    costs = {plan(physical, without=without).cost for without in ((), ("chains",), ("clean",), ("chains", "clean"))}
    assert len(costs) == 1


@pytest.mark.parametrize("seed", range(4))
def test_exact_seconds_beat_every_other_method(seed: int) -> None:
    physical = random_plan(30, 48, seed)
    best = plan(physical, "seconds")
    assert best.proven
    assert schedulable(physical, best.best.materialized)
    for method, greedy in (("baseline", False), ("top-down", True), ("bottom-up", True), ("top-down", False)):
        assert plan(physical, "seconds", method, greedy=greedy, deadline=0.5).cost >= best.cost - 1e-9


def test_series_and_parallel_parts_need_no_program() -> None:
    """The chain's cheapest edge, and both parallel edges, part the blocking edge's ends: 3 + 2 beats 4 + 2."""
    physical = workflow("a s x 4", "b x t 3", "c s t 1", "d s t 1", "e s t 0 !")
    reduced = reduce_plan(physical, [edge.bytes for edge in physical.edges])
    assert reduced.kernels == []
    assert ids(physical, reduced.forced) == {"b", "c", "d", "e"}


def test_a_kernel_is_what_remains() -> None:
    """Two ways back from t to s that share an edge: neither a chain nor parallel."""
    physical = workflow("a s x 5", "b s y 5", "c x y 1", "d x t 5", "e y t 5", "f s t 0 !")
    (kernel,) = reduce_plan(physical, [edge.bytes for edge in physical.edges]).kernels
    assert (kernel.size, len(kernel.free)) == (4, 5)
    found = cover(kernel, math.inf)
    assert (found.weight, found.bound, found.proven) == (10.0, 10.0, True)


def test_a_deadline_leaves_a_plan_and_a_bound() -> None:
    physical = random_plan(200, 330, 1)
    hurried, full = plan(physical, deadline=0), plan(physical)
    assert full.proven
    assert schedulable(physical, hurried.best.materialized)
    assert 0 < hurried.bound <= full.cost <= hurried.cost
    led = solve_leaders(physical, RegionSeconds(), time.monotonic())
    assert schedulable(physical, led.best.materialized)
    assert led.bound <= RegionSeconds().cost(led.best)


def test_a_plan_without_edges() -> None:
    single = physical_plan([Operator("v", 3.0)], [])
    assert [plan(single, cost, method).cost for cost, method in (("bytes", "exact"), ("seconds", "exact"))] == [
        0.0,
        3.0,
    ]
    for method in ("top-down", "bottom-up", "baseline", "tds", "bus", "maestro"):
        assert plan(single, "bytes", method).cost == 0.0
    empty = physical_plan([], [])
    for cost in ("bytes", "seconds", "first-response"):
        assert plan(empty, cost).cost == 0.0
        assert plan(empty, cost, "maestro").cost == 0.0


def test_edges_that_cost_nothing() -> None:
    physical = workflow("a s x 0", "b x t 0", "c s y 0", "d y t 0", "e s t 0 !", "f x y 0")
    found = plan(physical)
    assert (found.cost, found.proven) == (0.0, True)
    assert RegionPlan(physical, found.best.materialized).schedulable


def test_large_and_small_sizes_together() -> None:
    """A petabyte beside a byte: the byte still decides."""
    physical = workflow("a s x 1e15", "b s y 3", "c x y 1", "d x t 2", "e y t 1e15", "f s t 1e15 !")
    assert ids(physical, plan(physical).best.materialized) == {"b", "c", "d", "f"}
    assert plan(physical).proven


def test_a_thousand_operators_in_a_row() -> None:
    physical = workflow(*(f"e{n} v{n} v{n + 1} {n + 1}" for n in range(999)), "long v0 v999 7 !")
    found = plan(physical)
    assert ids(physical, found.best.materialized) == {"e0", "long"}
    assert plan(physical, "seconds").proven
    assert found.seconds < 2
