"""Reshape's loop on a simulated pipelined operator: queues, two phases, iterations (thesis §10.2, §11.2, §12.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from spark_regions.skew.adapt import Adaptive, Sample, adjust, earlier


@dataclass(frozen=True, slots=True)
class Stream:
    """An operator's input.

    :param shares: of each worker's partition; they add up to 1
    :param total: tuples in all; :param rate: tuples that arrive per second; :param speed: that a worker does per second
    :param dispersion: variance by mean of what a worker receives in a second; 1 is a Poisson process
    """

    shares: tuple[float, ...]
    total: float
    rate: float
    speed: float
    dispersion: float = 1.0


@dataclass(frozen=True, slots=True)
class Control:
    """:param tau: where it starts, and how it adapts (`adjustments=0`: fixed)
    :param eta: eq. 1; :param window: tuples of the whole operator that the mean model looks ahead
    :param interval: seconds between two looks at the queues; :param delay: seconds before the first
    :param sample_seconds: how long the arrivals are counted for one value of the sample
    :param migration_seconds: M, between the start of an iteration and its first phase (§14.1)
    """

    tau: Adaptive
    eta: float
    window: float = 2000.0
    interval: float = 0.25
    delay: float = 2.0
    sample_seconds: float = 5.0
    migration_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one skewed worker.

    :param iterations: of mitigation; :param balancing_ratio: averaged over the looks while input came (§15.4)
    :param allotted: tuples of the skewed worker and of its helper in the end; :param tau: in the end
    :param first: seconds until the first iteration; None: there was none
    """

    iterations: int
    balancing_ratio: float
    allotted: tuple[float, float]
    tau: float
    first: float | None


class Mode(StrEnum):
    WATCH = "watch"
    MIGRATE = "migrate"
    CATCH_UP = "catch_up"
    """First phase: all of the longer queue's shareable input goes to the other worker."""


@dataclass(slots=True)
class _Pair:
    skewed: int
    tau: Adaptive
    helper: int = -1
    mode: Mode = Mode.WATCH
    redirect: float = 0.0
    toward_helper: bool = True
    migrated_at: float = 0.0
    sample: Sample = field(default_factory=Sample)
    open_counts: tuple[float, float] = (0.0, 0.0)
    open_seconds: float = 0.0
    iterations: int = 0
    first: float | None = None
    ratios: list[float] = field(default_factory=list)

    def count(self, skewed: float, helper: float, control: Control) -> None:
        self.open_counts = (self.open_counts[0] + skewed, self.open_counts[1] + helper)
        self.open_seconds += control.interval
        if self.open_seconds >= control.sample_seconds:
            self.sample = self.sample.add(*self.open_counts)
            self.open_counts, self.open_seconds = (0.0, 0.0), 0.0

    def second_phase(self) -> None:
        """The queues are equal: redirect by what arrived since they last were, and start a new sample."""
        whole = self.sample if self.sample.skewed.count else self.sample.add(*self.open_counts)
        self.redirect, self.mode = whole.redirect, Mode.WATCH
        self.sample, self.open_counts, self.open_seconds = Sample(), (0.0, 0.0), 0.0


