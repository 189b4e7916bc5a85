"""What an exploration takes and refuses; the incremental choose step by step; halving."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spark_regions.errors import ExploreError
from spark_regions.exploration.bounds import Bounds, bounded
from spark_regions.exploration.choose import Choose, Outcome
from spark_regions.exploration.halving import halving
from spark_regions.exploration.model import gaussian_process
from spark_regions.exploration.order import order, promise
from spark_regions.exploration.select import (
    Scores,
    Selection,
    interval,
    maximum,
    minimum,
    mode,
    threshold,
    top,
)
from spark_regions.exploration.space import Space, points, product

LINE = Space(product({"t": [1, 2, 3, 4, 5]}))


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: product({}), "No choices were found, expected at least one. Hint:"),
        (lambda: points([]), "No choices were found"),
        (lambda: points([{}]), "No choices were found"),
        (lambda: product({"t": []}), "Found no values of 't'"),
        (lambda: product({"t": "gauss"}), r"Found t='gauss', expected a list of values. Hint: t=\['gauss'\]"),
        (lambda: product({"t": 5}), "Found t=5, expected a list"),
        (lambda: product({"t": [1, 2, 1.0]}), "Found t=1.0 twice"),
        (lambda: product({"a b": [1]}), "Found the choice 'a b', expected an identifier"),
        (lambda: product({"lambda": [1]}), "Found the choice 'lambda'"),
        (lambda: points([{"t": 1}, {"u": 1}]), r"Found a point with the names \['u'\] beside one with \['t'\]"),
        (lambda: points([{"t": 1}, {"t": 1}]), "Found t=1 twice"),
        (lambda: points([("t", 1)]), r"Found the point \('t', 1\)"),  # type: ignore[list-item]
        (lambda: top(0), "Found k=0, expected a whole number of branches from 1"),
        (lambda: top(1.5), "Found k=1.5"),  # type: ignore[arg-type]
        (lambda: top(True), "Found k=True"),
        (lambda: threshold(math.nan), "Found nan as a threshold, expected a number"),
        (lambda: threshold(0.5, k=-1), "Found k=-1"),
        (lambda: interval(2, 1), "Found 2 to 1, expected the lower end first"),
        (lambda: interval(math.nan, 1), "Found nan as the lower end"),
        (lambda: bounded(2, 1), "Found 2 to 1"),
        (lambda: Selection(list, exhaustive=False), "expected how many branches are enough"),
        (lambda: Choose(LINE, top(6)), "Found k=6 with 5 branches, expected no more. Hint: k=5"),
        (lambda: Choose(LINE, threshold(1, k=6)), "Found k=6 with 5 branches"),
        (lambda: Choose(LINE, "max"), "Found 'max' as the selection, expected minimum, maximum, mode, top"),
        (lambda: Choose(LINE, top), "Found top as the selection, .* Hint: of a function of your own, Selection"),
        (lambda: Choose(LINE, maximum, "concave"), "Found 'concave' as a shape, expected 'monotone', 'convex' or"),
        (lambda: Choose(LINE, maximum, {"u": "convex"}), "Found a shape along 'u', expected one of t"),
        (
            lambda: Choose(LINE, maximum, order="best"),
            "Found order='best', expected one of given, sorted, random, binary",
        ),
        (lambda: Choose(LINE, maximum, order="model"), "Found order='model' without a regression"),
        (lambda: halving(1), "Found eta=1, expected a whole number from 2"),
        (lambda: halving(3, 0), "Found first=0, expected a whole number from 1"),
        (lambda: halving().going({0: math.nan}), "Found nan as the score of branch 0"),
    ],
)
def test_what_is_refused(make: Callable[[], Any], found: str) -> None:
    with pytest.raises(ExploreError, match=found) as raised:
        make()
    assert "Hint: " in str(raised.value)


def test_lines_follow_numbers_and_the_order_of_other_values() -> None:
    space = Space(product({"t": [3, np.float64(0.5), Fraction(3, 2)], "k": ["tophat", "gauss"], "big": [True, False]}))
    assert space.numeric == {"t"}
    assert space.positions["k"][:4] == (0, 0, 1, 1) and space.positions["big"][:2] == (0, 1)
    assert space.lines("t")[0] == (4, 8, 0)
    assert space.lines("k")[0] == (0, 2)
    some = Space(points([{"t": 2, "u": 1}, {"t": 1, "u": 1}, {"t": 1, "u": 2}]))
    assert some.lines("t") == ((1, 0), (2,))
    assert some.lines("u") == ((0,), (1, 2))
    layers = Space(product({"layers": [[10, 10], [20]]}))
    assert layers.positions == {"layers": (0, 1)}


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (top(2), [1, 3]),
        (top(2, lowest=True), [4, 0]),
        (minimum, [4]),
        (maximum, [1]),
        (threshold(2.0), [3, 1, 2]),
        (threshold(1.0, below=True), [0, 4]),
        (threshold(2.0, k=2), [3, 1]),
        (interval(1.0, 2.0), [0, 2]),
        (interval(1.0, 2.0, k=1), [0]),
        (mode, [3, 1]),
    ],
)
def test_selections(selection: Selection, chosen: list[int]) -> None:
    scores = {3: 5.0, 1: 5.0, 0: 1.0, 2: 2.0, 4: -1.0}
    assert list(selection.chosen(scores)) == chosen


def test_a_selection_of_one_s_own_can_be_a_subclass() -> None:
    class Odd(Selection):
        def chosen(self, scores: Scores) -> Iterable[int]:
            return [branch for branch, score in scores.items() if score % 2]

    choose = Choose(LINE, Odd(associative=True, exhaustive=False, k=2))
    assert [len(choose.scored(choose.next() or 0, score).discard) for score in (1, 2, 3)] == [0, 1, 0]
    assert choose.over and choose.chosen() == (0, 2)
    with pytest.raises(NotImplementedError):
        Selection().chosen({0: 1.0})
    strange = Choose(LINE, Selection(lambda scores: [9]))
    strange.next()
    strange.scored(0, 1)
    with pytest.raises(ExploreError, match=r"Found \[9\] chosen, expected some of \[0\]"):
        strange.chosen()


@pytest.mark.parametrize("score", [math.nan, None, True, "0.5", [0.5], np.float32("nan"), Decimal("sNaN"), 10**400])
def test_scores_that_are_none(score: Any) -> None:
    choose = Choose(Space(product({"t": [1.5, 2], "k": ["gauss"]})), maximum)
    choose.next()
    with pytest.raises(ExploreError, match=r"as the score of t=1\.5, k='gauss', expected a number. Hint: "):
        choose.scored(0, score)
    assert choose.state(0) == "running"


@pytest.mark.parametrize("score", [2, 2.0, np.float32(2), np.int64(2), Decimal(2), Fraction(2), math.inf])
def test_scores_of_many_types(score: Any) -> None:
    choose = Choose(LINE, maximum)
    choose.next()
    assert choose.scored(0, score) == Outcome(pruned=frozenset({1, 2, 3, 4} if score == math.inf else ()))


def test_branches_are_told_once() -> None:
    choose = Choose(LINE, maximum)
    with pytest.raises(ExploreError, match=r"Found t=1 waiting, expected running\. Hint:"):
        choose.scored(0, 1.0)
    choose.next()
    choose.failed(0)
    for tell in (choose.failed, choose.stopped, lambda branch: choose.scored(branch, 1.0)):
        with pytest.raises(ExploreError, match="Found t=1 failed, expected running"):
            tell(0)


def test_what_cannot_win_is_cancelled_while_it_runs() -> None:
    choose = Choose(LINE, minimum, "convex")
    assert [choose.next() for _ in range(5)] == [0, 1, 2, 3, 4]
    assert choose.next() is None and not choose.over
    choose.scored(0, 1.0)
    assert choose.scored(1, 3.0) == Outcome(discard=frozenset({1}), cancel=frozenset({2, 3, 4}))
    assert choose.state(3) == "running"
    choose.stopped(2)
    choose.failed(3)
    choose.scored(4, 5.0)
    assert [choose.state(n) for n in range(5)] == ["kept", "discarded", "stopped", "stopped", "discarded"]
    assert choose.over


def test_a_contradiction_brings_back_what_was_ruled_out() -> None:
    choose = Choose(LINE, minimum, "convex")
    started = [choose.next() for _ in range(4)]
    choose.scored(0, 1.0)
    ruled_out = choose.scored(1, 3.0)
    assert (ruled_out.cancel, ruled_out.pruned) == ({2, 3}, {4})
    assert choose.stopped(2) == Outcome()
    told = choose.scored(3, 2.0)
    assert told.contradiction == "not convex along t: t=1 scored 1.0, t=2 scored 3.0, t=4 scored 2.0"
    assert told.revived == {2, 4} and started == [0, 1, 2, 3]
    assert choose.next() == 2
    choose.scored(2, 0.0)
    assert choose.scored(choose.next() or 0, -1.0).contradiction == ""
    assert choose.over and choose.chosen() == (4,)


def test_a_branch_that_stops_after_a_contradiction_comes_back() -> None:
    choose = Choose(LINE, minimum, "convex")
    for _ in range(4):
        choose.next()
    choose.scored(0, 1.0)
    choose.scored(1, 3.0)
    choose.scored(3, 2.0)
    assert choose.stopped(2).revived == {2}
    assert choose.state(2) == "waiting"


def test_what_a_user_stops_stays_stopped() -> None:
    choose = Choose(LINE, maximum)
    choose.next()
    choose.scored(0, 1.0)
    for branch in range(1, 5):
        choose.stopped(branch)
    assert choose.over and choose.chosen() == (0,) and choose.state(4) == "stopped"


def test_limits_that_nothing_can_meet() -> None:
    choose = Choose(LINE, threshold(0.8), bounded(0, 0.5))
    assert choose.over and choose.next() is None and choose.chosen() == ()
    wrong = Choose(LINE, maximum, bounded(0, 0.5))
    wrong.next()
    assert wrong.scored(0, 0.7).contradiction == "t=1 scored 0.7, outside of 0.0 to 0.5"


def test_all_fail() -> None:
    choose = Choose(LINE, mode)
    while (branch := choose.next()) is not None:
        assert choose.failed(branch) == Outcome()
    assert choose.over and choose.chosen() == ()


def test_a_shape_without_a_name_is_of_the_choices_of_numbers() -> None:
    space = Space(product({"t": [1, 2, 3], "k": ["a", "b", "c"]}))
    assert Bounds(space, "convex").choices == ["t"]
    assert Bounds(space, {"k": "convex"}).choices == ["k"]
    assert Bounds(Space(product({"k": ["low", "mid", "high"]})), "monotone").choices == ["k"]


def test_lines_that_leave_no_score() -> None:
    """Along t the corner is at most 1, along u at least 2: neither line alone shows it."""
    space = Space(points([{"t": t, "u": u} for t, u in [(1, 3), (2, 3), (3, 3), (3, 2), (3, 1)]]))
    bounds = Bounds(space, "monotone")
    scores = {0: 2.0, 1: 1.0, 4: 1.5, 3: 2.0}
    told = [bounds.scored({each: scores[each] for each in list(scores)[: n + 1]}, n_) for n, n_ in enumerate(scores)]
    assert told == ["", "", "", "not monotone along u: t=3, u=3 would score at least 2.0 and at most 1.0"]


def test_orders() -> None:
    space = Space(product({"t": [3, 1, 2]}))
    every = frozenset(range(3))
    assert order("given", space, maximum)(every, {}) == 0
    assert order("sorted", space, maximum)(every, {}) == 1
    shuffled = [order("random", Space(product({"t": range(50)})), maximum, seed=7)(frozenset(range(50)), {})] * 2
    assert shuffled[0] == shuffled[1]
    assert order("binary", space, maximum)(every, {}) == 1
    assert order("binary", space, maximum)(every - {1}, {}) == 0

    def predict(known: Any, scores: Any, candidates: Any) -> Any:
        assert [point["t"] for point in known] == [3, 1] and scores == [5.0, 6.0]
        return [7.0] * len(candidates), [0.0] * len(candidates)

    assert order("model", space, maximum, predict=predict)(frozenset({2}), {0: 5.0, 1: 6.0}) == 2


@pytest.mark.parametrize("name", ["given", "sorted", "random", "binary"])
def test_what_runs_next_is_foreseen(name: str) -> None:
    choose = Choose(Space(product({"t": [3, 1, 2, 5, 4], "k": [1, 2]})), minimum, order=name, seed=1)
    choose.scored(choose.next(), 1.0)  # type: ignore[arg-type]
    foreseen = choose.ahead(100)
    assert choose.foreseen and choose.ahead(2) == foreseen[:2] and len(foreseen) == 9
    ran = []
    while (branch := choose.next()) is not None:
        ran.append(branch)
        choose.scored(branch, float(branch))
    assert ran == foreseen


def test_what_a_regression_runs_next_is_not_foreseen() -> None:
    choose = Choose(LINE, minimum, order="model", predict=gaussian_process)
    assert not choose.foreseen and choose.ahead(3) == [0, 1, 2]


def test_a_regression_finds_what_is_wanted_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """One point of 40 by 3 has the score; in order it would be the 83rd."""
    space = Space(product({"t": range(40), "k": ["a", "b", "c"]}))
    costs = {"a": 0.0, "b": 9.0, "c": 4.0}
    choose = Choose(space, threshold(0.5, below=True, k=1), order="model", seed=3, predict=gaussian_process)
    ran = 0
    while (branch := choose.next()) is not None:
        point = space.points[branch]
        choose.scored(branch, (point["t"] - 27) ** 2 / 50 + costs[point["k"]])
        ran += 1
    assert [dict(space.points[each]) for each in choose.chosen()] == [{"t": pytest.approx(27, abs=5), "k": "a"}]
    assert ran < 20
    # As where it is not installed.
    monkeypatch.setitem(sys.modules, "sklearn.gaussian_process", None)
    with pytest.raises(ExploreError, match=r"Found order='model' without scikit-learn. Hint: pip install"):
        gaussian_process(space.points[:2], [1.0, 2.0], space.points[2:])


def test_expected_improvement() -> None:
    assert promise(minimum, {0: 5.0}, 4.0, 0.0) == pytest.approx(1.0)
    assert promise(maximum, {0: 5.0}, 5.0, 1.0) == pytest.approx(1 / math.sqrt(2 * math.pi))
    assert promise(top(2), {0: 5.0, 1: 3.0}, 4.0, 0.0) == pytest.approx(1.0)
    assert promise(interval(0, 1), {}, 0.5, 0.0) == pytest.approx(1.0)


def test_halving() -> None:
    rule = halving(3, 2)
    assert rule.going({n: float(n) for n in range(10)}) == {6, 7, 8, 9}
    assert rule.going({n: float(n) for n in range(10)}, lowest=True) == {0, 1, 2, 3}
    assert rule.going({4: 1.0}) == {4} and rule.going({}) == frozenset()
    assert rule.going({0: 1.0, 1: 2.0, 2: 3.0}, least=2) == {1, 2}
    assert (rule.first, rule.after(2), rule.after(6)) == (2, 6, 18)
