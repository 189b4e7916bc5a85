"""What the score of a branch can be that has none yet, from the scores along its lines (Meta-Dataflows table 1).

A *line* is a sequence of branches that differ in one choice alone, in its order. `monotone` and `convex` take the known
scores along one, None where there is none, and return an interval [low, high] for each place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import Any

from spark_regions.errors import ExploreError
from spark_regions.exploration.select import Scores, ends
from spark_regions.exploration.space import Space

Interval = tuple[float, float]
Known = Sequence[float | None]
ANY: Interval = (-inf, inf)


@dataclass(frozen=True, slots=True)
class Bounded:
    """:param low, high: no score is outside"""

    low: float
    high: float


Shape = str | Bounded
"""`"monotone"`, `"convex"` or `bounded(low, high)`."""
Shapes = Shape | Mapping[str, Shape]
"""Along all choices, or by the name of a choice."""


def bounded(low: float, high: float) -> Bounded:
    """The shape of scores that all lie from `low` to `high`, such as shares from 0 to 1.

    Proof of its interval: it is what was declared.

    :raises ExploreError: an end is no number, or `low` is above `high`
    """
    return Bounded(*ends(low, high))


def monotone(known: Known) -> list[Interval]:
    """Intervals along a line whose scores never fall, or never rise; which of both, two different scores tell.

    Proof. Between two places a score lies between theirs, in both directions. Let the scores differ; then so do the
    first and the last of them, whichever they are, and the direction is theirs. Beyond the first or last place a score
    is at most (or at least) that place's. While all known scores are equal, nothing is known beyond them.

    >>> monotone([None, 2.0, None, 5.0, None])
    [(-inf, 2.0), (2.0, 2.0), (2.0, 5.0), (5.0, 5.0), (5.0, inf)]
    >>> monotone([None, 2.0, None, 2.0])
    [(-inf, inf), (2.0, 2.0), (2.0, 2.0), (2.0, 2.0)]
    """
    scored = [score for score in known if score is not None]
    before_all = after_all = ANY
    if scored and scored[0] < scored[-1]:
        before_all, after_all = (-inf, scored[0]), (scored[-1], inf)
    elif scored and scored[0] > scored[-1]:
        before_all, after_all = (scored[0], inf), (-inf, scored[-1])
    return [
        before_all if before is None else after_all if after is None else (min(before, after), max(before, after))
        for before, after in zip(_last(known), _last(known[::-1])[::-1], strict=True)
    ]


def convex(known: Known) -> list[Interval]:
    """Intervals along a line with one valley, as of a loss: first no score rises, from its lowest on no score falls.

    Of a convex function only this is used: f(x) <= max(f(a), f(b)) wherever a < x < b. So a loss that is flat far from
    its valley has the shape, too.

    Proof. Upper end: the inequality for x between two scored places, with the lowest of each side. Lower end: let
    x < a < b with f(a) > f(b). From f(a) <= max(f(x), f(b)) follows f(x) >= f(a), since f(b) is too low. The same holds
    on the other side. These are all cases: x is the middle one of three, or an outer one.

    Of 9, ?, 4, ?, 6, ?: the second is at most max(9, 4); the fourth at most max(4, 6); the last lies behind the rise
    from 4 to 6, hence is at least 6.

    >>> convex([9.0, None, 4.0, None, 6.0, None])
    [(9.0, 9.0), (-inf, 9.0), (4.0, 4.0), (-inf, 6.0), (6.0, 6.0), (6.0, inf)]
    """
    left = _sides(known)
    right = _sides(known[::-1])[::-1]
    return [
        (score, score) if score is not None else (max(before[1], after[1]), max(before[0], after[0]))
        for score, before, after in zip(known, left, right, strict=True)
    ]


def _last(known: Known) -> list[float | None]:
    """The nearest score at or before each place."""
    found: list[float | None] = []
    for score in known:
        found.append(found[-1] if score is None and found else score)
    return found


def _sides(known: Known) -> list[tuple[float, float]]:
    """Of what stands before each place: the lowest score, and the highest that has a lower one before it."""
    lowest, risen = inf, -inf
    found = []
    for score in known:
        found.append((lowest, risen))
        if score is not None:
            risen = max(risen, score) if score > lowest else risen
            lowest = min(lowest, score)
    return found


ALONG: Mapping[str, Callable[[Known], list[Interval]]] = {"monotone": monotone, "convex": convex}
BROKEN: Mapping[str, Callable[[float, float, float], bool]] = {
    "monotone": lambda a, x, b: not min(a, b) <= x <= max(a, b),
    "convex": lambda a, x, b: x > max(a, b),
}
"""Whether three scores along a line are not of the shape. A line is of it if all threes are."""


class Bounds:
    """Intervals of all branches of a space, tightened score by score: the intersection over a branch's lines.

    A shape without a name holds along the choices of numbers, or, if there are none, along each in the order given:
    beside a bandwidth, four kernels in some order are no scale. A mapping names the choices it means.

    >>> from spark_regions.exploration.space import product
    >>> bounds = Bounds(Space(product({"t": [1, 2, 3, 4]})), "convex")
    >>> bounds.scored({2: 3.0}, 2), bounds.scored({2: 3.0, 1: 5.0}, 1)
    ('', '')
    >>> bounds.intervals[0]
    (5.0, inf)
    >>> bounds.scored({2: 3.0, 1: 5.0, 0: 4.0}, 0)
    'not convex along t: t=1 scored 4.0, t=2 scored 5.0, t=3 scored 3.0'

    :param shape: None says nothing
    :raises ExploreError: no such shape, or no such choice
    """

    def __init__(self, space: Space, shape: Shapes | None = None) -> None:
        self.space = space
        self.intervals: list[Interval] = [ANY] * len(space)
        self.choices: list[str] = []
        """Along which there is a shape."""
        self._lines: list[tuple[str, str, dict[int, tuple[int, ...]]]] = []
        for choice, name in _declared(space, shape):
            if isinstance(name, Bounded):
                self.intervals = [_common(each, (name.low, name.high)) for each in self.intervals]
            else:
                self.choices.append(choice)
                of = {branch: line for line in space.lines(choice) for branch in line}
                self._lines.append((choice, name, of))
        if any(low > high for low, high in self.intervals):
            raise ExploreError(f"Found {shape!r}, expected limits that overlap. Hint: bounded(low, high) once.")

    def scored(self, scores: Scores, branch: int) -> str:
        """Takes the new score of a branch in.

        :param scores: all known ones, the new one too
        :return: how the scores contradict the shape, with the branches; the intervals mean nothing from then on
        """
        low, high = self.intervals[branch]
        if not low <= scores[branch] <= high:
            return self.contradicted(scores, branch)
        for choice, name, of in self._lines:
            line = of[branch]
            for each, found in zip(line, ALONG[name]([scores.get(each) for each in line]), strict=True):
                if each in scores:
                    continue
                low, high = self.intervals[each] = _common(self.intervals[each], found)
                if low > high:
                    label = self.space.label(each)
                    return f"not {name} along {choice}: {label} would score at least {low} and at most {high}"
        return ""

    def contradicted(self, scores: Scores, branch: int) -> str:
        """Which scores do not go with that of a branch: two others along one of its lines, or the limits."""
        for choice, name, of in self._lines:
            line = of[branch]
            for pair in combinations([each for each in line if each in scores and each != branch], 2):
                three = sorted((*pair, branch), key=line.index)
                if BROKEN[name](*(scores[each] for each in three)):
                    told = ", ".join(f"{self.space.label(each)} scored {scores[each]}" for each in three)
                    return f"not {name} along {choice}: {told}"
        low, high = self.intervals[branch]
        return f"{self.space.label(branch)} scored {scores[branch]}, outside of {low} to {high}"


def _common(one: Interval, other: Interval) -> Interval:
    return other[0] if other[0] > one[0] else one[0], other[1] if other[1] < one[1] else one[1]


def _declared(space: Space, shape: Any) -> list[tuple[str, Shape]]:
    if shape is None:
        return []
    if isinstance(shape, Bounded):
        return [(space.names[0], shape)]
    if isinstance(shape, Mapping):
        unknown = next((name for name in shape if name not in space.names), None)
        if unknown is not None:
            raise ExploreError(
                f"Found a shape along {unknown!r}, expected one of {', '.join(space.names)}. Hint: name a choice."
            )
        found = list(shape.items())
    else:
        found = [(name, shape) for name in space.names if name in space.numeric or not space.numeric]
    for _, each in found:
        if not isinstance(each, Bounded) and not (isinstance(each, str) and each in ALONG):
            raise ExploreError(
                f"Found {each!r} as a shape, expected 'monotone', 'convex' or bounded(low, high). Hint: leave it out "
                "if nothing is known of the scores."
            )
    return found
