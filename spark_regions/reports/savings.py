"""What was saved, as predicted and as measured, kept apart.

*Predicted*: what the planner expected of each action when it decided, in wall seconds; reads are net of reading.

*Measured*, of reads alone: what the query would have spent in the read's place, as the operators took it when they
last ran, less what the read took. The shim does that arithmetic where earlier runs have measured the operators
(`saved` of a load); where it has none, this log's own measurements are taken: task-seconds when the same rows were last
computed in full, less task-seconds of the read, over the cores. A read for which neither is there counts as not
measured, and adds nothing. Nobody measures what a shared subplan or a rearranged stage would have taken otherwise:
those have a prediction only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

POINT_LIMIT = 2000
LEAST_SECONDS = 0.05
"""An error of less counts as a share of this."""


@dataclass(slots=True)
class Measured:
    """Sums over the reads of results.

    :param by_runs: reads measured against earlier runs
    :param by_log: reads measured against this log alone
    :param unmeasured: reads of which only the prediction is known
    :param predicted: wall seconds, of the measured reads alone, to compare with; None where only their sum is known
    :param saved: wall seconds, of the measured reads
    :param points: predicted and measured wall seconds of each, of the first so many
    """

    by_runs: int = 0
    by_log: int = 0
    unmeasured: int = 0
    predicted: float | None = 0.0
    saved: float = 0.0
    points: list[tuple[float, float]] = field(default_factory=list)

    @property
    def reads(self) -> int:
        return self.by_runs + self.by_log + self.unmeasured

    @property
    def seconds(self) -> float | None:
        """Wall seconds; None where nothing was measured."""
        return self.saved if self.by_runs + self.by_log else None

    @property
    def error(self) -> float | None:
        """By how much predictions were off: the median, as a share of what was measured; None without measured reads.

        >>> Measured(points=[(1.0, 0.8), (2.0, 2.0), (3.0, 1.0)]).error
        0.25
        """
        shares = [abs(predicted - saved) / max(abs(saved), LEAST_SECONDS) for predicted, saved in self.points]
        return round(median(shares), 4) if shares else None

    @property
    def lost(self) -> int:
        """Of `points`, how many took longer than what they stood for."""
        return sum(saved < 0 for _, saved in self.points)


class Savings:
    """:param predicted: wall seconds by kind of action"""

    def __init__(self) -> None:
        self.predicted: defaultdict[str, float] = defaultdict(float)
        self.measured = Measured()

    def predict(self, kind: str, seconds: float) -> None:
        self.predicted[kind] += max(seconds, 0.0)

    def read(self, predicted: float, load: Mapping[str, Any], fresh_seconds: float | None, cores: int) -> None:
        """A read that ran.

        :param predicted: wall seconds
        :param load: what the shim says of it: `seconds` (task-seconds of the read), `saved` (wall seconds)
        :param fresh_seconds: task-seconds to compute the same rows, as this log has measured
        """
        found = self.measured
        read, saved = load.get("seconds"), load.get("saved")
        if saved is not None:
            found.by_runs += 1
        elif fresh_seconds is not None and read is not None:
            found.by_log += 1
            saved = (fresh_seconds - float(read)) / max(cores, 1)
        else:
            found.unmeasured += 1
            return
        found.predicted = (found.predicted or 0.0) + predicted
        found.saved += float(saved)
        if len(found.points) < POINT_LIMIT:
            found.points.append((predicted, float(saved)))
