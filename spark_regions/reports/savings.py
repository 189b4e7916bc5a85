"""What was saved: predicted, measured, and estimated where it was not measured; kept apart.

*Predicted*: what the planner expected of each action when it decided, in wall seconds; reads are net of reading.

*Measured*: what plain execution of the same query took, in the same state of the machine, less what this run took,
deciding included; wall seconds, divided over the query's actions by their predictions. The shim does that arithmetic.
Queries that ran both ways are measured once more, apart.

*Estimated*, of reads alone, where there is no such plain execution: what the operators in the read's place took when
they last ran, less what the read took, in task-seconds over the cores. Where earlier runs have no times, this log's own
are taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

POINT_LIMIT = 2000
LEAST_SECONDS = 0.05
"""An error of less counts as a share of this."""


@dataclass(slots=True)
class Measured:
    """Sums over choices: actions that spared a query work.

    :param choices: those that were measured
    :param reads: those of them that were reads
    :param predicted: wall seconds, of the measured ones alone, to compare with; None where only their sum is known
    :param saved: wall seconds, of the measured ones
    :param lost: of the measured ones, how many took longer than plain Spark
    :param points: predicted and measured wall seconds of each, of the first so many
    :param estimated: reads that were only estimated
    :param estimated_seconds: wall seconds of those
    :param unknown: reads of which only the prediction is known
    """

    choices: int = 0
    reads: int = 0
    predicted: float | None = 0.0
    saved: float = 0.0
    lost: int = 0
    points: list[tuple[float, float]] = field(default_factory=list)
    estimated: int = 0
    estimated_seconds: float = 0.0
    unknown: int = 0

    @property
    def seconds(self) -> float | None:
        """Wall seconds; None where nothing was measured."""
        return self.saved if self.choices else None

    @property
    def error(self) -> float | None:
        """By how much predictions were off: the median, as a share of what was measured; None where nothing was.

        >>> Measured(points=[(1.0, 0.8), (2.0, 2.0), (3.0, 1.0)]).error
        0.25
        """
        shares = [abs(predicted - saved) / max(abs(saved), LEAST_SECONDS) for predicted, saved in self.points]
        return round(median(shares), 4) if shares else None


@dataclass(slots=True)
class Verified:
    """Queries that ran both ways.

    :param same: with equal rows
    :param different: with others
    :param timed: those during which nothing else ran
    :param plain: wall seconds of those as plain Spark
    :param saved: wall seconds that running them as decided saved
    """

    same: int = 0
    different: int = 0
    timed: int = 0
    plain: float = 0.0
    saved: float = 0.0

    def add(self, action: Mapping[str, Any]) -> None:
        """A note that the shim made of one."""
        if action.get("kind") == "differs":
            self.different += 1
            return
        self.same += 1
        if pair := action.get("pair"):
            self.timed += 1
            self.plain += float(pair.get("plain") or 0.0)
            self.saved += float(pair.get("saved") or 0.0)


@dataclass(slots=True)
class Statements:
    """Parts of queries that another engine computed; wall seconds, without its start."""

    count: int = 0
    predicted_seconds: float = 0.0
    seconds: float = 0.0
    rows: int = 0
    bytes: int = 0

    def add(self, run: Mapping[str, Any]) -> None:
        """What the shim says of one."""
        self.count += 1
        self.predicted_seconds += float(run.get("predictedSeconds") or 0.0)
        self.seconds += float(run.get("measuredSeconds") or 0.0)
        self.rows += int(run.get("measuredRows") or 0)
        self.bytes += int(run.get("measuredBytes") or 0)


class Savings:
    """:param predicted: wall seconds by kind of action"""

    def __init__(self) -> None:
        self.predicted: defaultdict[str, float] = defaultdict(float)
        self.measured = Measured()
        self.verified = Verified()
        self.statements = Statements()

    def predict(self, kind: str, seconds: float) -> None:
        self.predicted[kind] += max(seconds, 0.0)

    def measure(self, choices: Iterable[Mapping[str, Any]]) -> None:
        """What the shim measured of a query: its choices, with `predicted` and `saved` wall seconds."""
        found = self.measured
        for choice in choices:
            predicted, saved = float(choice.get("predicted") or 0.0), float(choice.get("saved") or 0.0)
            found.choices += 1
            found.reads += choice.get("kind") in ("load", "recall")
            found.predicted = (found.predicted or 0.0) + predicted
            found.saved += saved
            found.lost += saved < 0
            if len(found.points) < POINT_LIMIT:
                found.points.append((predicted, saved))

    def estimate(self, load: Mapping[str, Any], fresh_seconds: float | None, cores: int) -> None:
        """A read that ran in a query that was not measured.

        :param load: what the shim says of it: `seconds` (task-seconds of the read), `estimated` (wall seconds)
        :param fresh_seconds: task-seconds to compute the same rows, as this log has measured
        """
        found = self.measured
        read, saved = load.get("seconds"), load.get("estimated")
        if saved is None and fresh_seconds is not None and read is not None:
            saved = (fresh_seconds - float(read)) / max(cores, 1)
        if saved is None:
            found.unknown += 1
            return
        found.estimated += 1
        found.estimated_seconds += float(saved)
