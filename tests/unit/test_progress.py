from __future__ import annotations

import pytest
from click.testing import CliRunner

from spark_regions import progress
from spark_regions.cli.commands import commands


@pytest.mark.parametrize(
    ("terminal", "notebook", "widgets", "shown"),
    [
        (True, False, False, True),
        (False, False, True, False),
        (False, True, True, True),
        (True, True, False, False),
    ],
)
def test_bars_are_drawn_where_somebody_watches(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, notebook: bool, widgets: bool, shown: bool
) -> None:
    monkeypatch.delenv(progress.OFF, raising=False)
    monkeypatch.setattr(progress, "find_spec", lambda name: object() if widgets else None)
    assert progress._watched(terminal, notebook) is shown
    monkeypatch.setenv(progress.OFF, "0")
    assert progress._watched(terminal, notebook) is False


def test_a_pipe_stays_empty(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.bar("working", 3) as moved:
        for _ in range(3):
            moved(1)
    assert capfd.readouterr() == ("", "")


def test_a_bar_that_is_asked_for_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.bar("working", 3, wanted=True) as moved:
        moved(3)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "working" in shown.err and "3/3" in shown.err


def test_a_bar_ends_with_the_work(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), progress.bar("working", 3, wanted=True):
        raise ZeroDivisionError
    assert "working" in capfd.readouterr().err


def test_commands_can_turn_it_off_and_on() -> None:
    found = {
        name: any("--no-progress" in option.secondary_opts for option in command.params)  # type: ignore[attr-defined]
        for name, command in {**commands.commands, **commands.commands["cache"].commands}.items()  # type: ignore[attr-defined]
        if name in ("report", "doctor", "clear")
    }
    assert found == {"report": True, "doctor": True, "clear": True}
    checked = CliRunner().invoke(commands, ["doctor", "--progress", "--json"])
    assert "checking" in checked.stderr
    assert "checking" not in checked.stdout
