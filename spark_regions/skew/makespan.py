"""How long a stage takes under a decision: slices, tasks and phases in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from spark_regions.skew.operators import Operator, Spread, spread
from spark_regions.skew.packing import in_order
from spark_regions.skew.reduce_stage import Costs, Shuffle, Stage
from spark_regions.skew.spec import PartitionSlice, Split, Task

KEY_PASS = 1.4
"""Bringing out the distinct keys of rows, in times of reading them: 170 MB/s measured, where reading takes 240."""


@dataclass(frozen=True, slots=True)
class Phase:
    """:param before: seconds until its tasks may start; :param tasks: seconds, in the order of start"""

    before: float
    tasks: tuple[float, ...]

    def makespan(self, cores: int) -> float:
        return self.before + in_order(self.tasks, cores).makespan


def total_makespan(phases: Iterable[Phase], cores: int) -> float:
    """Phases wait for each other."""
    return sum(phase.makespan(cores) for phase in phases)


def phases(
    stage: Stage,
    splits: tuple[Split, ...],
    tasks: Sequence[Task],
    costs: Costs,
    seconds: Mapping[PartitionSlice, float] | None = None,
) -> tuple[Phase, ...]:
    """What runs where partitions are split and slices make tasks. The stage may be another one than was decided on.

    :param seconds: of each slice, where they are known already
    """
    slices = _Slices(stage, splits, costs)
    of = slices.seconds if seconds is None else seconds.__getitem__
    main = stage.with_spills(
        [sum(map(of, task)) + costs.task_seconds for task in tasks],
        [sum(map(slices.sorted_data, task)) for task in tasks],
        costs,
    )
    found = [Phase(0.0, main)]
    if checked := [split for split in splits if split.unmatched]:
        # The keys of all slices first; they tell which rows of the other input stay unmatched.
        keys = [
            slices.bytes(split) / split.helpers * KEY_PASS * costs.read_seconds_per_byte + costs.task_seconds
            for split in checked
            for _ in range(split.helpers)
        ]
        last = [slices.rest_seconds(split) + costs.task_seconds for split in checked]
        found = [Phase(0.0, tuple(keys)), Phase(costs.stage_seconds, (*main, *last))]
    if splits and stage.operator is Operator.PARTITION_WINDOW:
        # The value of each key first, from a pass over its rows; then every slice brings out its rows with it.
        partial = [
            slices.read_bytes(split) * KEY_PASS * costs.read_seconds_per_byte + costs.task_seconds
            for split in splits
            for _ in range(split.helpers)
        ]
        found = [Phase(0.0, tuple(partial)), Phase(costs.stage_seconds, main)]
    if splits and stage.reshuffle_bytes:
        rate = costs.write_seconds_per_byte + costs.read_seconds_per_byte
        each = stage.reshuffle_bytes * rate / stage.cores + costs.task_seconds
        found.append(Phase(costs.stage_seconds, (each,) * stage.cores))
    return tuple(found)


def partition_slices(stage: Stage, splits: Iterable[Split]) -> list[PartitionSlice]:
    """Every row of the stage in exactly one slice (rows of a replicated input apart)."""
    helpers = {split.partition: split.helpers for split in splits}
    return [PartitionSlice(number, at) for number in range(len(stage.seconds)) for at in range(helpers.get(number, 1))]


def slice_seconds(stage: Stage, splits: tuple[Split, ...], costs: Costs) -> dict[PartitionSlice, float]:
    slices = _Slices(stage, splits, costs)
    return {each: slices.seconds(each) for each in partition_slices(stage, splits)}


class _Slices:
    def __init__(self, stage: Stage, splits: Iterable[Split], costs: Costs) -> None:
        self._stage, self._costs = stage, costs
        self._splits = {split.partition: split for split in splits}
        self._alike: dict[int, float] = {}

    def bytes(self, split: Split) -> int:
        """Of the input that is spread."""
        return self._spread(split).bytes[split.partition]

    def read_bytes(self, split: Split) -> float:
        """Of the input that is spread, for each slice: round robin, each reads all blocks."""
        return self.bytes(split) / split.helpers if split.ranges else self.bytes(split)

    def other_bytes(self, split: Split) -> int:
        """Of the other input, for each slice."""
        other = self._stage.input(split.spread.other)
        return other.bytes[split.partition] if other else 0

    def rest_seconds(self, split: Split) -> float:
        """Of the task that joins the other input with the keys of all slices: all its work, or what is left of it."""
        if not self._as_keys(split):
            return self.other_bytes(split) * self._costs.read_seconds_per_byte
        own, other = self.bytes(split), self.other_bytes(split)
        return self._stage.seconds[split.partition] * other / (own + other) if own + other else 0.0

    def sorted_data(self, piece: PartitionSlice) -> float:
        """Bytes in memory that a slice adds to what its task sorts."""
        split = self._splits.get(piece.partition)
        if split is None:
            return self._stage.data(piece.partition)
        if split.hashed or self._as_keys(split) or self._stage.operator is Operator.PARTITION_WINDOW:
            return 0.0
        other = self._stage.input(split.spread.other)
        copied = self.other_bytes(split) * other.expansion(split.partition) if other else 0.0
        own = self.bytes(split) * self._spread(split).expansion(split.partition)
        return copied + own * self._part(split, piece.slice)

    def seconds(self, piece: PartitionSlice) -> float:
        split = self._splits.get(piece.partition)
        if split is None:
            return self._stage.seconds[piece.partition]
        if split.ranges:
            return self._seconds(split, piece.slice)
        if piece.partition not in self._alike:  # round robin, all slices are
            self._alike[piece.partition] = self._seconds(split, piece.slice)
        return self._alike[piece.partition]

    def _seconds(self, split: Split, number: int) -> float:
        if self._as_keys(split):
            return 0.0  # its rows are read for their keys, before
        stage, costs = self._stage, self._costs
        whole = stage.seconds[split.partition]
        mine = whole * self._part(split, number)
        if split.replicate:
            # Each slice works through all copied rows, not only reads them.
            own, copied = self.bytes(split), self.other_bytes(split)
            share = copied / (own + copied) if own + copied else 0.0
            mine = mine * (1 - share) + whole * share
            if split.hashed:
                mine *= costs.looked_up
        if not split.ranges:
            mine += self.bytes(split) * (1 - 1 / split.helpers) * costs.read_seconds_per_byte
        if stage.operator is Operator.PARTITION_WINDOW:
            # Each slice merges the states of all slices by itself: light keys are as many as in any partition.
            states = min(self.bytes(split), median(stage.left.bytes))
            mine *= costs.looked_up
            mine += split.helpers * states * KEY_PASS * costs.read_seconds_per_byte
        return mine

    def _spread(self, split: Split) -> Shuffle:
        found = self._stage.input(split.spread)
        assert found is not None
        return found

    def _as_keys(self, split: Split) -> bool:
        return spread(self._stage.operator, split.spread) is Spread.AS_KEYS

    def _part(self, split: Split, number: int) -> float:
        blocks = self._spread(split).blocks.get(split.partition, ())
        if split.ranges and sum(blocks):
            start, end = split.ranges[number]
            return sum(blocks[start:end]) / sum(blocks)
        return 1 / split.helpers
