"""What the tasks of a stage took when it ran before: the load that the next run is predicted to be (thesis §12.3.2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from spark_regions.errors import InvalidRequest
from spark_regions.skew.reduce_stage import Costs
from spark_regions.skew.task_time_model import TaskTime, TaskTimeModel, fit
from spark_regions.wire.messages import RanStage, RanTask

LEAST_FOR_LINE = 5
"""Tasks from which a fixed part can be told from the rest; of fewer only a rate is taken."""
SAME_BYTES = 0.01
"""Equal rows are written in about equal bytes: how well they compress depends on their order."""


@dataclass(frozen=True, slots=True)
class StageHistory:
    """
    :param seconds: of each partition, without a task's fixed part; empty where a task did not read whole ones
    :param size: bytes of all partitions
    """

    model: TaskTimeModel
    seconds: tuple[float, ...] = ()
    size: int = 0

    def partition_seconds(self, sizes: Sequence[int], rows: Sequence[int], same_rows: bool) -> tuple[float, ...]:
        """Seconds of each partition, without a task's fixed part.

        :param same_rows: its rows are those that were measured
        """
        if self.measured(sizes, same_rows):
            return self.seconds
        return _rate(self.model).partition_seconds(sizes, rows)

    def measured(self, sizes: Sequence[int], same_rows: bool) -> bool:
        """Whether each of these partitions was measured by itself."""
        alike = abs(sum(sizes) - self.size) <= SAME_BYTES * self.size
        return same_rows and alike and self.whole and len(self.seconds) == len(sizes)

    @property
    def whole(self) -> bool:
        """Whether it tells what partitions take.

        Slices take their time otherwise: their partners come once for each, or are looked up instead of sorted. A stage
        that was cut is decided on by its sizes again, or by a run before it.
        """
        return bool(self.seconds)

    def encode(self) -> bytes:
        seconds = [round(each, 4) for each in self.seconds]
        return json.dumps({"model": asdict(self.model), "seconds": seconds, "size": self.size}).encode()

    @classmethod
    def decode(cls, body: bytes) -> StageHistory:
        """
        :raises InvalidRequest: these are not the bytes of a history
        """
        try:
            record = json.loads(body)
            return cls(TaskTimeModel(**record["model"]), tuple(map(float, record["seconds"])), int(record["size"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidRequest(f"What a stage took cannot be read: {problem!r}.") from problem


def observed(event: RanStage) -> StageHistory:
    """Of a stage that ran.

    A task of several partitions took of each what the line through all tasks says, by its own time. Worked example:
    tasks of (10 MB) in 1.1 s and (10 MB, 30 MB) in 8.1 s, 0.1 s of each fixed: 1.0, 2.0 and 6.0 s. What a task took to
    spill is left out: it depends on what runs beside it, and `Stage.with_spills` predicts it.

    :raises InvalidRequest: a task read a partition that is not there
    """
    tasks = [(TaskTime(each.bytes, each.rows, _unspilled(each)), list(each.partitions)) for each in event.tasks]
    if any(not 0 <= at < len(event.bytes) for each in event.tasks for at in each.partitions):
        raise InvalidRequest("The tasks of a stage read a partition that it does not have.")
    model = _model([time for time, _ in tasks])
    return StageHistory(model, _by_partition(model, tasks, event.bytes, event.rows), sum(event.bytes))


def _unspilled(task: RanTask) -> float:
    """Without what writing rows and reading them once more took; no more than half of a task is taken for that."""
    return max(task.seconds - task.spilled * Costs().spill_seconds_per_byte, task.seconds / 2)


def _rate(model: TaskTimeModel) -> TaskTimeModel:
    """Of a partition: the fixed part is a task's."""
    return replace(model, fixed=0.0)


def _model(tasks: Sequence[TaskTime]) -> TaskTimeModel:
    size = sum(task.bytes for task in tasks)
    if len(tasks) >= LEAST_FOR_LINE or not size:
        return fit(tasks)
    return TaskTimeModel(0.0, sum(task.seconds for task in tasks) / size, 0.0, tasks=len(tasks))


def _by_partition(
    model: TaskTimeModel, tasks: Sequence[tuple[TaskTime, list[int]]], sizes: Sequence[int], rows: Sequence[int]
) -> tuple[float, ...]:
    by_rate = _rate(model).partition_seconds(sizes, rows)
    found = [0.0] * len(sizes)
    read: set[int] = set()
    for time, partitions in tasks:
        weights = [by_rate[at] for at in partitions]
        if not any(weights):
            weights = [float(sizes[at]) for at in partitions]
        whole = sum(weights)
        for at, weight in zip(partitions, weights, strict=True):
            found[at] = max(time.seconds - model.fixed, 0.0) * weight / whole if whole else 0.0
        read |= set(partitions)
    return tuple(found) if all(at in read for at, size in enumerate(sizes) if size) else ()
