"""Runs the branches of an exploration: depth first, each kept until it has lost, cancelled when it cannot win."""

from __future__ import annotations

import inspect
import itertools
import json
import logging
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_regions.errors import ExploreError
from spark_regions.exploration.choose import FAILED, KEPT, OPEN, RUNNING, Choose, Outcome
from spark_regions.exploration.halving import Halving
from spark_regions.spark import jvm
from spark_regions.spark.branch_run import WITHIN, BranchRun, Ended, Kept, Score, Stop, cancel, tagged, within
from spark_regions.spark.branch_table import Branch, Branches
from spark_regions.spark.watch import Standing, Tab, Viewer, viewers, watched

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

log = logging.getLogger("spark_regions")

AHEAD, FIRST_AHEAD = 64, 8
"""Branches whose plans are told together, so that what several of them compute is computed once; and those that the
first branch waits for, in a cold driver."""
IDLE = 0.6
"""Where a branch keeps less than this share of the cores busy, others run beside it."""
MOST_AT_ONCE = 8
CANCEL_SECONDS = 0.5
"""A cancel is lost on a branch between two jobs, so it is repeated."""
_NUMBERS = itertools.count(1)

Call = tuple[tuple[Any, ...], Mapping[str, Any]]


class Runner:
    """One `choose`.

    :param parents: branches of other explorations that this one goes on from
    :param about: it, for those who watch
    :ivar errors: by branch
    :ivar why: what became of a branch, in words
    :ivar interrupted: by Ctrl-C
    """

    def __init__(
        self,
        function: Callable[..., Any],
        points: Sequence[Mapping[str, Any]],
        calls: Sequence[Call],
        choose: Choose,
        score: Score | Column | None,
        stop: Halving | Stop | None,
        parents: Sequence[tuple[int, int]],
        about: Mapping[str, str],
    ) -> None:
        from pyspark.sql import Column

        iterative = self._iterative = inspect.isgeneratorfunction(function)
        if score is not None and not callable(score) and not isinstance(score, Column):
            raise ExploreError(f"Found the score {score!r}, expected a function or a Column.")
        if score is None and not iterative:
            raise ExploreError("Found no score. Hint: choose(score=lambda frame: …), or yield (round, score)")
        if stop is not None and not iterative:
            raise ExploreError("Found `stop` for a function that yields nothing. Hint: yield (round, score)")
        self.errors: dict[int, BaseException] = {}
        self.why: dict[int, str] = {}
        self.scores: dict[int, float] = {}
        self.seconds: dict[int, float] = {}
        self.interrupted = False
        self._session = _session()
        self._function, self._points, self._calls = function, points, calls
        self._choose, self._score, self._stop = choose, score, stop
        self._number = next(_NUMBERS)
        self._name = f"explore-{self._number}"
        self._status, self._error = RUNNING, ""
        self._runs: dict[int, BranchRun] = {}
        self._cancelled: set[int] = set()
        self._kept: dict[int, Kept] = {}
        self._shared = _SharedState(function)
        self._ahead = _Ahead(self._session, function, self._call, not iterative, f"{self._name}-plans")
        self._width = 1
        inside = WITHIN.get()
        self._nested = inside is not None
        self.tab: Tab | None = None
        """Where Spark's UI may have a page of it."""
        if jvm.is_classic(self._session):
            described = {"function": _described(function), **about}
            origins = parents or ([inside] if inside is not None else [])
            self.tab = Tab(self._session, self._number, described, origins, self._held)

    def run(self, parallel: int | None, progress: bool | None) -> list[Kept]:
        """The kept branches.

        :raises ExploreError: all branches failed
        """
        if parallel is not None and parallel < 1:
            raise ExploreError(f"Found parallel={parallel}, expected 1 or more.")
        self._width = parallel or 1
        with ExitStack() as stack:
            shown: list[Viewer] = [*viewers(self._session, stack, self.branches(), progress, self._nested)]
            shown += [] if self.tab is None else [self.tab]
            stack.enter_context(watched(self._look, shown, self._session))
            try:
                kept = self._chosen(parallel is None)
            except BaseException as error:
                self._status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                self._error = f"{type(error).__name__}: {error}"
                raise
            self._status = "interrupted" if self.interrupted else "ok"
            return kept

    def branches(self) -> Branches:
        """As they stand; other threads may ask."""
        return Branches(
            Branch(
                number,
                point,
                self.scores.get(number),
                self.seconds.get(number, 0.0),
                self._choose.state(number),
                self.why.get(number, ""),
                self.errors.get(number),
            )
            for number, point in enumerate(self._points)
        )

    def _look(self) -> Standing:
        branches = self.branches()
        selection = self._choose.selection
        # What of a selection that needs all scores is best so far, nobody knows.
        scores = [each.score for each in branches if each.state == KEPT and each.score is not None]
        best = (min if selection.lowest else max)(scores) if scores and selection.associative else None
        return Standing(branches, self._status, best, self._error)

    def _held(self, number: int) -> DataFrame | None:
        kept = self._kept.get(number)
        return None if kept is None else kept.held

    def _chosen(self, adapts: bool) -> list[Kept]:
        with ExitStack() as stack:
            stack.callback(self._ahead.end)
            if self._iterative:
                self._ahead.hold()
            pool = stack.enter_context(ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix=self._name))
            try:
                if isinstance(self._stop, Halving):
                    self._halved(self._stop, pool)
                else:
                    self._each(pool, adapts)
            except KeyboardInterrupt:
                for number in [*self._runs]:
                    self._end([number])
                    self._choose.stopped(number)
                    self.why[number] = "interrupted"
                for number in range(len(self._points)):
                    # One that is stopped may have others pruned.
                    if self._choose.state(number) == OPEN:
                        self._choose.stopped(number)
                        self.why[number] = "interrupted before it ran"
                if not self.scores:
                    raise
                self.interrupted = True
                log.warning("interrupted: the choice is among the %d branches scored so far", len(self.scores))
            except BaseException:
                self._end([*self._runs, *self._kept])
                raise
        chosen = set(self._choose.chosen())
        self._end(self._kept.keys() - chosen)
        if self.errors and not self.scores:
            first = min(self.errors)
            raise ExploreError(
                f"Found that all {len(self.errors)} branches failed; the first, {self._choose.space.label(first)}: "
                f"{self.why[first]}"
            ) from self.errors[first]
        return [self._kept[number] for number in sorted(chosen)]

    def _each(self, pool: ThreadPoolExecutor, adapts: bool) -> None:
        """One after another to their ends (§4.2), some side by side where cores idle.

        :param adapts: to what one that runs jobs of its own leaves idle
        """
        futures: dict[Future[Any], BranchRun] = {}
        while True:
            while len(futures) < self._width:
                self._ahead.tell(self._choose, self._most_at_once() if adapts else self._width)
                if self._ahead.waits(self._choose, [run.number for run in futures.values()]):
                    break
                number = self._choose.next()
                if number is None:
                    break
                run = self._run(number)
                futures[self._submit(pool, run.finish)] = run
            if not futures:
                return
            for future in wait(futures, CANCEL_SECONDS if self._cancelled else None, FIRST_COMPLETED).done:
                run = futures.pop(future)
                self._over(run, future)
                # Of one that ran beside others, idle cores say nothing.
                busy = self._busy(run) if adapts and self._width == 1 else None
                if busy is not None and busy < IDLE:
                    self._width = min(self._most_at_once(), round(1 / busy))
            for number in self._cancelled & self._runs.keys():
                cancel(self._session, self._runs[number].tag)

    def _halved(self, rule: Halving, pool: ThreadPoolExecutor) -> None:
        """All branches by rungs: those that go on from each are fewer (successive halving)."""
        while (number := self._choose.next()) is not None:
            self._run(number)
        until = rule.first
        while self._runs:
            futures = {self._submit(pool, run.advance, until): run for run in self._runs.values()}
            found: dict[int, float] = {}
            for future in wait(futures).done:
                run = futures[future]
                if future.exception() is not None or run.over:
                    self._over(run, future)
                else:
                    found[run.number] = future.result()
            going = rule.going(found, self._choose.lowest, self._choose.selection.k or 1)
            for number in sorted(found.keys() - going):
                self._stopped(self._runs[number])
            until = rule.after(until)

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """In this thread where nothing runs beside it: its errors and Ctrl-C are the user's own."""
        from pyspark.util import inheritable_thread_target

        if self._width > 1:
            return pool.submit(inheritable_thread_target(self._session)(work), *arguments)
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def _run(self, number: int) -> BranchRun:
        # One that comes back is not cancelled any more.
        self._cancelled.discard(number)
        kept = Kept(self._points[number], (self._number, number))
        stop = None if isinstance(self._stop, Halving) else self._stop
        call = self._ahead.take(number)
        run = BranchRun(self._session, number, f"{self._name}-{number}", kept, call, self._score, stop)
        self._runs[number] = run
        return run

    def _call(self, number: int) -> Any:
        before, inputs = self._calls[number]
        with within((self._number, number)):
            found = self._function(*before, **inputs)
        self._shared.look()
        return found

    def _over(self, run: BranchRun, future: Future[Any]) -> None:
        """Its score, or what kept it from one, goes into the choice."""
        number, error = run.number, future.exception()
        if isinstance(error, Ended):
            self._stopped(run)
            return
        del self._runs[number]
        self.seconds[number] = run.seconds + self._ahead.seconds.get(number, 0.0)
        if error is None:
            try:
                outcome = self._choose.scored(number, future.result())
                self.scores[number] = float(future.result())
                self._kept[number] = run.kept
            except ExploreError as none:
                error = none
        if error is not None:
            if not isinstance(error, Exception):
                raise error
            run.end()
            outcome = self._choose.failed(number)
            if self._choose.state(number) == FAILED:
                self.errors[number] = error
                self.why[number] = f"{type(error).__name__}: {error}".splitlines()[0]
                log.warning("the branch %s failed: %s", self._choose.space.label(number), self.why[number])
        self._act(outcome)

    def _stopped(self, run: BranchRun) -> None:
        del self._runs[run.number]
        self.seconds[run.number] = run.seconds
        self.why[run.number] = f"after round {run.rounds[-1][0]}, with {run.rounds[-1][1]:.6g}"
        run.end()
        self._act(self._choose.stopped(run.number))

    def _act(self, outcome: Outcome) -> None:
        if outcome.contradiction:
            log.warning("%s", outcome.contradiction)
        for number in outcome.revived:
            self.why.pop(number, None)
        for number in outcome.pruned:
            self.why[number] = "could not be chosen any more"
        for number in outcome.cancel:
            self.why[number] = "could not be chosen any more, and was cancelled"
        self._cancelled |= outcome.cancel
        self._end(outcome.discard)

    def _end(self, numbers: Iterable[int]) -> None:
        """What is held for them is dropped. Two branches with one plan have one copy, which the other one keeps."""
        from pyspark.sql import DataFrame

        for number in list(numbers):
            run, kept = self._runs.pop(number, None), self._kept.pop(number, None)
            if run is not None:
                cancel(self._session, run.tag)
                run.end()
            if kept is None or kept.held is None:
                continue
            for other in self._kept.values():
                alike = isinstance(other.value, DataFrame) and other.value.sameSemantics(kept.held)
                if other.held is None and alike:
                    other.held, kept.held = kept.held, None
                    break
            kept.release()

    def _busy(self, run: BranchRun) -> float | None:
        """The share of the cores that a branch kept busy; None where it ran no job, but Python, a thread at a time."""
        if not jvm.is_classic(self._session) or run.seconds <= 0:
            return None
        context = self._session.sparkContext
        spent = jvm.task_seconds(context, run.tag)
        return spent / (run.seconds * context.defaultParallelism) if spent > 0 else None

    def _most_at_once(self) -> int:
        classic = jvm.is_classic(self._session)
        return min(self._session.sparkContext.defaultParallelism, MOST_AT_ONCE) if classic else 1


