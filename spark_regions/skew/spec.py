"""What was decided for one reduce stage, as data that the shim can apply."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spark_regions.skew.operators import Input


class Kind(StrEnum):
    NONE = "none"
    ORDER = "order"
    RECORDS = "split_by_records"
    KEYS = "split_by_keys"
    TWO_PHASES = "two_phases"
    BOUNDARIES = "range_boundaries"
    TIES = "spread_ties"


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of one partition that leave it: of a heavy key, or (key None) all rows but those of its heavy keys.

    :param spread: the input whose rows are dealt to `helpers` tasks; the other input's rows go to each of them
    :param replicate: whether there are such rows; never for null keys and operators with one input
    :param ranges: the map outputs of each helper, half-open; empty: every map task deals its rows in turn, or (the
        shuffle is written) each helper reads all of them and keeps every n-th row
    :param verify: decided before the shuffle is written. If then some slice has no row of the spread input, one task
        must read all slices: it would take rows of the other input for unmatched
    :param unmatched: no slice brings out unmatched rows of the other input. A further task does, from the keys of all
        slices. The right side of a semi or anti join is there as keys only: its slices bring out nothing else
    :param hashed: each slice looks its partners up in a table of the other input, instead of sorting both
    """

    partition: int
    key: str | None
    helpers: int
    spread: Input = Input.LEFT
    replicate: bool = False
    share: float = 0.0
    error: float = 0.0
    ranges: tuple[tuple[int, int], ...] = ()
    verify: bool = False
    unmatched: bool = False
    hashed: bool = False

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"partition": self.partition, "helpers": self.helpers, "spread": self.spread.value}
        if self.key is not None:
            found |= {"key": self.key, "share": self.share, "error": self.error}
        if self.replicate:
            found["replicate"] = self.spread.other.value
        if self.verify:
            found["verify"] = True
        if self.unmatched:
            found["unmatched"] = True
        if self.hashed:
            found["hashed"] = True
        if self.ranges:
            found["maps"] = [list(each) for each in self.ranges]
        return found


@dataclass(frozen=True, slots=True)
class Piece:
    """What a task reads: one of a split's slices, or (no split of that partition and key) a partition's other rows."""

    partition: int
    key: str | None = None
    slice: int = 0

    def to_json(self) -> dict[str, Any] | int:
        if self.key is None and self.slice == 0:
            return self.partition
        found: dict[str, Any] = {"partition": self.partition, "slice": self.slice}
        return found if self.key is None else found | {"key": self.key}


Task = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Upper end of a range partition: all lower values, and a fraction of the rows that equal this one."""

    value: str
    fraction: float = 1.0


@dataclass(frozen=True, slots=True)
class Decline:
    """A repair that was not taken, with a code of `spark_regions.reasons`."""

    kind: Kind
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SkewSpec:
    """The decision. Every row is in exactly one piece of `tasks`, rows of a replicated input apart.

    :param tasks: what each task reads, in the order of their start (a sort's: of its ranges); empty: leave the stage as
        it is
    :param boundaries: of all range partitions but the last
    :param predicted_makespan: seconds from the stage's start to its last task's end, extra phases included
    :param plain_makespan: the same without us (Spark's own adaptive execution included, where it is on)
    :param balanced_bound: total task time by cores
    :param reason: a code of `spark_regions.reasons`
    """

    kind: Kind
    splits: tuple[Split, ...] = ()
    tasks: tuple[Task, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    predicted_makespan: float = 0.0
    plain_makespan: float = 0.0
    balanced_bound: float = 0.0
    reason: str = ""
    detail: str = ""
    declines: tuple[Decline, ...] = ()

    @property
    def spreads(self) -> bool:
        """Whether the rows of some key end up in several tasks."""
        return any(split.helpers > 1 for split in self.splits)

    def to_json(self) -> dict[str, Any]:
        """The action `split` of docs/protocol.md; a whole partition is its number alone."""
        return {
            "kind": self.kind.value,
            "keys": [split.to_json() for split in self.splits if split.key is not None],
            "partitions": [split.to_json() for split in self.splits if split.key is None],
            "tasks": [[piece.to_json() for piece in task] for task in self.tasks],
            "boundaries": [{"value": each.value, "fraction": each.fraction} for each in self.boundaries],
            "predictedMakespan": self.predicted_makespan,
            "plainMakespan": self.plain_makespan,
            "balancedBound": self.balanced_bound,
            "reason": self.reason,
            "detail": self.detail,
            "declines": [{"kind": each.kind.value, "code": each.code, "detail": each.detail} for each in self.declines],
        }
