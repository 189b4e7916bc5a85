"""The summary's bounds hold exactly under any stream, grouping and order of merges; packing keeps Graham's bounds."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_regions.skew.packing import cut, in_order, lower_bound, lpt, pack
from spark_regions.skew.sketch import HeavyHitters

ROWS = st.lists(st.tuples(st.sampled_from("abcdefghijklmnopq"), st.integers(0, 50)), max_size=60)


def check(found, rows):
    truth = Counter()
    for key, weight in rows:
        truth[key] += weight
    assert found.total == sum(truth.values())
    assert len(found.counts) <= found.capacity
    assert (found.capacity + 1) * found.error <= found.total - sum(found.counts.values())
    assert found.error * (found.capacity + 1) <= found.total
    for key in set(truth) | set(found.counts):
        low, high = found.bounds(key)
        assert low <= truth[key] <= high
    for share in found.shares():
        exact = truth[share.key] / found.total
        assert share.share - 1e-12 <= exact <= share.share + share.error + 1e-12
    # No key above the error is forgotten.
    assert {key for key, count in truth.items() if count > found.error} <= set(found.counts)
    assert HeavyHitters.from_json(found.to_json()) == found


@settings(max_examples=300, deadline=None)
@given(ROWS, st.integers(1, 8))
def test_bounds_of_one_stream(rows, capacity):
    check(HeavyHitters.of(rows, capacity), rows)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(ROWS, st.integers(1, 8)), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_bounds_under_merges_in_any_order_and_grouping(parts, random):
    rows = [row for part, _ in parts for row in part]
    sketches = [HeavyHitters.of(part, capacity) for part, capacity in parts]
    while len(sketches) > 1:
        random.shuffle(sketches)
        sketches = [sketches[0].merge(sketches[1]), *sketches[2:]]
    check(sketches[0], rows)


@given(ROWS, ROWS, st.integers(1, 8))
def test_merges_commute(left, right, capacity):
    one, two = HeavyHitters.of(left, capacity), HeavyHitters.of(right, capacity)
    assert one.merge(two) == two.merge(one)
    assert reduce(HeavyHitters.merge, [one, two]) == one.merge(two)


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
    assert lower_bound(seconds, workers) <= best + 1e-9
    assert lpt(seconds, workers).makespan <= (4 / 3 - 1 / (3 * workers)) * best + 1e-9
    assert in_order(seconds, workers).makespan <= (2 - 1 / workers) * best + 1e-9


@settings(max_examples=300, deadline=None)
@given(SECONDS, st.integers(1, 4), st.booleans())
def test_packing_takes_every_partition_once(seconds, bins, contiguous):
    groups = pack(seconds, bins, contiguous)
    assert sorted(index for group in groups for index in group) == list(range(len(seconds)))
    assert len(groups) <= bins
    assert all(groups)
    if contiguous:
        assert [index for group in groups for index in group] == list(range(len(seconds)))


@settings(max_examples=300, deadline=None)
@given(SECONDS, st.integers(1, 4))
def test_contiguous_packing_is_the_best_there_is(seconds, bins):
    def best(start, parts):
        if parts == 1:
            return sum(seconds[start:])
        return min(max(sum(seconds[start:end]), best(end, parts - 1)) for end in range(start, len(seconds) + 1))

    found = max(sum(seconds[index] for index in group) for group in pack(seconds, bins, contiguous=True))
    assert found == best(0, bins)
    ranges = cut(seconds, bins)
    assert [at for start, end in ranges for at in range(start, end)] == list(range(len(seconds)))
