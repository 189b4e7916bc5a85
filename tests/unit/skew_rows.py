"""Rows instead of sizes: shuffles made of rows, operators run on them, and decisions applied to them task by task."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from spark_regions.skew.operators import JOINS, Input, Operator, Spread, spread
from spark_regions.skew.sketch import HeavyHitters
from spark_regions.skew.spec import Kind, SkewSpec
from spark_regions.skew.stage import Shuffle, Stage, heavy_keys

NULL = "null"


@dataclass(frozen=True)
class Row:
    """:param map: the map task that wrote it; :param number: tells apart rows of one input"""

    key: str
    map: int
    number: int


def partition_of(key, partitions):
    return sum(map(ord, key)) % partitions


def shuffle(rows, partitions, maps, capacity, other=()):
    """What the driver would see of one input: sizes, rows, blocks, and a summary merged from those of the map tasks."""
    counts, blocks = [0] * partitions, [[0] * maps for _ in range(partitions)]
    for row in rows:
        counts[partition_of(row.key, partitions)] += 1
        blocks[partition_of(row.key, partitions)][row.map] += 10
    summary = HeavyHitters(capacity)
    for each in range(maps):
        summary = summary.merge(HeavyHitters.of([(row.key, 1) for row in rows if row.map == each], capacity))
    keys = heavy_keys(
        summary,
        {key: partition_of(key, partitions) for key in summary.counts},
        other_rows=Counter(row.key for row in other) if other else None,
        nulls=frozenset({NULL}),
    )
    sizes = {number: tuple(sizes) for number, sizes in enumerate(blocks)}
    return Shuffle(tuple(10 * each for each in counts), tuple(counts), keys, maps, sizes)


def stage_of(operator, left, right=(), partitions=4, maps=3, capacity=6, cores=3, **more):
    first = shuffle(left, partitions, maps, capacity, right)
    second = shuffle(right, partitions, maps, capacity, left) if operator in JOINS else None
    seconds = tuple(float(a + b) for a, b in zip(first.rows, second.rows if second else first.rows, strict=True))
    return Stage(operator, seconds, first, cores, second, **({"observed": True, "aqe": False} | more))


def incomplete(spec: SkewSpec, left, right, partitions):
    """Splits to be verified, of which some slice has no row of the spread input."""
    found = set()
    for split in (each for each in spec.splits if each.verify):
        rows = left if split.spread is Input.LEFT else right
        slices = read(spec, [row for row in rows if row.key == split.key], split.spread, partitions)
        if sum(map(bool, slices)) < split.helpers:
            found.add((split.partition, split.key))
    return found


def read(spec: SkewSpec, rows, side: Input, partitions: int, together=frozenset()):
    """What every task reads of one input; each map task deals the rows of a key in turn.

    :param together: splits whose slices are all read by the first one's task
    """
    splits = {(split.partition, split.key): split for split in spec.splits}
    tasks = {piece: at for at, task in enumerate(spec.tasks) for piece in task}
    assert len(tasks) == sum(map(len, spec.tasks)), "a piece is in one task only"
    found = [[] for _ in spec.tasks]
    turn: Counter[tuple[int, str | None, int]] = Counter()
    for row in rows:
        number = partition_of(row.key, partitions)
        key = row.key if (number, row.key) in splits else None
        split = splits.get((number, key))
        helpers = range(split.helpers) if split else range(1)
        if (number, key) in together:
            helpers = range(1)
        elif split and split.helpers > 1 and split.spread is side:
            if split.ranges:
                (at,) = [n for n, (start, end) in enumerate(split.ranges) if start <= row.map < end]
            else:
                at = turn[(number, key, row.map)] % split.helpers
                turn[(number, key, row.map)] += 1
            helpers = range(at, at + 1)
        elif split and split.helpers > 1:
            assert split.replicate or row.key == NULL, "rows of the other input go to every slice"
            helpers = helpers if split.replicate else range(1)
        for at in helpers:
            (task,) = [
                n for piece, n in tasks.items() if (piece.partition, piece.key, piece.slice) == (number, key, at)
            ]
            found[task].append(row)
    return found


def join(operator, left, right, condition=None):
    """One task of a join by key; null meets nothing."""
    partners = defaultdict(list)
    for row in right:
        partners[row.key].append(row)
    met_right, out = set(), []
    for row in left:
        met = [
            other
            for other in partners[row.key]
            if row.key != NULL and (condition is None or condition(row.number, other.number))
        ]
        met_right |= {other.number for other in met}
        if operator is Operator.SEMI_JOIN:
            out += [(row.number, None)] if met else []
        elif operator is Operator.ANTI_JOIN:
            out += [] if met else [(row.number, None)]
        else:
            out += [(row.number, other.number) for other in met]
            if not met and operator in (Operator.LEFT_JOIN, Operator.FULL_JOIN):
                out.append((row.number, None))
    if operator in (Operator.RIGHT_JOIN, Operator.FULL_JOIN):
        out += [(None, row.number) for row in right if row.number not in met_right]
    return out


INNER = {
    Operator.LEFT_JOIN: Operator.INNER_JOIN,
    Operator.RIGHT_JOIN: Operator.INNER_JOIN,
}


def without_unmatched(operator, spread):
    """The join of a slice that brings out no unmatched rows of the input that is not spread."""
    if operator is Operator.FULL_JOIN:
        return Operator.LEFT_JOIN if spread is Input.LEFT else Operator.RIGHT_JOIN
    return INNER[operator]


def joined(stage, spec, left, right, condition=None):
    """The join's result under a decision, as a multiset."""
    if spec.kind is Kind.NONE:
        return Counter(join(stage.operator, left, right, condition))
    partitions = len(stage.seconds)
    one_task = incomplete(spec, left, right, partitions)
    lefts, rights = (
        read(spec, rows, side, partitions, one_task) for rows, side in ((left, Input.LEFT), (right, Input.RIGHT))
    )
    checked = {(split.partition, split.key): split for split in spec.splits if split.unmatched}
    found: Counter[tuple[int | None, int | None]] = Counter()
    for task, one, two in zip(spec.tasks, lefts, rights, strict=True):
        splits = {checked.get((piece.partition, piece.key)) for piece in task}
        assert len(task) == 1 or splits == {None}, "a slice has a task of its own"
        split = splits.pop()
        if split and as_keys(stage.operator, split):
            continue  # only its keys count, see below
        operator = without_unmatched(stage.operator, split.spread) if split else stage.operator
        found.update(join(operator, one, two, condition))
    for place, split in checked.items():
        found.update(unmatched(spec, place, split, left, right, partitions, stage.operator))
    return found


def as_keys(operator, split):
    return spread(operator, split.spread) is Spread.AS_KEYS


def unmatched(spec, place, split, left, right, partitions, operator):
    """Rows of the input that is not spread whose key is in no slice; of a semi join, in some."""
    keyed = {(other.partition, other.key) for other in spec.splits if other.key is not None}

    def here(row):
        number = partition_of(row.key, partitions)
        return number == place[0] and (number, row.key) not in keyed

    cut, other = (left, right) if split.spread is Input.LEFT else (right, left)
    keys = {row.key for row in cut if here(row) and row.key != NULL}
    met = operator is Operator.SEMI_JOIN
    rows = [row.number for row in other if here(row) and (row.key in keys) is met]
    return [(None, row) if split.spread is Input.LEFT else (row, None) for row in rows]
