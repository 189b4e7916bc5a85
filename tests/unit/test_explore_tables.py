"""Table 1 by chance: what is chosen early is what all scores would choose, in any order, whatever is known of them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from spark_regions.exploration.bounds import Shapes, bounded
from spark_regions.exploration.choose import Choose
from spark_regions.exploration.order import ORDERS
from spark_regions.exploration.select import Selection, interval, maximum, minimum, mode, threshold, top
from spark_regions.exploration.space import Point, Space
from tests.harness import chance

TABLES = 10_000
SELECTIONS = (
    *("top", "top lowest", "minimum", "maximum", "threshold", "threshold below", "k-threshold", "interval"),
    *("k-interval", "mode", "own", "own associative"),
)
SHAPES = ("none", "bounded", "monotone", "convex", "monotone along t", "convex along t")
AT_ONCE = (1, 3)
COMBINATIONS = tuple(itertools.product(SELECTIONS, SHAPES, ORDERS, AT_ONCE))


def three_are(shape: str, a: float, x: float, b: float) -> bool:
    """Whether x, between a and b, is as the shape says."""
    return x <= max(a, b) and (shape == "convex" or x >= min(a, b))


def of_shape(space: Space, scores: Mapping[int, float], shape: str) -> bool:
    """All threes of known scores that differ in `t` alone, or in one choice where the shape is of all."""
    name = shape.split()[0]
    if name not in ("monotone", "convex"):
        return True
    for choice in ["t"] if "along" in shape else space.names:
        value = {n: space.points[n][choice] for n in scores}
        rest = {n: [space.points[n][each] for each in space.names if each != choice] for n in scores}
        for one, two, three in itertools.combinations(sorted(scores, key=value.__getitem__), 3):
            if rest[one] == rest[two] == rest[three] and not three_are(name, *(scores[n] for n in (one, two, three))):
                return False
    return True


def column(draw: random.Random, length: int, shape: str, most: int) -> list[float]:
    values = sorted((draw.randrange(most) for _ in range(length)), reverse=draw.random() < 0.5)
    if shape == "convex":
        fall = draw.randrange(length + 1)
        draw.shuffle(values)
        values = sorted(values[:fall], reverse=True) + sorted(values[fall:])
        if 0 < fall < length and values[fall - 1] < values[fall]:
            # The lowest of all stands at one side of the valley: still one valley.
            assert values[fall - 1] == min(values)
        return [float(each) for each in values]
    if shape not in ("monotone", "convex"):
        draw.shuffle(values)
    return [float(each) for each in values]


def grid(draw: random.Random, most: int) -> tuple[list[int], list[int]]:
    """Sizes from 1 to `most`, small ones more often, of one choice or two."""
    wide = draw.randint(1, draw.randint(1, most))
    high = draw.choice([1, 1, draw.randint(1, most // wide)])
    return draw.sample(range(100), wide), draw.sample(range(100), high)


def table(draw: random.Random, shape: str) -> tuple[Space, list[float]]:
    """Points of a grid in some order, a few of them missing, with scores of a shape; often equal ones."""
    ts, us = grid(draw, 40)
    name, most = shape.split()[0], draw.choice([2, 8, 10_000])
    along = [dict(zip(sorted(ts), column(draw, len(ts), name, most), strict=True)) for _ in us]
    across = dict(zip(sorted(us), column(draw, len(us), name, most), strict=True))
    two = len(us) > 1
    points: list[Point] = [{"t": t, "u": u} if two else {"t": t} for t in ts for u in us]
    points = [point for point in points if draw.random() < 0.9] or points[:1]
    row = {u: 0 if name == shape else place for place, u in enumerate(us)}
    scores = [along[row[point.get("u", us[0])]][point["t"]] + across[point.get("u", us[0])] for point in points]
    return Space(points), scores


def declared(shape: str, scores: Sequence[float]) -> Shapes | None:
    name = shape.split()[0]
    found: Shapes | None = bounded(min(scores), max(scores)) if name == "bounded" else name
    if name == "none":
        return None
    return {"t": name} if name != shape else found


def selected(draw: random.Random, name: str, scores: Sequence[float]) -> tuple[Selection, Callable[..., set[int]]]:
    """A selection, and which branches the exhaustive choice gives: of all scores, in the order of scoring."""
    k = draw.randint(1, min(3, len(scores)))
    low, high = sorted(draw.choices([*scores, draw.uniform(min(scores), max(scores))], k=2))

    def best(many: int, sign: int) -> Callable[..., set[int]]:
        return lambda known: set(sorted(known, key=lambda n: (sign * known[n], n))[:many])

    def all_of(test: Callable[[float], bool], many: int | None = None) -> Callable[..., set[int]]:
        return lambda known: set([n for n, score in known.items() if test(score)][:many])

    def most_frequent(known: Mapping[int, float]) -> set[int]:
        groups: dict[float, list[int]] = {}
        for n in sorted(known):
            groups.setdefault(known[n], []).append(n)
        return set(max(groups.values(), key=lambda group: (len(group), -group[0]), default=[]))

    def above_mean(known: Mapping[int, float]) -> set[int]:
        return {n for n in known if known[n] > sum(known.values()) / len(known)}

    return {
        "top": (top(k), best(k, -1)),
        "top lowest": (top(k, lowest=True), best(k, 1)),
        "minimum": (minimum, best(1, 1)),
        "maximum": (maximum, best(1, -1)),
        "threshold": (threshold(low), all_of(lambda s: s >= low)),
        "threshold below": (threshold(low, below=True), all_of(lambda s: s <= low)),
        "k-threshold": (threshold(low, k=k), all_of(lambda s: s >= low, k)),
        "interval": (interval(low, high), all_of(lambda s: low <= s <= high)),
        "k-interval": (interval(low, high, k=k), all_of(lambda s: low <= s <= high, k)),
        "mode": (mode, most_frequent),
        "own": (Selection(above_mean), above_mean),
        "own associative": (
            Selection(lambda known: [n for n in known if known[n] % 2], associative=True),
            all_of(lambda s: bool(s % 2)),
        ),
    }[name]


def predict(points: Sequence[Point], scores: Sequence[float], candidates: Sequence[Point]) -> Any:
    """Lower with the distance from the best point so far, and less sure."""
    best = max(scores)
    t = points[scores.index(best)]["t"]
    far = [abs(candidate["t"] - t) for candidate in candidates]
    return [best - each for each in far], far


@dataclass
class Ran:
    started: list[int] = field(default_factory=list)
    scored: dict[int, float] = field(default_factory=dict)
    contradiction: str = ""


def drive(
    choose: Choose, scores: Sequence[float], draw: random.Random, at_once: int = 1, fails: frozenset[int] = frozenset()
) -> Ran:
    """Runs branches to the end; those at a time end in any order. What is cancelled may end before it hears of it."""
    ran, running, told = Ran(), list[int](), set[int]()
    held: set[int] = set()
    gone: set[int] = set()
    while not choose.over:
        while len(running) < at_once and (started := choose.next()) is not None:
            assert choose.state(started) == "running"
            assert started not in gone
            running.append(started)
            ran.started.append(started)
        branch = running.pop(draw.randrange(len(running)))
        if branch in told and draw.random() < 0.7:
            outcome = draw.choice([choose.stopped, choose.failed])(branch)
        elif branch in fails:
            outcome = choose.failed(branch)
        else:
            outcome = choose.scored(branch, scores[branch])
            ran.scored[branch] = scores[branch]
            held.add(branch)
        assert outcome.discard <= held
        assert outcome.cancel <= set(running)
        held -= outcome.discard
        gone = (gone | outcome.pruned | outcome.discard) - outcome.revived
        told = (told | outcome.cancel) - outcome.revived
        ran.contradiction = ran.contradiction or outcome.contradiction
        if choose.selection.associative and choose.selection.k is not None:
            assert len(held) <= choose.selection.k
    assert choose.next() is None
    assert held == set(choose.chosen())
    states = {"kept", "discarded", "pruned", "stopped", "failed"}
    assert {choose.state(n) for n in range(len(scores))} <= states
    assert {n for n in range(len(scores)) if choose.state(n) == "kept"} == held
    return ran


def expected(selection: Selection, exhaustive: Callable[..., set[int]], ran: Ran, known: dict[int, float]) -> set[int]:
    """Of the first k, those that were scored first; of other selections, the order is all the same."""
    return exhaustive({**ran.scored, **{n: score for n, score in known.items() if n not in ran.scored}})


@pytest.mark.parametrize("part", range(4))
def test_the_choice_is_that_of_all_scores(part: int) -> None:
    cases = 0
    for seed in itertools.islice(chance.seeds("explore_tables", TABLES, 0), part, None, 4):
        draw = random.Random(seed)
        name, shape, order, at_once = COMBINATIONS[seed % len(COMBINATIONS)]
        with chance.trying("explore_tables", seed):
            space, scores = table(draw, shape)
            assert len(scores) > 12 or of_shape(space, dict(enumerate(scores)), shape)
            selection, exhaustive = selected(draw, name, scores)
            fails = (
                frozenset(n for n in range(len(scores)) if draw.random() < 0.1) if draw.random() < 0.2 else frozenset()
            )
            choose = Choose(space, selection, declared(shape, scores), order, seed, predict)
            ran = drive(choose, scores, draw, at_once, fails)
            known = {n: score for n, score in enumerate(scores) if n not in fails}
            assert set(choose.chosen()) == expected(selection, exhaustive, ran, known)
            assert not ran.contradiction
            assert len(ran.started) == len(set(ran.started)) <= len(space)
            if shape == "none" and selection.exhaustive:
                assert len(ran.started) == len(space)
            if not selection.exhaustive and at_once == 1:
                within = [n for n in ran.scored if n in exhaustive(ran.scored)]
                assert len(within) < (selection.k or 0) or ran.started[-1] == within[-1]
        cases += 1
    assert cases >= TABLES // 4


def test_scores_that_contradict_their_shape_lead_to_the_choice_of_all() -> None:
    told = 0
    for seed in chance.seeds("explore_contradictions", 2_000, 0):
        draw = random.Random(seed)
        name, shape, order, at_once = COMBINATIONS[seed % len(COMBINATIONS)]
        with chance.trying("explore_contradictions", seed):
            space, scores = table(draw, "none")
            selection, exhaustive = selected(draw, name, scores)
            middle = sorted(scores)[len(scores) // 4 : -len(scores) // 4] or scores
            choose = Choose(space, selection, declared(shape, middle), order, seed, predict)
            ran = drive(choose, scores, draw, at_once)
            if ran.contradiction:
                told += 1
                assert ran.contradiction.startswith("not ") or "outside of" in ran.contradiction
                assert set(choose.chosen()) == expected(selection, exhaustive, ran, dict(enumerate(scores)))
                stopped = [n for n in range(len(scores)) if choose.state(n) in ("pruned", "stopped")]
                assert not stopped or not selection.exhaustive
            else:
                assert len(scores) > 20 or of_shape(space, ran.scored, shape)
    assert told > 400


def line(scores: Sequence[float], selection: Selection, shape: str, order: str = "binary") -> tuple[Choose, Ran]:
    choose = Choose(Space([{"t": t} for t in range(len(scores))]), selection, shape, order)
    return choose, drive(choose, scores, random.Random(0))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 40, 100])
def test_how_many_branches_a_shape_leaves(size: int) -> None:
    draw = random.Random(size)
    halvings = math.ceil(math.log2(size)) + 1
    for _ in range(20):
        rising = [float(each) for each in sorted(draw.sample(range(10 * size), size))]
        _, ran = line(rising, minimum, "monotone")
        assert ran.started == [0, size - 1][: len(ran.started)]
        for selection in (maximum, top(1, lowest=True)):
            for scores in (rising, rising[::-1]):
                assert len(line(scores, selection, "monotone")[1].started) <= 2 + halvings
        valley = draw.randrange(size)
        loss = [float(abs(n - valley) + 0.3 * (n > valley)) for n in range(size)]
        choose, ran = line(loss, minimum, "convex")
        assert choose.chosen() == (valley,)
        assert len(ran.started) <= 3 + 2 * halvings
        limit = draw.choice(rising)
        choose, ran = line(rising, threshold(limit), "monotone")
        assert len(ran.started) <= len(choose.chosen()) + 1 + halvings
        many = draw.randint(1, size)
        choose, ran = line(rising, threshold(rising[0], k=many), "monotone", "given")
        assert ran.started == list(range(many)) == list(choose.chosen())
