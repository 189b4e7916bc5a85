"""Batches of programs by seed, and the smallest program of a batch that differs."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.lab import Lab
from tests.fuzz.oracle import Verdict, judge
from tests.fuzz.programs import Program, programs


class Differs(AssertionError):
    """A program with the plugin is not as with plain Spark."""


@dataclass(frozen=True)
class Failure:
    program: Program
    reason: str
    seed: int


@dataclass
class Totals:
    """What ran; `counts` are the plugin's own counters, over the runs with it."""

    programs: int = 0
    invalid: int = 0
    undetermined: int = 0
    actions: int = 0
    failed: int = 0
    rows: int = 0
    reordered: int = 0
    differences: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    declines: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)

    def add(self, program: Program, verdict: Verdict, seconds: float) -> None:
        self.programs += 1
        self.invalid += verdict.invalid
        self.undetermined += verdict.undetermined
        self.actions += verdict.actions
        self.failed += verdict.failed
        self.rows += verdict.rows
        self.reordered += verdict.reordered
        self.seconds += seconds
        self.counts += verdict.counts
        self.declines += verdict.declines
        self.operators.update(step["op"] for step in program["steps"])

    def vacuous(self) -> str | None:
        """Why the whole run says nothing of the plugin, or None."""
        for name in ("plansChanged", "commits", "loads"):
            if not self.counts[name]:
                return f"vacuous: no {name} in {self.programs} programs"
        if self.programs and self.invalid * 4 > self.programs:
            return f"vacuous: {self.invalid} of {self.programs} programs are invalid"
        return None


def batch(
    lab: Lab,
    number: int,
    size: int,
    totals: Totals,
    shrink_seconds: float,
    each: Callable[[Verdict], None] = lambda verdict: None,
    until: float = float("inf"),
) -> Failure | None:
    """Run up to `size` programs of seed `number`, until one differs; that one is made small.

    :param shrink_seconds: for which smaller programs are tried
    :param until: of the monotonic clock; later programs are not run
    """
    known: dict[str, str | None] = {}
    failing: list[Failure] = []
    ends = [until]

    @seed(number)
    @settings(
        max_examples=size,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
    )
    @given(programs())
    def check(program: Program) -> None:
        text = json.dumps(program, sort_keys=True)
        if text not in known:
            # Out of time: whatever is left is taken for a program that does not differ, so that the search ends.
            if time.monotonic() > ends[0]:
                return
            start = time.monotonic()
            verdict = judge(lab, program)
            known[text] = None if verdict.undetermined else verdict.difference
            if not failing:
                totals.add(program, verdict, time.monotonic() - start)
                each(verdict)
        if reason := known[text]:
            if not failing:
                ends[0] = time.monotonic() + shrink_seconds
            failing.append(Failure(program, reason, number))
            raise Differs(reason)

    try:
        check()
    except Differs:
        totals.differences += 1
        return failing[-1]
    return None
