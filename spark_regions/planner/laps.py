"""What the parts of a decision take."""

from __future__ import annotations

import time


class Laps:
    """Milliseconds of what came one after the other."""

    def __init__(self) -> None:
        self.millis: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, name: str) -> None:
        """What was done since the last one was that."""
        now = time.perf_counter()
        self.millis[name] = self.millis.get(name, 0.0) + 1000 * (now - self._last)
        self._last = now
