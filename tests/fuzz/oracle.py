"""A program with the plugin against plain Spark: rows, schema, order where it is asked for, and error class.

What plain Spark itself leaves open is not generated (a limit without a total order, the order inside of
`collect_list`, which of two equal and different values stands for a group), or not compared (the order of rows that
tie, and of all rows without ORDER BY; of sums of doubles what is behind the twelfth digit). What is left over is found
by running plain Spark again: a program whose plain runs differ is `undetermined`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.fuzz import schemas
from tests.fuzz.expressions import ROUNDED_PREFIX
from tests.fuzz.lab import Lab
from tests.fuzz.prelude import Inputs
from tests.fuzz.programs import CONFS, Program
from tests.fuzz.script import body, prelude
from tests.tpc.rows import FAILURES, Outcome, difference, error_class, outcome

_VARIANT_READ = re.compile(r'"__VARIANT_METADATA_KEY":\{[^}]*\}')
"""What a scan was asked of a variant. Spark leaves it behind at the column, and in files written with it, if the plan
extracts it right above a scan; where the rows are stored or read instead it is not there."""

PLAIN_RUNS = 3
"""How often a program that differs is run plain again before the difference counts."""


ROUNDED_NAME = re.compile(ROUNDED_PREFIX + r"\d+")


@dataclass(frozen=True)
class Seen:
    """What an action, or the end of the program, came to."""

    outcome: Outcome
    fields: str = ""

    def against(self, expected: Seen) -> str | None:
        rounded = [name for name, _ in expected.outcome.schema if ROUNDED_NAME.fullmatch(name)]
        reason = difference(expected.outcome, self.outcome, rounded)
        if reason is None and self.fields != expected.fields:
            return f"fields {self.fields}, expected {expected.fields}"
        return reason


@dataclass
class Verdict:
    """:param difference: None where every run with the plugin is as plain Spark's
    :param invalid: plain Spark refused the program, which ended there
    :param undetermined: plain Spark differs from itself
    :param reordered: actions that gave the same rows in another order, which nothing asked for
    """

    difference: str | None = None
    invalid: bool = False
    undetermined: bool = False
    actions: int = 0
    failed: int = 0
    rows: int = 0
    reordered: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    declines: Counter[str] = field(default_factory=Counter)


def run(lab: Lab, session: SparkSession, program: Program, folder: Path) -> list[Seen]:
    """The program from its beginning: its inputs as they were at first, its frames built anew."""
    specs = {name: {**spec, "ddl": schemas.declared(spec["schema"])} for name, spec in program["inputs"].items()}
    library = {name: lab.data(spec) for name, spec in specs.items()}
    seen: list[Seen] = []

    def act(build: Callable[[], DataFrame]) -> None:
        try:
            frame = build()
        except FAILURES as error:
            seen.append(_failed(error))
            return
        found = outcome(frame)
        seen.append(Seen(found, "" if found.error else _fields(frame)))

    inputs = Inputs(session, folder, library, specs)
    # As in a job of its own, whose functions no module holds.
    space: dict[str, Any] = {"__name__": "__main__", "spark": session}
    exec(prelude(), space)
    space |= {"inputs": inputs, "act": act}
    for key, value in program["confs"].items():
        session.conf.set(key, value)
    try:
        inputs.start()
        exec(body(program), space)
        seen.append(Seen(Outcome((), (), None, None)))
    except FAILURES as error:
        seen.append(_failed(error))
    finally:
        if any(step["op"] == "persist" for step in program["steps"]):
            # Shared by all sessions, unlike the rest.
            session.catalog.clearCache()
        for key in CONFS:
            session.conf.unset(key)
    return seen


def _failed(error: Exception) -> Seen:
    return Seen(Outcome((), (), error_class(error), None))


def _fields(frame: DataFrame) -> str:
    """Names, types and nullability as analyzed; names and types of what ran, which may know that there are no nulls."""
    ran = frame._jdf.queryExecution().executedPlan().schema().asNullable()
    return _VARIANT_READ.sub("", f"{frame.schema.json()} {ran.json()}")


def judge(lab: Lab, program: Program) -> Verdict:
    """Plain; then with the plugin twice in one session and once in another, on the same store; then with
    another engine in Spark's place wherever it can be.
    """
    verdict = Verdict()
    with lab.program_folder() as folder:
        start = lab.counted()
        expected = run(lab, lab.plain, program, folder)
        between = lab.counted()
        changed = between["plansChanged"] - start["plansChanged"]
        if changed:
            raise RuntimeError(f"the plain session is not plain: {changed} plans changed")
        verdict.invalid = expected[-1].outcome.error is not None
        verdict.actions = len(expected) - 1
        verdict.failed = sum(seen.outcome.error is not None for seen in expected[:-1])
        verdict.rows = sum(len(seen.outcome.rows) for seen in expected)
        sessions = {"first run": lab.first, "second run": lab.first, "second session": lab.second, "engine": lab.engine}
        for name, session in sessions.items():
            found = run(lab, session, program, folder)
            lab.counted()
            verdict.difference = verdict.difference or _difference(name, expected, found)
            pairs = zip(expected, found, strict=False)
            verdict.reordered += sum(one.outcome.rows != other.outcome.rows for one, other in pairs)
        verdict.counts = lab.counted() - between
        verdict.declines = lab.declines()
    if verdict.difference is not None:
        verdict.undetermined = _undetermined(lab, program, expected)
    return verdict


def _difference(name: str, expected: list[Seen], found: list[Seen]) -> str | None:
    for number, (one, other) in enumerate(zip(expected, found, strict=False), 1):
        if reason := other.against(one):
            return f"{name}, result {number}: {reason}"
    if len(expected) != len(found):
        return f"{name}: {len(found)} results, expected {len(expected)}"
    return None


def _undetermined(lab: Lab, program: Program, expected: list[Seen]) -> bool:
    for _ in range(PLAIN_RUNS):
        # In a folder of its own: what the plugin persisted stands for plans over the other one, in plain sessions too.
        with lab.program_folder() as folder:
            if _difference("", expected, run(lab, lab.plain, program, folder)) is not None:
                return True
    return False
