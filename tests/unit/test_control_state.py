"""What holds for a running job: each command and what is refused; by chance, what late and early executors come to."""

from __future__ import annotations

import random

import msgspec
import pytest

from spark_regions.debugging.rows import Attempt, HeldRow
from spark_regions.debugging.state import (
    DRIVER,
    Answer,
    Break,
    Breakpoint,
    Clear,
    Command,
    Hold,
    Leave,
    LetGo,
    Pause,
    Replace,
    Resume,
    Set,
    State,
    TakeOver,
)
from spark_regions.errors import ControlError
from tests.harness import chance

CASES = 10_000
OPERATORS = ("Scan", "RegexParser", "KeywordSearch")
START = State("report", OPERATORS)
AT_BREAKPOINT = HeldRow(Attempt(1, 0, 4), "RegexParser", 7, {"id": "1", "followers": "-3"}, "followers < 0")
OTHER = HeldRow(Attempt(1, 1, 5), "RegexParser", 2, {"id": "2", "followers": "-1"}, "followers < 0")
BAD = msgspec.structs.replace(
    AT_BREAKPOINT, why="CAST(id AS INT)", error="no number", types={"CAST(id AS INT)": "INT"}, nullable=True
)
HOLDING = START.apply(Hold(DRIVER, AT_BREAKPOINT)).apply(Hold(DRIVER, OTHER))


def applied(state: State, *commands: Command) -> State:
    for command in commands:
        state = state.apply(command)
    return state


def test_what_changes_nothing_is_the_identical_object() -> None:
    state = applied(START, Pause("anna"), Break("anna", "Scan", "id = 1"))
    for command in (
        Pause("anna"),
        Break("anna", "Scan", " id = 1 "),
        TakeOver("anna"),
        Pause(DRIVER),
        Leave(DRIVER),
        LetGo(DRIVER, Attempt(9, 9, 9)),
    ):
        assert state.apply(command) is state
    running = state.apply(Resume("anna"))
    assert running.apply(Resume("anna")) is running and not running.paused


def test_versions_rise_with_each_change() -> None:
    state = applied(START, Pause("anna"), Break("anna", "Scan", "count(*) = 9"))
    assert (START.version, state.version) == (0, 2)
    assert state.breakpoints == (Breakpoint(2, "Scan", "ask", target=9),)
    assert state.apply(Clear("anna", 2)).breakpoints == ()


def test_what_makes_a_job_edited() -> None:
    paused = applied(START, Pause("anna"), Break("anna", "Scan", "id = 1"), Resume("anna"))
    assert not paused.edited
    assert not HOLDING.apply(Answer("anna", "1.0.4", "fail")).edited
    assert HOLDING.apply(Answer("anna", "1.0.4", "skip")).edited
    skipping = START.apply(Break("anna", "Scan", "id = 1", action="skip"))
    assert skipping.edited and skipping.apply(Clear("anna", 1)).edited, "rows may be gone"
    asking = skipping.apply(Break("anna", "Scan", "id = 1"))
    assert asking.breakpoints == (Breakpoint(2, "Scan", "ask", "id = 1"),)


def test_rows_wait_for_answers() -> None:
    assert HOLDING.paused and [row.name for row in HOLDING.held] == ["1.0.4", "1.1.5"]
    answered = applied(HOLDING, Answer("anna", "1.1.5", "skip"), Answer("anna", "1.1.5", "fail"))
    assert answered.held[1].answer == "fail" and not answered.held[1].going
    going = answered.apply(Resume("anna"))
    assert [(row.answer, row.going) for row in going.held] == [("pass", True), ("fail", True)]
    with pytest.raises(ControlError, match=r"Found the row '1\.1\.5', expected one that waits.* there is none"):
        applied(going, Pause("anna"), Answer("anna", "1.1.5", "skip"))
    assert going.apply(LetGo(DRIVER, OTHER.attempt)).held == going.held[:1]


def test_bad_rows_need_answers() -> None:
    state = applied(START, Hold(DRIVER, BAD), Hold(DRIVER, OTHER))
    assert [row.answers for row in state.held] == [("skip", "null", "fix", "fail"), ("skip", "fail")]
    with pytest.raises(ControlError, match=r"bad row 1\.0\.4 without an answer, expected skip or null or fix or fail"):
        state.apply(Resume("anna"))
    assert [row.answer for row in state.apply(Resume(DRIVER)).held] == ["pass", "pass"], "a pause ends by itself"
    fixed = applied(state, Answer("anna", "1.0.4", "null"), Answer("anna", "1.0.4", "fix", {"": "3"}))
    assert fixed.edited and fixed.held[0].fixed == {"CAST(id AS INT)": "3"}
    going = fixed.apply(Resume("anna"))
    assert [(row.why, row.answer) for row in going.answered] == [("CAST(id AS INT)", "fix"), ("followers < 0", "pass")]


def test_an_answer_holds_for_other_attempts() -> None:
    state = applied(START, Hold(DRIVER, BAD), Answer("anna", "1.0.4", "fix", {"": "3"}), Resume("anna"))
    later = msgspec.structs.replace(BAD, attempt=Attempt(1, 0, 9))
    again = state.apply(Hold(DRIVER, later))
    assert not again.paused and again.version == state.version + 1
    assert (again.held[-1].answer, again.held[-1].fixed, again.held[-1].going) == (
        "fix",
        {"CAST(id AS INT)": "3"},
        True,
    )
    for other in (
        msgspec.structs.replace(later, attempt=Attempt(2, 0, 9)),
        msgspec.structs.replace(later, ordinal=8),
        msgspec.structs.replace(later, values={"id": "5"}),
        msgspec.structs.replace(BAD, ordinal=8),
    ):
        assert state.apply(Hold(DRIVER, other)).paused, other


