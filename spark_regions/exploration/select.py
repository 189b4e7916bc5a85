"""Selection functions: which branches are chosen, by their scores (Meta-Dataflows definition 3.3, table 1).

Scores are a mapping from the number of a branch to its score, in the order in which they became known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import Any

from spark_regions.errors import ExploreError

Scores = Mapping[int, float]


def number(value: Any, what: str) -> float:
    """A score or a limit; the infinite ones are numbers.

    :param what: names the value in the message
    :raises ExploreError: NaN, None, a truth value, or no number at all
    """
    if isinstance(value, Real | Decimal) and value is not True and value is not False:
        try:
            found = float(value)
        except (OverflowError, ValueError):
            found = math.nan
        if not math.isnan(found):
            return found
    raise ExploreError(f"Found {value!r} as {what}, expected a number. Hint: return a float that is not NaN.")


class Selection:
    """A user's own, made of a function, or a subclass with a `chosen` of its own.

    :param function: scores of branches to the branches that are chosen
    :param associative: what is not chosen of some branches is not chosen of more either: its data can go at once
    :param exhaustive: all scores must be known. If not, the first `k` chosen branches are enough

    >>> even = Selection(lambda scores: [n for n, score in scores.items() if score % 2 == 0], associative=True)
    >>> even.chosen({0: 4.0, 1: 3.0})
    [0]

    :raises ExploreError: not exhaustive and without `k`, or a `k` below 1
    """

    def __init__(
        self,
        function: Callable[[Scores], Iterable[int]] | None = None,
        *,
        associative: bool = False,
        exhaustive: bool = True,
        k: int | None = None,
    ) -> None:
        if k is not None and (not isinstance(k, int) or isinstance(k, bool) or k < 1):
            raise ExploreError(f"Found k={k!r}, expected a whole number of branches from 1. Hint: k=1")
        if not exhaustive and k is None:
            raise ExploreError(
                "Found a selection that is not exhaustive and has no k, expected how many branches are enough. "
                "Hint: Selection(function, exhaustive=False, k=1)"
            )
        self.associative, self.exhaustive, self.k = associative, exhaustive, k
        self.lowest = False
        """Whether lower scores are better, as far as there is a better."""
        self._function = function

    def chosen(self, scores: Scores) -> Iterable[int]:
        if self._function is None:
            raise NotImplementedError("a subclass of Selection has a method `chosen`")
        return self._function(scores)

    def __repr__(self) -> str:
        return getattr(self._function, "__name__", type(self).__name__)

    def check(self, branches: int) -> None:
        """:raises ExploreError: more are to be chosen than there are"""
        if self.k is not None and self.k > branches:
            raise ExploreError(f"Found k={self.k} with {branches} branches, expected no more. Hint: k={branches}")


class Top(Selection):
    """The best `k`; of equal scores the lower number of a branch is better.

    :param lowest: whether lower scores are better
    """

    k: int

    def __init__(self, k: int, lowest: bool = False) -> None:
        super().__init__(associative=True, k=k)
        self.lowest = lowest

    def __repr__(self) -> str:
        return f"top({self.k}, lowest=True)" if self.lowest else f"top({self.k})"

    def key(self, score: float, branch: int) -> tuple[float, int]:
        """Ascends from the best on; no two branches have the same."""
        return (score if self.lowest else -score, branch)

    def chosen(self, scores: Scores) -> Iterable[int]:
        return sorted(scores, key=lambda branch: self.key(scores[branch], branch))[: self.k]


class Within(Selection):
    """Scores from `low` to `high`, both included: all of them, or the first `k` in the order of scoring."""

    def __init__(self, low: float, high: float, k: int | None = None) -> None:
        super().__init__(associative=True, exhaustive=k is None, k=k)
        self.low, self.high = low, high
        self.lowest = low == -math.inf

    def __repr__(self) -> str:
        below, k = self.low == -math.inf, "" if self.k is None else f", k={self.k}"
        if below or self.high == math.inf:
            return f"threshold({self.high if below else self.low}{', below=True' if below else ''}{k})"
        return f"interval({self.low}, {self.high}{k})"

    def chosen(self, scores: Scores) -> Iterable[int]:
        return islice((branch for branch, score in scores.items() if self.low <= score <= self.high), self.k)


class Mode(Selection):
    """All branches with the most frequent score; of equally frequent ones the score of the lowest branch.

    >>> list(mode.chosen({0: 1.0, 1: 2.0, 2: 3.0, 3: 2.0, 4: 1.0}))
    [0, 4]
    """

    def chosen(self, scores: Scores) -> Iterable[int]:
        counts = Counter(scores.values())
        most = max(counts.values(), default=0)
        found = next((scores[branch] for branch in sorted(scores) if counts[scores[branch]] == most), None)
        return [branch for branch, score in scores.items() if score == found]


def top(k: int, lowest: bool = False) -> Selection:
    """The `k` branches with the highest scores, or the lowest; of equal scores the branch given first.

    >>> list(top(2).chosen({0: 1.0, 1: 3.0, 2: 3.0, 3: 3.0}))
    [1, 2]

    :raises ExploreError: `k` below 1
    """
    return Top(k, lowest)


def threshold(at: float, below: bool = False, k: int | None = None) -> Selection:
    """Scores of at least `at`, or of at most `at` if `below`: all, or the first `k` that come.

    >>> list(threshold(0.8).chosen({2: 0.9, 0: 0.8, 1: 0.7})), list(threshold(0.8, k=1).chosen({2: 0.9, 0: 0.8}))
    ([2, 0], [2])

    :raises ExploreError: `at` is no number, or `k` below 1
    """
    limit = number(at, "a threshold")
    return Within(-math.inf, limit, k) if below else Within(limit, math.inf, k)


def interval(low: float, high: float, k: int | None = None) -> Selection:
    """Scores from `low` to `high`, both included: all, or the first `k` that come.

    :raises ExploreError: an end is no number, `low` is above `high`, or `k` below 1
    """
    return Within(*ends(low, high), k)


def ends(low: float, high: float) -> tuple[float, float]:
    """:raises ExploreError: an end is no number, or `low` is above `high`"""
    found = number(low, "the lower end"), number(high, "the upper end")
    if found[0] > found[1]:
        raise ExploreError(f"Found {low} to {high}, expected the lower end first. Hint: ({high}, {low})")
    return found


minimum: Selection = Top(1, lowest=True)
maximum: Selection = Top(1)
mode: Selection = Mode()
