"""All that a decision may look at: one reduce stage, in numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_regions.costs.rates import (
    SPILL_BYTES_PER_SECOND,
    SPREAD_READ_BYTES_PER_SECOND,
    SPREAD_WRITE_BYTES_PER_SECOND,
    STAGE_OVERHEAD_SECONDS,
    TASK_OVERHEAD_SECONDS,
    TIE_SECONDS_PER_ROW,
)
from spark_regions.skew.operators import JOINS, Input, Operator
from spark_regions.skew.packing import in_order

SORTED_ROW_BYTES = 50
"""What sorting a row takes beside its own bytes: its length, and two words in a table that doubles when it is full.

A radix sort keeps half of the table for itself. Measured: 576 MB for 3.8 million rows of 374 MB."""


@dataclass(frozen=True, slots=True)
class Shuffle:
    """One input of the stage.

    :param bytes: of each reduce partition; :param rows: of each reduce partition
    :param maps: number of map tasks
    :param blocks: of a partition, the bytes from each map task, where known
    :param repeatable: a map task that runs again writes the same rows in the same order
    :param data: bytes in memory of each partition, before they were compressed; empty where unknown
    """

    bytes: tuple[int, ...]
    rows: tuple[int, ...]
    maps: int = 1
    blocks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    repeatable: bool = False
    data: tuple[float, ...] = ()

    def in_memory(self, partition: int) -> float:
        """Bytes of a partition's rows once they are read."""
        return self.data[partition] if self.data else float(self.bytes[partition])

    def sorted_bytes(self, partition: int) -> float:
        """Bytes of a partition's rows while they are sorted."""
        return self.in_memory(partition) + SORTED_ROW_BYTES * self.rows[partition]

    def expansion(self, partition: int) -> float:
        """Bytes in a sort by bytes in the shuffle."""
        return self.sorted_bytes(partition) / (self.bytes[partition] or 1)


def together(inputs: Sequence[Shuffle]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bytes and rows of each partition, of all inputs.

    :raises ValueError: they do not have as many partitions
    """
    sizes = tuple(map(sum, zip(*(shuffle.bytes for shuffle in inputs), strict=True)))
    return sizes, tuple(map(sum, zip(*(shuffle.rows for shuffle in inputs), strict=True)))


@dataclass(frozen=True, slots=True)
class Costs:
    """What a repair costs beyond the work itself; starting values until the application has been measured.

    :param write_seconds_per_byte: task-seconds to write a byte into a shuffle; :param read_seconds_per_byte: to read it
    :param task_seconds: of any task, before its first row
    :param stage_seconds: of one further stage, until its tasks run
    :param spill_seconds_per_byte: task-seconds for each byte that a sorting task puts aside and reads again
    :param looked_up: part of a sorted join's or window's work that is left where rows are looked up in a table
    :param tie_seconds_per_row: task-seconds of a further sort key, when ranges are sampled and when they are written
    """

    write_seconds_per_byte: float = 1 / SPREAD_WRITE_BYTES_PER_SECOND
    read_seconds_per_byte: float = 1 / SPREAD_READ_BYTES_PER_SECOND
    task_seconds: float = TASK_OVERHEAD_SECONDS
    stage_seconds: float = STAGE_OVERHEAD_SECONDS
    spill_seconds_per_byte: float = 1 / SPILL_BYTES_PER_SECOND
    looked_up: float = 0.5
    tie_seconds_per_row: float = TIE_SECONDS_PER_ROW


@dataclass(frozen=True, slots=True)
class Stage:
    """A reduce stage that is about to run: its inputs are written, or it is a sort, asked about before that.

    :param seconds: predicted load of each partition, both inputs of a join together (`task_time_model`)
    :param error_share: standard error of one such prediction, by its seconds
    :param residual: the join has a condition beyond equal keys
    :param salted: the query spreads its keys by a salt of its own
    :param reshuffle_bytes: what a later operator would have to shuffle again if rows of a key were spread
    :param hashable: a sorted join whose slices may look their partners up in a table instead
    :param sorts: its tasks sort what they read
    :param task_memory: bytes that a task can hold before it spills, while all cores are busy; 0: unknown
    :param executor_memory: bytes that it can hold while it is alone
    """

    operator: Operator
    seconds: tuple[float, ...]
    left: Shuffle
    cores: int
    right: Shuffle | None = None
    error_share: float = 0.0
    residual: bool = False
    salted: bool = False
    reshuffle_bytes: int = 0
    hashable: bool = False
    sorts: bool = False
    task_memory: int = 0
    executor_memory: int = 0

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise ValueError(f"A stage needs at least one core, not {self.cores}.")
        if (self.operator in JOINS) != (self.right is not None):
            raise ValueError(f"{self.operator.value} with {'two inputs' if self.right else 'one input'}.")
        lengths = {len(self.seconds), *(len(each) for shuffle in self.inputs for each in (shuffle.bytes, shuffle.rows))}
        if len(lengths) != 1:
            raise ValueError(f"Inputs and loads disagree about the number of partitions: {sorted(lengths)}.")

    def input(self, side: Input) -> Shuffle | None:
        return self.left if side is Input.LEFT else self.right

    def data(self, partition: int) -> float:
        """Bytes of a partition's rows while they are sorted, of all inputs."""
        return sum(shuffle.sorted_bytes(partition) for shuffle in self.inputs)

    @property
    def inputs(self) -> tuple[Shuffle, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bytes and rows of each partition, both inputs of a join together."""
        return together(self.inputs)

    @property
    def sorted_data(self) -> tuple[float, ...]:
        """`data` of every partition."""
        return tuple(self.data(number) for number in range(len(self.seconds)))

    def with_spills(self, seconds: Sequence[float], data: Sequence[float], costs: Costs) -> tuple[float, ...]:
        """Seconds of tasks that start in this order, where a task takes longer that has to sort its rows in parts.

        A sort whose memory is full puts aside all that it holds. Spark divides an executor's memory among the tasks
        that run: one that ends alone has all of it. Worked example: 600 MB in one of two tasks that share 1,000 MB
        spill 500 MB, and none if the other task has ended when half of this one is done.

        :param seconds: of each task, without that; :param data: bytes that it sorts
        """
        found = tuple(seconds)
        large = [at for at, size in enumerate(data) if size > self.task_memory]
        if not self.sorts or not self.task_memory or not large:
            return found
        started = in_order(found, self.cores).start
        starts = sorted(started)
        ends = sorted(start + each for start, each in zip(started, found, strict=True))

        def spilled(at: int) -> float:
            middle = started[at] + found[at] / 2
            active = bisect_right(starts, middle) - bisect_right(ends, middle)
            room = max(min(self.task_memory * self.cores / max(active, 1), self.executor_memory), self.task_memory)
            return data[at] // room * room

        taken = {at: spilled(at) * costs.spill_seconds_per_byte for at in large}
        return tuple(each + taken.get(at, 0.0) for at, each in enumerate(found))

    @property
    def crowded(self) -> bool:
        """Whether some partition is more than a sorting task holds, where one of the usual size is not."""
        data = self.sorted_data
        return (
            self.sorts and 0 < self.task_memory < max(data, default=0.0) and sum(data) <= self.task_memory * len(data)
        )

    @property
    def balanced_bound(self) -> float:
        """Total task time by cores: no way to run the same work is faster."""
        return sum(self.seconds) / self.cores
