"""Seconds that each reduce partition will take, from its size and from what earlier tasks took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from spark_regions.costs.rates import TASK_BYTES_PER_SECOND, TASK_SECONDS_PER_ROW

GUESS_ERROR_SHARE = 0.1
"""Until tasks of this stage were observed: of one partition beside the others of its stage. A rate that is wrong for
all of them alike changes no decision."""


@dataclass(frozen=True, slots=True)
class TaskTime:
    """A task that ran: what it read, and its run time without waiting for a core."""

    bytes: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TaskTimeModel:
    """seconds = fixed + bytes · seconds_per_byte + rows · seconds_per_row.

    :param error_share: standard error of the prediction of one task (§12.3.2), by its seconds
    :param tasks: observations behind it
    """

    fixed: float = 0.0
    seconds_per_byte: float = 1 / TASK_BYTES_PER_SECOND
    seconds_per_row: float = TASK_SECONDS_PER_ROW
    error_share: float = GUESS_ERROR_SHARE
    tasks: int = 0

    def predict(self, size_bytes: int, rows: int) -> float:
        return self.fixed + size_bytes * self.seconds_per_byte + rows * self.seconds_per_row

    def partition_seconds(self, sizes: Sequence[int], rows: Sequence[int]) -> tuple[float, ...]:
        """Of all partitions; one without rows takes no time of its own."""
        return tuple(
            self.predict(size, count) if size or count else 0.0 for size, count in zip(sizes, rows, strict=True)
        )


def fit(observed: Iterable[TaskTime]) -> TaskTimeModel:
    """Least squares of relative errors on tasks that ran, no factor below 0.

    Relative, because a task ten times as long is off by ten times as much. Bytes and rows grow together, so that both
    factors cannot be told apart: the one that explains more is taken.
    Worked example: (10 MB, 1.1 s), (20 MB, 2.1 s), (40 MB, 4.1 s), equal rows a byte: 0.1 s + 0.1 s/MB.
    """
    tasks = [task for task in observed if task.seconds > 0 and (task.bytes or task.rows)]
    if not tasks:
        return TaskTimeModel()
    by_bytes = _line([task.bytes for task in tasks], [task.seconds for task in tasks])
    by_rows = _line([task.rows for task in tasks], [task.seconds for task in tasks])
    models = [TaskTimeModel(by_bytes[0], by_bytes[1], 0.0), TaskTimeModel(by_rows[0], 0.0, by_rows[1])]
    best = min(models, key=lambda model: _residue(model, tasks))
    count = len(tasks)
    error = sqrt(_residue(best, tasks) / (count - 2) * (1 + 1 / count)) if count > 2 else GUESS_ERROR_SHARE
    return TaskTimeModel(best.fixed, best.seconds_per_byte, best.seconds_per_row, error, count)


def _line(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """Fixed part and slope, both at least 0, of least squares weighted by 1 / seconds².

    A fixed part is taken for one only where it is two standard errors from none, and sizes differ by a factor of two:
    tasks of about one size say nothing of it, and all that they take would seem to be theirs whatever they read.
    """
    weight = [1 / each**2 for each in seconds]
    total = sum(weight)
    mean_size = sum(w * size for w, size in zip(weight, sizes, strict=True)) / total
    mean_seconds = sum(w * each for w, each in zip(weight, seconds, strict=True)) / total
    triples = list(zip(weight, sizes, seconds, strict=True))
    spread = sum(w * (size - mean_size) ** 2 for w, size, _ in triples)
    together = sum(w * (size - mean_size) * (each - mean_seconds) for w, size, each in triples)
    if not mean_size:
        return mean_seconds, 0.0
    slope = max(together / spread, 0.0) if spread else 0.0
    fixed = mean_seconds - slope * mean_size
    alike = max(sizes) < 2 * min(sizes)
    if alike or fixed <= 2 * _intercept_error(triples, fixed, slope, mean_size, spread):
        squares = sum(w * size * size for w, size, _ in triples)
        return 0.0, sum(w * size * each for w, size, each in triples) / squares
    return fixed, slope


def _intercept_error(
    triples: Sequence[tuple[float, int, float]], fixed: float, slope: float, mean_size: float, spread: float
) -> float:
    """Standard error of a line's fixed part, of tasks that are not of one size."""
    off = sum(w * (each - fixed - slope * size) ** 2 for w, size, each in triples)
    total = sum(w for w, _, _ in triples)
    return sqrt(off / max(len(triples) - 2, 1) * (1 / total + mean_size**2 / spread))


def _residue(model: TaskTimeModel, tasks: Sequence[TaskTime]) -> float:
    return sum((1 - model.predict(task.bytes, task.rows) / task.seconds) ** 2 for task in tasks)
