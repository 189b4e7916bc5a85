"""`run`: several actions as one plan, shared parts once, and what does not wait for each other side by side."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_regions.errors import BatchError
from spark_regions.progress import bar
from spark_regions.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("spark_regions")

_ACTIONS = frozenset(
    {
        "collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty", "show", "tail", "take",
        "toArrow", "toJSON", "toLocalIterator", "toPandas", "save", "saveAsTable", "insertInto", "csv", "jdbc",
        "json", "orc", "parquet", "text", "xml", "append", "create", "createOrReplace", "overwrite",
        "overwritePartitions", "replace",
    }
)  # fmt: skip
"""Of DataFrames, their writers and their version 2 writers."""
_NEITHER_BASE = "expected later(frame).<action>(...), or a function without arguments"


@dataclass(frozen=True)
class Later:
    """A DataFrame whose next action is only noted down. `run` executes it.

    >>> Later(None).write.mode("overwrite").parquet("out")
    later(…).write.mode('overwrite').parquet('out')
    """

    _frame: DataFrame | None
    _calls: tuple[tuple[str, tuple[Any, ...] | None, tuple[tuple[str, Any], ...]], ...] = ()

    def __getattr__(self, name: str) -> Later:
        if name.startswith("_"):
            raise AttributeError(name)
        return Later(self._frame, (*self._calls, (name, None, ())))

    def __call__(self, *arguments: Any, **options: Any) -> Later:
        if not self._calls:
            raise BatchError(f"Found later(frame)(...), {_NEITHER_BASE}.")
        return Later(self._frame, (*self._calls[:-1], (self._calls[-1][0], arguments, tuple(options.items()))))

    def __repr__(self) -> str:
        parts = []
        for name, arguments, options in self._calls:
            given = [*map(repr, arguments or ()), *(f"{key}={value!r}" for key, value in options)]
            parts.append(name if arguments is None else f"{name}({', '.join(given)})")
        return ".".join(["later(…)", *parts])


def later(frame: DataFrame) -> Later:
    """`frame`, so that the action called on it runs in `run` and not here.

    >>> later(None).count()
    later(…).count()
    """
    return Later(frame)


Action = Later | Callable[[], Any]


def run(actions: Sequence[Action], *, workers: int | None = None, progress: bool | None = None) -> list[Any]:
    """Run actions as one plan, and return their results in the given order.

    What several of them compute is computed once and kept in memory until the last of them has read it, within
    `spark.regions.persist.maxBytes` and as far as it pays. Actions that do not wait for each other's shared parts run
    side by side. Without the plugin they run side by side too, without sharing.

    :param actions: `later(frame).write.parquet(path)`, `later(frame).collect()`, …, or functions without arguments,
        whose queries are not known beforehand
    :param workers: actions at a time; by default as many as the session has cores, at most 8
    :param progress: a bar on stderr; by default only on a terminal or in a notebook

    Errors: `BatchError` for anything that is no action, before anything runs. The first error of an action is raised
    after the actions already running have ended; those not begun are left out.
    """
    todo = list(actions)
    frames = [_frame(action) for action in todo]
    known = [place for place, frame in enumerate(frames) if frame is not None]
    session = next((frame.sparkSession for frame in frames if frame is not None), None)
    ranks = _ranks(session, todo, known)
    limit = workers if workers is not None else min(8, _cores(session))
    results: dict[int, Any] = {}
    try:
        with bar("actions", len(todo), progress) as advance:
            for rank in ranks:
                _run_rank(session, todo, rank, max(1, limit), results, advance)
    finally:
        if session is not None and jvm.is_classic(session):
            jvm.announce_json(session, [])
    return [results[place] for place in range(len(todo))]


def _run_rank(
    session: SparkSession | None,
    todo: Sequence[Action],
    rank: Sequence[int],
    limit: int,
    results: dict[int, Any],
    advance: Callable[[float], None],
) -> None:
    from pyspark.util import inheritable_thread_target

    inherited = inheritable_thread_target(session) if session is not None else inheritable_thread_target
    with ThreadPoolExecutor(max_workers=min(limit, max(len(rank), 1)), thread_name_prefix="regions-run") as pool:
        # Each thread gets the caller's local properties: scheduler pool, job group, description.
        futures = {pool.submit(inherited(_do), todo[place]): place for place in rank}
        try:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                advance(1)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _do(action: Action) -> Any:
    if not isinstance(action, Later):
        return action()
    current: Any = action._frame
    for name, arguments, options in action._calls:
        current = getattr(current, name)
        if arguments is not None:
            current = current(*arguments, **dict(options))
    return current


def _frame(action: Action) -> DataFrame | None:
    """The DataFrame of an action; None for a function.

    :raises BatchError: it is neither
    """
    if not isinstance(action, Later):
        if not callable(action):
            raise BatchError(f"Found {action!r}, {_NEITHER_BASE}.")
        return None
    called = [name for name, arguments, _ in action._calls if arguments is not None]
    if not called or called[-1] not in _ACTIONS or action._calls[-1][1] is None:
        raise BatchError(f"Found {action!r}, which runs nothing; {_NEITHER_BASE}.")
    return action._frame


def _ranks(session: SparkSession | None, todo: Sequence[Action], known: Sequence[int]) -> list[list[int]]:
    """Places by rank; functions last, since their queries can use whatever was kept."""
    rest = [place for place in range(len(todo)) if place not in set(known)]
    together = [[*known, *rest]] if todo else []
    if session is None or not jvm.is_classic(session) or len(known) < 2:
        return together
    answer = jvm.announce_json(session, [_announced(todo[place]) for place in known])
    absent = {"refusal": "the shim's jar is not on the class path"}
    plan: dict[str, Any] = absent if answer is None else json.loads(answer)
    ranks = [[known[place] for place in rank] for rank in plan.get("ranks", [])]
    if sorted(place for rank in ranks for place in rank) != sorted(known):
        log.warning(
            "actions run without a common plan: %s", plan.get("refusal") or plan.get("error") or "none was made"
        )
        return together
    log.info("planned %d actions: %s", len(known), plan)
    return [*ranks[:-1], [*ranks[-1], *rest]]


def _announced(action: Action) -> DataFrame:
    """The query that an action will run, as far as it can be told."""
    assert isinstance(action, Later) and action._frame is not None
    return action._frame.groupBy().count() if action._calls[0][0] == "count" else action._frame


def _cores(session: SparkSession | None) -> int:
    if session is None or not jvm.is_classic(session):
        return 4
    return int(session.sparkContext.defaultParallelism)
