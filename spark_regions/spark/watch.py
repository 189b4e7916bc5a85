"""Shows how an exploration stands while it runs: on the Regions tab, in a notebook, on a terminal.

A thread of its own looks now and then, and tells what has changed: branches do not wait for it, and however many there
are and however long they take, a few hundred times is told.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from spark_regions.exploration.choose import KEPT, OPEN, PRUNED, RUNNING
from spark_regions.progress import Advance, bar, is_shown, only_if_asked
from spark_regions.spark import jvm
from spark_regions.spark.branch_table import STATES, Branch, Branches, cut

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("spark_regions")

PAUSE_SECONDS = 0.5
PAUSE_SHARE = 0.01
"""Of the time that the exploration has taken so far, if that is more."""
BRANCHES_TOLD = 1000
"""Branches of which the tab has a row, besides those that are kept; of the others it has the number in each state."""
HOLD_BACK_SECONDS = 0.3
"""Spark's bar stays away for half a second after it was told that all is done."""
_TEXT = 200


@dataclass(frozen=True, slots=True)
class Standing:
    """How an exploration stands.

    :param status: running, ok, failed or interrupted
    :param best: score so far
    """

    branches: Branches
    status: str
    best: float | None
    error: str = ""


class Viewer(Protocol):
    """
    :ivar watches: whether it is to be shown more
    """

    watches: bool

    def show(self, now: Standing) -> None: ...


@contextmanager
def watched(look: Callable[[], Standing], viewers: Sequence[Viewer], session: SparkSession) -> Iterator[None]:
    """Viewers are shown what `look` gives, and at the end how it ended.

    A viewer that fails is told in the log, and shown nothing more.
    """
    shown = list(viewers)
    ended = threading.Event()
    began = time.monotonic()

    def show(now: Standing) -> None:
        shown[:] = [viewer for viewer in shown if _done(viewer, partial(viewer.show, now)) and viewer.watches]

    def watch() -> None:
        while shown and not ended.wait(max(PAUSE_SECONDS, PAUSE_SHARE * (time.monotonic() - began))):
            show(look())

    # What a notebook's cell is, is known by the context.
    thread = _thread(session, partial(copy_context().run, watch))
    try:
        yield
    finally:
        ended.set()
        thread.join()
        show(look())


def _done(viewer: object, work: Callable[[], None]) -> bool:
    """No viewer makes an exploration fail."""
    try:
        work()
    except Exception as error:
        log.warning("%s: an exploration is shown no more: %r", type(viewer).__name__, error)
        return False
    return True


def viewers(
    session: SparkSession, stack: ExitStack, branches: Branches, progress: bool | None, nested: bool
) -> Iterator[Viewer]:
    """A notebook's table, or a terminal's line. One in another's branch has none of its own.

    :param stack: closes them
    :param progress: False: none; True: also where nobody watches; None: where somebody does
    """
    if progress is False or (progress is None and nested):
        return
    if in_kernel():
        if progress or not only_if_asked():
            yield Notebook(branches)
        return
    if is_shown(progress):
        stack.enter_context(_alone(session))
        yield Line(stack.enter_context(bar("branches", len(branches), True)))