class _Ahead:
    """What branches that have yet to run will compute: their plans, called for before their turn where calling runs
    nothing; else the DataFrames that the function sees beside its arguments, as one that fits a model to them does.

    :param lazy: False where calling does the work
    :param tag: of jobs that calling for them starts
    """

    def __init__(
        self, session: SparkSession, function: Callable[..., Any], call: Callable[[int], Any], lazy: bool, tag: str
    ) -> None:
        self._session, self._function, self._call = session, function, call
        self._wanted = lazy and jvm.is_classic(session)
        self._tag = tag
        self._called: dict[int, Callable[[], Any]] = {}
        self.seconds: dict[int, float] = {}
        """That calling took."""
        self._held: list[DataFrame] = []
        self._ranks: dict[int, int] = {}
        """Of branches in their order, as the planner answered: each comes after those that make what it reads."""

    def take(self, number: int) -> Callable[[], Any]:
        """The branch's function, or what it returned, or raised, already."""
        return self._called.pop(number, None) or partial(self._call, number)

    def tell(self, choose: Choose, width: int) -> None:
        """The planner keeps then what `width` branches at a time compute again from its first use to its last one."""
        from pyspark.sql import DataFrame

        if not self._wanted or any(choose.state(number) == OPEN for number in self._called):
            return
        numbers = choose.ahead(AHEAD if self.seconds else FIRST_AHEAD)
        if len(numbers) < 2:
            return
        frames: list[DataFrame] = []
        with tagged(self._session, self._tag):
            for number in numbers:
                found = self._call_now(number)
                if not isinstance(found, DataFrame) or jvm.jobs(self._session.sparkContext, self._tag):
                    # Calling does the work: each has its turn.
                    self._wanted = isinstance(found, Exception)
                    if not self._wanted:
                        self.hold()
                        return
                else:
                    frames.append(found)
        told = jvm.announce_json(self._session, frames, width if choose.foreseen else 0)
        ranks = json.loads(told).get("ranks", ()) if told else ()
        found = {place: rank for rank, several in enumerate(ranks) for place in several}
        foreseen = choose.foreseen and len(found) == len(numbers)
        self._ranks = {number: found[place] for place, number in enumerate(numbers)} if foreseen else {}

    def waits(self, choose: Choose, running: Sequence[int]) -> bool:
        """Whether the next branch reads what one of those that run is to make: beside it, it would make it again."""
        if not self._ranks or not running:
            return False
        order = [*self._ranks]
        for number in choose.ahead(1):
            before = order[: order.index(number)] if number in self._ranks else ()
            return any(each in before and self._ranks[each] < self._ranks[number] for each in running)
        return False

    def end(self) -> None:
        for frame in self._held:
            frame.unpersist()
        if jvm.is_classic(self._session):
            jvm.announce_json(self._session, [])

    def hold(self) -> None:
        """Until the last branch has run, since each computes them again. What is persisted already is the user's."""
        from pyspark import StorageLevel
        from pyspark.sql import DataFrame

        for _, value in _seen_by(self._function) if jvm.is_classic(self._session) else ():
            if isinstance(value, DataFrame) and value.storageLevel == StorageLevel.NONE and jvm.is_worth_keeping(value):
                self._held.append(value.persist())

    def _call_now(self, number: int) -> Any:
        began = time.monotonic()
        try:
            found = self._call(number)
        except Exception as error:
            self._called[number] = partial(_raise, error)
            return error
        finally:
            self.seconds[number] = time.monotonic() - began
        self._called[number] = lambda: found
        return found


