"""How the suites run: the longest files first, nothing skipped, and at the end what each of them was and took.

A run of everything draws the tests that take long by the commit, so that it ends in time on a slow machine, too, and
that each of them runs with some commits; with CHANCE_ALL=1, or where files are named, all of them run.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import pytest

from tests.harness import chance

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# What takes minutes starts first, so that no worker is left alone with it at the end.
LONGEST = (
    "tests/test_shim.py",
    "tests/tpc/test_tpc.py",
    "tests/spark/test_skew.py",
    "tests/spark/test_skew_operators.py",
    "tests/spark/test_same_rows.py",
    "tests/fuzz/",
    "tests/browser/",  # before the UI's own tests, which end the application that both look at
    "tests/spark/",
    "tests/cluster/",
    "tests/udf/",
    "tests/properties/",
)
ONE_IN = {
    "tests/spark/test_faults.py": 4,
    "tests/spark/": 3,
    "tests/cluster/": 2,
    "tests/platforms/test_equivalents.py": 3,
}
"""How many tests of a file one is drawn of; the first prefix that fits."""
WHOLE = "WHOLE_SUITE"
CASES = "cases"
"""Property of a test that stands for so many of another framework's."""


def longest_first(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return next((at for at, path in enumerate(LONGEST) if item.nodeid.startswith(path)), len(LONGEST))

    items.sort(key=place)


def tell_workers(config: pytest.Config) -> None:
    """Workers of pytest-xdist collect by themselves, and do not see whether files were named."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ[WHOLE] = str(int(config.args_source is pytest.Config.ArgsSource.TESTPATHS))


def is_whole() -> bool:
    """Whether all tests are asked for: no file is named."""
    return os.environ[WHOLE] == "1"


def draw(items: list[pytest.Item]) -> list[pytest.Item]:
    """Take out those tests that this commit does not draw, and give them."""
    files: dict[str, list[str]] = defaultdict(list)
    for item in items:
        files[item.nodeid.partition("::")[0]].append(item.nodeid)
    taken = {
        name
        for file, names in files.items()
        for name in chance.drawn(names, next((n for prefix, n in ONE_IN.items() if file.startswith(prefix)), 1))
    }
    left = [item for item in items if item.nodeid not in taken]
    items[:] = [item for item in items if item.nodeid in taken]
    return left


def cannot_run(what: str, hint: str, marker: str) -> NoReturn:
    """Fail a test that needs what is not installed here."""
    message = f"{what}. Hint: {hint}, or leave it out: make test PYTEST_ARGS=\"-m 'not {marker}'\""
    raise pytest.fail.Exception(message, pytrace=False) from None


def nothing_is_skipped(report: Report) -> Report:
    """A test that did not run did not pass: only who calls pytest may leave tests out, and says so in the call."""
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} would be skipped ({why}). Hint: fail with what is missing, or deselect it"
    return report


@dataclass
class Suite:
    passed: int = 0
    failed: int = 0
    seconds: float = 0.0


def suite_of(nodeid: str) -> str:
    """A file of tests in Spark, else a folder.

    >>> suite_of("tests/spark/test_ui.py::test_x[1]"), suite_of("tests/unit/test_store.py::test_y")
    ('spark/test_ui', 'unit')
    """
    folder, _, rest = nodeid.partition("::")[0].removeprefix("tests/").partition("/")
    return f"spark/{rest.removesuffix('.py')}" if folder == "spark" else folder.removesuffix(".py")


def print_suites(terminal: pytest.TerminalReporter) -> None:
    suites: dict[str, Suite] = defaultdict(Suite)
    for outcome, reports in terminal.stats.items():
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                continue
            suite = suites[suite_of(report.nodeid)]
            suite.seconds += report.duration
            count = int(dict(report.user_properties).get(CASES, 1))
            if outcome in ("passed", "xfailed"):
                suite.passed += count
            elif outcome in ("failed", "error"):
                suite.failed += 1
    terminal.section("suites: passed, failed, minutes of one worker")
    for name, suite in sorted(suites.items(), key=lambda item: -item[1].seconds):
        terminal.line(f"{name:40} {suite.passed:5} {suite.failed:3} {suite.seconds / 60:6.1f}")
    totals = [sum(getattr(suite, name) for suite in suites.values()) for name in ("passed", "failed", "seconds")]
    terminal.line(f"{f'{len(suites)} suites':40} {totals[0]:5} {totals[1]:3} {totals[2] / 60:6.1f}")
