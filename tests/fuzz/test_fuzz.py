"""What CI runs of it: programs by a seed from the commit, in a box of time, all that ever failed, planted faults.

Each run has a JVM of its own, by `python -m tests.fuzz`: its settings are not those of the other tests' session.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import faults
from tests.fuzz.script import load
from tests.harness.chance import seed_of

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = sorted(Path(__file__).with_name("fixtures").glob("*.json"))
PROGRAMS = 300
SECONDS = 190
"""For as many of them as fit: one takes about seven seconds of processor time, and most of it is Spark's own."""


def fuzz(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, summary and output of a run."""
    summary = tmp_path / "summary.json"
    command = [sys.executable, "-m", "tests.fuzz", *arguments, "--summary", str(summary)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    assert summary.exists(), f"status {done.returncode}: {done.stdout[-2000:]}"
    return done.returncode, json.loads(summary.read_text(encoding="utf-8")), done.stdout


def test_programs_of_this_commit(tmp_path: Path) -> None:
    limits = ("--programs", str(PROGRAMS), "--seconds", str(SECONDS), "--seed", str(seed_of("fuzz")))
    status, totals, output = fuzz(tmp_path, *limits)
    assert status == 0, output[-6000:]
    assert totals["programs"] >= 5
    tenth = totals["programs"] * 0.1
    assert totals["invalid"] <= tenth + 2 * tenth**0.5, "more than a tenth, and not by chance"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    _, found, _ = fuzz(tmp_path_factory.mktemp("replay"), "--replay", *map(str, FIXTURES))
    return found


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_programs_that_once_failed(
    path: Path, verdicts: dict[str, dict[str, Any]], request: pytest.FixtureRequest
) -> None:
    if known := load(path).get("open"):
        request.applymarker(pytest.mark.xfail(reason=known, strict=True))
    verdict = verdicts[path.name]
    assert verdict["difference"] is None
    assert verdict["actions"] > 0 and not verdict["invalid"]


@pytest.mark.parametrize("fault", faults.NAMES)
def test_planted_faults_are_found(fault: str, tmp_path: Path) -> None:
    """By the program that found the fault first; without the fault it is among those above."""
    program = Path(__file__).with_name("fixtures") / f"planted_{fault.replace('-', '_')}.json"
    status, found, _ = fuzz(tmp_path, "--fault", fault, "--replay", str(program))
    assert status == 1
    assert found[program.name]["difference"]
