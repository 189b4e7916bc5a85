"""Attempts of tasks, and rows at which they stand."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import msgspec

Value = bool | int | float | str
"""Of a parameter or a fixed row; what has another type goes as text, and is cast where it is used."""

ASK, SKIP, FIX, FAIL, PASS = "ask", "skip", "fix", "fail", "pass"
ANSWERS = (SKIP, FIX, FAIL)


class Attempt(msgspec.Struct, frozen=True, order=True):
    """One try of a task.

    :param number: Spark's `taskAttemptId`, which no other attempt of the application has; its `attemptNumber` starts
        again where a stage is submitted again
    """

    stage: int
    partition: int
    number: int

    @property
    def task(self) -> tuple[int, int]:
        return self.stage, self.partition

    def __str__(self) -> str:
        return f"{self.stage}.{self.partition}.{self.number}"

    @property
    def shown(self) -> str:
        return f"stage {self.stage}, partition {self.partition}, attempt {self.number}"


class HeldRow(msgspec.Struct, frozen=True):
    """A row at which a task stands, before the row is passed on: it meets a local breakpoint (§5.2), or it failed.

    :param ordinal: which of the operator's rows of this attempt, from 1
    :param values: as Spark shows them, redacted
    :param why: the condition, or the error
    :param failed: it cannot pass as it is
    :param answer: "" until one is given
    :param fixed: columns that get other values
    :param going: the answer is final, and the task acts on it; until then it stands
    """

    attempt: Attempt
    operator: str
    ordinal: int
    values: dict[str, str]
    why: str
    failed: bool = False
    answer: str = ""
    fixed: dict[str, Value] = {}
    going: bool = False

    @property
    def name(self) -> str:
        """The attempt's: a task stands at one row at a time."""
        return str(self.attempt)

    def shown(self) -> str:
        """
        >>> values = {"id": "7", "followers": "-3"}
        >>> print(HeldRow(Attempt(3, 17, 41), "RegexParser", 1523, values, "followers < 0").shown())
        3.17.41: followers < 0
          row 1,523 of RegexParser in stage 3, partition 17, attempt 41
          id = 7
          followers = -3
          skip | fix | fail; resume lets it pass
        """
        return "\n".join(
            [
                f"{self.name}: {self.why}",
                f"  row {self.ordinal:,} of {self.operator} in {self.attempt.shown}",
                *(f"  {column} = {value}" for column, value in self.values.items()),
                f"  {' | '.join(ANSWERS)}" + ("" if self.failed else "; resume lets it pass"),
            ]
        )


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
