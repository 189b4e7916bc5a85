"""The tutorial, as it stands: its Python in one process, then its shell commands, in an empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.homes import at_home

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
MARK = "<end of block>"

pytestmark = pytest.mark.spark


def environment(home: Path) -> dict[str, str]:
    return at_home(home, COLUMNS="120")


def matches(shown: str, expected: str) -> bool:
    """Whether the output is as the page says, where … stands for anything."""
    lines = "\n".join(line.rstrip() for line in shown.strip().splitlines())
    wanted = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(wanted, lines, flags=re.DOTALL) is not None


@pytest.mark.parametrize(
    ("shown", "expected", "same"),
    [("a\nb\n", "a\nb", True), ("a 1.5 s\nrest", "a … s\n…", True), ("b", "a", False), ("a b", "a", False)],
)
def test_expected_output_is_compared(shown: str, expected: str, same: bool) -> None:
    assert matches(shown, expected) is same


def test_the_tutorial_runs(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    python = [text for language, text in blocks if language == "python"]
    assert len(python) > 5
    script = tmp_path / "tutorial.py"
    script.write_text("".join(f"{text}\nprint({MARK!r}, flush=True)\n" for text in python), encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    result = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment(tmp_path),
        timeout=1200,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    outputs = iter(result.stdout.split(f"{MARK}\n"))
    shown = ""
    for language, text in blocks:
        if language == "python":
            shown = next(outputs)
        elif language == "text":
            assert matches(shown, text), f"expected\n{text}\nfound\n{shown}"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "s saved as predicted" in page and "Time of queries" in page
    for command in [line[2:] for language, text in blocks if language == "console" for line in text.splitlines()]:
        words = shlex.split(command)
        if words[0] == "spark-regions":
            done = subprocess.run(
                [sys.executable, "-m", "spark_regions", *words[1:]],
                capture_output=True,
                text=True,
                check=False,
                cwd=folder,
                env=environment(tmp_path),
            )
            assert done.returncode == 0, done.stdout + done.stderr
    assert "Removed" in done.stdout
