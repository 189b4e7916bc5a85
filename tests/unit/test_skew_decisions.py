"""Decisions as tables of numbers: what is chosen for which operator, and every reason to decline."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from spark_regions.errors import InvalidRequest
from spark_regions.reasons import REASONS
from spark_regions.skew import pack
from spark_regions.skew import stage as stage_passes
from spark_regions.skew.aqe import AdaptiveConf
from spark_regions.skew.draft import StageDraft, StageQuestion
from spark_regions.skew.messages import stage_of
from spark_regions.skew.operators import JOINS, Input, Operator, Spread, spread
from spark_regions.skew.reduce_stage import Costs, Shuffle, Stage
from spark_regions.skew.spec import Kind
from spark_regions.skew.splits import by_records
from spark_regions.skew.stage import STAGE_PASSES
from spark_regions.skew.task_time_model import TaskTimeModel
from spark_regions.wire.messages import ReduceStage, SkewPlan

ROWS = (100_000,) * 9 + (3_000_000,)
LEFT = Shuffle(tuple(count * 100 for count in ROWS), ROWS, maps=20)
RIGHT = Shuffle((10_000,) * 10, (100,) * 10, maps=4)
APART = AdaptiveConf(advisory_bytes=0, min_bytes=0)
"""Spark would start one task a partition."""


def stage(operator=Operator.INNER_JOIN, **more):
    """Nine partitions of 1 s and one of 30 s on four cores."""
    given = {
        "seconds": tuple(count / 1e5 for count in ROWS),
        "left": LEFT,
        "cores": 4,
        "right": RIGHT if operator in JOINS else None,
    }
    return Stage(operator, **(given | more))


def plan_stage(stage, costs=Costs(), **more):  # noqa: B008
    return stage_passes.plan_stage(StageQuestion(stage, costs, APART, **more))


@pytest.mark.parametrize(
    ("operator", "kind", "at_most"),
    [
        (Operator.INNER_JOIN, Kind.RECORDS, 1.05),
        (Operator.LEFT_JOIN, Kind.RECORDS, 1.05),
        (Operator.RIGHT_JOIN, Kind.RECORDS, 1.15),
        (Operator.FULL_JOIN, Kind.RECORDS, 1.15),
        (Operator.SEMI_JOIN, Kind.RECORDS, 1.05),
        (Operator.ANTI_JOIN, Kind.RECORDS, 1.05),
        (Operator.PARTITION_WINDOW, Kind.TWO_PHASES, 1.1),
        (Operator.REPARTITION, Kind.RECORDS, 1.05),
        (Operator.AGGREGATE, Kind.ORDER, 3.1),
        (Operator.WINDOW, Kind.ORDER, 3.1),
        (Operator.GROUP_APPLY, Kind.ORDER, 3.1),
        (Operator.REDUCE, Kind.ORDER, 3.1),
    ],
)
def test_the_repair_of_every_operator(operator, kind, at_most):
    found = plan_stage(stage(operator))
    assert found.kind is kind
    assert found.plain_makespan > 3 * found.balanced_bound
    assert found.predicted_makespan <= at_most * found.balanced_bound
    assert found.reason in REASONS
    assert bool(found.splits) == (kind is not Kind.ORDER)
    assert found.told().kind == kind.value


@pytest.mark.parametrize(
    ("operator", "more", "code"),
    [
        (Operator.INNER_JOIN, {"salted": True}, "HAND_SALTED"),
        (Operator.INNER_JOIN, {"seconds": (0.0,) * 10}, "NO_HISTORY"),
        (Operator.INNER_JOIN, {"seconds": (1.0,) * 8 + (0.0,) * 2}, "BALANCED"),
        (Operator.INNER_JOIN, {"cores": 1}, "BALANCED"),
        (Operator.FULL_JOIN, {"residual": True}, "UNMATCHED_ROWS"),
        (Operator.RIGHT_JOIN, {"residual": True}, "GAIN_TOO_SMALL"),
        (
            Operator.SEMI_JOIN,
            {"residual": True, "right": replace(RIGHT, bytes=(10**11,) * 10)},
            "MIGRATION_TOO_SLOW",
        ),
        (Operator.GROUP_APPLY, {}, "NOT_MERGEABLE"),
        (Operator.GROUP_APPLY, {}, "NO_HEAVY_KEYS"),
        (Operator.REDUCE, {}, "NOT_MERGEABLE"),
        (Operator.REDUCE, {}, "UNKNOWN_OPERATOR"),
        (Operator.REPARTITION, {"left": replace(LEFT, maps=1)}, "ONE_BLOCK"),
    ],
)
def test_every_refusal_has_its_code(operator, more, code):
    found = plan_stage(replace(stage(operator), **more))
    assert code in {found.reason, *(each.code for each in found.declines)}
    assert not found.splits


def test_the_passes_are_what_their_files_are_called():
    for each in STAGE_PASSES:
        assert each.__module__ == f"spark_regions.skew.{each.__name__}"


def test_a_pass_that_decides_ends_the_others():
    draft = STAGE_PASSES[0](StageQuestion(stage(salted=True)), StageDraft())
    assert draft.spec.reason == "HAND_SALTED" and draft.candidates == ()


def test_a_gain_that_the_next_shuffle_eats_is_too_small():
    """The long partition is the first one, so that its order is right already."""
    turned = stage(
        seconds=(30.0,) + (1.0,) * 9,
        left=replace(LEFT, bytes=LEFT.bytes[::-1], rows=LEFT.rows[::-1]),
        reshuffle_bytes=10**11,
    )
    found = plan_stage(turned)
    assert (found.kind, found.reason) == (Kind.NONE, "GAIN_TOO_SMALL")
    assert plan_stage(replace(turned, reshuffle_bytes=10**8)).splits


def test_when_time_is_over_the_best_so_far_stands():
    asked = []
    early = plan_stage(stage(), expired=lambda: bool(asked.append(1)) or len(asked) >= 1)
    assert len(asked) == 1
    assert early.kind is Kind.RECORDS
    assert plan_stage(stage()).predicted_makespan <= early.predicted_makespan < early.plain_makespan


def test_the_room_stays_light():
    code = "import sys, spark_regions.skew.stage, spark_regions.skew.messages; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "spark_regions.skew.stage" in loaded
    assert not {name for name in ("numpy", "pandas", "scipy", "pyspark", "sqlalchemy") if f"'{name}'" in loaded}


def test_which_rows_may_be_spread():
    assert spread(Operator.ANTI_JOIN, Input.RIGHT) is Spread.AS_KEYS
    assert spread(Operator.LEFT_JOIN, Input.RIGHT) is Spread.MATCHED
    for operator in (Operator.FULL_JOIN, Operator.RIGHT_JOIN):
        (split,) = plan_stage(stage(operator)).splits
        assert split.unmatched
    assert not any(split.unmatched for split in plan_stage(stage(Operator.LEFT_JOIN)).splits)


def test_a_written_shuffle_is_cut_by_map_outputs():
    blocks = {9: (20_000_000,) * 14 + (10_000_000,) * 2}
    found = plan_stage(stage(Operator.LEFT_JOIN, left=replace(LEFT, maps=16, blocks=blocks)))
    (split,) = found.splits
    assert split.partition == 9
    assert split.ranges[0][0] == 0
    assert split.ranges[-1][1] == 16
    assert found.told().partitions[0].maps == split.ranges
    assert found.predicted_makespan < 1.2 * found.balanced_bound


def test_fewer_helpers_where_the_other_side_is_dear():
    """With a further condition only the left side may be spread."""
    one = stage(Operator.LEFT_JOIN, cores=16, residual=True)
    cheap = by_records(one, 1.0, Costs())
    dear = by_records(replace(one, right=replace(RIGHT, bytes=(2 * 10**9,) * 10)), 1.0, Costs())
    assert 1 < dear.splits[0].helpers < cheap.splits[0].helpers


def test_a_stage_reads_as_json_and_says_what_is_wrong():
    record = {
        "operator": "full_join",
        "cores": 4,
        "left": {"bytes": [10, 90], "rows": [1, 9], "maps": 2, "blocks": {"1": [40, 50]}},
        "right": {"bytes": [1, 1], "rows": [1, 1]},
    }
    model = TaskTimeModel(seconds_per_byte=0.1, seconds_per_row=0.0)
    read = stage_of(msgspec.convert(record, ReduceStage), model)
    assert read.seconds == (pytest.approx(1.1), pytest.approx(9.1))
    assert read.left.blocks == {1: (40, 50)}
    for broken in (
        record | {"operator": "other"},
        record | {"right": None},
        record | {"right": {"bytes": [1], "rows": [1]}},
        record | {"cores": 0},
    ):
        with pytest.raises(InvalidRequest, match="A stage cannot be read"):
            stage_of(msgspec.convert(broken, ReduceStage), model)


def test_inputs_that_disagree_are_refused():
    with pytest.raises(ValueError, match="number of partitions"):
        Stage(Operator.GROUP_APPLY, (1.0,), LEFT, 2)
    with pytest.raises(ValueError, match="one input"):
        Stage(Operator.INNER_JOIN, (1.0,) * 10, LEFT, 2)
    with pytest.raises(ValueError, match="two inputs"):
        Stage(Operator.SORT, (1.0,) * 10, LEFT, 2, RIGHT)
    with pytest.raises(ValueError, match="at least one core"):
        stage(cores=0)


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "skew.md").read_text(encoding="utf-8")


def test_the_page_names_every_operator_kind_and_decline():
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert {each.value for each in Operator} <= named
    assert {each.value for each in Kind} <= named
    codes = set(re.findall(r"`([A-Z_]{4,})`", PAGE))
    assert codes - {"STAGE_PASSES"} <= set(REASONS)
    room = Path(stage_passes.__file__).parent
    declared = {
        code
        for path in room.glob("*.py")
        for code in re.findall(r"\"([A-Z_]{4,})\"", path.read_text())
        if code in REASONS
    }
    assert declared - set(pack.REASONS.values()) <= codes


def test_the_decision_of_the_page_is_one_that_is_written():
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    shown = json.loads(block)
    assert msgspec.convert(shown, SkewPlan).tasks[-1] == ((1, 0), (7, 0))


EVEN = Shuffle((20_000_000,) * 8, (200_000,) * 8, maps=40)


@pytest.mark.parametrize(
    ("more", "costs", "reason"),
    [
        ({}, Costs(), "TIES_SPREAD"),
        ({}, Costs(tie_seconds_per_row=1e-6), "GAIN_TOO_SMALL"),
        ({"cores": 1}, Costs(), "GAIN_TOO_SMALL"),
        ({"seconds": (0.0,) * 8}, Costs(), "NO_HISTORY"),
    ],
)
def test_ties_of_a_sort_of_unknown_keys(more, costs, reason):
    """Eight ranges of 1 s on four cores: a tie-breaker adds 2 ms to each, a value with all rows would take 8 s."""
    found = plan_stage(stage(Operator.SORT, **({"seconds": (1.0,) * 8, "left": EVEN} | more)), costs)
    assert found.reason == reason
    assert (found.kind is Kind.TIES) == (reason == "TIES_SPREAD")
    if found.kind is Kind.TIES:
        assert found.predicted_makespan == pytest.approx(2 * 1.002 + 2 * costs.task_seconds)
        assert found.plain_makespan == pytest.approx(8.0 + costs.task_seconds)


def test_each_slice_of_a_window_merges_the_states_of_all():
    """Light keys are taken for as many as in any partition: where the usual one is large, so is the second phase."""
    window = stage(Operator.PARTITION_WINDOW, left=replace(LEFT, blocks={9: (15_000_000,) * 20}))
    wide = replace(window, left=replace(window.left, bytes=(250_000_000,) * 9 + (300_000_000,)))
    usual, large = plan_stage(window), plan_stage(wide)
    assert usual.kind is Kind.TWO_PHASES
    assert usual.predicted_makespan < 1.15 * usual.balanced_bound
    assert large.predicted_makespan > 1.1 * usual.predicted_makespan
