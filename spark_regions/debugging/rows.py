"""Attempts of tasks, and rows at which they stand."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import msgspec

from spark_regions.errors import ControlError

ASK, SKIP, NULL, FIX, FAIL, PASS = "ask", "skip", "null", "fix", "fail", "pass"
NOT_NULL = " NOT NULL"


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
    """A row at which a task stands, before the row is passed on: it meets a local breakpoint (§5.2), or it is bad.

    :param ordinal: which of the operator's rows of this attempt, from 1; of a bad one, which of the attempt's bad ones
    :param values: as Spark shows them, redacted
    :param why: the condition; of a bad row, what fails on it
    :param answer: "" until one is given
    :param going: the answer is final, and the task acts on it; until then it stands
    :param error: of a bad row; else ""
    :param types: SQL types of what can be given another value, `INT` or `INT NOT NULL`: what fails, or a line's columns
    :param nullable: what fails can be null instead
    :param fixed: new values with the answer `fix`, as text that the driver knows to be of their types
    """

    attempt: Attempt
    operator: str
    ordinal: int
    values: dict[str, str]
    why: str
    answer: str = ""
    going: bool = False
    error: str = ""
    types: dict[str, str] = msgspec.field(default_factory=dict)
    nullable: bool = False
    fixed: dict[str, str | None] = msgspec.field(default_factory=dict)

    @property
    def answers(self) -> tuple[str, ...]:
        """What may become of it."""
        return (SKIP, *([NULL] if self.nullable else []), *([FIX] if self.types else []), FAIL)

    def again(self, other: HeldRow) -> bool:
        """Whether it is another attempt's same bad row."""
        if not self.error or self.attempt.number == other.attempt.number:
            return False
        return _place(self) == _place(other)

    def fitting(self, values: Mapping[str, str | None]) -> dict[str, str | None]:
        """New values by name, of which a single one needs none.

        :raises ControlError: nothing of that name can be given another value, or no null
        """
        found = {
            (next(iter(self.types)) if len(self.types) == 1 and not name else name): values[name] for name in values
        }
        unknown = [name for name in found if name not in self.types]
        if unknown or not found:
            name = unknown[0] if unknown else ""
            expected = " or ".join(self.types)
            raise ControlError(
                f"Found {name!r} to fix, expected a value of {expected}. Hint: {likely(name, self.types)}"
            )
        for name, value in found.items():
            if value is None and self.types[name].endswith(NOT_NULL):
                raise ControlError(
                    f"Found NULL for {name}, expected {self.types[name]}. Hint: its plan has no null there"
                )
        return found

    @property
    def name(self) -> str:
        """The attempt's: a task stands at one row at a time."""
        return str(self.attempt)


def _place(row: HeldRow) -> tuple[object, ...]:
    return row.attempt.stage, row.attempt.partition, row.operator, row.ordinal, row.error, row.values


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
