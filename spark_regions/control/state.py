"""What holds for a query or an application: paused or not, breakpoints, parameters, rows that wait, and who commands.

The driver keeps it, applies commands to it, and sends it whole, also to an executor that registers late. Who gets one
older than what it has drops it, so that the order of arrival does not matter. A task stands while its query or its
application is paused, and at a row that it holds until that is `going`.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec.structs import replace

from spark_regions.control.conditions import Condition, Local, condition
from spark_regions.control.rows import ANSWERS, ASK, FAIL, FIX, PASS, SKIP, Attempt, HeldRow, Value, likely
from spark_regions.errors import ControlError

DRIVER = "driver"
"""Commands of the driver itself, such as a resume after `control.pauseTimeout`; whoever is in control stays."""


class Command(msgspec.Struct, frozen=True, tag=str.lower):
    """:param by: who gives it, such as `anna@host`"""

    by: str


class Pause(Command, frozen=True):
    """Of what is paused: nothing changes."""


class Resume(Command, frozen=True):
    """Of what runs: nothing changes. Rows at breakpoints without an answer pass."""


class Assign(Command, frozen=True, tag="set"):
    """:param value: of the kind of the parameter's first one"""

    name: str
    value: Value


class Break(Command, frozen=True):
    """:param then: of a local one: `ask`, or `skip` or `fail` at once"""

    operator: str
    condition: str
    then: str = ASK


class Clear(Command, frozen=True):
    """:param number: of the breakpoint"""

    number: int


class Answer(Command, frozen=True):
    """What becomes of a row that waits, once the job is resumed; the latest answer counts.

    :param row: its name
    :param action: `skip`, `fix` or `fail`
    :param values: with `fix`: columns that get other values
    """

    row: str
    action: str
    values: dict[str, Value] = {}


class TakeOver(Command, frozen=True):
    """Who was in control is refused from now on."""


class Leave(Command, frozen=True):
    """Anybody may command next."""


class Parameter(msgspec.Struct, frozen=True):
    """:param version: of the state that brought this value; 0 for the first"""

    value: Value
    version: int = 0


class Breakpoint(msgspec.Struct, frozen=True):
    """:param number: its name; the version of the state that brought it"""

    number: int
    operator: str
    condition: Condition
    then: str