class _SharedState:
    """Lists, dictionaries, sets and arrays that a function sees beside its arguments: branches that change them depend
    on their order."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._before = dict(self._seen())

    def look(self) -> None:
        """Warns, once a name, of what has changed."""
        for name, now in self._seen():
            if self._before.get(name) not in (None, now):
                log.warning(
                    "a branch modifies %r, which branches share: results depend on which of them run. "
                    "Hint: a copy of it in the function",
                    name,
                )
                del self._before[name]

    def _seen(self) -> Iterator[tuple[str, bytes]]:
        for name, value in _seen_by(self._function):
            if isinstance(value, list | dict | set | bytearray):
                with suppress(Exception):  # what cannot be pickled is not compared
                    yield name, pickle.dumps(value)


def _seen_by(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """What a function sees beside its arguments, by name, and the values of arguments that may be left out."""
    try:
        found = inspect.getclosurevars(function)
        defaults = {each.name: each.default for each in inspect.signature(function).parameters.values()}
    except (TypeError, ValueError):  # a built-in function, or one with a cell that is not filled yet
        return []
    return [*{**defaults, **found.globals, **found.nonlocals}.items()]


def _session() -> SparkSession:
    """Also in a thread of a branch, which has none of its own."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError as error:
        raise ExploreError("Found no running Spark session. Hint: SparkSession.builder.getOrCreate()") from error


def _described(function: Callable[..., Any]) -> str:
    """Its name; of a lambda the line where it stands."""
    name, code = getattr(function, "__name__", type(function).__name__), getattr(function, "__code__", None)
    return (
        name if name != "<lambda>" or code is None else f"lambda, {Path(code.co_filename).name}:{code.co_firstlineno}"
    )


def _raise(error: Exception) -> Any:
    raise error
