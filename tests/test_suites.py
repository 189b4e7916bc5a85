"""The rules by which the suites run."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import chance, suites
from tests.tpc import rows

ROOT = Path(__file__).resolve().parent.parent
SKIPPING = """
import pytest

def test_that_skips():
    pytest.skip("no browser here")

@pytest.mark.skipif(True, reason="by a mark")
def test_that_is_marked():
    raise AssertionError

def test_that_runs():
    pass

@pytest.mark.xfail(reason="known", strict=True)
def test_that_is_known_to_fail():
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"test_one.py": SKIPPING}, "1 failed, 1 passed, 1 xfailed, 1 error"),
        ({"test_two.py": "import pytest\npytest.importorskip('no_such_module')\n"}, "1 error"),
    ],
)
def test_a_skipped_test_fails(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    hooks = "from tests.conftest import pytest_make_collect_report, pytest_runtest_makereport\n"
    for name, text in (files | {"conftest.py": hooks}).items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode != 0
    assert expected in done.stdout, done.stdout
    assert "would be skipped" in done.stdout


def test_seeds_are_the_commit_s_and_those_that_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert chance.commit() == chance.commit() != ""
    known = tmp_path / "seeds.json"
    known.write_text('{"joins": [7, 8]}')
    monkeypatch.setattr(chance, "FAILED", known)
    drawn = list(chance.seeds("joins", at_least=3, seconds=0))
    assert drawn[:2] == [7, 8]
    assert drawn[2:] == [chance.seed_of("joins") + more for more in range(3)]
    assert drawn == list(chance.seeds("joins", at_least=3, seconds=0))
    names = [f"query {number}" for number in range(10)]
    assert len(chance.drawn(names, 3)) == 4 and len(chance.drawn(names[:1], 3)) == 1
    assert chance.drawn(names, 3) == [name for name in names if name in chance.drawn(names, 3)]
    monkeypatch.setenv("CHANCE_ALL", "1")
    assert chance.drawn(names, 3) == names
    assert 5 < sum(chance.one_in(f"query {number}", 10) for number in range(200)) < 50


@pytest.mark.parametrize("module", [suites, rows])
def test_examples_of_the_harness(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0 == result.failed
