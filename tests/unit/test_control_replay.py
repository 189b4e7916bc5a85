"""What a retried task is told; by chance, that it gives the same rows and stands where it stood, in a known order."""

from __future__ import annotations

import random

import pytest

from spark_regions.control.replay import Effect, Log
from spark_regions.control.rows import Attempt, HeldRow
from spark_regions.control.state import Assign, Pause, Resume, State
from spark_regions.errors import ControlError
from tests.harness import chance

CASES = 10_000
START = State("query 7", ("Filter",)).declared("low", 0)
FIRST, SECOND, THIRD = (Attempt(3, 17, number) for number in (40, 41, 42))


class Task:
    """Rows are numbered; each comes out with the value of `low` that held for it."""

    def __init__(self, attempt: Attempt, log: Log, rows: list[int], determined: bool) -> None:
        self.attempt, self.log, self.rows = attempt, log, rows
        self.told = log.started(attempt, determined)
        self.state, self.out = self.told.start, list[tuple[int, object]]()
        self.left = list(self.told.effects)
        self.now = self.told.then

    def receive(self, state: State) -> None:
        self.now = state

    def arrive(self) -> None:
        """At the next row, before it passes: take what is due."""
        while self.left and self.left[0][0].rows == len(self.out):
            effect, self.state = self.left.pop(0)
            self.log.took_effect(self.attempt, effect.operator, effect.rows, effect.version)
        if not self.left and self.now.version > self.state.version:
            self.state = self.now
            self.log.took_effect(self.attempt, "Filter", len(self.out), self.state.version)

    def step(self) -> None:
        if len(self.out) < len(self.rows):
            self.arrive()
            # Where a replayed pause was resumed later, the later state is already there.
            if not self.state.paused:
                self.out.append((self.rows[len(self.out)], self.state.parameters["low"].value))


def test_a_retried_task_comes_to_the_same_rows_and_the_same_stand() -> None:
    for seed in chance.seeds("control_replay", CASES, 0):
        with chance.trying("control_replay", seed):
            draw = random.Random(seed)
            determined = draw.random() < 0.7
            state, rows = START, list(range(draw.randrange(1, 12)))
            log = Log(state)
            task = Task(Attempt(0, 0, 0), log, rows, determined)
            for number in range(1, draw.randrange(2, 40)):
                chosen = draw.random()
                if chosen < 0.15:
                    change = draw.choice((Pause("anna"), Resume("anna"), Resume("anna"), Assign("anna", "low", number)))
                    state = state.apply(change)
                    log.changed(state)
                    task.receive(state)
                elif chosen < 0.25:
                    before, seen = task, log.effects().get((0, 0), ())
                    if not determined:
                        rows = draw.sample(rows, len(rows))
                    task = Task(Attempt(0, 0, number), log, rows, determined)
                    assert task.told.exact == (determined or not seen)
                    assert bool(task.told.note) != task.told.exact
                    if not task.told.exact:
                        assert task.state == state
                        continue
                    while len(task.out) < len(before.out) and draw.random() < 0.9:
                        task.step()
                    # What had not taken effect may come earlier now, but not before what had.
                    done = before.state.version == state.version
                    same = len(task.out) if done else min(seen[-1].rows if seen else 0, len(task.out))
                    if determined:
                        assert task.out[:same] == before.out[:same], "a row with another value"
                    if determined and done and len(task.out) == len(before.out) < len(rows):
                        task.arrive()
                        assert not task.left and task.state.version == state.version
                else:
                    task.step()


def test_what_never_took_effect_is_only_the_state() -> None:
    """§6.2: nobody has seen its effect, so it may come at another row."""
    log = Log(START)
    log.started(FIRST, determined=True)
    paused = START.apply(Pause("anna"))
    log.changed(paused)
    told = log.started(SECOND, determined=True)
    assert (told.start, told.effects, told.then, told.exact) == (START, (), paused, True)
    told = log.started(THIRD, determined=False)
    assert (told.start, told.then, told.exact, told.note) == (paused, paused, True, "")


def test_a_pause_that_was_resumed_is_not_replayed() -> None:
    log, state = Log(START), START
    log.started(FIRST, determined=True)
    for change in (Pause("anna"), Resume("anna"), Assign("anna", "low", 5)):
        state = state.apply(change)
        log.changed(state)
        log.took_effect(FIRST, "Filter", 10, state.version)
    assert log.effects() == {(3, 17): (Effect("Filter", 10, 4),)}


def test_the_log_is_as_long_as_the_longest_attempt() -> None:
    """The second attempt is lost before it came as far as the first; another one's late message is not its business."""
    log, paused = Log(START), START.apply(Pause("anna"))
    log.started(FIRST, determined=True)
    log.changed(paused)
    log.took_effect(FIRST, "Filter", 10, paused.version)
    log.started(SECOND, determined=True)
    log.took_effect(FIRST, "Filter", 99, paused.version)
    assert [effect.rows for effect, _ in log.started(THIRD, determined=True).effects] == [10]


def test_answers_are_known_again() -> None:
    log = Log(START)
    log.started(FIRST, determined=True)
    row = HeldRow(FIRST, "Filter", 11, {"x": "1"}, "x < 2", answer="skip", going=True)
    log.answered(row)
    assert log.started(SECOND, determined=True).answers == (row,)
    log.answered(row)
    told = log.started(THIRD, determined=False)
    assert told.answers == () and "does not know the answers to 1 rows as attempt 41 did" in told.note


def test_what_is_refused() -> None:
    log, paused = Log(START), START.apply(Pause("anna"))
    log.started(FIRST, determined=True)
    log.changed(paused)
    with pytest.raises(ControlError, match=r"Found version 9 after row 10 of Filter, expected one up to 2"):
        log.took_effect(FIRST, "Filter", 10, 9)
    with pytest.raises(ControlError, match=r"after row -1 of Filter, expected .* at least 0 rows. Hint: count"):
        log.took_effect(FIRST, "Filter", -1, 2)
    log.took_effect(FIRST, "Filter", 10, 2)
    log.changed(paused.apply(Resume("anna")))
    with pytest.raises(ControlError, match="at least 10 rows"):
        log.took_effect(FIRST, "Filter", 9, 3)
    with pytest.raises(ControlError, match="Found version 2 after 3, expected a later one"):
        log.changed(paused)
