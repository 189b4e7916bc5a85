"""A number with the confidence that one may have in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from spark_regions.dag.running_statistics import RunningStatistics

MOST_OFF = 0.5
"""Share of its value that a guess may be too high."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """:param confidence: from 0 (a guess) to 1"""

    value: float
    confidence: float

    @property
    def low(self) -> float:
        """The lower end, by which a choice has to pay: a guess loses half of its value, one observation a quarter, four
        equal ones a tenth.

        >>> Estimate(4.0, 0.0).low, Estimate(4.0, 0.5).low, Estimate(4.0, 1.0).low
        (2.0, 3.0, 4.0)
        """
        return self.value * (1 - MOST_OFF * (1 - self.confidence))

    def scaled(self, factor: float, trust: float = 1.0) -> Estimate:
        return Estimate(self.value * factor, self.confidence * trust)


def estimate(observed: RunningStatistics, trust: float = 1.0) -> Estimate | None:
    """Mean of what was observed. More observations and less spread give more confidence.

    n/(n+1) · 1/(1 + coefficient of variation): one observation gives 0.5, four equal ones 0.8.

    >>> estimate(RunningStatistics.of(2.0))
    Estimate(value=2.0, confidence=0.5)
    >>> estimate(RunningStatistics()) is None
    True
    """
    if not observed.count:
        return None
    spread = sqrt(observed.variance) / observed.mean if observed.mean > 0 else 0.0
    return Estimate(observed.mean, trust * observed.count / (observed.count + 1) / (1 + spread))


def total(parts: Iterable[Estimate]) -> Estimate:
    """Sum; the confidence is the mean, weighted by value.

    >>> total([Estimate(3.0, 1.0), Estimate(1.0, 0.0)])
    Estimate(value=4.0, confidence=0.75)
    """
    known = list(parts)
    value = sum(part.value for part in known)
    if not known:
        return Estimate(0.0, 0.0)
    if value <= 0:
        return Estimate(0.0, sum(part.confidence for part in known) / len(known))
    return Estimate(value, sum(part.confidence * part.value for part in known) / value)
