"""What was decided for one reduce stage, as data that the shim can apply."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spark_regions.skew.operators import Input
from spark_regions.wire.messages import SkewDecline, SkewPlan, SplitPartition


class Kind(StrEnum):
    NONE = "none"
    ORDER = "order"
    RECORDS = "split_by_records"
    KEYS = "split_by_keys"
    """Only ever declined: the shim tells the sizes of partitions, and no keys."""
    TWO_PHASES = "two_phases"
    TIES = "spread_ties"


@dataclass(frozen=True, slots=True)
class Split:
    """A partition whose rows go to several tasks.

    :param spread: the input whose rows are shared out to `helpers` tasks; the other input's rows go to each of them
    :param replicate: whether there is another input
    :param ranges: the map outputs of each helper, half-open; empty: round robin, each helper reads all rows and keeps
        every n-th one
    :param unmatched: no slice brings out unmatched rows of the other input. A further task does, from the keys of all
        slices. The right side of a semi or anti join is there as keys only: its slices bring out nothing else
    :param hashed: each slice looks its partners up in a table of the other input, instead of sorting both
    """

    partition: int
    helpers: int
    spread: Input = Input.LEFT
    replicate: bool = False
    ranges: tuple[tuple[int, int], ...] = ()
    unmatched: bool = False
    hashed: bool = False


@dataclass(frozen=True, slots=True)
class PartitionSlice:
    """What a task reads: one slice of a split partition, or (no split of it) all of it."""

    partition: int
    slice: int = 0


Task = tuple[PartitionSlice, ...]


@dataclass(frozen=True, slots=True)
class Decline:
    """A repair that was not taken, with a code of `spark_regions.reasons`."""

    kind: Kind
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SkewSpec:
    """The decision. Every row is in exactly one slice of `tasks`, rows of a replicated input apart.

    :param tasks: what each task reads, in the order of their start; empty: leave the stage as it is
    :param predicted_makespan: seconds from the stage's start to its last task's end, extra phases included
    :param plain_makespan: the same without us, Spark's own adaptive execution included
    :param balanced_bound: total task time by cores
    :param reason: a code of `spark_regions.reasons`
    """

    kind: Kind
    splits: tuple[Split, ...] = ()
    tasks: tuple[Task, ...] = ()
    predicted_makespan: float = 0.0
    plain_makespan: float = 0.0
    balanced_bound: float = 0.0
    reason: str = ""
    detail: str = ""
    declines: tuple[Decline, ...] = ()

    def told(self) -> SkewPlan:
        """As the shim is told (docs/skew.md)."""
        return SkewPlan(
            self.kind.value,
            tuple(
                SplitPartition(
                    each.partition,
                    each.helpers,
                    each.spread.value,
                    each.spread.other.value if each.replicate else None,
                    each.unmatched,
                    each.hashed,
                    each.ranges,
                )
                for each in self.splits
            ),
            tuple(tuple((each.partition, each.slice) for each in task) for task in self.tasks),
            self.predicted_makespan,
            self.plain_makespan,
            self.balanced_bound,
            self.reason,
            self.detail,
            tuple(SkewDecline(each.kind.value, each.code, each.detail) for each in self.declines),
        )