class State(msgspec.Struct, frozen=True):
    """
    >>> state = State("query 7", operators=("Scan", "KeywordSearch")).declared("min_score", 0.8)
    >>> state = state.apply(Pause("anna")).apply(Assign("anna", "min_score", 0.9))
    >>> state.paused, state.paused_version, state.parameters, state.controller
    (True, 2, {'min_score': Parameter(value=0.9, version=3)}, 'anna')
    >>> state.apply(Pause("anna")) is state
    True

    :param name: of the query or application, for messages
    :param operators: names by which the user knows them
    :param version: rises with each change that tasks must know
    :param edited: its rows may be others than those of the plan as written: not to be stored or shared, ever
    """

    name: str
    operators: tuple[str, ...] = ()
    parameters: dict[str, Parameter] = {}
    breakpoints: tuple[Breakpoint, ...] = ()
    held: tuple[HeldRow, ...] = ()
    paused: bool = False
    paused_version: int = 0
    version: int = 0
    controller: str = ""
    edited: bool = False
    finished: bool = False

    def apply(self, command: Command) -> State:
        """The first who commands is in control; the identical object if nothing changes.

        :raises ControlError: the job has finished, another is in control, or what is asked for cannot be done
        """
        if self.finished:
            raise ControlError(
                f"Found {type(command).__name__.lower()} of {self.name}, which has finished, expected a running job. "
                "Hint: the Regions tab shows what became of it."
            )
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
                return {} if self.paused else self._pausing()
            case Resume():
                return self._resuming(command)
            case Assign():
                return self._assigning(command)
            case Break():
                return self._breaking(command)
            case Clear():
                return {"breakpoints": self._without(command.number)}
            case Answer():
                return self._answering(command)
        return {}

    def planned(self, operators: tuple[str, ...]) -> State:
        """Adaptive execution has planned again; breakpoints stay, whether their operators do or not."""
        return replace(self, operators=operators)

    def declared(self, name: str, value: Value) -> State:
        """`param(name, value)`: the first value counts; the identical object if it is there already.

        :raises ControlError: there with another first value, or a value that cannot be sent
        """
        known = self.parameters.get(name)
        if known is None:
            first = {name: Parameter(_checked(name, value))}
            return replace(self, parameters=self.parameters | first, version=self.version + 1)
        if type(known.value) is not type(value) or (known.version == 0 and known.value != value):
            raise ControlError(
                f"Found the parameter {name} as {known.value!r} and as {value!r}, expected one first value. Hint: give "
                "the second another name."
            )
        return self

    def hold(self, row: HeldRow) -> State:
        """A task stands at a row: all pause (§5.2). The identical object if that is known, or the job has finished."""
        place = (row.attempt, row.operator, row.ordinal)
        if self.finished or any((each.attempt, each.operator, each.ordinal) == place for each in self.held):
            return self
        held = (*(each for each in self.held if each.attempt != row.attempt), row)
        pausing = {} if self.paused else self._pausing()
        return replace(self, held=held, version=self.version + 1, **pausing)

    def let_go(self, attempt: Attempt) -> State:
        """A task has gone on from its row, or is lost; the identical object if it held none."""
        held = tuple(row for row in self.held if row.attempt != attempt)
        return self if held == self.held else replace(self, held=held)

    def finish(self) -> State:
        return replace(self, finished=True, paused=False, held=(), version=self.version + 1)

    def _pausing(self) -> dict[str, Any]:
        return {"paused": True, "paused_version": self.version + 1}

    def _resuming(self, command: Resume) -> dict[str, Any]:
        if not self.paused:
            return {}
        waiting = [row.name for row in self.held if row.failed and not row.answer]
        if waiting and command.by != DRIVER:
            raise ControlError(
                f"Found {', '.join(waiting)} without an answer, expected one of {', '.join(ANSWERS)}: rows that failed "
                f"cannot pass. Hint: answer({waiting[0]!r}, 'fail') ends the task."
            )
        default = {True: FAIL, False: PASS}
        held = tuple(replace(row, answer=row.answer or default[row.failed], going=True) for row in self.held)
        return {"paused": False, "paused_version": self.version + 1, "held": held}

    def _assigning(self, command: Assign) -> dict[str, Any]:
        name, known = command.name, self.parameters.get(command.name)
        if known is None:
            raise ControlError(
                f"Found the parameter {name!r}, expected one of {self.name}. Hint: {likely(name, self.parameters)}"
            )
        kind, value = type(known.value), command.value
        if kind is float and type(value) is int:
            value = float(value) if abs(value) <= 2**53 else value
        if type(value) is not kind:
            raise ControlError(
                f"Found {name}={command.value!r}, expected a value like {known.value!r}. Hint: its kind is "
                f"{kind.__name__}."
            )
        if _checked(name, value) == known.value:
            return {}
        return {"parameters": self.parameters | {name: Parameter(value, self.version + 1)}, "edited": True}

    def _breaking(self, command: Break) -> dict[str, Any]:
        operator, then = command.operator, command.then
        if operator not in self.operators:
            raise ControlError(
                f"Found the operator {operator!r}, expected one of {self.name}. Hint: "
                f"{likely(operator, self.operators)}"
            )
        found = condition(command.condition)
        allowed = (ASK, SKIP, FAIL) if isinstance(found, Local) else (ASK,)
        if then not in allowed:
            raise ControlError(f"Found then={then!r}, expected {' or '.join(allowed)}. Hint: leave it out to be asked.")
        same = [each for each in self.breakpoints if (each.operator, each.condition) == (operator, found)]
        if any(each.then == then for each in same):
            return {}
        others = tuple(each for each in self.breakpoints if each not in same)
        point = Breakpoint(self.version + 1, operator, found, then)
        return {"breakpoints": (*others, point), "edited": self.edited or then == SKIP}

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
        if command.action not in ANSWERS or bool(command.values) != (command.action == FIX):
            raise ControlError(
                f"Found {command.action} with {len(command.values)} values, expected skip, fail, or fix with values. "
                "Hint: fix(row, followers=0)"
            )
        for column, value in command.values.items():
            if column not in row.values:
                raise ControlError(
                    f"Found the column {column!r}, expected one of {row.operator}. Hint: {likely(column, row.values)}"
                )
            _checked(column, value)
        answered = replace(row, answer=command.action, fixed=command.values)
        held = tuple(answered if each is row else each for each in self.held)
        return {"held": held, "edited": self.edited or command.action != FAIL}


def _checked(name: str, value: Value) -> Value:
    finite = not isinstance(value, float) or math.isfinite(value)
    if not isinstance(value, bool | int | float | str) or not finite or (type(value) is int and abs(value) >= 2**63):
        raise ControlError(
            f"Found {name}={value!r}, expected a truth value, a text, or a finite number, of 64 bits if whole. Hint: "
            "send others as text, and cast it in the plan."
        )
    return value
