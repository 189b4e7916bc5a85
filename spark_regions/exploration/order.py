"""Which open branch is next: the scheduling hints of Meta-Dataflows §4.2."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from math import isfinite
from statistics import NormalDist

from spark_regions.errors import ExploreError
from spark_regions.exploration.select import Scores, Selection, Within
from spark_regions.exploration.space import Point, Space

Order = Callable[[Set[int], Scores], int]
"""Of the open branches, at least one, and the scores so far: the next branch."""
Predict = Callable[[Sequence[Point], Sequence[float], Sequence[Point]], tuple[Sequence[float], Sequence[float]]]
"""A regression: of points, their finite scores and candidates, the mean and standard deviation of each candidate."""
ORDERS = ("given", "sorted", "random", "binary", "model")


def order(
    name: str,
    space: Space,
    selection: Selection,
    choices: Sequence[str] = (),
    seed: int | None = None,
    predict: Predict | None = None,
) -> Order:
    """
    :param choices: along which `binary` searches: those with a shape; none means all
    :param seed: of `random` and of the first branches of `model`; None is 0, so that a run repeats
    :raises ExploreError: no such order, or `model` without a regression
    """
    everything = range(len(space))
    shuffled = random.Random(seed or 0).sample(everything, len(everything))
    match name:
        case "given":
            return partial(first_of, everything)
        case "sorted":
            return partial(
                first_of, sorted(everything, key=lambda n: [space.positions[each][n] for each in space.names])
            )
        case "random":
            return partial(first_of, shuffled)
        case "binary":
            return partial(binary, [line for each in choices or space.names for line in space.lines(each)])
        case "model":
            if predict is None:
                raise ExploreError("Found order='model' without a regression, expected one. Hint: predict=function")
            return partial(model, space, selection, shuffled, predict)
    raise ExploreError(f"Found order={name!r}, expected one of {', '.join(ORDERS)}. Hint: order='given'")


def first_of(ranked: Sequence[int], waiting: Set[int], scores: Scores) -> int:
    """The first open branch of a fixed sequence: as given, sorted by the values of the choices, or at random."""
    return next(branch for branch in ranked if branch in waiting)


def binary(lines: Sequence[Sequence[int]], waiting: Set[int], scores: Scores) -> int:
    """Both ends of each line, then the middle of the longest run of open branches that stand side by side.

    What the shape rules out is not open any more, so that along a monotone line with a limit this is bisection: of 9
    branches, once both ends are known, 4 is next; if it is ruled out with all before it, 6 is.

    >>> line = [range(9)]
    >>> binary(line, {0, *range(2, 9)}, {}), binary(line, {*range(1, 9)}, {})
    (0, 8)
    >>> binary(line, {*range(1, 8)}, {}), binary(line, {5, 6, 7}, {})
    (4, 6)
    """
    end = next((each for line in lines for each in (line[0], line[-1]) if each in waiting), None)
    if end is not None:
        return end
    longest: Sequence[int] = max((run for line in lines for run in _runs(line, waiting)), key=len)
    return longest[len(longest) // 2]


def _runs(line: Sequence[int], waiting: Set[int]) -> Iterator[Sequence[int]]:
    start = 0
    for place, branch in enumerate(line):
        if branch not in waiting:
            yield line[start:place]
            start = place + 1
    yield line[start:]


def model(
    space: Space, selection: Selection, first: Sequence[int], predict: Predict, waiting: Set[int], scores: Scores
) -> int:
    """The open branch that promises most by a regression over parameters and scores so far.

    Before there are two scores, and one more than choices, there is nothing to learn from: then it is by chance.
    """
    known = {branch: score for branch, score in scores.items() if isfinite(score)}
    if len(known) < max(2, len(space.names) + 1):
        return first_of(first, waiting, scores)
    candidates = sorted(waiting)
    means, deviations = predict(
        [space.points[branch] for branch in known],
        list(known.values()),
        [space.points[branch] for branch in candidates],
    )
    promises = [
        promise(selection, known, float(mean), float(deviation))
        for mean, deviation in zip(means, deviations, strict=True)
    ]
    return candidates[promises.index(max(promises))]


def promise(selection: Selection, known: Mapping[int, float], mean: float, deviation: float) -> float:
    """Of the best k: the expected improvement upon the k-th best score; of limits: the probability to lie within.

    Expected improvement: with z = (mean - best) / deviation, it is (mean - best) Φ(z) + deviation φ(z) (Hutter et al.,
    LION 2011, whom the paper cites). A sure 4 promises nothing over 5; an unsure one 0.08.

    >>> from spark_regions.exploration.select import maximum
    >>> round(promise(maximum, {0: 5.0}, 4.0, 0.0), 2), round(promise(maximum, {0: 5.0}, 4.0, 1.0), 2)
    (0.0, 0.08)
    >>> round(promise(Within(3.0, 9.0), {}, 4.0, 1.0), 2)
    0.84
    """
    spread = NormalDist(mean, max(deviation, 1e-12 * max(abs(mean), 1.0)))
    if isinstance(selection, Within):
        return spread.cdf(selection.high) - spread.cdf(selection.low)
    lowest = selection.lowest
    scores = sorted(known.values(), reverse=not lowest)
    best = scores[min(selection.k or 1, len(scores)) - 1]
    gain = best - mean if lowest else mean - best
    z = gain / spread.stdev
    return gain * NormalDist().cdf(z) + spread.stdev * NormalDist().pdf(z)
