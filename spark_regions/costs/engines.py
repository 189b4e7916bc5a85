"""What a statement takes on another engine: by rates at first, then by what statements took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_regions.costs.rates import (
    ENGINE_DEADLINE_FACTOR,
    ENGINE_DEADLINE_LEAST_SECONDS,
    ENGINE_OVERHEAD_SECONDS,
    ENGINE_READ_BYTES_PER_SECOND,
    ENGINE_RESULT_BYTES_PER_SECOND,
    ENGINE_SECONDS_PER_ROW,
    ENGINE_START_SECONDS,
)

TELLING_SECONDS = 0.05
"""What is predicted to take less is mostly overhead, and teaches nothing of the rates."""
MOST_OFF = 20.0
"""What a statement takes is within so many times its prediction, or something else ran."""


@dataclass(frozen=True, slots=True)
class EngineRates:
    """
    :param start_seconds: of the process
    :param factor: what statements took of what the rates say
    """

    start_seconds: float = ENGINE_START_SECONDS
    factor: float = 1.0

    def seconds(self, read_bytes: float, rows: float, result_bytes: float, cores: int) -> float:
        """Of one statement, without the start.

        >>> round(EngineRates().seconds(300e6, 10e6, 1e6, 2), 2), round(EngineRates(factor=2.0).seconds(0, 0, 0, 2), 2)
        (0.81, 0.1)
        """
        busy = read_bytes / ENGINE_READ_BYTES_PER_SECOND + rows * ENGINE_SECONDS_PER_ROW
        handed_over = result_bytes / ENGINE_RESULT_BYTES_PER_SECOND
        return self.factor * (busy / max(cores, 1) + handed_over + ENGINE_OVERHEAD_SECONDS)


def deadline_seconds(instead_seconds: float) -> float:
    """After which a statement is given up, the engine's start not counted.

    :param instead_seconds: that Spark is expected to take

    >>> deadline_seconds(0.3), deadline_seconds(60.0)
    (30.0, 180.0)
    """
    return max(ENGINE_DEADLINE_LEAST_SECONDS, ENGINE_DEADLINE_FACTOR * instead_seconds)


def engine_rates(learned: Mapping[str, float], platform: str) -> EngineRates:
    """Those of an engine, from the catalog's calibration."""
    known = EngineRates()
    start, factor = (learned.get(f"{platform}.{name}", 0.0) for name in ("start", "factor"))
    return EngineRates(start if start > 0 else known.start_seconds, factor if factor > 0 else known.factor)


def observed_factor(factor: float, predicted_seconds: float, seconds: float) -> float | None:
    """What one statement says of the factor, that it was predicted with `factor`; None where it was too short.

    >>> observed_factor(2.0, 1.0, 0.5), observed_factor(1.0, 0.03, 0.3) is None
    (1.0, True)
    """
    if predicted_seconds < TELLING_SECONDS or seconds <= 0:
        return None
    return factor * min(MOST_OFF, max(1 / MOST_OFF, seconds / predicted_seconds))
