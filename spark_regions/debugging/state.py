"""What holds for an application under control: paused or not, breakpoints, rows that wait, and who commands.

The driver keeps it, has commands applied to it, and sends it whole, also to an executor that registers late. Who gets
one older than what it has drops it, so that the order of arrival does not matter. A task stands while its application
is paused, and at a row that it holds until that is `going`.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from spark_regions.debugging.conditions import condition
from spark_regions.debugging.rows import ASK, FAIL, FIX, PASS, SKIP, Attempt, HeldRow, likely
from spark_regions.errors import ControlError

DRIVER = "driver"
"""Commands of the driver itself, such as a resume after `control.pauseTimeout`; whoever is in control stays."""
MOST_ANSWERED = 100
"""Rows that are remembered with their answers."""


class Command(msgspec.Struct, frozen=True, tag=str.lower):
    """:param by: who gives it, such as `anna@host`"""

    by: str


class Pause(Command, frozen=True):
    """Of what is paused: nothing changes."""


class Resume(Command, frozen=True):
    """Of what runs: nothing changes. Rows at breakpoints without an answer pass.

    Bad rows need one; without it they fail once the driver itself resumes.
    """


class Break(Command, frozen=True):
    """:param action: of a local one: `ask`, or `skip` or `fail` at once"""

    operator: str
    condition: str
    action: str = ASK


class Clear(Command, frozen=True):
    """:param number: of the breakpoint"""

    number: int


class Answer(Command, frozen=True):
    """What becomes of a row that waits, once the application is resumed; the latest answer counts.

    :param row: its name
    :param action: one of the row's `answers`
    :param values: of `fix`; see `HeldRow.fitting`. Those that it was given before stay
    """

    row: str
    action: str
    values: dict[str, str | None] = msgspec.field(default_factory=dict)


class Set(Command, frozen=True):
    """Rows are computed with another value of a parameter from now on.

    :param value: as text; the driver knows that it is one of the parameter's type
    """

    name: str
    value: str


class Replace(Command, frozen=True):
    """Rows are computed with another Python function from now on; the driver has it.

    :param name: of the function that it takes the place of
    """

    name: str


class TakeOver(Command, frozen=True):
    """Who was in control is refused from now on."""


class Leave(Command, frozen=True):
    """Anybody may command next."""


class Hold(Command, frozen=True):
    """A task stands at a row: all pause (§5.2)."""

    held: HeldRow


class LetGo(Command, frozen=True):
    """A task has gone on from its row, or is lost."""

    attempt: Attempt


AnyCommand = Pause | Resume | Break | Clear | Answer | Set | Replace | TakeOver | Leave | Hold | LetGo


class Breakpoint(msgspec.Struct, frozen=True):
    """
    :param number: its name; the version of the state that brought it
    :param target: of all rows: how many, or what the sum of `sql` comes to; 0 where `sql` is a condition on each
    """

    number: int
    operator: str
    action: str
    sql: str = ""
    target: int = 0


class State(msgspec.Struct, frozen=True):
    """
    >>> state = State("report", operators=("Scan", "KeywordSearch"))
    >>> state = state.apply(Pause("anna")).apply(Break("anna", "Scan", "id < 0"))
    >>> state.paused, state.version, state.breakpoints[0].number, state.controller
    (True, 2, 2, 'anna')
    >>> state.apply(Pause("anna")) is state
    True

    :param name: of the application, for messages
    :param operators: of the queries that run
    :param version: rises with each change that tasks must know
    :param edited: rows may not be those of the plan as written: not to be stored or shared, ever
    :param params: values of parameters that were set
    :param declared: parameters of queries so far
    :param functions: Python functions of queries so far that can be replaced
    :param replaced: those that were, in this order
    :param answered: rows that went on, with their answers. That of a bad row holds for later attempts of its task
    """

    name: str
    operators: tuple[str, ...] = ()
    breakpoints: tuple[Breakpoint, ...] = ()
    held: tuple[HeldRow, ...] = ()
    paused: bool = False
    version: int = 0
    controller: str = ""
    edited: bool = False
    params: dict[str, str] = msgspec.field(default_factory=dict)
    declared: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    answered: tuple[HeldRow, ...] = ()

    def apply(self, command: Command) -> State:
        """The first who commands is in control; the identical object if nothing changes.

        :raises ControlError: another is in control, or what is asked for cannot be done
        """
        if not command.by:
            raise ControlError("Found a command of nobody, expected a name. Hint: user@host")
        if not isinstance(command, TakeOver) and self.controller not in ("", command.by) and command.by != DRIVER:
            raise ControlError(
                f"Found {self.name} in control of {self.controller}, expected {command.by} or nobody. Hint: take over."
            )
        changes = self._changes(command)
        if changes:
            changes["version"] = self.version + 1
        controller = self.controller if command.by == DRIVER else "" if isinstance(command, Leave) else command.by
        same = not changes and controller == self.controller
        return self if same else replace(self, controller=controller, **changes)

    def _changes(self, command: Command) -> dict[str, Any]:
        match command:
            case Pause():
                return {} if self.paused else {"paused": True}
            case Resume():
                return self._resuming(command.by) if self.paused else {}
            case Break():
                return self._breaking(command)
            case Clear():
                return {"breakpoints": self._without(command.number)}
            case Answer():
                return self._answering(command)
            case Set():
                return self._setting(command)
            case Replace():
                return self._replacing(command.name)
            case Hold():
                return self._holding(command.held)
            case LetGo():
                held = tuple(row for row in self.held if row.attempt != command.attempt)
                return {"held": held} if held != self.held else {}
        return {}

    def _resuming(self, by: str) -> dict[str, Any]:
        open_ = [row for row in self.held if row.error and not row.answer]
        if open_ and by != DRIVER:
            raise ControlError(
                f"Found the bad row {open_[0].name} without an answer, expected {' or '.join(open_[0].answers)}. "
                "Hint: fail is what plain Spark does"
            )
        held = tuple(replace(row, answer=row.answer or PASS, going=True) for row in self.held)
        fresh = tuple(row for row, before in zip(held, self.held, strict=True) if not before.going)
        return {"paused": False, "held": held, "answered": (*self.answered, *fresh)[-MOST_ANSWERED:]}

    def _holding(self, row: HeldRow) -> dict[str, Any]:
        place = (row.attempt, row.operator, row.ordinal)
        if any((each.attempt, each.operator, each.ordinal) == place for each in self.held):
            return {}
        others = [each for each in self.held if each.attempt != row.attempt]
        for known in reversed(self.answered):
            if row.again(known):
                return {"held": (*others, replace(row, answer=known.answer, fixed=known.fixed, going=True))}
        return {"held": (*others, row), "paused": True}

    def _breaking(self, command: Break) -> dict[str, Any]:
        operator, action = command.operator, command.action
        if not self.operators:
            raise ControlError(
                f"Found no running query in {self.name}, expected one with {operator}. Hint: a finished one has no "
                "rows to come; pause() first, and start the query then: it waits for breakpoints."
            )
        if operator not in self.operators:
            raise ControlError(
                f"Found the operator {operator!r}, expected one of those that run in {self.name}. Hint: "
                f"{likely(operator, self.operators)}"
            )
        found = condition(command.condition)
        allowed = (ASK,) if found.target else (ASK, SKIP, FAIL)
        if action not in allowed:
            raise ControlError(
                f"Found then={action!r}, expected {' or '.join(allowed)}. Hint: leave it out to be asked."
            )
        point = Breakpoint(self.version + 1, operator, action, *found)
        same = [each for each in self.breakpoints if (each.operator, each.sql, each.target) == (operator, *found)]
        if any(each.action == action for each in same):
            return {}
        others = tuple(each for each in self.breakpoints if each not in same)
        return {"breakpoints": (*others, point), "edited": self.edited or action == SKIP}

    def _setting(self, command: Set) -> dict[str, Any]:
        if command.name not in self.declared:
            hint = likely(command.name, self.declared)
            raise ControlError(f"Found the parameter {command.name!r}, expected one of {self.name}. Hint: {hint}")
        if self.params.get(command.name) == command.value:
            return {}
        return {"params": self.params | {command.name: command.value}, "edited": True}

    def _replacing(self, name: str) -> dict[str, Any]:
        if name not in self.functions:
            hint = likely(name, self.functions) if self.functions else "spark.regions.control.replaceFunctions=true"
            raise ControlError(
                f"Found the function {name!r}, expected one of {self.name} that takes rows or columns and is called "
                f"without names of arguments. Hint: {hint}"
            )
        return {"replaced": (*self.replaced, name), "edited": True}

    def _without(self, number: int) -> tuple[Breakpoint, ...]:
        rest = tuple(each for each in self.breakpoints if each.number != number)
        if rest == self.breakpoints:
            known = likely(str(number), [str(each.number) for each in rest])
            raise ControlError(f"Found the breakpoint {number}, expected one of {self.name}. Hint: {known}")
        return rest

    def _answering(self, command: Answer) -> dict[str, Any]:
        waiting = {each.name: each for each in self.held if not each.going}
        row = waiting.get(command.row)
        if row is None:
            hint = likely(command.row, waiting)
            raise ControlError(f"Found the row {command.row!r}, expected one that waits. Hint: {hint}")
        if command.action not in row.answers:
            hint = "what fails there has no other value" if row.error else "resume lets the row pass"
            raise ControlError(
                f"Found the answer {command.action!r}, expected {' or '.join(row.answers)}. Hint: {hint}."
            )
        fixed = row.fixed | row.fitting(command.values) if command.action == FIX else {}
        answered = replace(row, answer=command.action, fixed=fixed)
        held = tuple(answered if each is row else each for each in self.held)
        return {"held": held, "edited": self.edited or command.action != FAIL}
