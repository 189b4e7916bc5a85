"""The set that greedy finds, against the best one and against its bound, for small workloads."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_regions.runs.best_set import best_set, ranked
from spark_regions.runs.exact_set import exact_set
from spark_regions.runs.net_benefit import Place, Query, Result, Workload, reads
from spark_regions.runs.program import GAP

GAINS = st.floats(0.01, 10)


@st.composite
def workloads(draw, chains=False, free=False, pins=True):
    count = draw(st.integers(1, 7))
    results = tuple(
        Result(
            f"r{number}",
            draw(st.integers(1, 100)),
            0.0 if free else draw(st.floats(0, 5)),
            pins and draw(st.integers(0, 9)) == 0,
        )
        for number in range(count)
    )
    queries = []
    for _ in range(draw(st.integers(1, 4))):
        places = []
        for number in range(draw(st.integers(0, 5))):
            above = number - 1 if chains else draw(st.integers(-1, number - 1))
            places.append(Place(above, draw(st.dictionaries(st.integers(0, count - 1), GAINS, max_size=3))))
        queries.append(Query(draw(st.floats(0, 3)), tuple(places)))
    return Workload(results, tuple(queries))


def tried(workload: Workload, budget: float) -> float:
    """The most net benefit, of all sets that fit and hold what is pinned."""
    pinned = {number for number, result in enumerate(workload.results) if result.pinned}
    others = [number for number in range(len(workload.results)) if number not in pinned]
    sets = (pinned | set(more) for size in range(len(others) + 1) for more in combinations(others, size))
    fitting = (each for each in sets if sum(workload.results[number].bytes for number in each) <= budget)
    return max(workload.net(each) for each in fitting)


def read_by_trying(query: Query, chosen: set[int]) -> float:
    """The most that reads of the chosen results save, of all that are not below each other."""

    def above(number: int) -> set[int]:
        at, found = query.places[number].above, set()
        while at >= 0:
            found.add(at)
            at = query.places[at].above
        return found

    options = [(n, gain) for n, place in enumerate(query.places) for r, gain in place.gains.items() if r in chosen]
    best = 0.0
    for size in range(1, len(query.places) + 1):
        for some in combinations(options, size):
            numbers = {number for number, _ in some}
            if len(numbers) == size and not any(above(number) & numbers for number in numbers):
                best = max(best, sum(gain for _, gain in some))
    return best


@settings(max_examples=300, deadline=None)
@given(workloads(), st.sets(st.integers(0, 6)))
def test_a_query_reads_what_saves_most(workload, chosen):
    for query in workload.queries:
        found = sum(gain for _, gain in reads(query, chosen))
        assert found == pytest.approx(read_by_trying(query, chosen))


@settings(max_examples=500, deadline=None)
@given(workloads(), st.integers(0, 400))
def test_greedy_keeps_the_budget_and_its_bound_holds(workload, budget):
    pinned = sum(each.bytes for each in workload.results if each.pinned)
    if pinned > budget:
        with pytest.raises(ValueError, match="pinned results have"):
            best_set(workload, budget)
        return
    found = best_set(workload, budget)
    best = tried(workload, budget)
    assert found.bytes == sum(workload.results[number].bytes for number in found.gains) <= budget
    assert {number for number, result in enumerate(workload.results) if result.pinned} <= found.gains.keys()
    assert found.net == pytest.approx(workload.net(found.gains))
    assert found.net <= best + 1e-9 <= found.bound + 2e-9


@settings(max_examples=300, deadline=None)
@given(workloads(chains=True, free=True, pins=False), st.integers(1, 400))
def test_greedy_has_its_share_where_the_benefit_is_submodular(workload, budget):
    assert best_set(workload, budget).net >= (1 - 1 / 2.718281828) / 2 * tried(workload, budget) - 1e-9


@settings(max_examples=150, deadline=None)
@given(workloads(), st.integers(1, 400))
def test_the_program_is_as_good_as_trying_everything(workload, budget):
    if sum(each.bytes for each in workload.results if each.pinned) > budget:
        assert exact_set(workload, budget, 10.0) is None
        return
    found = exact_set(workload, budget, 10.0)
    best = tried(workload, budget)
    assert found is not None
    assert sum(workload.results[number].bytes for number in found) <= budget * (1 + 1e-6)
    assert workload.net(found) == pytest.approx(best, rel=2 * GAP, abs=1e-5)


@settings(max_examples=200, deadline=None)
@given(workloads(chains=True, free=True, pins=False))
def test_ranks_add_up_to_what_all_save(workload):
    found = ranked(workload)
    everything = set(range(len(workload.results)))
    assert found.keys() == everything
    assert all(gain >= 0 for gain in found.values())
    assert sum(found.values()) == pytest.approx(workload.saved(everything))