def in_kernel() -> bool:
    """Whether a notebook shows what this process displays. IPython is not loaded for it: a kernel has."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _alone(session: SparkSession) -> Iterator[None]:
    """Spark draws a bar of its own for stages on the same line, wherever it was started from Python: held back."""
    ended = threading.Event()

    def hold_back() -> None:
        while jvm.hold_back_stages(session.sparkContext) and not ended.wait(HOLD_BACK_SECONDS):
            pass

    def work() -> None:
        _done(session, hold_back)

    if not jvm.is_classic(session):
        yield
        return
    thread = _thread(session, work)
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _thread(session: SparkSession, work: Callable[[], None]) -> threading.Thread:
    from pyspark.util import inheritable_thread_target

    started = threading.Thread(target=inheritable_thread_target(session)(work), daemon=True)
    started.start()
    return started


class Notebook:
    """The table of branches, where it was displayed first."""

    watches = True

    def __init__(self, branches: Branches) -> None:
        from IPython.display import display

        self._handle: Any = display(branches, display_id=True)
        self._shown = repr(branches)

    def show(self, now: Standing) -> None:
        told = repr(now.branches)
        if told != self._shown:
            self._shown = told
            self._handle.update(now.branches)


class Line:
    """A bar with the best score so far."""

    watches = True

    def __init__(self, advance: Advance) -> None:
        self._advance, self._done = advance, 0

    def show(self, now: Standing) -> None:
        states = Counter(each.state for each in now.branches)
        done = states.total() - states[OPEN] - states[RUNNING]
        text = "branches" if now.best is None else f"branches, best {now.best:.6g}"
        self._advance(done - self._done, text)
        self._done = done


class Tab:
    """The page of an exploration in Spark's UI, and what the event log has of it.

    :param about: what does not change: select, shape, order, function
    :param parents: branches of other explorations that it goes on from
    :param held: what is persisted for a branch
    """

    def __init__(
        self,
        session: SparkSession,
        exploration: int,
        about: Mapping[str, Any],
        parents: Sequence[tuple[int, int]],
        held: Callable[[int], DataFrame | None],
    ) -> None:
        self._session, self._held = session, held
        self._facts = {**about, "began": int(time.time() * 1000), "parents": [*map(list, parents)]}
        self._exploration = exploration
        self._began = time.monotonic()
        self._told: dict[int, tuple[Any, ...]] = {}
        self._kept: list[dict[str, Any]] = []
        self.watches = True

    def show(self, now: Standing) -> None:
        ended = now.status != RUNNING
        changed = self._changed(now.branches)
        if ended:
            # Also of those that were told: their data may have been filled since.
            kept = [each for each in now.branches if each.state == KEPT][:BRANCHES_TOLD]
            changed = [each for each in changed if each.state != KEPT] + kept
        found = Counter(each.state for each in now.branches)
        states = {state: found[state] for state in STATES if found[state]}
        if not (changed or ended or states != self._facts.get("states")):
            return
        self._told |= {each.number: _key(each) for each in changed}
        self._facts |= {
            "branches": len(now.branches),
            "states": states,
            "best": _number(now.best),
            "seconds": round(time.monotonic() - self._began, 3),
            "status": now.status,
            "error": cut(now.error, _TEXT),
        }
        kept_now = (each.number for each in changed if each.state == KEPT)
        held = {number: frame for number in kept_now if (frame := self._held(number)) is not None}
        records = [_record(each) for each in changed]
        self._tell(records, held)
        if ended:
            self._kept = [record for record in records if record["branch"] in held]

    def released(self) -> None:
        """What was kept is held no more."""
        _done(self, lambda: self._tell(self._kept, {}))

    def _changed(self, branches: Branches) -> list[Branch]:
        """Of too many, those that run are told, as long as they are not too many either."""
        unheard = (OPEN, PRUNED) if len(branches) > BRANCHES_TOLD else ()
        changed = [each for each in branches if self._told.get(each.number) != _key(each)]
        known = [each for each in changed if each.number in self._told]
        new = [each for each in changed if each.number not in self._told and each.state not in unheard]
        return known + new[: BRANCHES_TOLD - len(self._told)]

    def _tell(self, records: Sequence[Mapping[str, Any]], held: Mapping[int, DataFrame]) -> None:
        if self.watches:
            event = {"exploration": self._exploration, "facts": self._facts, "branches": records}
            self.watches = jvm.explored(self._session, json.dumps(event), held)


def _key(each: Branch) -> tuple[Any, ...]:
    return each.state, each.score, each.why


def _record(each: Branch) -> dict[str, Any]:
    return {
        "branch": each.number,
        "parameters": each.given(),
        "score": _number(each.score),
        "seconds": round(each.seconds, 3),
        "state": each.state,
        "why": cut(each.why, _TEXT),
    }


def _number(value: float | None) -> float | str | None:
    """JSON has no infinite numbers."""
    return value if value is None or math.isfinite(value) else str(value)
