"""Loads, Spark's own rules and packing, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from spark_regions.skew.aqe import AdaptiveConf, adaptive_tasks
from spark_regions.skew.operators import Operator
from spark_regions.skew.packing import even_groups, in_order, lpt
from spark_regions.skew.reduce_stage import Costs, Shuffle, Stage
from spark_regions.skew.task_time_model import TaskTime, TaskTimeModel, fit

MB = 1 << 20


def test_a_line_through_tasks_is_found():
    model = fit(TaskTime(size * 10**6, size * 10**4, 0.1 + size / 10) for size in (10, 20, 40))
    assert model.fixed == pytest.approx(0.1)
    assert model.seconds_per_byte == pytest.approx(1e-7)
    assert model.error_share == pytest.approx(0, abs=1e-6)
    assert model.partition_seconds([80 * 10**6, 0], [1, 0]) == (pytest.approx(8.1), 0.0)


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
    assert (model == TaskTimeModel()) == (not [task for task in tasks if task.bytes])


FREE = Costs(0.0, 0.0, 0.0, 0.0)


def test_adaptive_execution_packs_neighbours():
    def tasks(sizes, **conf):
        seconds = tuple(size / MB for size in sizes)
        stage = Stage(Operator.WINDOW, seconds, Shuffle(tuple(sizes), (1,) * len(sizes)), 4)
        return adaptive_tasks(stage, FREE, AdaptiveConf(**conf))

    assert tasks([10 * MB] * 12) == pytest.approx((30.0,) * 4), "120 MB on four cores"
    assert tasks([10 * MB] * 12, parallelism_first=False) == pytest.approx((60.0, 60.0)), "up to 64 MB"
    uneven = [30 * MB, 0, 50 * MB, 10 * MB]
    assert tasks(uneven, parallelism_first=False) == pytest.approx((30.0, 60.0))
    assert tasks(uneven, advisory_bytes=0, min_bytes=0) == pytest.approx((30.0, 50.0, 10.0)), "none where it is off"


def test_orders_and_packs():
    assert in_order([], 3).makespan == 0
    assert in_order([1, 1, 1, 1, 4], 2).makespan == 6
    assert lpt([1, 1, 1, 1, 4], 2).makespan == 4
    assert even_groups([], 3) == ()
