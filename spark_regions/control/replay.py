"""What a retried task is told (Amber §6.2): the states that held for its first attempt, from the same rows on.

States have versions, so the log of control messages is a list of versions with the rows at which they took effect. Of a
task whose input comes in a determined order (assumption A3), the same rows come before, and its next attempt gets the
same states there; then, and no earlier, what holds now. Of others, no row of the next attempt is "the same": it starts
with what holds now, and the user is told.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from spark_regions.control.rows import Attempt, HeldRow
from spark_regions.control.state import State
from spark_regions.errors import ControlError

Task = tuple[int, int]


class Effect(msgspec.Struct, frozen=True):
    """From the row after `rows` rows of `operator` on, this state held: what the paper logs as (Pause; …; (6, 34))."""

    operator: str
    rows: int
    version: int


class Replay(msgspec.Struct, frozen=True):
    """For an attempt: hold `start`, then each state from its effect on, then `then`, which may be `start` itself.

    :param answers: to rows that it meets again, by operator and ordinal
    :param exact: it comes to where the last attempt was; else `note` says to the user what it does not come to
    """

    start: State
    effects: tuple[tuple[Effect, State], ...]
    answers: tuple[HeldRow, ...]
    then: State
    exact: bool = True
    note: str = ""


class Log:
    """Of a query or application.

    Paused at row 1,523, then the attempt is lost:

    >>> from spark_regions.control.state import Pause
    >>> state = State("query 7", operators=("Filter",))
    >>> log, first, second = Log(state), Attempt(3, 17, 40), Attempt(3, 17, 41)
    >>> log.started(first, determined=True).effects
    ()
    >>> log.changed(state.apply(Pause("anna")))
    >>> log.took_effect(first, "Filter", 1522, version=1)
    >>> replay = log.started(second, determined=True)
    >>> replay.start.paused, [(effect.rows, state.paused) for effect, state in replay.effects]
    (False, [(1522, True)])
    >>> print(log.started(Attempt(3, 17, 42), determined=False).note)
    stage 3, partition 17, attempt 42 starts paused, with version 1: the order of its rows is not determined, so \
it does not stand after row 1,522 of Filter as attempt 41 did
    """

    def __init__(self, state: State) -> None:
        self._states = {state.version: state}
        self._now = state
        self._attempts: dict[Task, Attempt] = {}
        self._starts: dict[Task, int] = {}
        self._effects: dict[Task, list[Effect]] = {}
        self._answers: dict[Task, dict[tuple[str, int], HeldRow]] = {}

    def changed(self, state: State) -> None:
        """:raises ControlError: older than what holds"""
        if state.version < self._now.version:
            raise ControlError(
                f"Found version {state.version} after {self._now.version}, expected a later one. Hint: apply commands "
                "one by one."
            )
        self._states[state.version] = self._now = state

    def started(self, attempt: Attempt, determined: bool) -> Replay:
        """To be told before its first row. If this attempt is lost, too, ask again: the log is as long as the longest.

        :param determined: its input comes in the same order as before
        """
        task, now = attempt.task, self._now
        before = self._attempts.get(task)
        effects, answers = self._effects.get(task, []), self._answers.get(task, {})
        self._attempts[task] = attempt
        if before is None or not (determined or effects or answers):
            self._starts[task] = now.version
        if determined or not (effects or answers):
            states = tuple((each, self._states[each.version]) for each in effects)
            return Replay(self._states[self._starts[task]], states, tuple(answers.values()), now)
        self._starts[task] = now.version
        self._effects[task], self._answers[task] = [], {}
        seen = [f"stand after row {effects[-1].rows:,} of {effects[-1].operator}"] if effects else []
        seen += [f"know the answers to {len(answers)} rows"] if answers else []
        last = before.number if before else 0
        note = (
            f"{attempt.shown} starts {'paused' if now.paused else 'running'}, with version {now.version}: the order of "
            f"its rows is not determined, so it does not {' or '.join(seen)} as attempt {last} did"
        )
        return Replay(now, (), (), now, False, note)

    def took_effect(self, attempt: Attempt, operator: str, rows: int, version: int) -> None:
        """A message of an attempt that another has followed, or one that is known (replayed), changes nothing.

        Of several states at one row only the last held for any row: a pause that was resumed is not replayed.

        :raises ControlError: a version that never was, or rows that are fewer than before
        """
        if self._attempts.get(attempt.task) != attempt:
            return
        effects = self._effects.setdefault(attempt.task, [])
        if version <= max(self._starts[attempt.task], effects[-1].version if effects else 0):
            return
        least = max((each.rows for each in effects if each.operator == operator), default=0)
        if version not in self._states or rows < least:
            raise ControlError(
                f"Found version {version} after row {rows} of {operator}, expected one up to {self._now.version} after "
                f"at least {least} rows. Hint: count an attempt's rows from its start."
            )
        if effects and (effects[-1].operator, effects[-1].rows) == (operator, rows):
            effects.pop()
        effects.append(Effect(operator, rows, version))

    def answered(self, row: HeldRow) -> None:
        """A row was answered, and its task has gone on."""
        if self._attempts.get(row.attempt.task) == row.attempt:
            self._answers.setdefault(row.attempt.task, {})[row.operator, row.ordinal] = row

    def effects(self) -> Mapping[Task, tuple[Effect, ...]]:
        """Which rows of each task were computed with which version of the parameters."""
        return {task: tuple(effects) for task, effects in self._effects.items() if effects}
