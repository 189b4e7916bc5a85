"""The `skew` request: sizes in, a decision out, and answers to what cannot be read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from spark_regions.errors import InvalidRequest
from spark_regions.planner.service import Service
from spark_regions.planner.skew import decide_skew
from spark_regions.skew.messages import stage_of
from spark_regions.skew.operators import Operator
from spark_regions.skew.reduce_stage import Costs, Shuffle, Stage
from spark_regions.skew.task_time_model import TaskTimeModel
from spark_regions.wire.frames import Unreadable
from spark_regions.wire.messages import ReduceStage
from tests.harness.wire import handled, read, written

MB = 1 << 20
ADAPTIVE = {
    "advisoryBytes": 64 * MB,
    "minBytes": MB,
    "parallelismFirst": True,
}


def shuffle(sizes: list[int], maps: int = 10, **more: Any) -> dict[str, Any]:
    blocks = {str(number): [size // maps] * maps for number, size in enumerate(sizes)}
    return {"bytes": sizes, "rows": [size // 100 for size in sizes], "maps": maps, "blocks": blocks} | more


HEAVY = [40 * MB] * 15 + [900 * MB]
LIGHT = [MB] * 16


def request(operator: str = "full_join", cores: int = 8, **stage: Any) -> dict[str, Any]:
    found = {"operator": operator, "cores": cores, "left": shuffle(HEAVY), "right": shuffle(LIGHT)}
    return {"type": "skew", "seq": 5, "deadlineSeconds": 2.0, "adaptive": ADAPTIVE, "stage": found | stage}


def test_strategy_always_lets_sizes_decide_and_predicts_in_seconds() -> None:
    """On two cores: 1.6 GB at 50 MB a second, and what cutting costs on top."""
    asked = request(cores=2) | {"strategy": "always"}
    spec = spec_of(asked)
    assert spec["kind"] == "split_by_records"
    bound = spec_of(request(cores=2))["balancedBound"]
    assert spec["balancedBound"] == bound == pytest.approx(18, abs=3)
    assert bound < spec["predictedMakespan"] < 60 and bound < spec["plainMakespan"] < 60
    assert spec["detail"] == f"{spec['plainMakespan']:.2f} s to {spec['predictedMakespan']:.2f} s"


def spec_of(message: dict[str, Any]) -> dict[str, Any]:
    """As the shim is told."""
    return dict(written(decide_skew(read(message)).spec))


def decided(**stage: Any) -> dict[str, Any]:
    return spec_of(request(**stage))


@pytest.mark.parametrize(
    ("operator", "left", "right", "unmatched"),
    [
        ("full_join", HEAVY, LIGHT, True),
        ("full_join", LIGHT, HEAVY, True),
        ("right_join", HEAVY, LIGHT, True),
        ("left_join", LIGHT, HEAVY, True),
        ("left_join", HEAVY, LIGHT, False),
        ("semi_join", HEAVY, LIGHT, False),
        ("semi_join", LIGHT, HEAVY, True),
        ("anti_join", LIGHT, HEAVY, True),
    ],
)
def test_a_heavy_partition_is_cut_by_map_tasks(
    operator: str, left: list[int], right: list[int], unmatched: bool
) -> None:
    # A further exchange, and Spark would not split on its own.
    spec = decided(operator=operator, left=shuffle(left), right=shuffle(right), reshuffleBytes=1)
    assert spec["kind"] == "split_by_records"
    (split,) = spec["partitions"]
    assert split["partition"] == 15
    assert split["spread"] == ("left" if left is HEAVY else "right")
    assert split["unmatched"] is unmatched
    assert [split["maps"][0][0], split["maps"][-1][1]] == [0, 10]
    assert spec["predictedMakespan"] < 0.6 * spec["plainMakespan"]


def test_one_block_is_dealt_row_by_row_where_it_comes_out_the_same_again() -> None:
    one = {"left": shuffle(HEAVY, maps=1), "reshuffleBytes": 1}
    assert decided(operator="inner_join", **one)["kind"] == "order"
    assert "ONE_BLOCK" in {each["code"] for each in decided(operator="inner_join", **one)["declines"]}
    one["left"] = shuffle(HEAVY, maps=1, repeatable=True)
    (split,) = decided(operator="inner_join", **one)["partitions"]
    assert split["maps"] == []
    assert split["helpers"] > 1


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ({"residual": True}, "UNMATCHED_ROWS"),
        (
            {"operator": "semi_join", "left": shuffle(LIGHT), "right": shuffle(HEAVY), "residual": True},
            "GAIN_TOO_SMALL",
        ),
        ({"operator": "window", "right": None}, "NOT_MERGEABLE"),
        ({"left": shuffle(LIGHT)}, "BALANCED"),
    ],
)
def test_what_is_not_split_has_a_reason(stage: dict[str, Any], code: str) -> None:
    spec = decided(**stage)
    assert code in {spec["reason"], *(each["code"] for each in spec["declines"])}
    assert not spec["partitions"]


def test_sizes_alone_count_with_strategy_always() -> None:
    small = [each // MB for each in HEAVY]
    message = request(cores=2, left=shuffle(small), right=shuffle([1] * 16))
    assert spec_of(message)["kind"] == "none"
    assert spec_of(message | {"strategy": "always"})["kind"] == "split_by_records"


@pytest.mark.parametrize("more", [{}, {"operator": "inner_join", "reshuffleBytes": 200 * MB}])
def test_added_work_must_gain_more_than_the_prediction_may_be_off(more: dict[str, Any]) -> None:
    """Six tenths of the rows on two cores: a fair share is five tenths, and each added pass is doubted."""
    sizes = [250 * MB // 15] * 15 + [400 * MB]
    spec = decided(cores=2, left=shuffle(sizes), **more)
    assert spec["kind"] in ("none", "order")
    assert "GAIN_TOO_SMALL" in {spec["reason"], *(each["code"] for each in spec["declines"])}
    spec = decided(cores=16, left=shuffle(sizes), **more)
    assert spec["kind"] == "split_by_records"


def test_slices_look_partners_up_where_the_other_input_is_small() -> None:
    sizes = [250 * MB // 15] * 15 + [400 * MB]
    spec = decided(cores=2, left=shuffle(sizes), hashable=True)
    (split,) = spec["partitions"]
    assert split["hashed"] is True
    assert spec["predictedMakespan"] < spec["balancedBound"], "less work than sorting"
    wide = shuffle(LIGHT, dataBytes=40 * 16 * MB)
    assert not any(each["hashed"] for each in decided(left=shuffle(HEAVY), right=wide, hashable=True)["partitions"])


def test_what_a_task_cannot_hold_is_priced() -> None:
    """Two fifths in one partition on two cores are balanced, but more than a sorting task's memory."""
    sizes = [400 * MB // 15] * 15 + [250 * MB]
    fits = decided(cores=2, operator="left_join", left=shuffle(sizes))
    assert fits["kind"] == "order"
    spills = decided(
        cores=2, operator="left_join", left=shuffle(sizes, dataBytes=2 * 650 * MB), sorts=True, taskMemory=150 * MB
    )
    assert spills["plainMakespan"] > fits["plainMakespan"] + 1
    assert spills["kind"] == "split_by_records", "not skewed in time, but in memory"
    assert spills["predictedMakespan"] < fits["predictedMakespan"] + 1
    even = shuffle([650 * MB // 16] * 16, dataBytes=2 * 650 * MB)
    all_alike = decided(cores=2, operator="left_join", left=even, sorts=True, taskMemory=50 * MB)
    assert all_alike["kind"] in ("none", "order")


def test_a_full_sort_spills_all_that_it_holds() -> None:
    alone = Stage(Operator.WINDOW, (1.0,), Shuffle((0,), (0,)), 2, sorts=True, task_memory=500)
    stage = replace(alone, executor_memory=1000)
    costs = Costs(spill_seconds_per_byte=1.0)
    beside = [stage.with_spills([4.0, 4.0], [data, 0.0], costs)[0] for data in (499.0, 501.0, 900.0, 1100.0)]
    assert beside == [4, 504, 504, 1004]
    assert stage.with_spills([1.0, 4.0], [0.0, 900.0], costs)[1] == 4, "alone by then"
    assert stage.with_spills([1.0, 4.0], [0.0, 1100.0], costs)[1] == 1004
    assert alone.with_spills([1.0, 4.0], [0.0, 900.0], costs)[1] == 504, "nothing is known of the executor"
    told = msgspec.convert({"operator": "window", "cores": 2, "left": shuffle([1000], dataBytes=8000)}, ReduceStage)
    assert stage_of(told, TaskTimeModel()).data(0) == 8000 + 50 * 10, "10 rows take their own bytes and more"


def test_a_window_over_a_heavy_key_starts_it_first_although_it_spills_either_way() -> None:
    """12 million rows, six tenths of them in one key: alone it spills once, beside others half as much twice."""
    rows = [150_000] * 31 + [7_350_000]
    read = {"bytes": [60 * each for each in rows], "rows": rows, "maps": 8, "dataBytes": 104 * sum(rows)}
    memory = {"sorts": True, "taskMemory": 524 * MB, "executorMemory": 1048 * MB}
    spec = decided(operator="window", cores=2, left=read, right=None, **memory)
    assert spec["kind"] == "order" and spec["tasks"][0] == [[31, 0]]


def test_a_late_decision_is_cut_short() -> None:
    found = spec_of(request() | {"deadlineSeconds": 0.0})
    assert found["kind"] in ("order", "split_by_records")


@pytest.mark.parametrize(
    "broken",
    [
        {"stage": request()["stage"] | {"operator": "cartesian"}},
        {"stage": request()["stage"] | {"right": shuffle([1])}},
    ],
)
def test_what_cannot_be_read_is_said(broken: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        decide_skew(read(request() | broken))
    answer = handled(Service({}), request() | broken)
    assert (answer["type"], answer["code"], answer["seq"]) == ("error", "PLANNER_PROTOCOL", 5)


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        ({"stage": 3}, r"\$.stage"),
        ({"adaptive": {}}, "advisoryBytes"),
        ({"stage": request()["stage"] | {"left": {"rows": [1]}}}, "bytes"),
        ({"stage": request()["stage"] | {"tilted": True}}, "tilted"),
    ],
)
def test_a_field_that_does_not_fit_is_named(broken: dict[str, Any], field: str) -> None:
    with pytest.raises(Unreadable, match=field) as found:
        read(request() | broken)
    assert (found.value.answer.code, found.value.answer.seq) == ("PLANNER_PROTOCOL", 5)


def test_the_service_answers_before_the_store_is_open() -> None:
    answer = handled(Service({}), request())
    assert answer is not None
    assert (answer["type"], answer["seq"]) == ("skew", 5)
    assert json.loads(json.dumps(answer))["spec"]["kind"] == "split_by_records"
