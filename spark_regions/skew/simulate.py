"""Replays of a stage's task times on any number of workers: without us, with adaptive execution, with a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from spark_regions.skew.aqe import AdaptiveConf, adaptive_tasks
from spark_regions.skew.packing import in_order
from spark_regions.skew.repair import plain_tasks
from spark_regions.skew.spec import Kind, SkewSpec
from spark_regions.skew.stage import Costs, Stage
from spark_regions.skew.work import Phase, phases

MOMENTS = 200


@dataclass(frozen=True, slots=True)
class Replay:
    """:param makespan: seconds; :param max_over_median: of the tasks that had something to do
    :param balance: busy time of all workers by makespan · workers
    :param balancing_ratio: thesis §15.4, see `balancing_ratio`
    """

    makespan: float
    max_over_median: float
    balance: float
    balancing_ratio: float
    tasks: int


@dataclass(frozen=True, slots=True)
class Allotment:
    """A task that started: when, on which worker, and its work in seconds."""

    start: float
    worker: int
    seconds: float


def replay(stage_phases: Sequence[Phase], workers: int, overhead: float = 0.0) -> Replay:
    """Events in time: a free worker takes the next task; a phase waits for the one before.

    :param overhead: seconds of a task before its first row, so that empty tasks are told apart
    """
    now = busy = 0.0
    allotted: list[Allotment] = []
    times: list[float] = []
    for phase in stage_phases:
        now += phase.before
        placed = in_order(phase.tasks, workers)
        allotted += [
            Allotment(now + start, worker, seconds)
            for start, worker, seconds in zip(placed.start, placed.worker, phase.tasks, strict=True)
        ]
        busy += sum(phase.tasks)
        times += [seconds for seconds in phase.tasks if seconds > overhead]
        now += placed.makespan
    return Replay(
        makespan=now,
        max_over_median=max(times) / median(times) if times else 1.0,
        balance=busy / (now * workers) if now else 1.0,
        balancing_ratio=balancing_ratio(allotted, workers, now),
        tasks=len(allotted),
    )


def balancing_ratio(allotted: Sequence[Allotment], workers: int, makespan: float) -> float:
    """The average load-balancing ratio of §15.4: the smaller by the larger of what two workers were allotted so far.

    The thesis takes a skewed worker and its one helper. Here every other worker may help, so the pair is the one with
    the most and the one with the least in the end; work is counted in seconds, and averaged over even moments.
    """
    total = [0.0] * workers
    for each in allotted:
        total[each.worker] += each.seconds
    if workers < 2 or not allotted:
        return 1.0
    most = max(range(workers), key=lambda worker: total[worker])
    least = min((worker for worker in range(workers) if worker != most), key=lambda worker: total[worker])
    events = sorted((each for each in allotted if each.worker in (most, least)), key=lambda each: each.start)
    sums = {most: 0.0, least: 0.0}
    ratios, at = [], 0
    for number in range(1, MOMENTS + 1):
        moment = makespan * number / MOMENTS
        while at < len(events) and events[at].start <= moment:
            sums[events[at].worker] += events[at].seconds
            at += 1
        larger = max(sums.values())
        ratios.append(min(sums.values()) / larger if larger else 1.0)
    return sum(ratios) / len(ratios)


def compare(stage: Stage, spec: SkewSpec, costs: Costs, adaptive: AdaptiveConf | None = None) -> dict[str, Replay]:
    """Plain, adaptive execution and the decision, on what a stage really took.

    A decision to do nothing leaves the stage to adaptive execution where that is on.
    """
    plain = (Phase(0.0, plain_tasks(stage, costs)),)
    aqe = (Phase(0.0, adaptive_tasks(stage, costs, adaptive)),)
    if spec.kind is Kind.NONE:
        ours: tuple[Phase, ...] = aqe if stage.aqe else plain
    else:
        ours = phases(stage, spec, costs)
    named = {"plain": plain, "aqe": aqe, "ours": ours}
    return {name: replay(each, stage.cores, costs.task_seconds) for name, each in named.items()}
