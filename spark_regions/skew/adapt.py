"""The threshold τ adapted from the error of the load estimate (thesis §12.3.2, algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, sqrt

from spark_regions.dag.moments import Moments

SIGNIFICANCE = 3.0
"""Standard errors by which a gap must exceed its own noise."""


def standard_error(sample: Moments) -> float:
    """Of the mean model's prediction of one further value: ε = d · √(1 + 1/n) (§12.3.2); infinite below two values.

    >>> standard_error(Moments.of(8.0).merge(Moments.of(12.0)))
    3.4641016151377544
    """
    return sqrt(sample.variance * (1 + 1 / sample.count)) if sample.count > 1 else inf


@dataclass(frozen=True, slots=True)
class ErrorRange:
    """[ε_l, ε_u], which the thesis asks of the user."""

    low: float
    high: float


def derived_range(gap: float, tau: float) -> ErrorRange:
    """The range from the loads themselves, so that nobody has to set it.

    A gap between two workers that receive equal loads has the noise √2 · ε. Above ε_u = τ / (3√2) noise alone reaches
    τ, which has to grow. Below ε_l = gap / (3√2) the gap that is there is no noise: there is nothing to wait for.
    """
    noise = SIGNIFICANCE * sqrt(2)
    return ErrorRange(max(gap, 0.0) / noise, tau / noise)


@dataclass(frozen=True, slots=True)
class Adaptive:
    """τ of one skewed worker and its helper.

    :param range: fixed [ε_l, ε_u]; None: derived at each step
    :param step: what τ grows by; None: up to where its noise no longer reaches it, at most doubling ("cautiously")
    :param adjustments: changes that are still allowed; None: any number
    """

    tau: float
    range: ErrorRange | None = None
    step: float | None = None
    adjustments: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """:param start: whether an iteration of mitigation starts now"""

    start: bool
    adapted: Adaptive


def adjust(state: Adaptive, gap: float, error: float) -> Verdict:
    """Algorithm 1.

    The test passes and ε > ε_u: mitigation starts, and the next one waits for a greater τ. The test fails and ε < ε_l:
    waiting brings nothing, τ becomes the gap and mitigation starts. Worked example, the range of §15.6: τ = 10, gap 12,
    ε = 130 > 110: start, and τ = 60 from now on; τ = 2000, gap 700, ε = 97 < 98: start, and τ = 700.
    """
    limits = state.range or derived_range(gap, state.tau)
    may = state.adjustments is None or state.adjustments > 0
    left = None if state.adjustments is None else state.adjustments - 1
    if gap >= state.tau:
        if error > limits.high and may:
            return Verdict(True, replace(state, tau=state.tau + _growth(state, error), adjustments=left))
        return Verdict(True, state)
    if error < limits.low and gap > 0 and may:
        return Verdict(True, replace(state, tau=gap, adjustments=left))
    return Verdict(False, state)


def earlier(tau: float, skewed_share: float, helper_share: float, rate: float, migration_seconds: float) -> float:
    """τ' = τ - (f̂_S - f̂_H) · t · M: detect as much earlier as the gap grows while state moves (§14.1).

    >>> earlier(500.0, 0.15, 0.05, 200.0, 10.0)
    300.0
    """
    return tau - (skewed_share - helper_share) * rate * migration_seconds


@dataclass(frozen=True, slots=True)
class Sample:
    """W of algorithm 1: what two workers received per interval since their loads were last similar (§12.3.1)."""

    skewed: Moments = field(default_factory=Moments)
    helper: Moments = field(default_factory=Moments)

    def add(self, skewed: float, helper: float) -> Sample:
        return Sample(self.skewed.merge(Moments.of(skewed)), self.helper.merge(Moments.of(helper)))

    def error(self, intervals: float) -> float:
        """ε of the skewed worker's load over so many intervals, as the mean model scales it."""
        return standard_error(self.skewed) * intervals

    @property
    def redirect(self) -> float:
        """Part of the skewed worker's future input that makes both equal: (f̂_S - f̂_H) / (2 f̂_S), within [0, 1].

        The thesis's example (§11.1): 26 against 7 gives 9.5/26; it redirects 9 of 26.
        """
        if self.skewed.mean <= 0:
            return 0.0
        return min(1.0, max(0.0, (self.skewed.mean - self.helper.mean) / (2 * self.skewed.mean)))


def _growth(state: Adaptive, error: float) -> float:
    if state.step is not None:
        return state.step
    return min(max(SIGNIFICANCE * sqrt(2) * error - state.tau, 0.0), max(state.tau, 1.0))
