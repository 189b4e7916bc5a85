"""Whatever the rows: a repair keeps the result, covers every row once, and is never predicted worse than none."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from skew_rows import NULL, Row, join, joined, partition_of, read, stage_of

from spark_regions.reasons import REASONS
from spark_regions.skew.boundaries import boundaries, weights
from spark_regions.skew.operators import JOINS, MERGED, Input, Operator
from spark_regions.skew.repair import repair
from spark_regions.skew.spec import Kind
from spark_regions.skew.stage import Costs, HeavyKey, Shuffle, Stage
from spark_regions.skew.work import phases, pieces_of, total_makespan

FREE = Costs(0.0, 0.0, 0.0, 0.0)
KEYS = ("a", "b", "c", "d", "e", "f", NULL)


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
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_joins_keep_their_result(operator, left, right, cores, capacity, residual, observed, blind, repeatable):
    right = [row if isinstance(row, Row) else Row(row, 0, number) for number, row in enumerate(right)]
    condition = (lambda one, two: (one + two) % 3 != 0) if residual else None
    stage = stage_of(operator, left, right, cores=cores, capacity=capacity, residual=residual, observed=observed)
    # At run time no key may be known, only sizes.
    sides = {"left": stage.left, "right": stage.right}
    known = {} if not blind else {"keys": ()}
    stage = replace(stage, **{name: replace(side, repeatable=repeatable, **known) for name, side in sides.items()})
    spec = repair(stage, FREE)
    passes = " with a pass for unmatched rows" if any(split.unmatched for split in spec.splits) else ""
    event(f"{operator.value} {spec.kind.value}{' spread' if spec.spreads else ''}{passes}")
    assert joined(stage, spec, left, right, condition) == Counter(join(operator, left, right, condition))


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(sorted(set(Operator) - JOINS - {Operator.SORT})),
    inputs(),
    st.integers(1, 6),
    st.integers(1, 8),
    st.booleans(),
)
def test_operators_with_one_input_read_every_row_once(operator, rows, cores, capacity, observed):
    stage = stage_of(operator, rows, cores=cores, capacity=capacity, observed=observed)
    spec = repair(stage, FREE)
    event(f"{operator.value} {spec.kind.value}{' spread' if spec.spreads else ''}")
    if spec.kind is Kind.NONE:
        assert spec.tasks == ()
        return
    tasks = read(spec, rows, Input.LEFT, len(stage.seconds))
    assert Counter(row for task in tasks for row in task) == Counter(rows)
    where = {}
    for number, task in enumerate(tasks):
        for row in task:
            where.setdefault(row.key, set()).add(number)
    if operator not in MERGED and operator is not Operator.REPARTITION:
        assert all(len(places) == 1 for places in where.values()), "the rows of a key stay together"
    if operator is Operator.REDUCE:
        assert spec.kind is Kind.ORDER


@settings(max_examples=300, deadline=None)
@given(inputs(), st.integers(2, 6), st.integers(1, 3))
def test_two_phases_merge_to_the_result_of_one(rows, cores, limit):
    """Collected values, a value over the whole partition, and the lowest rows of each key with their ties."""
    whole = {key: sorted(row.number for row in rows if row.key == key) for key in {row.key for row in rows}}
    for operator in sorted(MERGED):
        stage = stage_of(operator, rows, cores=cores, state_ratio=0.0)
        spec = repair(stage, FREE)
        tasks = read(spec, rows, Input.LEFT, len(stage.seconds)) if spec.kind is not Kind.NONE else [rows]
        states = {}
        for task in tasks:
            for key in {row.key for row in task}:
                mine = sorted(row.number for row in task if row.key == key)
                states.setdefault(key, []).append(mine[:limit] if operator is Operator.LIMITED_WINDOW else mine)
        merged = {key: sorted(number for state in parts for number in state) for key, parts in states.items()}
        if operator is Operator.LIMITED_WINDOW:
            assert {key: numbers[:limit] for key, numbers in merged.items()} == {
                key: numbers[:limit] for key, numbers in whole.items()
            }
        else:
            assert merged == whole
        if operator is Operator.PARTITION_WINDOW:
            out = Counter((row.number, sum(merged[row.key])) for task in tasks for row in task)
            assert out == Counter((row.number, sum(whole[row.key])) for row in rows)


@settings(max_examples=300, deadline=None)
@given(inputs(), st.integers(1, 9), st.booleans())
def test_ranges_read_in_their_order_are_sorted(rows, parts, ties_free):
    """Rows of a value that a boundary cuts are dealt over the ranges that share it."""
    counts = Counter(row.key for row in rows)
    values = sorted((key, float(count)) for key, count in counts.items())
    ends = boundaries(values, parts, ties_free)
    held = weights(values, ends)
    assert len(held) == len(ends) + 1
    assert sum(held) == len(rows) or not rows
    if ties_free and rows:
        assert max(held) - min(held) < 1e-6
        assert len(held) == parts
    order = [end.value for end in ends]
    assert order == sorted(order), "no range starts before the one before it"
    if not ties_free:
        assert all(end.fraction == 1.0 for end in ends)
        assert len(set(order)) == len(order)
        assert max(held, default=0) >= max(counts.values(), default=0)


RARELY = st.integers(0, 5).map(lambda number: number == 5)


@st.composite
def stages(draw):
    """Any numbers, also ones that contradict each other."""
    operator = draw(st.sampled_from(list(Operator)))
    partitions = draw(st.integers(0, 12))

    def shuffle():
        sizes = st.lists(st.integers(0, 10**8), min_size=partitions, max_size=partitions).map(tuple)
        rows = st.lists(st.integers(0, 10**6), min_size=partitions, max_size=partitions).map(tuple)
        keys = []
        for name in draw(st.sets(st.sampled_from("abcdef"), max_size=4 if partitions else 0)):
            keys.append(
                HeavyKey(
                    name,
                    draw(st.floats(0, 1)),
                    draw(st.floats(0, 0.3)),
                    partition_of(name, partitions),
                    draw(st.booleans()),
                    draw(st.one_of(st.none(), st.integers(0, 10**6))),
                    draw(st.integers(0, 10**5)),
                )
            )
        return Shuffle(draw(sizes), draw(rows), tuple(keys), draw(st.integers(1, 20)))

    seconds = draw(st.lists(st.floats(0, 100), min_size=partitions, max_size=partitions))
    if partitions and draw(st.booleans()):
        seconds[0] += 500
    weights = draw(st.lists(st.floats(0, 100), max_size=8))
    return Stage(
        operator,
        tuple(seconds),
        shuffle(),
        draw(st.integers(1, 50)),
        shuffle() if operator in JOINS else None,
        draw(st.sampled_from((0.0, 0.1, 0.5))),
        draw(st.booleans()),
        *draw(st.tuples(*[RARELY] * 3)),
        reshuffle_bytes=draw(st.sampled_from((0, 0, 10**9))),
        state_ratio=draw(st.floats(0, 2)),
        float_sums=draw(RARELY),
        layout_fixed=draw(RARELY),
        distribution=tuple((f"v{number}", weight) for number, weight in enumerate(weights)),
        ties_free=draw(st.booleans()),
        aqe=draw(st.booleans()),
    )


COSTS = st.builds(Costs, st.floats(0, 1e-7), st.floats(0, 1e-7), st.floats(0, 0.1), st.floats(0, 1))


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stages(), COSTS)
def test_no_repair_is_predicted_worse_than_none(stage, costs):
    spec = repair(stage, costs)
    event(spec.kind.value)
    assert spec.predicted_makespan <= spec.plain_makespan
    assert spec.reason in REASONS
    assert all(each.code in REASONS for each in spec.declines)
    assert spec == repair(stage, costs), "deterministic"
    if spec.kind is Kind.NONE:
        assert not spec.tasks
        assert not spec.splits
        return
    assert spec.predicted_makespan < spec.plain_makespan
    assert total_makespan(phases(stage, spec, costs), stage.cores) == spec.predicted_makespan
    pieces = [piece for task in spec.tasks for piece in task]
    if spec.kind is Kind.BOUNDARIES:
        assert sorted(piece.partition for piece in pieces) == list(range(len(spec.boundaries) + 1))
    else:
        assert Counter(pieces) == Counter(pieces_of(stage, spec.splits)), "every piece once"
        keys = [(split.partition, split.key) for split in spec.splits]
        assert len(set(keys)) == len(keys)
    if stage.ordered or stage.layout_fixed:
        assert not spec.spreads
    if stage.layout_fixed or stage.operator is Operator.SORT:
        assert [piece.partition for piece in pieces] == sorted(piece.partition for piece in pieces)
    for split in spec.splits:
        shuffle = stage.input(split.spread)
        if split.ranges:
            assert len(split.ranges) == split.helpers
            assert split.ranges[0][0] == 0
            assert split.ranges[-1][1] == shuffle.maps
            assert all(one[1] == two[0] for one, two in zip(split.ranges, split.ranges[1:], strict=False))
