"""Control of running queries: its cases have an application of their own, which stands still as a whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.suites import CASES

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ["control_cases", "bad_row_cases"])
def test_control(record_property: Callable[[str, object], None], name: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / f"{name}.py")]
    done = subprocess.run(command, cwd=HERE.parents[1], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4000:]
    (passed,) = re.findall(r"^(\d+) passed", done.stdout, re.MULTILINE)
    record_property(CASES, int(passed))
