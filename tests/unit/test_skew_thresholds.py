"""Skew test, adaptive threshold and number of helpers, as tables of numbers."""

from __future__ import annotations

from math import inf

import pytest

from spark_regions.dag.moments import Moments
from spark_regions.skew.adapt import Adaptive, ErrorRange, Sample, adjust, derived_range, earlier, standard_error
from spark_regions.skew.detect import Thresholds, burdened, pairs, passes, thresholds
from spark_regions.skew.helpers import load_reduction, moving_pays, number_of_helpers

THESIS = ErrorRange(98, 110)


@pytest.mark.parametrize(
    ("skewed", "candidate", "expected"),
    [(100, 0, True), (99, 0, False), (150, 51, False), (150, 50, True), (50, 150, False)],
)
def test_both_inequalities_must_hold(skewed, candidate, expected):
    assert passes(skewed, candidate, Thresholds(100, 100)) is expected


def test_a_helper_helps_one_worker_and_is_the_least_loaded_one():
    loads = [26.0, 7.0, 17.0, 5.0, 6.0]
    assert pairs(loads, Thresholds(10, 5)) == {0: 3, 2: 4}
    assert pairs(loads, Thresholds(10, 5), {2: 3}) == {2: 3, 0: 4}
    assert pairs([5.0, 5.0, 5.0], Thresholds(1, 1)) == {}


def test_thresholds_come_from_the_loads():
    limits = thresholds([30, 4, 4, 2], 4, move=1.0, error=0.5)
    assert limits.eta == 10
    assert limits.tau == pytest.approx(2.7071, abs=1e-4)


@pytest.mark.parametrize(
    ("seconds", "cores", "expected"),
    [
        ([18.0, *[1.0] * 200], 2, ()),  # 18 times the median, and no harm on two cores if it starts first
        ([18.0, *[1.0] * 199], 24, (0,)),
        ([1.0] * 192, 48, ()),
        ([1.0] * 49, 48, (0, 48)),  # one more task than cores
        ([9.0, 1.0, 30.0, 1.0], 4, (2,)),
        ([30.0, 40.0, 1.0, 1.0], 4, (1, 0)),
        ([5.0], 1, ()),
    ],
)
def test_burdened_is_what_no_order_can_hide(seconds, cores, expected):
    assert burdened(seconds, cores, thresholds(seconds, cores, 0.1, 0.0)) == expected


def test_standard_error_of_the_mean_model():
    assert standard_error(Moments()) == inf
    assert standard_error(Moments.of(5.0)) == inf
    sample = Moments()
    for value in (8.0, 12.0, 10.0, 14.0):
        sample = sample.merge(Moments.of(value))
    assert standard_error(sample) == pytest.approx((20 / 3 * 1.25) ** 0.5)


@pytest.mark.parametrize(
    ("tau", "gap", "error", "starts", "then"),
    [
        (10, 12, 130, True, 60),  # passes, error too high: start and raise by the fixed step
        (10, 12, 105, True, 10),
        (10, 12, 50, True, 10),
        (500, 400, 105, False, 500),
        (500, 400, 130, False, 500),
        (2000, 700, 97, True, 700),  # fails, error low: the gap is the threshold
        (2000, 0, 50, False, 2000),
        (2000, -30, 50, False, 2000),
    ],
)
def test_algorithm_1_with_the_range_of_the_thesis(tau, gap, error, starts, then):
    verdict = adjust(Adaptive(tau, THESIS, step=50, adjustments=3), gap, error)
    assert (verdict.start, verdict.adapted.tau) == (starts, then)
    assert verdict.adapted.adjustments == (2 if then != tau else 3)


def test_without_adjustments_left_tau_is_fixed():
    fixed = Adaptive(10, THESIS, step=50, adjustments=0)
    assert adjust(fixed, 12, 500).adapted == fixed
    assert adjust(Adaptive(2000, THESIS, adjustments=0), 700, 1).start is False


def test_the_derived_range_raises_a_threshold_within_the_noise_and_lowers_one_far_above_it():
    limits = derived_range(300, 500)
    assert limits.low < limits.high
    noisy = adjust(Adaptive(10), 12, 100)
    assert noisy.start
    assert noisy.adapted.tau == 20, "at most doubled"
    assert adjust(Adaptive(400), 420, 100).adapted.tau == pytest.approx(300 * 2**0.5)
    assert adjust(Adaptive(500), 510, 100).adapted.tau == 500
    assert adjust(Adaptive(2000), 300, 100).start is False
    assert adjust(Adaptive(2000), 430, 100).adapted.tau == 430
    assert adjust(Adaptive(10), 12, inf).adapted.tau == 20


def test_detection_is_earlier_by_what_arrives_while_state_moves():
    assert earlier(500, 0.15, 0.05, 200, 0) == 500
    assert earlier(500, 0.15, 0.05, 200, 10) == 300


def test_the_sample_redirects_half_of_the_difference():
    sample = Sample().add(26, 7).add(26, 7)
    assert sample.redirect == pytest.approx(9.5 / 26)
    assert sample.error(5) == 0
    assert Sample().redirect == 0
    assert Sample().add(5, 9).redirect == 0


def test_load_reduction_of_one_helper_is_half_the_difference():
    assert load_reduction(0.26, 0.33, 1, 100) == pytest.approx((26 - 7) / 2)
    assert load_reduction(0.6, 0.8, 2, 100) == pytest.approx(60 - 80 / 3)
    assert load_reduction(0.1, 0.7, 1, 100) < 0


@pytest.mark.parametrize(
    ("seconds_per_helper", "expected"),
    [(0.0, 3), (2.0, 3), (4.5, 2), (9.0, 1), (24.0, 1), (25.0, 0), (100.0, 0)],
)
def test_dearer_state_takes_fewer_helpers(seconds_per_helper, expected):
    rest = [0.4 / 3] * 3
    assert number_of_helpers(0.6, rest, 100, 100, 4, lambda n: seconds_per_helper * n) == expected


def test_moving_is_futile_when_little_is_left():
    assert moving_pays(1.0, 2.0)
    assert not moving_pays(2.0, 2.0)
    assert number_of_helpers(0.6, [0.2, 0.2], 100, 4, 4, lambda n: 2.0) == 0
    assert number_of_helpers(0.2, [0.3, 0.5], 100, 100, 4, lambda n: 0.0) == 0
