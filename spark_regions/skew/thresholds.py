"""The skew test (thesis §10.1), on seconds of predicted load instead of queued tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from spark_regions.skew.packing import lpt


@dataclass(frozen=True, slots=True)
class Thresholds:
    """:param eta: load from which a worker is burdened; :param tau: gap from which a helper is worth it; one unit"""

    eta: float
    tau: float


def thresholds(loads: Sequence[float], workers: int, move: float, error: float) -> Thresholds:
    """η and τ from the loads alone.

    η is a worker's fair share: no order and no packing can hide a load above it. τ: balancing a gap D saves at most D/2
    (eq. 4), so moving pays from D = 2 · move; and the gap of two predictions has the error √2 · ε.

    Worked example: loads 30, 4, 4, 2 s on 4 workers, 1 s to move state, ε = 0.5 s: η = 10 s, τ = 2 + 0.7 s.

    :param move: seconds that moving state (or the extra phase) takes
    :param error: standard error of one predicted load, seconds
    """
    return Thresholds(sum(loads) / max(workers, 1), 2 * move + sqrt(2) * error)


def passes(skewed: float, candidate: float, limits: Thresholds) -> bool:
    """Eq. 1 and 2: φ_L ≥ η and φ_L - φ_C ≥ τ.

    >>> passes(26.0, 7.0, Thresholds(10.0, 5.0)), passes(26.0, 24.0, Thresholds(10.0, 5.0))
    (True, False)
    """
    return skewed >= limits.eta and skewed - candidate >= limits.tau


def burdened(seconds: Sequence[float], cores: int, limits: Thresholds) -> tuple[int, ...]:
    """Partitions that pass the test even when the longest start first.

    A worker of the thesis is a core here: its load is what longest-first scheduling puts on it.
    """
    placed = lpt(seconds, cores)
    least = min(placed.loads)
    return tuple(
        index
        for index, each in enumerate(seconds)
        if each and passes(placed.loads[placed.worker[index]], least, limits)
    )