def test_a_row_that_is_told_twice() -> None:
    answered = HOLDING.apply(Answer("anna", "1.0.4", "skip"))
    assert answered.apply(Hold(DRIVER, AT_BREAKPOINT)) is answered
    other = answered.apply(Hold(DRIVER, msgspec.structs.replace(AT_BREAKPOINT, ordinal=9)))
    assert [(row.ordinal, row.answer) for row in other.held] == [(2, ""), (9, "")]


def test_the_driver_ends_a_pause_that_nobody_answers() -> None:
    state = applied(HOLDING, Pause("anna"), Resume(DRIVER))
    assert [row.answer for row in state.held] == ["pass", "pass"] and not state.paused
    assert state.controller == "anna"


def test_two_controllers() -> None:
    state = START.apply(Pause("anna"))
    for command in (Resume("ben"), Leave("ben")):
        with pytest.raises(
            ControlError, match=r"Found report in control of anna, expected ben or nobody\. Hint: take over"
        ):
            state.apply(command)
    taken = applied(state, TakeOver("ben"), Resume("ben"))
    assert taken.controller == "ben" and not taken.paused
    with pytest.raises(ControlError, match="in control of ben, expected anna"):
        taken.apply(Pause("anna"))
    assert applied(taken, Leave("ben"), Pause("anna")).controller == "anna"


def test_functions_are_replaced_one_after_the_other() -> None:
    state = applied(msgspec.structs.replace(START, functions=("score", "clean")), Replace("anna", "score"))
    assert state.edited and state.version == START.version + 1
    again = applied(state, Replace("anna", "clean"), Replace("anna", "score"))
    assert again.replaced == ("score", "clean", "score"), "also the same function for a second time"
    with pytest.raises(ControlError, match=r"Found the function 'scoer', expected one of report .* did you mean score"):
        state.apply(Replace("anna", "scoer"))
    with pytest.raises(ControlError, match=r"Hint: spark\.regions\.control\.replaceFunctions=true"):
        START.apply(Replace("anna", "score"))


@pytest.mark.parametrize(
    ("state", "command", "found"),
    [
        (
            START,
            Break("anna", "RegexPasrer", "x < 0"),
            "'RegexPasrer', expected one of those that run in report. Hint: did you mean Regex",
        ),
        (START, Break("anna", "Join", "x < 0"), "Hint: one of Scan, RegexParser, KeywordSearch"),
        (START, Break("anna", "Scan", ""), "Found no condition"),
        (START, Break("anna", "Scan", "x < 0", action="fix"), "Found then='fix', expected ask or skip or fail"),
        (START, Break("anna", "Scan", "count(*) = 5", action="skip"), "Found then='skip', expected ask"),
        (START, Clear("anna", 3), "Found the breakpoint 3, expected one of report. Hint: there is none"),
        (START, Answer("anna", "1.0.4", "skip"), "Hint: there is none"),
        (
            HOLDING,
            Answer("anna", "1.0.5", "skip"),
            "Found the row '1.0.5', expected one that waits. Hint: did you mean",
        ),
        (HOLDING, Answer("anna", "1.0.4", "pass"), "Found the answer 'pass', expected skip or fail. Hint: resume lets"),
        (
            applied(START, Hold(DRIVER, BAD)),
            Answer("anna", "1.0.4", "fix"),
            "Found '' to fix, expected a value of CAST",
        ),
        (
            applied(START, Hold(DRIVER, msgspec.structs.replace(BAD, types={"a": "INT NOT NULL"}))),
            Answer("anna", "1.0.4", "fix", {"a": None}),
            "Found NULL for a, expected INT NOT NULL",
        ),
        (State("report"), Break("anna", "Scan", "x < 0"), "Found no running query in report, expected one with Scan"),
        (START, Pause(""), "Found a command of nobody"),
    ],
)
def test_what_is_refused(state: State, command: Command, found: str) -> None:
    with pytest.raises(ControlError) as raised:
        state.apply(command)
    assert found in str(raised.value) and "Hint: " in str(raised.value)


def some(draw: random.Random) -> Command:
    by = draw.choice(("anna", "anna", "ben", DRIVER))
    kind = draw.randrange(9)
    if kind == 3:
        return Hold(by, draw.choice((AT_BREAKPOINT, OTHER)))
    if kind == 4:
        return Break(by, draw.choice(("Scan", "Sacn")), draw.choice(("x < 0", "count(*) = 5", "count(*) = x")))
    if kind == 5:
        return Clear(by, draw.randrange(12))
    if kind == 6:
        return Answer(by, draw.choice(("1.0.4", "1.1.5")), draw.choice(("skip", "fail", "pass")))
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
                    state = state.apply(some(draw))
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


def test_a_value_that_is_set_holds_and_marks_what_is_computed() -> None:
    state = msgspec.structs.replace(START, declared=("least", "most"))
    changed = applied(state, Set("anna", "least", "5"), Set("anna", "most", "9"), Set("anna", "least", "4"))
    assert changed.params == {"least": "4", "most": "9"} and changed.edited and changed.version == 3
    assert changed.apply(Set("anna", "most", "9")) is changed and not state.params
    with pytest.raises(ControlError, match=r"Found the parameter 'laest'.* did you mean least"):
        state.apply(Set("anna", "laest", "5"))
