"""The catalog's writes of what was observed, one after the other, off the way of decisions."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from spark_regions.errors import StoreError

log = logging.getLogger("spark_regions.planner")


class WriteQueue:
    """A catalog that another process has locked holds up this thread, and no query."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._idle = threading.Condition()
        self._open = 0
        threading.Thread(target=self._write, name="learning", daemon=True).start()

    def put(self, work: Callable[[], object]) -> None:
        """Do it later, after all that was put before."""
        with self._idle:
            self._open += 1
        self._waiting.put(work)

    @property
    def behind(self) -> int:
        """How much of what was put is not done yet."""
        return self._open

    def drain(self, seconds: float) -> bool:
        """Wait until all that was put is done, for so long at the most; whether it is."""
        with self._idle:
            return self._idle.wait_for(lambda: self._open == 0, seconds)

    def _write(self) -> None:
        while True:
            work = self._waiting.get()
            try:
                work()
            except StoreError as error:
                log.warning("an observation is lost: %s", error)
            except Exception:
                log.exception("an observation is lost")
            finally:
                with self._idle:
                    self._open -= 1
                    self._idle.notify_all()
