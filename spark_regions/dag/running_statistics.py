"""Count, mean and variance that can be merged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunningStatistics:
    """Running mean and variance (Welford; merged as Chan, Golub and LeVeque do).

    Piglet §4.3 merges by averaging; the variance is ours, for confidences.

    >>> a = RunningStatistics.of(2.0).merge(RunningStatistics.of(4.0))
    >>> a.count, a.mean, a.variance, a.last
    (2, 3.0, 2.0, 4.0)
    """

    count: int = 0
    mean: float = 0.0
    m2: float = 0.0
    last: float = 0.0

    @classmethod
    def of(cls, value: float) -> RunningStatistics:
        return cls(1, value, 0.0, value)

    @property
    def variance(self) -> float:
        """Sample variance; 0 below two observations."""
        return self.m2 / (self.count - 1) if self.count > 1 else 0.0

    def merge(self, later: RunningStatistics) -> RunningStatistics:
        """Both together; `last` is the later one's."""
        if not later.count:
            return self
        if not self.count:
            return later
        count = self.count + later.count
        delta = later.mean - self.mean
        mean = self.mean + delta * later.count / count
        m2 = self.m2 + later.m2 + delta * delta * self.count * later.count / count
        return RunningStatistics(count, mean, m2, later.last)
