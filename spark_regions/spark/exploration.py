"""`explore` and `choose`: a family of DataFrame programs, of which the best are kept (Meta-Dataflows §3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spark_regions.errors import ExploreError
from spark_regions.exploration.bounds import Shapes
from spark_regions.exploration.choose import Choose
from spark_regions.exploration.halving import Halving
from spark_regions.exploration.model import gaussian_process
from spark_regions.exploration.select import Selection, maximum
from spark_regions.exploration.space import Point, Space, points, product
from spark_regions.spark.branch_table import Branches

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from spark_regions.spark.branch_run import Kept, Score, Stop
    from spark_regions.spark.branches import Call
    from spark_regions.spark.watch import Tab

__all__ = ["Chosen", "Exploration", "explore"]


class Chosen:
    """What `choose` kept. Its DataFrames stay in memory or on disk until `release`, or the end of a `with` block.

    :ivar branches: all of them, with what became of each and why
    :ivar interrupted: by Ctrl-C; what is kept is the choice among those scored until then
    """

    def __init__(self, branches: Branches, kept: Sequence[Kept], interrupted: bool, tab: Tab | None) -> None:
        self.branches = branches
        self.interrupted = interrupted
        self._kept = tuple(kept)
        self._tab = tab

    @property
    def values(self) -> list[Any]:
        """What the kept branches returned, in the order of the space."""
        return [each.value for each in self._kept]

    @property
    def frames(self) -> list[DataFrame]:
        """
        :raises ExploreError: they returned no DataFrames
        """
        from pyspark.sql import DataFrame

        for value in self.values:
            if not isinstance(value, DataFrame):
                raise ExploreError(
                    f"Found branches that return {type(value).__name__}, expected DataFrames. Hint: .values"
                )
        return self.values

    @property
    def value(self) -> Any:
        """
        :raises ExploreError: another number of branches than one was kept
        """
        return self._one().value

    @property
    def frame(self) -> DataFrame:
        """
        :raises ExploreError: another number of branches than one was kept, or it returned no DataFrame
        """
        self._one()
        return self.frames[0]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """
        :raises ExploreError: another number of branches than one was kept
        """
        return self._one().parameters

    def explore(self, points: Sequence[Point] | None = None, /, **choices: Iterable[Any]) -> _Explore:
        """Goes on from each kept branch: the function's first argument is what that branch returned (fig. 3c)."""
        return _Explore(_space(points, choices), self._kept)

    def release(self) -> None:
        """What the kept branches hold is dropped; their DataFrames can still be used, and are computed again."""
        held = [each for each in self._kept if each.held is not None]
        for each in held:
            each.release()
        if held and self._tab is not None:
            self._tab.released()

    def __enter__(self) -> Chosen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return repr(self.branches)

    def _repr_html_(self) -> str:
        return self.branches._repr_html_()

    def _one(self) -> Kept:
        if len(self._kept) != 1:
            raise ExploreError(f"Found {len(self._kept)} kept branches, expected one. Hint: .frames or .values")
        return self._kept[0]


class Exploration:
    """A function over a space of parameters. Nothing has run yet."""

    def __init__(self, function: Callable[..., Any], space: Sequence[Mapping[str, Any]], outer: Sequence[Kept]) -> None:
        self._function = function
        self._inner = tuple(space)
        self._outer = tuple(outer)

    def __len__(self) -> int:
        """Branches."""
        return len(self._inner) * max(len(self._outer), 1)

    def choose(
        self,
        score: Score | Column | None = None,
        select: Selection = maximum,
        *,
        shape: Shapes | None = None,
        order: str = "given",
        parallel: int | None = None,
        seed: int | None = None,
        stop: Halving | Stop | None = None,
        progress: bool | None = None,
    ) -> Chosen:
        """Runs the branches and keeps those that are selected. A loser's data is dropped as soon as it has lost, and
        what can no longer win is not run, or is cancelled (table 1).

        :param score: of what a branch returned (definition 3.3's φ); a Column is aggregated over the branch's rows; not
            needed where the function is a generator of (round, score)
        :param select: `top`, `minimum`, `maximum`, `threshold`, `interval`, `mode`, or a `Selection` of your own
        :param shape: of the scores over the choices: "monotone", "convex" (one valley), `bounded(low, high)`, or one
            of these for a choice by name; scores that contradict it are told, and all branches run
        :param order: given, sorted, random, binary, or model: a regression over parameters and scores so far
        :param parallel: branches at a time; by default as many as keep the cores busy
        :param seed: of order random and model
        :param stop: ends iterative branches: `halving(eta)`, or a function of their (round, score) pairs so far
        :param progress: a table in a notebook, else a bar on stderr; by default where somebody watches

        Errors: `ExploreError` for bad values, before anything runs; for a score that is none; and where all branches
        fail, with the error of the first as its cause. One branch that fails does not end the others.
        """
        from spark_regions.spark.branches import Runner

        given, calls = self._branches()
        choose = Choose(Space(given), select, shape=shape, order=order, seed=seed, predict=gaussian_process)
        about = {"select": repr(select), "shape": str(shape or ""), "order": order}
        runner = Runner(self._function, given, calls, choose, score, stop, [kept.origin for kept in self._outer], about)
        kept = runner.run(parallel, progress)
        return Chosen(runner.branches(), kept, runner.interrupted, runner.tab)

    def _branches(self) -> tuple[tuple[Point, ...], tuple[Call, ...]]:
        """The parameters of each branch, and what its function is called with."""
        if not self._outer:
            return self._inner, tuple(((), point) for point in self._inner)
        both = [({**kept.parameters, **point}, ((kept.value,), point)) for kept in self._outer for point in self._inner]
        return tuple(point for point, _ in both), tuple(call for _, call in both)


class _Explore:
    """Waits for its function; also a decorator."""

    def __init__(self, space: Sequence[Mapping[str, Any]], outer: Sequence[Kept] = ()) -> None:
        for kept in outer:
            for point in space:
                known = sorted(kept.parameters.keys() & point.keys())
                if known:
                    raise ExploreError(
                        f"Found the choice {known[0]!r} again in an inner scope. Hint: another name for it"
                    )
        self._space = space
        self._outer = outer

    def __call__(self, function: Callable[..., Any]) -> Exploration:
        if not callable(function):
            raise ExploreError(f"Found {function!r}, expected a function. Hint: explore(t=[1, 2])(lambda t: …)")
        return Exploration(function, self._space, self._outer)


def explore(points: Sequence[Point] | None = None, /, **choices: Iterable[Any]) -> _Explore:
    """A family of DataFrame programs: a function for every combination of the choices. Nothing runs before `choose`.

    >>> len(explore(t=[1.5, 2.0], k=["gauss", "tophat"])(lambda t, k: None))
    4

    :param points: `points([...])`, dictionaries, in place of a product of choices

    Errors: `ExploreError`: no choices, one without values or with the same value twice, points of different names.
    """
    return _Explore(_space(points, choices))


def _space(given: Sequence[Point] | None, choices: Mapping[str, Iterable[Any]]) -> tuple[Mapping[str, Any], ...]:
    if given is None:
        return product(choices)
    if choices:
        raise ExploreError(f"Found points and the choices {', '.join(choices)}, expected either. Hint: points([...])")
    return points(given)
