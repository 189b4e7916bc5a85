"""Table 1 of Meta-Dataflows: what need not be computed, and whose data can go, before all scores are known.

Each rule gives what the exhaustive choice would give, ties included: that over the scores of all branches that do not
fail. Intervals hold the scores of branches that have none yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_regions.exploration.bounds import Interval
from spark_regions.exploration.select import Scores, Selection, Top, Within

Intervals = Mapping[int, Interval]
NONE: frozenset[int] = frozenset()


def losers(selection: Selection, scores: Scores) -> frozenset[int]:
    """Scored branches whose data can be dropped (column "discard incrementally").

    Proof. What is not chosen of a part is not chosen of the whole if a selection is associative: k others stay better,
    a score stays outside of the limits, k others came first. Of others, such as the mode, each branch may still be
    chosen. Shapes are not needed: nothing is lost if one is wrong.

    >>> from spark_regions.exploration.select import mode, top
    >>> sorted(losers(top(1), {0: 3.0, 1: 5.0, 2: 5.0})), sorted(losers(mode, {0: 3.0, 1: 5.0}))
    ([0, 2], [])
    """
    return frozenset(scores).difference(selection.chosen(scores)) if selection.associative and scores else NONE


def superfluous(selection: Selection, scores: Scores, intervals: Intervals) -> frozenset[int]:
    """Branches without a score that need not run (column "superfluous branches").

    :param scores: at least those of the branches that would be chosen now
    :param intervals: of the branches in question
    """
    if found(selection, scores):
        return frozenset(intervals)
    if isinstance(selection, Top):
        return beaten(selection, scores, intervals)
    if isinstance(selection, Within):
        return outside(selection, intervals)
    return NONE


def found(selection: Selection, scores: Scores) -> bool:
    """Whether the rest is superfluous, whatever it scores: k are found of a selection that is not exhaustive.

    Proof. The first k are chosen, in the order of scoring; what is scored later comes after them.

    >>> from spark_regions.exploration.select import threshold
    >>> found(threshold(0.8, k=2), {0: 0.9, 1: 0.1}), found(threshold(0.8, k=2), {0: 0.9, 1: 0.1, 2: 0.8})
    (False, True)
    """
    if selection.exhaustive or selection.k is None or not scores:
        return False
    return len(set(selection.chosen(scores))) >= selection.k


def beaten(selection: Top, scores: Scores, intervals: Intervals) -> frozenset[int]:
    """Of the best k: branches that k scored ones beat, even by the best end of their interval.

    Proof. Branches are in one order, by score and, of equal scores, by number. A branch that comes behind k others at
    the best score it may have comes behind them at each of its scores. Only scored branches count, since a branch that
    is still to run may fail.

    Equal ends: with 5.0 of branch 1, branch 0 with at most 5.0 may still win by its number, branch 2 may not.

    >>> sorted(beaten(Top(1), {1: 5.0}, {0: (0.0, 5.0), 2: (0.0, 5.0), 3: (0.0, 9.0)}))
    [2]
    """
    if len(scores) < selection.k:
        return NONE
    last = sorted(selection.key(score, branch) for branch, score in scores.items())[selection.k - 1]
    best = 0 if selection.lowest else 1
    return frozenset(branch for branch, ends in intervals.items() if selection.key(ends[best], branch) > last)


def outside(selection: Within, intervals: Intervals) -> frozenset[int]:
    """Of a threshold or interval: branches none of whose possible scores lies within.

    Proof. Whether a branch is chosen depends on its own score (and, of the first k, on how many came before it), and no
    score of two disjoint intervals is in both.

    >>> sorted(outside(Within(0.8, 1.0), {0: (0.0, 0.7), 1: (0.0, 0.8), 2: (1.5, 2.0)}))
    [0, 2]
    """
    return frozenset(
        branch for branch, (low, high) in intervals.items() if high < selection.low or low > selection.high
    )
