"""Decisions as tables of numbers: what is chosen for which operator, and every reason to decline."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spark_regions.errors import InvalidRequest
from spark_regions.reasons import REASONS
from spark_regions.skew.keys import key_loads
from spark_regions.skew.messages import stage_from_json
from spark_regions.skew.operators import JOINS, Input, Operator, Spread, spread
from spark_regions.skew.repair import repair
from spark_regions.skew.sketch import HeavyHitters
from spark_regions.skew.spec import Kind
from spark_regions.skew.splits import by_keys, by_records
from spark_regions.skew.stage import Costs, HeavyKey, Shuffle, Stage, heavy_keys

ROWS = (100_000,) * 9 + (3_000_000,)
KEY = HeavyKey("k", 0.73, 0.01, 9, other_rows=1, least_rows=2_847_000)
LEFT = Shuffle(tuple(count * 100 for count in ROWS), ROWS, (KEY,), maps=20)
RIGHT = Shuffle((10_000,) * 10, (100,) * 10, maps=4)
VALUES = tuple((f"{number:03}", 300.0 if number == 50 else 1.0) for number in range(100))


def stage(operator=Operator.INNER_JOIN, **more):
    """Nine partitions of 1 s and one of 30 s, nearly all of it one key, on four cores."""
    given = {
        "seconds": tuple(count / 1e5 for count in ROWS),
        "left": LEFT,
        "cores": 4,
        "right": RIGHT if operator in JOINS else None,
        "aqe": False,
        "distribution": VALUES if operator is Operator.SORT else (),
        "state_ratio": 0.02,
    }
    return Stage(operator, **(given | more))


@pytest.mark.parametrize(
    ("operator", "kind", "at_most"),
    [
        (Operator.INNER_JOIN, Kind.RECORDS, 1.05),
        (Operator.LEFT_JOIN, Kind.RECORDS, 1.05),
        (Operator.RIGHT_JOIN, Kind.RECORDS, 1.05),
        (Operator.FULL_JOIN, Kind.RECORDS, 1.05),
        (Operator.SEMI_JOIN, Kind.RECORDS, 1.05),
        (Operator.ANTI_JOIN, Kind.RECORDS, 1.05),
        (Operator.MERGEABLE_AGGREGATE, Kind.TWO_PHASES, 1.06),
        (Operator.PARTITION_WINDOW, Kind.TWO_PHASES, 1.1),
        (Operator.LIMITED_WINDOW, Kind.TWO_PHASES, 1.06),
        (Operator.REPARTITION, Kind.RECORDS, 1.05),
        (Operator.SORT, Kind.BOUNDARIES, 1.02),
        (Operator.AGGREGATE, Kind.KEYS, 3.0),
        (Operator.WINDOW, Kind.KEYS, 3.0),
        (Operator.GROUP_APPLY, Kind.KEYS, 3.0),
        (Operator.REDUCE, Kind.ORDER, 3.1),
    ],
)
def test_the_repair_of_every_operator(operator, kind, at_most):
    found = repair(stage(operator, ties_free=True))
    assert found.kind is kind
    assert found.plain_makespan > 3 * found.balanced_bound
    assert found.predicted_makespan <= at_most * found.balanced_bound
    assert found.reason in REASONS
    spread_kinds = (Kind.RECORDS, Kind.TWO_PHASES)
    assert found.spreads == (kind in spread_kinds)
    assert json.loads(json.dumps(found.to_json()))["kind"] == kind.value


@pytest.mark.parametrize(
    ("operator", "more", "code"),
    [
        (Operator.INNER_JOIN, {"salted": True}, "HAND_SALTED"),
        (Operator.INNER_JOIN, {"seconds": (0.0,) * 10}, "NO_HISTORY"),
        (Operator.INNER_JOIN, {"seconds": (1.0,) * 8 + (0.0,) * 2}, "BALANCED"),
        (Operator.INNER_JOIN, {"cores": 1}, "BALANCED"),
        (
            Operator.INNER_JOIN,
            {"aqe": True, "left": replace(LEFT, bytes=(10**8,) * 9 + (3 * 10**9,), maps=100)},
            "AQE_SUFFICES",
        ),
        (Operator.FULL_JOIN, {"residual": True}, "UNMATCHED_ROWS"),
        (Operator.RIGHT_JOIN, {"residual": True}, "UNMATCHED_ROWS"),
        (Operator.FULL_JOIN, {"observed": True, "left": replace(LEFT, maps=3_000_000)}, "FEW_ROWS"),
        (Operator.INNER_JOIN, {"ordered": True}, "ORDERED_KEYS"),
        (Operator.MERGEABLE_AGGREGATE, {"ordered": True}, "ORDERED_KEYS"),
        (Operator.MERGEABLE_AGGREGATE, {"float_sums": True}, "FLOAT_AGGREGATE"),
        (Operator.MERGEABLE_AGGREGATE, {"state_ratio": 500.0}, "MIGRATION_TOO_SLOW"),
        (
            Operator.INNER_JOIN,
            {
                "right": replace(RIGHT, bytes=(10**11,) * 10),
                "left": replace(LEFT, keys=(replace(KEY, other_rows=None),)),
            },
            "MIGRATION_TOO_SLOW",
        ),
        (Operator.REPARTITION, {"layout_fixed": True}, "REPARTITION"),
        (Operator.GROUP_APPLY, {}, "NOT_MERGEABLE"),
        (Operator.REDUCE, {}, "NOT_MERGEABLE"),
        (Operator.REDUCE, {}, "UNKNOWN_OPERATOR"),
        (Operator.SORT, {"distribution": ()}, "NO_HISTORY"),
        (Operator.FULL_JOIN, {"left": replace(LEFT, keys=())}, "NO_HEAVY_KEYS"),
        (Operator.REPARTITION, {"observed": True, "left": replace(LEFT, keys=(), maps=1)}, "ONE_BLOCK"),
    ],
)
def test_every_refusal_has_its_code(operator, more, code):
    found = repair(replace(stage(operator), **more))
    assert code in {found.reason, *(each.code for each in found.declines)}
    assert not found.spreads or code in ("MIGRATION_TOO_SLOW", "FEW_ROWS")


def test_a_skewed_right_side_may_not_be_spread_in_a_semi_join():
    right = replace(LEFT, keys=(replace(KEY, other_rows=100),))
    found = repair(stage(Operator.SEMI_JOIN, left=RIGHT, right=right))
    assert not found.spreads
    assert "WRONG_SIDE" in {each.code for each in found.declines}


def test_a_gain_that_the_next_shuffle_eats_is_too_small():
    """The long partition is the first one, so that its order is right already."""
    turned = stage(
        seconds=(30.0,) + (1.0,) * 9,
        left=Shuffle(LEFT.bytes[::-1], LEFT.rows[::-1], (replace(KEY, partition=0, share=0.77),), maps=20),
        reshuffle_bytes=10**11,
    )
    found = repair(turned)
    assert (found.kind, found.reason) == (Kind.NONE, "GAIN_TOO_SMALL")
    assert repair(replace(turned, reshuffle_bytes=0)).spreads


def test_one_more_shuffle_is_decided_by_cost():
    """Spark drops its splits then; we compare."""
    aqe = stage(aqe=True, left=replace(LEFT, bytes=(10**8,) * 9 + (3 * 10**9,), maps=100))
    assert repair(replace(aqe, reshuffle_bytes=10**8)).spreads
    assert not repair(replace(aqe, reshuffle_bytes=10**11)).spreads


def test_when_time_is_over_the_best_so_far_stands():
    asked = []
    early = repair(stage(), expired=lambda: bool(asked.append(1)) or len(asked) >= 1)
    assert len(asked) == 1
    assert early.kind is Kind.RECORDS
    assert repair(stage()).predicted_makespan <= early.predicted_makespan < early.plain_makespan


def test_the_room_stays_light():
    code = "import sys, spark_regions.skew.repair, spark_regions.skew.messages; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "spark_regions.skew.repair" in loaded
    assert not {name for name in ("numpy", "pandas", "scipy", "pyspark", "sqlalchemy") if f"'{name}'" in loaded}


def test_both_sides_of_an_outer_join_may_be_spread_where_the_keys_are_known():
    for operator in (Operator.FULL_JOIN, Operator.RIGHT_JOIN):
        planned = repair(stage(operator))
        assert [split.verify for split in planned.splits if split.helpers > 1] == [True]
        observed = repair(stage(operator, observed=True))
        assert [split.verify for split in observed.splits if split.helpers > 1] == [False]
        assert observed.predicted_makespan > planned.predicted_makespan, "tasks read past the rows of others"
    assert not any(split.verify for split in repair(stage(Operator.LEFT_JOIN)).splits)
    assert spread(Operator.ANTI_JOIN, Input.RIGHT) is Spread.AS_KEYS


def test_null_keys_are_spread_without_copies():
    null = replace(LEFT, keys=(replace(KEY, null=True, other_rows=None),))
    found = repair(stage(Operator.FULL_JOIN, left=null, residual=True))
    (split,) = [split for split in found.splits if split.helpers > 1]
    assert not split.replicate
    assert not split.verify


def test_a_written_shuffle_is_cut_by_map_outputs():
    blocks = {9: (20_000_000,) * 14 + (10_000_000,) * 2}
    left = replace(LEFT, keys=(), maps=16, blocks=blocks)
    found = repair(stage(Operator.LEFT_JOIN, left=left, observed=True))
    (split,) = [split for split in found.splits if split.partition == 9]
    assert split.key is None
    assert split.ranges[0][0] == 0
    assert split.ranges[-1][1] == 16
    assert found.to_json()["partitions"][0]["maps"] == [list(each) for each in split.ranges]
    assert found.predicted_makespan < 1.2 * found.balanced_bound


def test_the_load_of_a_key_counts_what_a_join_brings_out():
    left = Shuffle((3000,), (300,), (HeavyKey("k", 2 / 3, 0.0, 0, other_rows=1),))
    found = key_loads(Stage(Operator.INNER_JOIN, (8.0,), left, 2, Shuffle((100,), (10,))))
    assert found["k"].seconds == pytest.approx(8 * 401 / 610)
    assert found["k"].other_bytes == 10
    both = Shuffle((100,), (10,), (HeavyKey("k", 0.9, 0.0, 0),))
    many = key_loads(Stage(Operator.INNER_JOIN, (8.0,), left, 2, both))
    assert many["k"].side is Input.LEFT
    assert many["k"].seconds == pytest.approx(8 * (200 + 9 + 1800) / (2009 + 100 + 1 + 100))


def test_key_rows_stay_within_their_partition():
    crowded = Shuffle((10, 10), (50, 50), (HeavyKey("a", 0.6, 0.0, 0), HeavyKey("b", 0.2, 0.0, 0)))
    assert crowded.key_rows() == {"a": pytest.approx(37.5), "b": pytest.approx(12.5)}
    loose = Shuffle((10, 10), (50, 50), (HeavyKey("a", 0.4, 0.4, 0),))
    assert loose.key_rows() == {"a": 45.0}


def test_split_by_keys_sets_heavy_keys_alone():
    left = Shuffle((900, 100), (90, 10), (HeavyKey("a", 0.4, 0.0, 0), HeavyKey("b", 0.4, 0.0, 0)))
    one = Stage(Operator.GROUP_APPLY, (9.0, 1.0), left, 2, aqe=False)
    found = repair(one)
    assert found.kind is Kind.KEYS
    assert {split.key for split in found.splits} == {"a", "b"}
    assert all(split.helpers == 1 for split in found.splits)
    assert found.predicted_makespan == pytest.approx(5.0, abs=0.1)
    assert by_keys(one, key_loads(one), 5.0).splits == found.splits


def test_fewer_helpers_where_the_other_side_is_dear():
    cheap = by_records(stage(cores=16), key_loads(stage(cores=16)), 1.0, Costs())
    other = replace(RIGHT, bytes=(2 * 10**9,) * 10)
    dear_stage = stage(cores=16, right=other, left=replace(LEFT, keys=(replace(KEY, other_rows=None),)))
    dear = by_records(dear_stage, key_loads(dear_stage), 1.0, Costs())
    assert 1 < dear.splits[0].helpers < cheap.splits[0].helpers


def test_a_stage_reads_as_json_and_says_what_is_wrong():
    record = {
        "operator": "full_join",
        "cores": 4,
        "seconds": [1.0, 9.0],
        "left": {
            "bytes": [10, 90],
            "rows": [1, 9],
            "maps": 2,
            "keys": [{"key": "k", "share": 0.8, "error": 0.0, "partition": 1, "otherRows": 1, "leastRows": 8}],
            "blocks": {"1": [40, 50]},
        },
        "right": {"bytes": [1, 1], "rows": [1, 1]},
        "observed": True,
    }
    read = stage_from_json(record)
    assert read.left.keys[0] == HeavyKey("k", 0.8, 0.0, 1, False, 1, 8)
    assert read.left.blocks == {1: (40, 50)}
    assert read.aqe
    for broken in (
        {},
        [],
        record | {"operator": "other"},
        record | {"right": None},
        record | {"seconds": [1.0]},
        record | {"cores": 0},
        record | {"left": record["left"] | {"keys": [{"key": "k", "share": 1, "error": 0, "partition": 2}]}},
    ):
        with pytest.raises(InvalidRequest, match="A stage cannot be read"):
            stage_from_json(broken)


def test_summaries_refuse_what_contradicts_itself():
    good = HeavyHitters.of([("a", 5), ("b", 1)], 1)
    assert HeavyHitters.from_json(json.loads(json.dumps(good.to_json()))) == good
    for broken in (
        None,
        {},
        good.to_json() | {"counts": {"a": 1, "b": 1}},
        good.to_json() | {"counts": {"a": 0}},
        good.to_json() | {"error": 4},
        good.to_json() | {"capacity": 0},
        good.to_json() | {"total": "many"},
    ):
        with pytest.raises(InvalidRequest, match="summary of heavy keys"):
            HeavyHitters.from_json(broken)


def test_a_sample_widens_the_shares():
    whole = HeavyHitters.of([("a", 600), ("b", 400)], 4)
    sample = HeavyHitters.of([("a", 600), ("b", 400)], 4, sampled=True)
    assert [each.error for each in whole.shares()] == [0, 0]
    heavy = sample.shares()[0]
    assert heavy.share < 0.6 < heavy.share + heavy.error
    assert heavy.error < 0.1
    assert [each.key for each in whole.shares(at_least=0.5)] == ["a"]
    keys = heavy_keys(whole, {"a": 3}, nulls=frozenset({"a"}))
    assert keys == (HeavyKey("a", 0.6, 0.0, 3, True, None, 600),)


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
    assert codes <= set(REASONS)
    room = Path(repair.__code__.co_filename).parent
    declared = {
        code
        for path in room.glob("*.py")
        for code in re.findall(r"(?:Decline\([^\"\n]*|reason=|return |code = )\"([A-Z_]{4,})\"", path.read_text())
    }
    assert declared - {"SPLIT_BY_RECORDS"} <= codes


def test_the_decision_of_the_page_is_one_that_is_written():
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    shown = json.loads(block)
    written = repair(stage(Operator.FULL_JOIN)).to_json()
    assert shown.keys() == written.keys()
    assert shown["keys"][0].keys() == written["keys"][0].keys()


EVEN = Shuffle((20_000_000,) * 8, (200_000,) * 8, maps=40)


@pytest.mark.parametrize(
    ("more", "costs", "reason"),
    [
        ({}, Costs(), "TIES_SPREAD"),
        ({}, Costs(tie_seconds_per_row=1e-6), "GAIN_TOO_SMALL"),
        ({"cores": 1}, Costs(), "GAIN_TOO_SMALL"),
        ({"ties_free": False}, Costs(), "BALANCED"),
        ({"layout_fixed": True}, Costs(), "BALANCED"),
        ({"seconds": (0.0,) * 8}, Costs(), "NO_HISTORY"),
    ],
)
def test_ties_of_a_sort_of_unknown_keys(more, costs, reason):
    """Eight ranges of 1 s on four cores: a tie-breaker adds 2 ms to each, a value with all rows would take 8 s."""
    given = {"seconds": (1.0,) * 8, "left": EVEN, "distribution": (), "ties_free": True} | more
    found = repair(stage(Operator.SORT, **given), costs)
    assert found.reason == reason
    assert (found.kind is Kind.TIES) == (reason == "TIES_SPREAD")
    if found.kind is Kind.TIES:
        assert found.predicted_makespan == pytest.approx(2 * 1.002 + 2 * costs.task_seconds)
        assert found.plain_makespan == pytest.approx(8.0 + costs.task_seconds)


def test_each_slice_of_a_window_merges_the_states_of_all():
    """Light keys are taken for as many as in any partition; a wide state makes the second phase dear."""
    sizes = tuple(count * 100 for count in ROWS)
    blocks = {9: (15_000_000,) * 20}
    window = stage(Operator.PARTITION_WINDOW, observed=True, left=Shuffle(sizes, ROWS, maps=20, blocks=blocks))
    narrow, wide = (repair(replace(window, state_ratio=ratio)) for ratio in (0.02, 5.0))
    assert narrow.kind is Kind.TWO_PHASES
    assert narrow.predicted_makespan < 1.15 * narrow.balanced_bound
    assert wide.predicted_makespan > 1.1 * narrow.predicted_makespan
