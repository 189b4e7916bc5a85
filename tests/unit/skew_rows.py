"""Rows instead of sizes: shuffles made of rows, operators run on them, and decisions applied to them task by task."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from spark_regions.skew.operators import JOINS, Input, Operator, Spread, spread
from spark_regions.skew.reduce_stage import Shuffle, Stage
from spark_regions.skew.spec import Kind, PartitionSlice, SkewSpec

NULL = "null"


@dataclass(frozen=True)
class Row:
    """:param map: the map task that wrote it; :param number: tells apart rows of one input"""

    key: str
    map: int
    number: int


def partition_of(key, partitions):
    return sum(map(ord, key)) % partitions


def shuffle(rows, partitions, maps, repeatable):
    """What the driver would see of one input: sizes, rows and blocks."""
    counts, blocks = [0] * partitions, [[0] * maps for _ in range(partitions)]
    for row in rows:
        counts[partition_of(row.key, partitions)] += 1
        blocks[partition_of(row.key, partitions)][row.map] += 10
    sizes = {number: tuple(sizes) for number, sizes in enumerate(blocks)}
    return Shuffle(tuple(10 * each for each in counts), tuple(counts), maps, sizes, repeatable)


def stage_of(operator, left, right=(), partitions=4, maps=3, cores=3, repeatable=False, **more):
    first = shuffle(left, partitions, maps, repeatable)
    second = shuffle(right, partitions, maps, repeatable) if operator in JOINS else None
    seconds = tuple(float(a + b) for a, b in zip(first.rows, second.rows if second else first.rows, strict=True))
    return Stage(operator, seconds, first, cores, second, **more)


def read(spec: SkewSpec, rows, side: Input, partitions: int):
    """What every task reads of one input; round robin within the block of each map task."""
    splits = {split.partition: split for split in spec.splits}
    tasks = {piece: at for at, task in enumerate(spec.tasks) for piece in task}
    assert len(tasks) == sum(map(len, spec.tasks)), "a slice is in one task only"
    found = [[] for _ in spec.tasks]
    turn: Counter[tuple[int, int]] = Counter()
    for row in rows:
        number = partition_of(row.key, partitions)
        split = splits.get(number)
        slices = range(split.helpers) if split else range(1)
        if split and split.spread is side:
            if split.ranges:
                (at,) = [n for n, (start, end) in enumerate(split.ranges) if start <= row.map < end]
            else:
                at = turn[(number, row.map)] % split.helpers
                turn[(number, row.map)] += 1
            slices = range(at, at + 1)
        elif split:
            assert split.replicate, "rows of the other input go to every slice"
        for at in slices:
            found[tasks[PartitionSlice(number, at)]].append(row)
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
    lefts, rights = (read(spec, rows, side, partitions) for rows, side in ((left, Input.LEFT), (right, Input.RIGHT)))
    checked = {split.partition: split for split in spec.splits if split.unmatched}
    found: Counter[tuple[int | None, int | None]] = Counter()
    for task, one, two in zip(spec.tasks, lefts, rights, strict=True):
        splits = {checked.get(piece.partition) for piece in task}
        assert len(task) == 1 or splits == {None}, "a slice has a task of its own"
        split = splits.pop()
        if split and spread(stage.operator, split.spread) is Spread.AS_KEYS:
            continue  # only its keys count, see below
        operator = without_unmatched(stage.operator, split.spread) if split else stage.operator
        found.update(join(operator, one, two, condition))
    for split in checked.values():
        found.update(unmatched(split, left, right, partitions, stage.operator))
    return found


def unmatched(split, left, right, partitions, operator):
    """Rows of the input that is not spread whose key is in no slice; of a semi join, in some."""
    cut, other = (left, right) if split.spread is Input.LEFT else (right, left)
    here = [[row for row in rows if partition_of(row.key, partitions) == split.partition] for rows in (cut, other)]
    keys = {row.key for row in here[0] if row.key != NULL}
    rows = [row.number for row in here[1] if (row.key in keys) is (operator is Operator.SEMI_JOIN)]
    return [(None, row) if split.spread is Input.LEFT else (row, None) for row in rows]
