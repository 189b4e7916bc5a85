"""Region planning against brute force on random DAGs, and the lemmas that its prunings rest on.

`REGION_EXAMPLES=5000 pytest tests/properties/test_region_plans.py` looks at thousands of DAGs a property.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

import region_oracle as oracle

from spark_regions.costs.cost_models import cost_model
from spark_regions.dag.region_plan import RegionPlan, strong_components
from spark_regions.dag.workflow import Edge, Operator, PhysicalPlan, physical_plan
from spark_regions.regions import maestro
from spark_regions.regions.baselines import baseline
from spark_regions.regions.cuts import minimal_cuts
from spark_regions.regions.merging import settled
from spark_regions.regions.planning import plan
from spark_regions.regions.properties import TECHNIQUES, bridges, clean_edges, maximal_chains

COSTS = ("bytes", "seconds", "first-response")
WEIGHTS = st.sampled_from((0, 0.001, 1, 2, 3, 7, 11.5, 100, 1e6, 1e12))
POSITIVE = st.sampled_from((1, 2, 3, 5, 8, 13.5, 100))
TOLERANCE = 1e-6

thorough = settings(
    max_examples=int(os.environ.get("REGION_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@st.composite
def workflows(draw, most_operators: int = 7, most_edges: int = 10, weights=WEIGHTS) -> PhysicalPlan:
    """Any DAG, parallel edges and several components included."""
    count = draw(st.integers(2, most_operators))
    pairs = [(tail, head) for head in range(count) for tail in range(head)]
    ends = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=most_edges))
    names = draw(st.permutations(range(count)))
    edges = [
        Edge(f"e{place}", f"v{names[tail]}", f"v{names[head]}", draw(weights), draw(st.integers(0, 2)) == 0)
        for place, (tail, head) in enumerate(ends)
    ]
    seconds = st.sampled_from((0, 1, 2, 5, 9.5))
    return physical_plan([Operator(f"v{place}", draw(seconds), draw(seconds) / 10) for place in range(count)], edges)


@st.composite
def region_plans(draw) -> RegionPlan:
    physical = draw(workflows())
    free = [edge for edge in range(len(physical.edges)) if edge not in physical.blocking]
    chosen = draw(st.sets(st.sampled_from(free))) if free else set()
    return RegionPlan(physical, physical.blocking | chosen)


def close(found: float, expected: float) -> bool:
    return math.isclose(found, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


@thorough
@given(region_plans())
def test_schedulable_hopeless_and_ranks_are_as_defined(found):
    graph = oracle.region_graph(found.plan, found.materialized)
    assert found.schedulable == oracle.schedulable(found.plan, found.materialized)
    assert found.hopeless == oracle.hopeless(found.plan, found.materialized)
    assert len(found.regions) == graph.number_of_nodes()
    knots = strong_components(len(found.regions), [(before, after) for before, after, _ in found.region_edges])
    assert len(set(knots)) == nx.number_strongly_connected_components(graph)
    if found.schedulable:
        assert all(found.ranks[before] < found.ranks[after] for before, after, _ in found.region_edges)
        assert min(found.ranks) == 1


@thorough
@given(region_plans())
def test_schedulable_exactly_where_there_is_a_potential(found):
    assert found.schedulable == oracle.has_potential(found.plan, found.materialized)


@thorough
@given(region_plans())
def test_lemma_3_2_a_chain_keeps_one_materialized_edge(found):
    if not found.schedulable:
        return
    for chain in maximal_chains(found.plan):
        cut = found.materialized.intersection(chain)
        for edge in cut - found.plan.blocking if len(cut) > 1 else ():
            assert oracle.schedulable(found.plan, found.materialized - {edge})


@thorough
@given(workflows(weights=POSITIVE))
def test_lemmas_3_3_to_3_10_on_every_optimal_plan(physical):
    chains, clean = maximal_chains(physical), clean_edges(physical)
    assert sorted(edge for chain in chains for edge in chain) == list(range(len(physical.edges)))
    assert bridges(physical) <= clean
    for best in oracle.optimal_plans(physical, cost_model("bytes").cost):
        chosen = best - physical.blocking
        assert chosen.isdisjoint(clean)
        for chain in chains:
            on_chain = chosen.intersection(chain)
            assert len(on_chain) <= (0 if physical.blocking.intersection(chain) else 1)
            cheapest = min((physical.edges[edge].bytes for edge in chain), default=0)
            assert all(physical.edges[edge].bytes == cheapest for edge in on_chain)


@thorough
@given(region_plans())
def test_lemma_3_7_bridges_can_be_pipelined(found):
    if found.schedulable:
        for edge in bridges(found.plan) & found.materialized:
            assert oracle.schedulable(found.plan, found.materialized - {edge})


@thorough
@given(workflows())
def test_clean_edges_share_no_cycle_with_a_blocking_edge(physical):
    # Every edge gets a point of its own, so that parallel edges are cycles to networkx too.
    graph = nx.Graph()
    for edge, (tail, head) in enumerate(zip(physical.tails, physical.heads, strict=True)):
        graph.add_edge(tail, f"e{edge}")
        graph.add_edge(f"e{edge}", head)
    touched = set()
    for cycle in nx.simple_cycles(graph):
        if any(f"e{edge}" in cycle for edge in physical.blocking):
            touched.update(cycle)
    free = set(range(len(physical.edges))) - physical.blocking
    assert clean_edges(physical) == {edge for edge in free if f"e{edge}" not in touched}


@thorough
@given(region_plans(), st.data())
def test_lemma_4_2_nothing_mends_a_hopeless_plan(found, data):
    chosen = sorted(found.materialized - found.plan.blocking)
    if found.hopeless and chosen:
        fewer = data.draw(st.sets(st.sampled_from(chosen)))
        assert not oracle.schedulable(found.plan, found.materialized - fewer)


@thorough
@given(region_plans())
def test_what_is_not_hopeless_settles_and_gets_no_dearer(found):
    if not found.hopeless:
        done = settled(found)
        assert oracle.schedulable(done.plan, done.materialized)
        assert done.plan.blocking <= done.materialized <= found.materialized


@thorough
@given(region_plans())
def test_condition_one_of_bytes_and_seconds(found):
    if found.schedulable:
        for edge in found.materialized - found.plan.blocking:
            merged = RegionPlan(found.plan, found.materialized - {edge})
            for cost in (cost_model("bytes"), cost_model("seconds")):
                assert not merged.schedulable or cost.cost(merged) <= cost.cost(found) + TOLERANCE


@thorough
@given(workflows(most_edges=8))
def test_no_plan_beats_the_bounds_of_seconds_and_first_response(physical):
    for cost in ("seconds", "first-response"):
        model = cost_model(cost)
        assert model.least(physical) <= oracle.optimum(physical, model.cost) + TOLERANCE


@thorough
@given(workflows())
def test_exact_is_the_optimum(physical):
    best = oracle.optimum(physical, cost_model("bytes").cost)
    for without in ((), ("chains",), ("clean",), ("chains", "clean")):
        found = plan(physical, without=without)
        assert found.proven
        assert oracle.schedulable(physical, found.best.materialized)
        assert physical.blocking <= found.best.materialized
        assert close(found.cost, best)
        assert close(found.bound, best)


@thorough
@given(workflows())
def test_exact_seconds_are_the_optimum(physical):
    best = oracle.optimum(physical, cost_model("seconds").cost)
    for without in ((), ("chains", "clean")):
        found = plan(physical, "seconds", without=without)
        assert found.proven
        assert oracle.schedulable(physical, found.best.materialized)
        assert close(found.cost, best)


@thorough
@given(workflows(most_edges=8), st.sampled_from(COSTS), st.sets(st.sampled_from(TECHNIQUES)))
def test_exhaustive_searches_find_the_optimum(physical, cost, without):
    best = oracle.optimum(physical, cost_model(cost).cost)
    for direction in ("top-down", "bottom-up"):
        found = plan(physical, cost, direction, without=without)
        assert found.proven
        assert oracle.schedulable(physical, found.best.materialized)
        assert close(found.cost, best)
    assert close(plan(physical, cost).cost, best)


@thorough
@given(workflows(most_edges=8), st.sampled_from(COSTS), st.sets(st.sampled_from(TECHNIQUES)))
def test_greedy_and_hurried_searches_find_schedulable_plans(physical, cost, without):
    best = oracle.optimum(physical, cost_model(cost).cost)
    for direction in ("top-down", "bottom-up"):
        for greedy, deadline in ((True, math.inf), (False, 0), (True, 0)):
            found = plan(physical, cost, direction, greedy=greedy, deadline=deadline, without=without)
            assert oracle.schedulable(physical, found.best.materialized)
            assert found.bound <= best + TOLERANCE
            assert found.cost >= best - TOLERANCE
            assert not found.proven or close(found.cost, best)
    for method in ("baseline", "tds", "exact"):
        found = plan(physical, cost, method, deadline=0)
        assert found.bound <= best + TOLERANCE
        assert found.cost >= best - TOLERANCE


@thorough
@given(workflows())
def test_baseline_is_the_heuristic_word_by_word(physical):
    materialized = set(range(len(physical.edges)))
    for operator in physical.topological:
        for edge in physical.out_edges[operator]:
            if edge not in physical.blocking and oracle.schedulable(physical, materialized - {edge}):
                materialized.remove(edge)
    assert baseline(physical).materialized == materialized


@thorough
@given(workflows())
def test_minimal_cuts_are_all_and_minimal(physical):
    edges = dict(enumerate(zip(physical.tails, physical.heads, strict=True)))
    target = physical.topological[-1]
    sources = [place for place, into in enumerate(physical.in_edges) if not into and place != target]

    def parts(cut):
        graph = nx.DiGraph([ends for edge, ends in edges.items() if edge not in cut])
        graph.add_nodes_from(range(len(physical.operators)))
        return not any(nx.has_path(graph, source, target) for source in sources)

    found = list(minimal_cuts(edges, sources, target))
    assert len(found) == len(set(found))
    cuts = [cut for cut in _subsets(edges) if parts(cut)]
    minimal = {cut for cut in cuts if not any(other < cut for other in cuts)}
    assert set(found) == minimal - {frozenset()}


def _subsets(edges):
    names = sorted(edges)
    return [frozenset(name for place, name in enumerate(names) if bits >> place & 1) for bits in range(1 << len(names))]


@thorough
@given(workflows(), st.sampled_from(COSTS))
def test_maestro_makes_every_workflow_schedulable(physical, goal):
    done = maestro.schedule(physical, goal)
    assert 0 not in done.flow.ranks
    for conflict in done.conflicts:
        assert conflict.choices
        chosen = conflict.choices[conflict.chosen]
        assert goal != "bytes" or chosen.bytes == min(choice.bytes for choice in conflict.choices)


class OnlyPenalty:
    """The largest materialized edge: condition I, not II."""

    name = "largest"
    condition_one = True
    condition_two = False

    def cost(self, found):
        return max((found.plan.edges[edge].bytes for edge in found.materialized), default=0.0)


class Neither:
    """Far from half of all edges materialized: neither condition."""

    name = "half"
    condition_one = False
    condition_two = False

    def cost(self, found):
        return abs(len(found.materialized) - len(found.plan.edges) / 2)


@thorough
@given(workflows(most_edges=8), st.sampled_from((OnlyPenalty(), Neither())))
def test_only_valid_prunings_apply_to_costs_of_ones_own(physical, model):
    best = oracle.optimum(physical, model.cost)
    for method in ("exact", "top-down", "bottom-up"):
        found = plan(physical, model, method)
        assert found.proven
        assert close(found.cost, best)


@pytest.mark.parametrize("model", [OnlyPenalty(), Neither()])
def test_techniques_by_condition(model):
    physical = oracle.workflow("a x y 1", "b y z 2", "c x z 3 !")
    used = plan(physical, model, "top-down").notes["techniques"]
    assert used == (sorted(TECHNIQUES) if model.condition_one else ["hopeless"])
