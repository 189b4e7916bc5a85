"""Loads, ranges, Spark's own rules, replays and the streaming loop, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from spark_regions.skew.adapt import Adaptive
from spark_regions.skew.aqe import AdaptiveConf, adaptive_tasks, splits_anything
from spark_regions.skew.boundaries import boundaries, weights
from spark_regions.skew.loads import LoadModel, TaskTime, fit
from spark_regions.skew.operators import Operator
from spark_regions.skew.packing import in_order, lpt, pack
from spark_regions.skew.simulate import Allotment, balancing_ratio, compare, replay
from spark_regions.skew.spec import Kind, SkewSpec
from spark_regions.skew.stage import Costs, Shuffle, Stage
from spark_regions.skew.streaming import Control, Stream, run
from spark_regions.skew.work import Phase

MB = 1 << 20


def test_a_line_through_tasks_is_found():
    model = fit(TaskTime(size * 10**6, size * 10**4, 0.1 + size / 10) for size in (10, 20, 40))
    assert model.fixed == pytest.approx(0.1)
    assert model.seconds_per_byte == pytest.approx(1e-7)
    assert model.error_share == pytest.approx(0, abs=1e-6)
    assert model.loads([80 * 10**6, 0], [1, 0]) == (pytest.approx(8.1), 0.0)


def test_rows_are_taken_where_they_explain_more():
    tasks = [TaskTime(size, rows, rows / 1000) for size, rows in ((50, 100), (40, 900), (60, 400), (45, 2000))]
    model = fit(tasks)
    assert (model.seconds_per_byte, model.seconds_per_row) == (0.0, pytest.approx(0.001))


@pytest.mark.parametrize(
    "tasks",
    [
        [],
        [TaskTime(0, 0, 1.0)],
        [TaskTime(10, 1, 2.0)],
        [TaskTime(10, 1, 2.0), TaskTime(10, 1, 4.0)],
        [TaskTime(10, 1, 4.0), TaskTime(20, 2, 2.0), TaskTime(30, 3, 1.0)],
        [TaskTime(10, 1, 0.1), TaskTime(100, 10, 5.0), TaskTime(1000, 100, 70.0)],
    ],
)
def test_no_factor_is_negative_and_the_error_is_known(tasks):
    model = fit(tasks)
    assert min(model.fixed, model.seconds_per_byte, model.seconds_per_row) >= 0
    assert model.error_share >= 0
    assert model.predict(10, 1) > 0
    assert (model == LoadModel()) == (not [task for task in tasks if task.bytes])


VALUES = [("a", 1.0), ("b", 6.0), ("c", 1.0), ("d", 4.0)]


@pytest.mark.parametrize(
    ("parts", "ties_free", "expected"),
    [
        (1, True, (12.0,)),
        (2, True, (6.0, 6.0)),
        (4, True, (3.0, 3.0, 3.0, 3.0)),
        (2, False, (7.0, 5.0)),
        (3, False, (1.0, 6.0, 5.0)),
    ],
)
def test_ranges_of_equal_weight(parts, ties_free, expected):
    found = weights(VALUES, boundaries(VALUES, parts, ties_free))
    assert max(found) == pytest.approx(max(expected))
    assert sum(found) == pytest.approx(12)
    if ties_free:
        assert found == pytest.approx(expected)


def test_ranges_of_nothing():
    assert boundaries([], 4, True) == ()
    assert boundaries([("a", 0.0)], 4, False) == ()
    assert weights([], ()) == (0.0,)


def join(sizes, operator=Operator.INNER_JOIN, maps=10, **more):
    count = len(sizes)
    left = Shuffle(tuple(sizes), (1,) * count, maps=maps, **more)
    return Stage(operator, tuple(size / MB for size in sizes), left, 4, Shuffle((0,) * count, (0,) * count))


FREE = Costs(0.0, 0.0, 0.0, 0.0)


def test_adaptive_execution_splits_above_five_medians_and_256_mb():
    sizes = [100 * MB] * 6 + [1000 * MB]
    tasks = adaptive_tasks(join(sizes), FREE)
    assert tasks == pytest.approx((100.0,) * 6 + (100.0,) * 10)
    assert adaptive_tasks(join([10 * MB] * 6 + [200 * MB]), FREE)[-1] == pytest.approx(200), "under the threshold"
    assert splits_anything(join(sizes))
    assert not splits_anything(join(sizes, maps=1)), "a block of one map task stays whole"
    assert not splits_anything(join(sizes, Operator.FULL_JOIN))
    assert not splits_anything(join(sizes, Operator.RIGHT_JOIN)), "the skewed side is the left one"


def test_adaptive_execution_packs_neighbours():
    stage = join([10 * MB] * 12)
    assert adaptive_tasks(stage, FREE) == pytest.approx((30.0,) * 4), "120 MB on four cores"
    advisory = AdaptiveConf(parallelism_first=False)
    assert adaptive_tasks(stage, FREE, advisory) == pytest.approx((60.0, 60.0)), "up to 64 MB"
    uneven = join([30 * MB, 0, 50 * MB, 10 * MB], maps=1)
    assert adaptive_tasks(uneven, FREE, advisory) == pytest.approx((30.0, 60.0))


def test_orders_and_packs():
    assert in_order([], 3).makespan == 0
    assert in_order([1, 1, 1, 1, 4], 2).makespan == 6
    assert lpt([1, 1, 1, 1, 4], 2).makespan == 4
    assert pack([], 3) == ()
    assert pack([], 3, contiguous=True) == ()
    with pytest.raises(ValueError, match="0 groups"):
        pack([1.0], 0)


def test_a_replay_waits_between_phases():
    found = replay([Phase(0.5, (3.0, 1.0)), Phase(1.0, (2.0,))], 2)
    assert found.makespan == pytest.approx(0.5 + 3 + 1 + 2)
    assert found.max_over_median == 1.5
    assert found.balance == pytest.approx(6 / 13)
    assert found.tasks == 3
    assert replay([], 2).makespan == 0


def test_the_balancing_ratio_is_an_average_over_time():
    even = [Allotment(0.0, 0, 4.0), Allotment(0.0, 1, 4.0)]
    assert balancing_ratio(even, 2, 4.0) == 1.0
    late = [Allotment(0.0, 0, 4.0), Allotment(0.0, 1, 1.0), Allotment(1.0, 1, 3.0)]
    assert balancing_ratio(late, 2, 4.0) == pytest.approx(0.25 * 0.25 + 0.75, abs=0.01)
    assert balancing_ratio([Allotment(0.0, 0, 4.0)], 2, 4.0) == 0.0
    assert balancing_ratio(even[:1], 1, 4.0) == 1.0


def test_a_decision_to_do_nothing_leaves_the_stage_to_spark():
    stage = join([100 * MB] * 6 + [1000 * MB])
    found = compare(stage, SkewSpec(Kind.NONE), FREE)
    assert found["ours"] == found["aqe"]
    assert found["plain"].makespan == pytest.approx(1100)
    assert found["aqe"].makespan < 500


STREAM = Stream((0.5, 0.1, 0.2, 0.2), total=8000, rate=80, speed=20, dispersion=4)


def fixed(tau, seed=1, **more):
    return run(STREAM, (0,), Control(Adaptive(tau, adjustments=0), eta=10, **more), seed, helpers=(1,))[0]


def test_mitigation_balances_and_a_threshold_out_of_reach_does_nothing():
    """Half of 8,000 tuples are for worker 0 and a tenth for worker 1, which is to help: 2,400 each."""
    found = fixed(100)
    assert found.iterations >= 1
    assert found.allotted[0] == pytest.approx(found.allotted[1], rel=0.1)
    never = fixed(10_000)
    assert (never.iterations, never.first) == (0, None)
    assert never.allotted[0] > 4 * never.allotted[1]
    assert never.balancing_ratio < 0.3 < found.balancing_ratio


def test_a_small_threshold_takes_more_iterations_and_a_large_one_starts_late():
    small, middle, large = fixed(10), fixed(200), fixed(1500)
    assert small.iterations > middle.iterations >= large.iterations
    assert small.first < middle.first < large.first
    assert large.balancing_ratio < middle.balancing_ratio


def test_adapted_thresholds_end_between_the_extremes():
    for tau in (10, 2000):
        adapted = run(STREAM, (0,), Control(Adaptive(tau), eta=10), 1, helpers=(1,))[0]
        assert 10 < adapted.tau < 2000
        assert adapted.balancing_ratio > fixed(1500).balancing_ratio
        assert adapted.iterations < fixed(10).iterations


def test_what_takes_long_to_move_is_detected_earlier():
    """The gap grows by about 20 a second (40 arrive at worker 0, 8 at worker 1, of 20 that each can do)."""
    at_once, slow = fixed(500), fixed(500, migration_seconds=10.0)
    assert at_once.first == pytest.approx(25, abs=4)
    assert 6 < at_once.first - slow.first < 20
    assert slow.balancing_ratio > fixed(1500).balancing_ratio


def test_a_simulation_repeats_itself_and_the_seed_matters():
    assert fixed(50, 3) == fixed(50, 3)
    assert fixed(50, 3) != fixed(50, 4)
    chosen = run(STREAM, (0,), Control(Adaptive(100, adjustments=0), eta=10), 1)[0]
    assert sum(chosen.allotted) in (pytest.approx(0.6 * 8000, rel=0.1), pytest.approx(0.7 * 8000, rel=0.1))
