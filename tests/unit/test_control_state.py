"""What holds for a running job: each command and what is refused; by chance, what late and early executors come to."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from spark_regions.control.conditions import Count, Local
from spark_regions.control.rows import Attempt, HeldRow
from spark_regions.control.state import (
    DRIVER,
    Answer,
    Assign,
    Break,
    Breakpoint,
    Clear,
    Command,
    Leave,
    Parameter,
    Pause,
    Resume,
    State,
    TakeOver,
)
from spark_regions.errors import ControlError
from tests.harness import chance

CASES = 10_000
OPERATORS = ("Scan", "RegexParser", "KeywordSearch")
START = (
    State("query 7", OPERATORS)
    .declared("min_score", 0.8)
    .declared("word", "covid")
    .declared("most", 5)
    .declared("strict", True)
)
AT_BREAKPOINT = HeldRow(Attempt(1, 0, 4), "RegexParser", 7, {"id": "1", "followers": "-3"}, "followers < 0")
FAILED = HeldRow(Attempt(1, 1, 5), "RegexParser", 2, {"id": "2"}, "ZeroDivisionError", failed=True)
HOLDING = START.hold(AT_BREAKPOINT).hold(FAILED)


def applied(state: State, *commands: Command) -> State:
    for command in commands:
        state = state.apply(command)
    return state


def test_what_changes_nothing_is_the_identical_object() -> None:
    state = applied(START, Pause("anna"), Break("anna", "Scan", "id = 1"))
    for command in (
        Pause("anna"),
        Break("anna", "Scan", " id = 1 "),
        Assign("anna", "min_score", 0.8),
        TakeOver("anna"),
        Pause(DRIVER),
        Leave(DRIVER),
    ):
        assert state.apply(command) is state
    assert state.declared("min_score", 0.8) is state and state.let_go(Attempt(9, 9, 9)) is state
    running = state.apply(Resume("anna"))
    assert running.apply(Resume("anna")) is running and not running.paused


def test_versions_say_when_each_thing_changed() -> None:
    state = applied(START, Pause("anna"), Assign("anna", "min_score", 1), Break("anna", "Scan", "count(*) = 9"))
    assert (START.version, state.version, state.paused_version) == (4, 7, 5)
    assert state.parameters["min_score"] == Parameter(1.0, 6) and type(state.parameters["min_score"].value) is float
    assert state.parameters["word"].version == 0
    assert state.breakpoints == (Breakpoint(7, "Scan", Count(9), "ask"),)
    assert state.apply(Clear("anna", 7)).breakpoints == ()
    assert (START.edited, state.edited) == (False, True)


def test_what_makes_a_job_edited() -> None:
    paused = applied(START, Pause("anna"), Break("anna", "Scan", "id = 1"), Resume("anna"))
    assert not paused.edited
    assert not HOLDING.apply(Answer("anna", "1.0.4", "fail")).edited
    assert HOLDING.apply(Answer("anna", "1.0.4", "skip")).edited
    skipping = START.apply(Break("anna", "Scan", "id = 1", then="skip"))
    assert skipping.edited and skipping.apply(Clear("anna", 5)).edited, "rows may be gone"
    asking = skipping.apply(Break("anna", "Scan", "id = 1"))
    assert asking.breakpoints == (Breakpoint(6, "Scan", Local("id = 1"), "ask"),)


def test_rows_wait_for_answers() -> None:
    assert HOLDING.paused and HOLDING.paused_version == 5 and [row.name for row in HOLDING.held] == ["1.0.4", "1.1.5"]
    with pytest.raises(ControlError, match=r"Found 1\.1\.5 without an answer, expected one of skip, fix, fail"):
        HOLDING.apply(Resume("anna"))
    fixed = applied(HOLDING, Answer("anna", "1.1.5", "skip"), Answer("anna", "1.1.5", "fix", {"id": 3}))
    assert fixed.held[1].answer == "fix" and fixed.held[1].fixed == {"id": 3} and not fixed.held[1].going
    going = fixed.apply(Resume("anna"))
    assert [(row.answer, row.going) for row in going.held] == [("pass", True), ("fix", True)]
    with pytest.raises(ControlError, match=r"Found the row '1\.1\.5', expected one that waits.* there is none"):
        applied(going, Pause("anna"), Answer("anna", "1.1.5", "skip"))
    assert going.let_go(FAILED.attempt).held == going.held[:1]
    assert "resume" in AT_BREAKPOINT.shown() and "resume" not in FAILED.shown()


def test_a_row_that_is_told_twice_or_too_late() -> None:
    answered = HOLDING.apply(Answer("anna", "1.0.4", "skip"))
    assert answered.hold(AT_BREAKPOINT) is answered
    assert (finished := HOLDING.finish()).hold(AT_BREAKPOINT) is finished and not finished.paused
    other = answered.hold(msgspec.structs.replace(AT_BREAKPOINT, ordinal=9))
    assert [(row.ordinal, row.answer) for row in other.held] == [(2, ""), (9, "")]


def test_the_driver_ends_a_pause_that_nobody_answers() -> None:
    state = applied(HOLDING, Pause("anna"), Resume(DRIVER))
    assert [row.answer for row in state.held] == ["pass", "fail"] and not state.paused
    assert state.controller == "anna"


def test_two_controllers() -> None:
    state = START.apply(Pause("anna"))
    for command in (Resume("ben"), Leave("ben")):
        with pytest.raises(
            ControlError, match=r"Found query 7 in control of anna, expected ben or nobody\. Hint: take over"
        ):
            state.apply(command)
    taken = applied(state, TakeOver("ben"), Resume("ben"))
    assert taken.controller == "ben" and not taken.paused
    with pytest.raises(ControlError, match="in control of ben, expected anna"):
        taken.apply(Pause("anna"))
    assert applied(taken, Leave("ben"), Pause("anna")).controller == "anna"


@pytest.mark.parametrize(
    ("state", "command", "found"),
    [
        (START, Assign("anna", "min_scor", 1.0), "'min_scor', expected one of query 7. Hint: did you mean min_score?"),
        (State("query 8"), Assign("anna", "x", 1), "Hint: there is none"),
        (
            START,
            Assign("anna", "min_score", "0.9"),
            "Found min_score='0.9', expected a value like 0.8. Hint: its kind is",
        ),
        (START, Assign("anna", "min_score", True), "its kind is float"),
        (START, Assign("anna", "min_score", float("nan")), "a finite number"),
        (START, Assign("anna", "most", 1.5), "its kind is int"),
        (START, Assign("anna", "most", True), "its kind is int"),
        (START, Assign("anna", "most", 2**63), "of 64 bits"),
        (START, Assign("anna", "strict", 0), "its kind is bool"),
        (START, Assign("anna", "word", None), "its kind is str"),  # type: ignore[arg-type]
        (
            START,
            Break("anna", "RegexPasrer", "x < 0"),
            "'RegexPasrer', expected one of query 7. Hint: did you mean Regex",
        ),
        (START, Break("anna", "Join", "x < 0"), "Hint: one of Scan, RegexParser, KeywordSearch"),
        (START, Break("anna", "Scan", ""), "Found no condition"),
        (START, Break("anna", "Scan", "x < 0", then="fix"), "Found then='fix', expected ask or skip or fail"),
        (START, Break("anna", "Scan", "count(*) = 5", then="skip"), "Found then='skip', expected ask"),
        (START, Clear("anna", 3), "Found the breakpoint 3, expected one of query 7. Hint: there is none"),
        (START, Answer("anna", "1.0.4", "skip"), "Hint: there is none"),
        (
            HOLDING,
            Answer("anna", "1.0.5", "skip"),
            "Found the row '1.0.5', expected one that waits. Hint: did you mean",
        ),
        (HOLDING, Answer("anna", "1.0.4", "pass"), "Found pass with 0 values, expected skip, fail, or fix with values"),
        (HOLDING, Answer("anna", "1.0.4", "fix"), "Found fix with 0 values"),
        (HOLDING, Answer("anna", "1.0.4", "skip", {"id": 1}), "Found skip with 1 values"),
        (
            HOLDING,
            Answer("anna", "1.0.4", "fix", {"folowers": 1}),
            "'folowers', expected one of RegexParser. Hint: did you",
        ),
        (HOLDING, Answer("anna", "1.0.4", "fix", {"id": float("inf")}), "a finite number"),
        (START, Pause(""), "Found a command of nobody"),
        (HOLDING.finish(), Pause("anna"), "Found pause of query 7, which has finished, expected a running job"),
        (START.finish(), TakeOver("anna"), "which has finished"),
        (START.finish(), Break("anna", "Scan", "x < 0"), "which has finished"),
    ],
)
def test_what_is_refused(state: State, command: Command, found: str) -> None:
    with pytest.raises(ControlError) as raised:
        state.apply(command)
    assert found in str(raised.value) and "Hint: " in str(raised.value)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: START.declared("min_score", 0.9), "Found the parameter min_score as 0.8 and as 0.9"),
        (lambda: START.declared("min_score", 1), "Found the parameter min_score as 0.8 and as 1"),
        (lambda: START.declared("x", float("inf")), "a finite number"),
        (lambda: START.declared("x", [1]), "a truth value, a text"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_declared(make: Callable[[], Any], found: str) -> None:
    with pytest.raises(ControlError, match=found):
        make()


def test_operators_that_adaptive_execution_plans_anew() -> None:
    state = START.apply(Break("anna", "Scan", "x < 0")).planned(("Join",))
    assert state.breakpoints[0].operator == "Scan"
    assert state.apply(Break("anna", "Join", "x < 0")).breakpoints[1].operator == "Join"


def some(draw: random.Random) -> Command:
    by = draw.choice(("anna", "anna", "ben", DRIVER))
    kind = draw.randrange(9)
    if kind == 3:
        return Assign(by, draw.choice(("min_score", "word", "min_scor")), draw.choice((0.5, 0.8, "x", 1)))
    if kind == 4:
        return Break(by, draw.choice(("Scan", "Sacn")), draw.choice(("x < 0", "count(*) = 5", "count(*) = x")))
    if kind == 5:
        return Clear(by, draw.randrange(12))
    if kind == 6:
        return Answer(by, draw.choice(("1.0.4", "1.1.5")), draw.choice(("skip", "fail", "fix")))
    return draw.choice((Pause, Pause, Resume, TakeOver, Leave))(by)


def test_any_commands_in_any_order_of_arrival() -> None:
    """Versions rise with what tasks must know; whoever keeps the newest of what arrives has the last state."""
    for seed in chance.seeds("control_state", CASES, 0):
        with chance.trying("control_state", seed):
            draw = random.Random(seed)
            state, sent = START, [START]
            for _ in range(draw.randrange(12)):
                before = state
                try:
                    holds = draw.random() < 0.1
                    state = state.hold(draw.choice((AT_BREAKPOINT, FAILED))) if holds else state.apply(some(draw))
                except ControlError:
                    continue
                told = msgspec.structs.replace(before, controller=state.controller)
                assert state == told or state.version == before.version + 1
                assert (state is before) == (state == before)
                assert state.edited or not before.edited
                assert state.paused or all(row.going for row in state.held)
                sent.append(state)
            arrived = draw.sample(sent, len(sent))
            newest = START
            for each in arrived:
                newest = each if each.version > newest.version else newest
            assert msgspec.structs.replace(newest, controller=state.controller) == state
            assert msgspec.json.decode(msgspec.json.encode(state), type=State) == state
