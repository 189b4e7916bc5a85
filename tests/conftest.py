"""One Spark session with the plugin, shared by all tests that do not need a process of their own; how suites run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import spark_regions
from tests.harness import chance
from tests.harness import postgresql as servers
from tests.harness.browser import Reader, chrome
from tests.harness.suites import (
    cannot_run,
    draw,
    is_whole,
    longest_first,
    nothing_is_skipped,
    print_suites,
    tell_workers,
)
from tests.harness.ui import Application

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from selenium.webdriver import Chrome

# Confs or arguments of the developer's own must not change what is tested.
os.environ["SPARK_CONF_DIR"] = str(Path(__file__).with_name("conf"))
for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "SPARK_HOME"):
    os.environ.pop(name, None)
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
# Most code of a test's JVM runs a few times: the second compiler costs two fifths of all processor time and gives
# nothing back.
os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hypothesis draws by the commit too, so that a commit that passed passes again."""
    tell_workers(config)
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(chance.seed_of("hypothesis"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_whole():
        config.hook.pytest_deselected(items=draw(items))
    longest_first(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    return nothing_is_skipped((yield))  # type: ignore[func-returns-value]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    return nothing_is_skipped((yield))  # type: ignore[func-returns-value]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    print_suites(terminalreporter)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[servers.Server]:
    try:
        with servers.server() as running:
            yield running
    except servers.NotInstalled as missing:
        cannot_run(str(missing), "apt-get install postgresql", "postgresql")


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """One application with the UI on, for all that is seen in a running one."""
    started = Application(tmp_path_factory.mktemp("ui"))
    try:
        assert started.ask("run") == {"rows": 100, "same": True}
        started.ui.until("/regions/json", lambda facts: facts["saved"]["loadsEstimated"] >= 1)
        started.ui.until("/regions/cache/json", lambda facts: any(e.get("uses") for e in facts["entries"]))
        started.ui.until("/regions/graph/json", lambda facts: facts["nodes"])
        yield started
    finally:
        started.end()


@pytest.fixture(scope="session")
def browser() -> Iterator[Chrome]:
    with chrome() as started:
        yield started


@pytest.fixture(scope="session")
def reader(browser: Chrome, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(browser, tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def recycle_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recycle")


@pytest.fixture(scope="session")
def spark(recycle_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    )
    # Tests write what they read, and the rule for young files has tests of its own (test_changed_files.py).
    # On a busy machine a planner that is merely late would make every test of reuse a test of nothing.
    # What another engine computes stores nothing, and whether one is up depends on earlier tests: its own ask for it.
    builder = spark_regions.configure(
        builder, recycle_dir=recycle_dir, planner_deadline="10s", sources_racy_seconds=0, platforms="off"
    )
    session = builder.getOrCreate()
    state = spark_regions.status(session)
    assert state.active, f"the tests would be about plain Spark: {state}"
    yield session
    session.stop()
