"""Packing keeps Graham's bounds, and cuts of map outputs are the best there are."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_regions.skew.packing import cut, even_groups, in_order, lpt


def optimum(seconds, workers):
    best = float("inf")
    for placed in product(range(workers), repeat=len(seconds)):
        loads = [0.0] * workers
        for each, worker in zip(seconds, placed, strict=True):
            loads[worker] += each
        best = min(best, max(loads))
    return best


SECONDS = st.lists(st.integers(0, 20), min_size=1, max_size=7)


@settings(max_examples=300, deadline=None)
@given(SECONDS, st.integers(1, 3))
def test_longest_first_is_within_four_thirds_of_the_optimum(seconds, workers):
    best = optimum(seconds, workers)
    assert lpt(seconds, workers).makespan <= (4 / 3 - 1 / (3 * workers)) * best + 1e-9
    assert in_order(seconds, workers).makespan <= (2 - 1 / workers) * best + 1e-9


@settings(max_examples=300, deadline=None)
@given(SECONDS, st.integers(1, 4))
def test_packing_takes_every_partition_once(seconds, count):
    groups = even_groups(seconds, count)
    assert sorted(index for group in groups for index in group) == list(range(len(seconds)))
    assert len(groups) <= count
    assert all(groups)


@settings(max_examples=300, deadline=None)
@given(SECONDS, st.integers(1, 4))
def test_a_cut_of_map_outputs_is_the_best_there_is(sizes, parts):
    def best(start, parts):
        if parts == 1:
            return sum(sizes[start:])
        return min(max(sum(sizes[start:end]), best(end, parts - 1)) for end in range(start, len(sizes) + 1))

    ranges = cut(sizes, parts)
    assert max(sum(sizes[start:end]) for start, end in ranges) == best(0, parts)
    assert [at for start, end in ranges for at in range(start, end)] == list(range(len(sizes)))
    assert len(ranges) <= parts and all(start < end for start, end in ranges)
