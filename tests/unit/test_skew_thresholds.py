"""Skew test and number of helpers, as tables of numbers."""

from __future__ import annotations

import pytest

from spark_regions.skew.helpers import load_reduction, moving_pays, number_of_helpers
from spark_regions.skew.thresholds import Thresholds, burdened, passes, thresholds


@pytest.mark.parametrize(
    ("skewed", "candidate", "expected"),
    [(100, 0, True), (99, 0, False), (150, 51, False), (150, 50, True), (50, 150, False)],
)
def test_both_inequalities_must_hold(skewed, candidate, expected):
    assert passes(skewed, candidate, Thresholds(100, 100)) is expected


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
        ([30.0, 40.0, 1.0, 1.0], 4, (0, 1)),
        ([5.0], 1, ()),
    ],
)
def test_burdened_is_what_no_order_can_hide(seconds, cores, expected):
    assert burdened(seconds, cores, thresholds(seconds, cores, 0.1, 0.0)) == expected


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
