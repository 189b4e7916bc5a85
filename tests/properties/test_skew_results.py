"""Whatever the rows: a repair keeps the result, covers every row once, and is never predicted worse than none."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from skew_rows import NULL, Row, join, joined, read, stage_of

from spark_regions.reasons import REASONS
from spark_regions.skew.aqe import AdaptiveConf
from spark_regions.skew.draft import StageQuestion
from spark_regions.skew.makespan import partition_slices, phases, total_makespan
from spark_regions.skew.operators import JOINS, Input, Operator
from spark_regions.skew.reduce_stage import Costs, Shuffle, Stage
from spark_regions.skew.spec import Kind
from spark_regions.skew.stage import plan_stage

FREE = Costs(0.0, 0.0, 0.0, 0.0)
APART = AdaptiveConf(advisory_bytes=0, min_bytes=0)
KEYS = ("a", "b", "c", "d", "e", "f", NULL)


def planned(stage, costs=FREE, adaptive=APART):
    return plan_stage(StageQuestion(stage, costs, adaptive))


@st.composite
def inputs(draw, maps=3):
    """Rows of a few keys, one of them often heavy."""
    rows = []
    weights = draw(st.lists(st.integers(0, 4), min_size=len(KEYS), max_size=len(KEYS)))
    heavy = draw(st.sampled_from(KEYS))
    for key, count in zip(KEYS, weights, strict=True):
        rows += [key] * (count + (draw(st.integers(5, 30)) if key == heavy else 0))
    places = draw(st.lists(st.integers(0, maps - 1), min_size=len(rows), max_size=len(rows)))
    return [Row(key, place, number) for number, (key, place) in enumerate(zip(rows, places, strict=True))]


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(JOINS)),
    inputs(),
    st.one_of(inputs(), st.just([]), st.lists(st.sampled_from(KEYS), max_size=6)),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_joins_keep_their_result(operator, left, right, cores, residual, repeatable, hashable):
    right = [row if isinstance(row, Row) else Row(row, 0, number) for number, row in enumerate(right)]
    condition = (lambda one, two: (one + two) % 3 != 0) if residual else None
    stage = stage_of(operator, left, right, cores=cores, residual=residual, repeatable=repeatable, hashable=hashable)
    spec = planned(stage)
    passes = " with a pass for unmatched rows" if any(split.unmatched for split in spec.splits) else ""
    event(f"{operator.value} {spec.kind.value}{passes}")
    assert joined(stage, spec, left, right, condition) == Counter(join(operator, left, right, condition))


CUT = {Operator.PARTITION_WINDOW, Operator.REPARTITION}


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(set(Operator) - JOINS - {Operator.SORT})), inputs(), st.integers(1, 6), st.booleans())
def test_operators_with_one_input_read_every_row_once(operator, rows, cores, repeatable):
    stage = stage_of(operator, rows, cores=cores, repeatable=repeatable)
    spec = planned(stage)
    event(f"{operator.value} {spec.kind.value}")
    if spec.kind is Kind.NONE:
        assert spec.tasks == ()
        return
    tasks = read(spec, rows, Input.LEFT, len(stage.seconds))
    assert Counter(row for task in tasks for row in task) == Counter(rows)
    if operator not in CUT:
        assert spec.kind is Kind.ORDER
        where = {}
        for number, task in enumerate(tasks):
            for row in task:
                where.setdefault(row.key, set()).add(number)
        assert all(len(places) == 1 for places in where.values()), "the rows of a key stay together"


@settings(max_examples=300, deadline=None)
@given(inputs(), st.integers(2, 6), st.booleans())
def test_two_phases_merge_to_the_result_of_one(rows, cores, repeatable):
    """A value over the whole partition: from the rows of all slices, to each row of any."""
    whole = {key: sorted(row.number for row in rows if row.key == key) for key in {row.key for row in rows}}
    stage = stage_of(Operator.PARTITION_WINDOW, rows, cores=cores, repeatable=repeatable)
    spec = planned(stage)
    tasks = read(spec, rows, Input.LEFT, len(stage.seconds)) if spec.kind is not Kind.NONE else [rows]
    merged: dict[str, list[int]] = {}
    for task in tasks:
        for row in task:
            merged.setdefault(row.key, []).append(row.number)
    assert {key: sorted(numbers) for key, numbers in merged.items()} == whole
    out = Counter((row.number, sum(merged[row.key])) for task in tasks for row in task)
    assert out == Counter((row.number, sum(whole[row.key])) for row in rows)


RARELY = st.integers(0, 5).map(lambda number: number == 5)


@st.composite
def stages(draw):
    """Any numbers, also ones that contradict each other."""
    operator = draw(st.sampled_from(list(Operator)))
    partitions = draw(st.integers(0, 12))

    def shuffle():
        sizes = st.lists(st.integers(0, 10**8), min_size=partitions, max_size=partitions).map(tuple)
        rows = st.lists(st.integers(0, 10**6), min_size=partitions, max_size=partitions).map(tuple)
        return Shuffle(draw(sizes), draw(rows), draw(st.integers(1, 20)), repeatable=draw(st.booleans()))

    seconds = draw(st.lists(st.floats(0, 100), min_size=partitions, max_size=partitions))
    if partitions and draw(st.booleans()):
        seconds[0] += 500
    return Stage(
        operator,
        tuple(seconds),
        shuffle(),
        draw(st.integers(1, 50)),
        shuffle() if operator in JOINS else None,
        draw(st.sampled_from((0.0, 0.1, 0.5))),
        *draw(st.tuples(RARELY, RARELY)),
        reshuffle_bytes=draw(st.sampled_from((0, 0, 10**9))),
        hashable=draw(st.booleans()),
        sorts=draw(st.booleans()),
        task_memory=draw(st.sampled_from((0, 10**7, 10**9))),
    )


COSTS = st.builds(Costs, st.floats(0, 1e-7), st.floats(0, 1e-7), st.floats(0, 0.1), st.floats(0, 1))


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stages(), COSTS, st.sampled_from((APART, AdaptiveConf())))
def test_no_repair_is_predicted_worse_than_none(stage, costs, adaptive):
    spec = planned(stage, costs, adaptive)
    event(spec.kind.value)
    assert spec.predicted_makespan <= spec.plain_makespan
    assert spec.reason in REASONS
    assert all(each.code in REASONS for each in spec.declines)
    assert spec == planned(stage, costs, adaptive), "deterministic"
    if spec.kind is Kind.NONE:
        assert not spec.tasks
        assert not spec.splits
        return
    assert spec.predicted_makespan < spec.plain_makespan
    if spec.kind is not Kind.TIES:
        assert total_makespan(phases(stage, spec.splits, spec.tasks, costs), stage.cores) == spec.predicted_makespan
    pieces = [piece for task in spec.tasks for piece in task]
    assert Counter(pieces) == Counter(partition_slices(stage, spec.splits)), "every slice once"
    assert len({split.partition for split in spec.splits}) == len(spec.splits)
    if stage.operator is Operator.SORT:
        assert [piece.partition for piece in pieces] == sorted(piece.partition for piece in pieces)
    for split in spec.splits:
        shuffle = stage.input(split.spread)
        if split.ranges:
            assert len(split.ranges) == split.helpers
            assert split.ranges[0][0] == 0
            assert split.ranges[-1][1] == shuffle.maps
            assert all(one[1] == two[0] for one, two in zip(split.ranges, split.ranges[1:], strict=False))
        else:
            assert shuffle.repeatable, "round robin where a repeated map task writes the same again"
