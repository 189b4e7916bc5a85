"""What operators take on a row, learned from stages that ran (RHEEMix §3.2).

A stage takes a weight times rows for each kind of operator that Spark fused into it, and one for each of its tasks. The
weights are those that are least off, relative to what the stages took, and none is far below its fixed one. What stages
cannot tell apart (a scan and the conversion of its rows are always together) is divided as the fixed weights do, which
count as `PRIOR` stages of each kind, once they are scaled to the machine. Stages are all that is known here, not what
they are for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from spark_regions.costs.policy import OPERATOR_WEIGHTS, OTHER_WEIGHT, PYTHON_WEIGHT
from spark_regions.costs.rates import TASK_OVERHEAD_SECONDS
from spark_regions.wire.messages import TimedStage

TASK, EXPRESSIONS = "task", "expressions"
LEAST_STAGES = 30
"""Below, no weights are learned."""
LEAST_OF_KIND = 5
"""A kind of operator that fewer stages have keeps its fixed weight, scaled to the machine."""
PRIOR = 0.3
LEAST_SHARE = 0.1
"""Of its fixed weight, scaled, that a kind has at least: whatever rows go through takes something."""
SMOOTHING_SECONDS = 0.02
"""Added to what a stage took before errors are divided by it: below, clocks and start-up are most of it."""
SWEEPS = 300
FOLDS = 5
DRAWS = 40
Weights = Mapping[str, float]
"""Seconds by kind of operator, of one row; of `TASK`, of one task; of `EXPRESSIONS`, of one µs by fixed weights."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a stage did.

    :param seconds: of cores
    :param amounts: rows by kind of operator, tasks, and µs of expressions by their fixed weights
    """

    seconds: float
    amounts: Mapping[str, float]

    def predicted(self, weights: Weights) -> float:
        return sum(amount * weights.get(kind, 0.0) for kind, amount in self.amounts.items())

    def error(self, weights: Weights) -> float:
        """By how much it is off, relative to what the stage took."""
        return abs(self.predicted(weights) - self.seconds) / (self.seconds + SMOOTHING_SECONDS)


def in_python(kind: str) -> bool:
    return any(name in kind for name in ("Python", "Pandas", "Arrow"))


def work_of(stage: TimedStage) -> Work:
    """What the weights are to explain of a stage: not what operators measured of their own time.

    On a core, since a machine that does something else, too, stretches the rest; but Python works in processes of its
    own, so that of a stage with Python all seconds count.
    """
    seconds = stage.seconds if any(map(in_python, stage.rows)) else min(stage.cpu_seconds, stage.seconds)
    share = 1 - stage.measured_seconds / stage.seconds if stage.seconds > 0 else 0.0
    amounts = {**stage.rows, TASK: float(stage.tasks), EXPRESSIONS: stage.expression_micros}
    return Work(seconds * max(0.0, share), {kind: amount for kind, amount in amounts.items() if amount > 0})


def fixed(kind: str) -> float:
    """The weight before anything is learned.

    >>> round(fixed("SortExec") * 1e6, 3), round(fixed("ArrowEvalPythonExec") * 1e6, 3)
    (0.4, 3.0)
    """
    if kind == TASK:
        return TASK_OVERHEAD_SECONDS
    if kind == EXPRESSIONS:
        return 1e-6
    return 1e-6 * OPERATOR_WEIGHTS.get(kind, PYTHON_WEIGHT if in_python(kind) else OTHER_WEIGHT)


def scale(works: Sequence[Work]) -> float:
    """By which the fixed weights are to be multiplied for this machine."""
    weights = {kind: fixed(kind) for work in works for kind in work.amounts}
    whole = [(work.seconds, work.predicted(weights)) for work in works]
    return median([seconds / guess for seconds, guess in whole if guess > 0 and seconds > 0] or [1.0])


def scaled(works: Sequence[Work]) -> dict[str, float]:
    """The fixed weights, all by one factor."""
    factor = scale(works)
    return {kind: fixed(kind) * factor for work in works for kind in work.amounts}


def learned(works: Sequence[Work]) -> dict[str, float]:
    """The weights; fixed ones, scaled, of a kind that few stages have.

    Bounded least squares of the relative error, by coordinate descent.
    """
    start = scaled(works)
    counts = counted(works)
    kinds = [kind for kind, count in counts.items() if count >= LEAST_OF_KIND and start[kind] > 0]
    place = {kind: at for at, kind in enumerate(kinds)}
    # In units of the fixed weights, by which 1 is what is expected.
    gram = [[PRIOR if at == other else 0.0 for other in range(len(kinds))] for at in range(len(kinds))]
    target = [PRIOR] * len(kinds)
    for work in works:
        by = 1 / (work.seconds + SMOOTHING_SECONDS)
        row = [(place[kind], by * amount * start[kind]) for kind, amount in work.amounts.items() if kind in place]
        others = sum(amount * start[kind] for kind, amount in work.amounts.items() if kind not in place)
        for at, value in row:
            target[at] += value * by * max(0.0, work.seconds - others)
            for other, more in row:
                gram[at][other] += value * more
    units = [1.0] * len(kinds)
    for _ in range(SWEEPS):
        for at, line in enumerate(gram):
            rest = target[at] - sum(map(float.__mul__, line, units)) + line[at] * units[at]
            units[at] = max(LEAST_SHARE, rest / line[at])
    return start | {kind: start[kind] * units[at] for at, kind in enumerate(kinds)}


def counted(works: Sequence[Work]) -> Counter[str]:
    """Stages that have each kind."""
    return Counter(kind for work in works for kind in work.amounts)


def intervals(works: Sequence[Work]) -> dict[str, tuple[float, float]]:
    """In which nine of ten weights lie, had other stages of the kind run (bootstrap)."""
    chance = random.Random(len(works))
    draws = [learned(chance.choices(works, k=len(works))) for _ in range(DRAWS)]
    found = {}
    for kind in counted(works):
        drawn = sorted(draw[kind] for draw in draws if kind in draw)
        cut = len(drawn) // 20
        found[kind] = (drawn[cut], drawn[-1 - cut])
    return found


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Errors on stages that had no part in the weights."""

    work: Work
    learned: float
    fixed: float


def held_out(works: Sequence[Work], groups: Sequence[object] | None = None) -> list[HeldOut]:
    """Each stage by weights of others, learned ones against the fixed ones, scaled by the same stages.

    :param groups: what is held out together; default: stages of the same operators
    """
    named = [frozenset(work.amounts) for work in works] if groups is None else list(groups)
    folds = {group: at % FOLDS for at, group in enumerate(dict.fromkeys(named))}
    found = []
    for fold in range(FOLDS):
        known = [work for work, group in zip(works, named, strict=True) if folds[group] != fold]
        if not known:
            continue
        by, before, factor = learned(known), scaled(known), scale(known)
        for work, group in zip(works, named, strict=True):
            if folds[group] == fold:
                # A kind that none of the others has: what it would have, had nothing been learned of it.
                unseen = {kind: fixed(kind) * factor for kind in work.amounts.keys() - by.keys()}
                found.append(HeldOut(work, work.error(unseen | by), work.error(unseen | before)))
    return found
