"""What the planner answers to commands for an application under control, and to shares in breakpoints that count."""

from __future__ import annotations

import pytest

from spark_regions.errors import InvalidRequest
from spark_regions.planner.control import Counting, controlled
from spark_regions.wire.messages import (
    Control,
    ControlCommand,
    ControlState,
    CountOrder,
    CountRows,
    TaskAttempt,
    WaitingRow,
)

STATE = ControlState("report", operators=("Filter",))
FIRST, SECOND = (TaskAttempt(1, partition, partition + 10) for partition in range(2))


def test_commands_are_applied_one_after_the_other() -> None:
    row = WaitingRow(FIRST, "Filter", 7, {"id": "1"}, "id = 1")
    asked = (ControlCommand("hold", "driver", held=row), ControlCommand("break", "anna", "Filter", "count(*) = 5"))
    answer = controlled(Control(STATE, asked))
    assert answer.error == "" and answer.state.paused and answer.state.controller == "anna"
    assert answer.state.held == (row,) and answer.state.breakpoints[0].target == 5
    gone = controlled(Control(answer.state, (ControlCommand("letgo", "driver", attempt=FIRST),)))
    assert gone.state.held == () and gone.state.version == 3


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (ControlCommand("brake", "anna"), "Found the command 'brake', expected one of docs/control.md"),
        (ControlCommand("hold", "anna"), "Found the command 'hold'"),
        (ControlCommand("break", "anna", "Fliter", "id = 1"), "did you mean Filter?"),
    ],
)
def test_all_commands_or_none(command: ControlCommand, found: str) -> None:
    answer = controlled(Control(STATE, (ControlCommand("pause", "anna"), command)))
    assert found in answer.error and answer.state == STATE


def test_shares_of_a_count() -> None:
    counting = Counting(0.005)

    def told(
        first: bool, event: str, attempt: TaskAttempt | None, round_: int = 0, produced: int = 0
    ) -> tuple[CountOrder, ...]:
        return counting(CountRows(3, 10, first, event, attempt, round_, produced)).orders

    assert told(True, "joined", FIRST) == (CountOrder("target", 10, 1, 10),)
    assert told(False, "joined", SECOND) == (CountOrder("wait", round=1, seconds=0.005),)
    assert told(False, "waited", None, 1) == (CountOrder("ask", 10, 1),)
    assert told(False, "reported", FIRST, 1, 4) == (CountOrder("target", 11, 2, 3), CountOrder("target", 10, 2, 3))
    assert told(False, "finished", SECOND, 2, 2) == ()
    assert told(False, "reported", FIRST, 2, 3) == (CountOrder("target", 10, 3, 1),)
    assert told(False, "reported", FIRST, 3, 1) == (CountOrder("hit", amount=10),)
    with pytest.raises(InvalidRequest, match="expected one that was counted from its start"):
        Counting(0.005)(CountRows(3, 10, False, "joined", FIRST))
