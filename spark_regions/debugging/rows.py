"""Attempts of tasks, and rows at which they stand."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import msgspec

ASK, SKIP, FAIL, PASS = "ask", "skip", "fail", "pass"
ANSWERS = (SKIP, FAIL)


class Attempt(msgspec.Struct, frozen=True, order=True):
    """One try of a task.

    :param number: Spark's `taskAttemptId`, which no other attempt of the application has; its `attemptNumber` starts
        again where a stage is submitted again
    """

    stage: int
    partition: int
    number: int

    def __str__(self) -> str:
        return f"{self.stage}.{self.partition}.{self.number}"

    @property
    def shown(self) -> str:
        return f"stage {self.stage}, partition {self.partition}, attempt {self.number}"


class HeldRow(msgspec.Struct, frozen=True):
    """A row at which a task stands, before the row is passed on: it meets a local breakpoint (§5.2).

    :param ordinal: which of the operator's rows of this attempt, from 1
    :param values: as Spark shows them, redacted
    :param why: the condition
    :param answer: "" until one is given
    :param going: the answer is final, and the task acts on it; until then it stands
    """

    attempt: Attempt
    operator: str
    ordinal: int
    values: dict[str, str]
    why: str
    answer: str = ""
    going: bool = False

    @property
    def name(self) -> str:
        """The attempt's: a task stands at one row at a time."""
        return str(self.attempt)


def likely(name: str, known: Iterable[str]) -> str:
    """The hint for a name that is not known.

    >>> likely("RegexPraser", ["Scan", "RegexParser"]), likely("x", ["Scan", "Sort"]), likely("x", [])
    ('did you mean RegexParser?', 'one of Scan, Sort', 'there is none')
    """
    lowered = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), lowered, n=1)
    if near:
        return f"did you mean {lowered[near[0]]}?"
    return f"one of {', '.join(lowered.values())}" if lowered else "there is none"
