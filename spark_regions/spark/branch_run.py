"""One branch of an exploration while it runs: what it returned, what is held for it, and its score."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_regions.errors import ExploreError
from spark_regions.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Score = Callable[[Any], float]
Stop = Callable[[Sequence[tuple[int, float]]], bool]
"""A rule of the user's: whether a branch with these (round, score) pairs, newest last, is to end."""


class Ended(Exception):
    """A rule of the user's ended the branch."""


@dataclass
class Kept:
    """What a branch returned.

    :param origin: numbers of the exploration and of the branch
    :param held: the DataFrame that was persisted for it; None where nothing was, or the user's own is
    """

    parameters: Mapping[str, Any]
    origin: tuple[int, int]
    value: Any = None
    held: DataFrame | None = None

    def hold(self, value: Any) -> None:
        """In place of what was held. What is persisted already is the user's."""
        from pyspark import StorageLevel
        from pyspark.sql import DataFrame

        if value is self.value:
            return
        before, self.held = self.held, None
        self.value = value
        if isinstance(value, DataFrame) and value.storageLevel == StorageLevel.NONE:
            self.held = value.persist()
        if before is not None:
            before.unpersist()

    def release(self) -> None:
        """Its DataFrame can still be used, and is computed again."""
        held, self.held = self.held, None
        if held is not None:
            held.unpersist()


class BranchRun:
    """
    :param call: the user's function with the branch's parameters
    :param score: of what it returned; None where it yields (round, score)
    :ivar rounds: (round, score) pairs of an iterative branch
    :ivar seconds: that it ran
    """

    def __init__(
        self,
        session: SparkSession,
        number: int,
        tag: str,
        kept: Kept,
        call: Callable[[], Any],
        score: Score | Column | None,
        stop: Stop | None = None,
    ) -> None:
        self.session, self.number, self.tag, self.kept = session, number, tag, kept
        self.rounds: list[tuple[int, float]] = []
        self.seconds = 0.0
        self._call, self._score, self._stop = call, score, stop
        self._steps: Generator[Any, None, Any] | None = None

    def finish(self) -> Any:
        """To its end; the score.

        :raises Ended: by the user's rule
        """
        with self._at_work():
            if self._steps is None:
                self._begin()
            while self._steps is not None and self._step():
                if self._stop is not None and self._stop(tuple(self.rounds)):
                    self._steps.close()
                    raise Ended
            return self._final()

    def advance(self, until: int) -> Any:
        """An iterative branch up to a round, or to its end; its newest score."""
        with self._at_work():
            if self._steps is None and not self.rounds:
                self._begin()
            while self._steps is not None and self._round < until and self._step():
                pass
            return self._newest()

    @property
    def over(self) -> bool:
        """An iterative branch that was begun has nothing more to yield."""
        return self._steps is None and bool(self.rounds)

    def end(self) -> None:
        """It is not wanted any more."""
        if self._steps is not None:
            self._steps.close()
            self._steps = None
        self.kept.release()

    def _begin(self) -> None:
        found = self._call()
        if isinstance(found, Generator):
            self._steps = found
        elif found is None:
            raise ExploreError("Found that the function returns None, expected a DataFrame or a value with a score.")
        else:
            self.kept.hold(found)

    def _step(self) -> bool:
        """Whether it yielded something."""
        assert self._steps is not None
        try:
            found = next(self._steps)
        except StopIteration as last:
            self._steps = None
            if last.value is not None:
                self.kept.hold(last.value)
            return False
        if isinstance(found, tuple) and len(found) == 2:
            self.rounds.append(found)
        else:
            self.kept.hold(found)
            self.rounds.append((self._round + 1, self._scored()))
        return True

    @property
    def _round(self) -> int:
        return self.rounds[-1][0] if self.rounds else 0

    def _final(self) -> Any:
        if self._score is None or self.kept.value is None:
            return self._newest()
        return self._scored()

    def _newest(self) -> Any:
        if not self.rounds:
            raise ExploreError("Found that the function yields nothing, expected (round, score) or DataFrames.")
        return self.rounds[-1][1]

    def _scored(self) -> Any:
        from pyspark.sql import Column

        if isinstance(self._score, Column):
            # In the same pass that fills what is persisted.
            return self.kept.value.agg(self._score).first()[0]
        if self._score is None:
            raise ExploreError("Found no score of what the function yields. Hint: choose(score=lambda frame: …)")
        return self._score(self.kept.value)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            with tagged(self.session, self.tag), within(self.kept.origin):
                yield
        finally:
            self.seconds += time.monotonic() - began


WITHIN: ContextVar[tuple[int, int] | None] = ContextVar("within", default=None)
"""The exploration and the branch whose code runs in this thread."""


@contextmanager
def within(origin: tuple[int, int]) -> Iterator[None]:
    """What explores inside is a scope of the branch."""
    before = WITHIN.set(origin)
    try:
        yield
    finally:
        WITHIN.reset(before)


@contextmanager
def tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """Jobs of this thread can be told, and cancelled, by the tag."""
    if jvm.is_classic(session):
        # Its own tags reach its queries alone, and not the jobs of pyspark.ml.
        add, remove = session.sparkContext.addJobTag, session.sparkContext.removeJobTag
    else:
        add, remove = session.addTag, session.removeTag
    add(tag)
    try:
        yield
    finally:
        remove(tag)


def cancel(session: SparkSession, tag: str) -> None:
    """What runs with the tag, wherever it stands."""
    if jvm.is_classic(session):
        session.sparkContext.cancelJobsWithTag(tag)
    else:
        session.interruptTag(tag)
