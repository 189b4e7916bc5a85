"""Whatever the plan, the history and the entries: the budget holds, actions nest only as allowed, covers are sound."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from builders import decided, entry, lineage, plan, signature, variant, view_of

from spark_regions.dag.plan import CandidateDataFrame
from spark_regions.decision.question import Confs
from spark_regions.matching.subsumes import column_mapping, entry_signature, subsumes
from spark_regions.optimizer.strategies import OURS
from spark_regions.optimizer.strategies.markov import pareto_front
from spark_regions.store.admission import make_room

COLUMNS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True).map(tuple)
FILTERS = st.lists(st.sampled_from("fgh"), max_size=2, unique=True).map(tuple)
SECONDS = st.floats(0, 100)
RULES = {"d": ("a", "b"), "e": ("d", "c"), "f": ()}
READS = {"f": ("a",), "g": ("b", "c"), "h": ("d",)}


@st.composite
def plans(draw):
    size = draw(st.integers(1, 14))
    children: dict[int, list[int]] = {number: [] for number in range(size)}
    for number in range(1, size):
        children[draw(st.integers(0, number - 1))].append(number)
    tree = {}
    for number in range(size):
        signed = None
        if draw(st.integers(0, 5)):
            core = f"core{draw(st.integers(0, max(1, size // 2)))}"
            signed = signature(core, draw(COLUMNS), draw(FILTERS))
        tree[number] = (draw(st.sampled_from(("Join", "Aggregate", "Project"))), signed, tuple(children[number]))
    shared = []
    for number, (_, signed, _) in tree.items():
        if signed and draw(st.booleans()):
            wide = signature(signed.core, (*signed.columns, "z"))
            shared.append(CandidateDataFrame(f"s{number}", number, draw(st.integers(1, 4)), wide, 50.0))
    refused = frozenset(draw(st.sets(st.integers(0, size - 1), max_size=3)))
    return plan(tree, RULES, READS, tuple(shared), refused)


@st.composite
def situations(draw):
    tree = draw(plans())
    variants, edges = [], {}
    for node in tree.nodes.values():
        if node.signature and draw(st.booleans()):
            executions = draw(st.integers(0, 4))
            variants.append(
                variant(
                    node.signature,
                    node.operator,
                    draw(SECONDS),
                    draw(st.floats(0, 1e7)),
                    draw(st.floats(0, 1e9)),
                    executions=executions,
                    demands=executions + draw(st.integers(0, 3)),
                )
            )
    runs = draw(st.integers(0, 20))
    for child, parent in tree.edges():
        if runs and draw(st.booleans()):
            seen = draw(st.integers(1, runs))
            edges[(child, parent)] = (seen, seen * draw(st.integers(1, 5)))
    entries = []
    for number, node in enumerate(tree.nodes.values()):
        if node.signature and draw(st.integers(0, 3)) == 0:
            stored = signature(node.signature.core, draw(COLUMNS), draw(FILTERS))
            state = draw(st.sampled_from(("committed", "committed", "pending")))
            entries.append(entry(f"e{number}", stored, draw(st.integers(0, 10**9)), state, draw(SECONDS)))
    return tree, view_of(*variants, edges=edges, runs=runs), entries


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(situations(), st.sampled_from(OURS), st.integers(0, 10**9), st.integers(0, 10**9))
def test_actions_nest_only_as_stores_above_loads_and_every_one_is_allowed(situation, name, budget, persist):
    tree, view, entries = situation
    confs = Confs(strategy=name, max_bytes=budget, persist_max_bytes=persist)
    found = decided(tree, view, entries, confs, 2)
    stores = [point.node for point, _ in found.stores]
    loads = list(found.loads)
    persists = [point.node for point in found.persists]
    taken = [*loads, *stores, *persists]
    assert len(set(taken)) == len(taken)
    assert not set(loads) & tree.above(taken), "below a load nothing runs"
    assert not set(stores) & tree.above(stores)
    assert not set(persists) & tree.above(taken)
    assert not set(taken) & tree.above(persists)
    for number in found.loads:
        match = found.matches[number]
        signed = tree.nodes[number].signature
        assert match.entry.state == "committed"
        assert signed and match.entry.core == signed.core
        assert match.entry.conjuncts <= signed.conjuncts
        if name != "always":
            assert found.saved[number] >= 0.05
    stored = set()
    for point, _ in found.stores:
        node = tree.nodes[point.node]
        assert node.storable
        assert node.children
        assert point.bytes <= budget or name == "always"
        assert point.signature.lineage not in stored
        stored.add(point.signature.lineage)
        if name != "always":
            assert point.benefit >= 0.05
    if name == "off":
        assert not stores
        assert not found.loads


@given(COLUMNS, COLUMNS)
def test_a_cover_computes_every_wanted_column_from_stored_ones(wanted, stored):
    found = column_mapping(wanted, stored, RULES)

    def computable(column):
        return column in stored or (column in RULES and all(map(computable, RULES[column])))

    assert found.missing == {column for column in wanted if not computable(column)}
    assert found.reads <= set(stored)


@given(COLUMNS, FILTERS, COLUMNS, FILTERS)
def test_serving_is_sound(columns, filters, stored_columns, stored_filters):
    """What is served can be computed: no filter too many, and the columns of every residual one are there."""
    node = signature("c", columns, filters)
    tree = plan({0: ("P", node, (1,)), 1: ("S", signature("s"), ())}, RULES, READS)
    stored = entry("e", signature("c", stored_columns, stored_filters))
    found = subsumes(tree, node, entry_signature(stored))
    if hasattr(found, "missing"):
        assert set(stored_filters) <= set(filters)
        needed = set(columns)
        for each in set(filters) - set(stored_filters):
            needed |= set(READS[each])
        assert not column_mapping(needed, stored_columns, RULES).missing


@given(
    st.lists(
        st.tuples(st.integers(0, 500), SECONDS, st.sampled_from(("committed", "pending", "evicted"))), max_size=12
    ),
    st.integers(0, 600),
    st.floats(0, 10),
    st.integers(0, 1500),
    st.sets(st.integers(0, 11)),
)
def test_the_budget_is_never_exceeded(sizes, wanted, density, budget, leased_numbers):
    entries = [
        entry(f"e{number}", signature(f"c{number}"), size, state, recompute)
        for number, (size, recompute, state) in enumerate(sizes)
    ]
    used = sum(each.bytes for each in entries)
    leased = frozenset(f"e{number}" for number in leased_numbers)
    found = make_room(entries, wanted, density, budget, 0.0, leased)
    if found.evict is None:
        return
    kept = [each for each in entries if each.id not in found.evict]
    assert sum(each.bytes for each in kept) + wanted <= budget
    assert not leased & set(found.evict)
    assert all(each.state == "committed" for each in entries if each.id in found.evict)
    if used + wanted <= budget:
        assert found.evict == ()


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), max_size=10))
def test_the_best_product_is_on_the_pareto_front(values):
    from spark_regions.dag.plan import Signature
    from spark_regions.decision.values import unmeasured
    from spark_regions.stats.estimate import Estimate

    rows = Signature("l", "c", frozenset(), ())
    known = [
        replace(unmeasured(number, rows), recompute=Estimate(benefit, 1.0), probability=probability)
        for number, (benefit, probability) in enumerate(values)
    ]
    front = pareto_front(known)
    assert bool(front) == bool(known)
    if known:
        best = max(point.benefit * point.probability for point in known)
        assert max(point.benefit * point.probability for point in front) == best


def test_lineages_of_the_builders_differ():
    assert lineage("c") != lineage("c", ("f",))
