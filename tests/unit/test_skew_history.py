"""What a stage took before is its load when it runs again."""

from __future__ import annotations

import time
from typing import Any

import pytest
from test_planner_skew import ADAPTIVE, MB, shuffle

from spark_regions.errors import InvalidRequest
from spark_regions.planner.service import Service
from spark_regions.skew.history import StageHistory, observed
from spark_regions.wire.frames import Unreadable
from spark_regions.wire.messages import Hello
from tests.harness.wire import handled, read

SIZES = [10 * MB] * 6
SECONDS = [1.0, 1.0, 8.0, 1.0, 1.0, 1.0]


def ran(sizes: list[int] = SIZES, seconds: list[float] = SECONDS, tasks: list[list[int]] | None = None) -> Any:
    """A `stage` event; `seconds` by task, a task a partition if nothing else is said."""
    tasks = [[number] for number in range(len(sizes))] if tasks is None else tasks
    read = [
        {
            "partitions": partitions,
            "bytes": sum(sizes[at] for at in partitions),
            "rows": sum(sizes[at] for at in partitions) // 100,
            "seconds": took,
        }
        for partitions, took in zip(tasks, seconds, strict=True)
    ]
    rows = [size // 100 for size in sizes]
    told = {"type": "stage", "query": 1, "shape": "s", "lineage": "rows of today"}
    return told | {"bytes": sizes, "rows": rows, "tasks": read}


def observed_as_read(told: Any) -> StageHistory:
    return observed(read(told))


def asked(sizes: list[int] = SIZES, lineage: str | None = "rows of today", cores: int = 2, **more: Any) -> Any:
    stage = {"operator": "group_apply", "cores": cores, "left": shuffle(sizes), "right": None}
    request = {"type": "skew", "seq": 5, "deadlineSeconds": 5.0, "adaptive": ADAPTIVE, "stage": stage}
    return request | {"shape": "s", "lineage": lineage} | more


def test_a_task_of_several_partitions_is_divided_by_what_the_others_tell() -> None:
    sizes = [10 * MB, 10 * MB, 30 * MB, 20 * MB, 40 * MB, 50 * MB]
    seconds = [1.1, 8.1, 2.1, 4.1, 5.1]
    found = observed_as_read(ran(sizes, seconds, [[0], [1, 2], [3], [4], [5]]))
    assert found.seconds[1] * 3 == pytest.approx(found.seconds[2])
    assert found.seconds[1] + found.seconds[2] == pytest.approx(8.1 - found.model.fixed)
    assert found.seconds[0] + found.model.fixed == pytest.approx(1.1)


CUT = [[0, 1, 2], [], [3, 4]]


def test_slices_tell_nothing_of_partitions() -> None:
    found = observed_as_read(ran(seconds=[1.0, 1.0, 1.0], tasks=CUT))
    assert not found.whole and observed_as_read(ran()).whole


@pytest.mark.parametrize("trend", [-1, 0, 1])
def test_tasks_of_one_size_tell_no_fixed_part(trend: int) -> None:
    """Adaptive execution makes tasks of about one size; whether the larger ones happened to take less says nothing."""
    sizes = [(20 + at) * MB for at in (0, 1, 0, 2, 1, 2)]
    seconds = [0.6 + trend * 0.02 * at + 0.03 * (number % 2) for number, at in enumerate((0, 1, 0, 2, 1, 2))]
    model = observed_as_read(ran(sizes, seconds)).model
    assert model.fixed == 0.0
    assert model.predict(20 * MB, 20 * MB // 100) == pytest.approx(0.6, rel=0.1)


def test_tasks_of_many_sizes_that_take_alike_tell_one() -> None:
    sizes = [each * MB for each in (1, 40, 5, 20, 80, 2)]
    assert observed_as_read(ran(sizes, [1.0, 1.02, 0.99, 1.01, 1.0, 1.01])).model.fixed == pytest.approx(1.0, abs=0.02)


def test_two_tasks_tell_no_fixed_part() -> None:
    """A line through two points would say that each task takes 2.9 s whatever it reads."""
    model = observed_as_read(ran([10 * MB, 11 * MB], [3.0, 3.01])).model
    assert (model.fixed, model.seconds_per_row) == (0.0, 0.0)
    assert model.seconds_per_byte == pytest.approx(6.01 / (21 * MB))


def test_the_same_rows_took_what_they_took_others_go_by_their_size() -> None:
    found = observed_as_read(ran())
    rows = [size // 100 for size in SIZES]
    assert found.partition_seconds(SIZES, rows, same_rows=True) == tuple(each - found.model.fixed for each in SECONDS)
    other = found.partition_seconds(SIZES, rows, same_rows=False)
    assert len(set(other)) == 1
    assert found.partition_seconds([2 * size for size in SIZES], rows, same_rows=True) != tuple(SECONDS)
    assert found.partition_seconds(SIZES[1:], rows[1:], same_rows=True) == other[1:]


def test_kept_as_bytes() -> None:
    found = observed_as_read(ran())
    assert StageHistory.decode(found.encode()) == found
    for broken in (b"{", b"[]", b'{"model": {}, "size": 1}'):
        with pytest.raises(InvalidRequest):
            StageHistory.decode(broken)


def test_what_a_task_took_to_spill_is_left_out() -> None:
    """It is predicted anew: another memory, or other tasks beside it, and it does not come again."""
    plain, event = ran(), ran()
    event["tasks"][0] |= {"spilled": 100 * MB, "seconds": plain["tasks"][0]["seconds"] + 100 * MB / 120e6}
    found, before = observed_as_read(event), observed_as_read(plain)
    assert found.seconds == pytest.approx(before.seconds, rel=0.1)
    event["tasks"][0]["spilled"] = 10**12
    assert observed_as_read(event).seconds[0] >= event["tasks"][0]["seconds"] / 2


@pytest.mark.parametrize("change", [{"tasks": [{}]}, {"tasks": 3}, {"rows": None}, {"bytes": ["x"]}])
def test_events_that_cannot_be_read(change: dict[str, Any]) -> None:
    with pytest.raises(Unreadable, match=next(iter(change))):
        read(ran() | change)


def test_a_task_of_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        observed_as_read(ran([MB, MB], [1.0, 1.0], [[0], [1]]) | {"bytes": [MB], "rows": [1]})


@pytest.fixture
def service(tmp_path: Any) -> Any:
    return opened(tmp_path, "app-1")


def opened(folder: Any, application: str) -> Service:
    service = Service({"spark.regions.recycle.dir": str(folder), "spark.regions.recycle.namespace": "tests"})
    service.hello(Hello("", 1, application, "t", "u"))
    assert handled(service, {"type": "status", "seq": 1})  # waits for the store
    return service


def test_what_bytes_do_not_show_is_started_first(service: Service) -> None:
    """Six partitions of 10 MB, one of which takes 8 s of 13: last of three rounds on two cores, or first."""
    answer = handled(service, asked())
    assert answer and not answer["learned"] and answer["spec"]["kind"] == "none"
    handled(service, ran())
    answer = handled(service, asked())
    assert answer and answer["learned"]
    spec = answer["spec"]
    assert spec["kind"] == "order" and spec["tasks"][0] == [[2, 0]]
    assert spec["predictedMakespan"] == pytest.approx(8.0, abs=0.2)
    assert spec["plainMakespan"] > 8.9


def test_a_stage_that_was_cut_is_decided_on_as_before(service: Service) -> None:
    cut = ran(seconds=[3.0, 4.0, 2.0], tasks=CUT)
    handled(service, cut)
    assert not handled(service, asked())["learned"]
    handled(service, ran())
    handled(service, cut)
    assert handled(service, asked())["spec"]["tasks"][0] == [[2, 0]]


def test_tomorrows_rows_are_predicted_by_their_size(service: Service) -> None:
    handled(service, ran(seconds=[1.0] * 6))
    sizes = [*SIZES[1:], 60 * MB]
    spec = handled(service, asked(sizes, "rows of tomorrow"))["spec"]
    assert spec["balancedBound"] == pytest.approx(11 / 2, rel=0.05)
    assert spec["plainMakespan"] == pytest.approx(6.0, rel=0.05)


def test_another_application_knows_it_too(service: Service, tmp_path: Any) -> None:
    handled(service, ran())
    handled(service, {"type": "end"})
    other = opened(tmp_path, "app-2")
    answer = handled(other, asked())
    assert answer and answer["learned"] and answer["spec"]["kind"] == "order"
    assert not handled(other, asked(shape="another"))["learned"]


def test_of_rows_that_were_measured_and_others_measured_later_the_former_count(service: Service) -> None:
    handled(service, ran())
    handled(service, ran(seconds=[0.1] * 6) | {"lineage": "others"})
    for _ in range(2):
        assert handled(service, asked())["spec"]["kind"] == "order"
        assert handled(service, asked(lineage="new"))["spec"]["balancedBound"] < 0.5
        time.sleep(0.5)  # written behind


def test_what_cannot_be_read_any_more_is_done_without(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    assert service.session
    service.session.graph.record_stage("s", "rows of today", b"{")
    answer = handled(service, asked())
    assert answer and not answer["learned"] and answer["spec"]["kind"] == "none"
    assert "without what it took before" in caplog.text