def run(
    stream: Stream, skewed: Sequence[int], control: Control, seed: int, helpers: Sequence[int] | None = None
) -> tuple[Outcome, ...]:
    """Simulate until the input ends; the outcome of each watched worker.

    Every look: queues are compared, algorithm 1 adjusts τ, and an iteration starts or not. An iteration first lets the
    shorter queue catch up, then redirects the part of the input that the mean model says (§11.2). The sample is what
    arrived since the two queues were last equal (§12.3.1).

    :param helpers: of each skewed worker; None: chosen by load
    """
    random = Random(seed)
    workers = range(len(stream.shares))
    queue, allotted = [0.0 for _ in workers], [0.0 for _ in workers]
    watched = [
        _Pair(each, control.tau, helper) for each, helper in zip(skewed, helpers or [-1] * len(skewed), strict=True)
    ]
    started = False
    looks = max(int(stream.total / stream.rate / control.interval), 1)
    for look in range(1, looks + 1):
        now = look * control.interval
        arrived = [
            _arrivals(random, share * stream.rate * control.interval, stream.dispersion) for share in stream.shares
        ]
        received = list(arrived)
        for pair in watched:
            moved = arrived[pair.skewed] * pair.redirect
            received[pair.skewed] -= moved
            received[pair.helper] += moved
        for worker in workers:
            allotted[worker] += received[worker]
            queue[worker] = max(queue[worker] + received[worker] - stream.speed * control.interval, 0.0)
        if now < control.delay:
            continue
        if not started:
            started = True
            if helpers is None:
                _choose(queue, allotted, watched)
        for pair in watched:
            pair.count(arrived[pair.skewed], arrived[pair.helper], control)
            least, most = sorted((allotted[pair.skewed], allotted[pair.helper]))
            pair.ratios.append(least / most if most else 1.0)
            _look(pair, queue, control, stream, now)
    return tuple(
        Outcome(
            pair.iterations,
            sum(pair.ratios) / len(pair.ratios) if pair.ratios else 1.0,
            (allotted[pair.skewed], allotted[pair.helper]),
            pair.tau.tau,
            pair.first,
        )
        for pair in watched
    )


def _look(pair: _Pair, queue: list[float], control: Control, stream: Stream, now: float) -> None:
    gap = queue[pair.skewed] - queue[pair.helper]
    if pair.mode is Mode.CATCH_UP:
        if (gap <= 0) == pair.toward_helper:
            pair.second_phase()
        return
    if pair.mode is Mode.MIGRATE:
        if now >= pair.migrated_at:
            _catch_up(pair, gap)
        return
    intervals = control.window / (stream.rate * control.sample_seconds)
    burden = max(queue[pair.skewed], queue[pair.helper])
    verdict = adjust(pair.tau, abs(gap) + _growth(pair, gap, control, stream), pair.sample.error(intervals))
    if not verdict.start or burden < control.eta:
        return
    pair.tau = verdict.adapted
    pair.iterations += 1
    pair.first = now if pair.first is None else pair.first
    if control.migration_seconds:
        pair.mode, pair.migrated_at = Mode.MIGRATE, now + control.migration_seconds
    else:
        _catch_up(pair, gap)


def _catch_up(pair: _Pair, gap: float) -> None:
    pair.toward_helper = gap > 0
    pair.redirect = 1.0 if pair.toward_helper else 0.0
    pair.mode = Mode.CATCH_UP


def _growth(pair: _Pair, gap: float, control: Control, stream: Stream) -> float:
    """By how much the gap will grow while state moves: τ - τ' (§14.1)."""
    seconds = control.sample_seconds
    skewed, helper = pair.sample.skewed.mean / seconds, pair.sample.helper.mean / seconds
    moved = skewed * pair.redirect
    shares = ((skewed - moved) / stream.rate, (helper + moved) / stream.rate)
    first, second = shares if gap > 0 else shares[::-1]
    return pair.tau.tau - earlier(pair.tau.tau, first, second, stream.rate, control.migration_seconds)


def _choose(queue: Sequence[float], allotted: Sequence[float], watched: Sequence[_Pair]) -> None:
    """The candidate of the lowest workload that helps nobody else (§10.1); then of the least input."""
    taken = {pair.skewed for pair in watched}
    for pair in sorted(watched, key=lambda each: -queue[each.skewed]):
        candidates = [worker for worker in range(len(queue)) if worker not in taken]
        pair.helper = min(candidates, key=lambda worker: (queue[worker], allotted[worker]))
        taken.add(pair.helper)


def _arrivals(random: Random, mean: float, dispersion: float) -> float:
    """Of one interval: gamma distributed, variance = mean · dispersion."""
    if dispersion <= 0:
        return mean
    return random.gammavariate(mean / dispersion, dispersion) if mean > 0 else 0.0
