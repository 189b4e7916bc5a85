"""Bad input and faults of ours: each has its exact outcome, and the job's rows are right.

The applications follow each other in one JVM; only what a JVM does not survive has one of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from examples import data
from examples.demo import ROOT, plugin_confs
from tests.harness.daemons import standalone_cluster

pytestmark = pytest.mark.spark
Answer = dict[str, Any]
DEAR = (
    "SELECT a.l_quantity, max(sha2(concat(a.l_comment, b.l_comment), 512)) FROM lineitem a JOIN lineitem b"
    " ON a.l_quantity = b.l_quantity AND b.l_orderkey < 3000 GROUP BY a.l_quantity"
)
MANY = (
    "SELECT l_orderkey, l_linenumber, sha2(repeat(max(l_comment), 2000), 512) AS digest FROM lineitem"
    " GROUP BY l_orderkey, l_linenumber"
)
"""More rows than a task holds in memory: it writes them."""
FEW = (
    "SELECT l_orderkey % 800 AS k, sha2(repeat(string(max(l_orderkey)), 1500000), 512) AS digest FROM lineitem"
    " GROUP BY l_orderkey % 800"
)
"""Few rows, one after the other in some milliseconds: tasks hold them, and the driver writes them."""


class Driver:
    """A running fault_job: applications one after another, and runs of its queries."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.ask(None)

    def ask(self, question: Mapping[str, Any] | None) -> Answer:
        assert self.process.stdin is not None and self.process.stdout is not None
        if question is not None:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                found: Answer = json.loads(line)
                return found
        raise AssertionError(f"the driver ended with {self.process.wait()}")

    def start(self, confs: Mapping[str, str]) -> str | None:
        """The message of a refusal, or None."""
        message: str | None = self.ask({"start": dict(confs)})["message"]
        return message

    def run(self, tables: Path, **confs: str) -> Answer:
        return self.ask({"run": str(tables), "set": named(confs)})


@contextmanager
def driver(*jars: str) -> Iterator[Driver]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.fault_job", *jars],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )
    try:
        yield Driver(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def source() -> Path:
    return data.tpch(0.01)


@pytest.fixture
def tables(source: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(source, tmp_path / "tables"))


@pytest.fixture(scope="module")
def rows(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """What Spark without the jar gives for the tables as they are, and after each change."""
    found: dict[str, list[list[str]]] = {}
    with driver() as spark:
        assert spark.start({}) is None
        found["plain"] = spark.run(source)["rows"]
        for query in (MANY, FEW):
            found[query] = spark.ask({"run": str(source), "queries": [query]})["rows"]
        for change in CHANGES:
            copy = Path(shutil.copytree(source, tmp_path_factory.mktemp("changed") / "tables"))
            change(copy)
            found[change.__name__] = spark.run(copy)["rows"]
    assert all(found["plain"])
    return found


@pytest.fixture(scope="module")
def plain(rows: dict[str, list[list[str]]]) -> list[list[str]]:
    return rows["plain"]


@pytest.fixture(scope="module")
def spark(rows: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """One JVM for all faults that it survives; started when the plain one has ended."""
    with driver(always(tmp_path_factory.mktemp("none"))["spark.jars"]) as running:
        yield running


def named(confs: Mapping[str, str]) -> dict[str, str]:
    return {f"spark.regions.{name.replace('_', '.')}": value for name, value in confs.items()}


def always(recycle_dir: Path, **more: str) -> dict[str, str]:
    """:param more: a late answer is no fault of these tests' business, so the deadline is long unless given here"""
    confs = {"recycle_strategy": "always", "planner_deadline": "10s", "sources_racySeconds": "0"} | more
    return plugin_confs(recycle_dir) | named(confs)


def count(answer: Answer, name: str) -> int:
    return int(answer["status"][f"counter.{name}"])


def told(answer: Answer) -> str:
    """Everything that the plugin says about itself."""
    return json.dumps([answer["status"], answer["decisions"]])


def data_files(recycle_dir: Path) -> list[Path]:
    return sorted(recycle_dir.glob("v1/*/data/*/part-*.parquet"))


# Configuration


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("spark.regions.mode", "both", "apply, observe"),
        ("spark.regions.recycle.maxBytes", "-1", "must not be negative"),
    ],
)
def test_bad_values_are_refused_at_the_start_and_later(
    spark: Driver, source: Path, tmp_path: Path, key: str, value: str, allowed: str
) -> None:
    message = spark.start(always(tmp_path / "r") | {key: value})
    assert message is not None
    assert [word for word in (key, value, *allowed.split(", ")) if word not in message] == [], message
    assert spark.start(always(tmp_path / "r")) is None
    answer = spark.run(source, **{key.removeprefix("spark.regions."): value})
    assert [word for word in (key, value, *allowed.split(", ")) if word not in answer["error"]] == [], answer["error"]


# The store


def test_missing_recycle_dir_is_made_and_the_budget_kept(
    spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]
) -> None:
    recycle_dir = tmp_path / "not" / "there" / "yet"
    spark.start(always(recycle_dir, recycle_maxBytes="0"))
    nothing = spark.run(source)
    assert nothing["rows"] == plain
    assert "OVER_BUDGET" in told(nothing) or "TOO_LARGE" in told(nothing), told(nothing)
    assert data_files(recycle_dir) == []
    answers = [spark.run(source, recycle_maxBytes="1g"), spark.run(source)]
    assert [answer["rows"] for answer in answers] == [plain, plain]
    assert count(answers[1], "loads") > 0
    assert recycle_dir.stat().st_mode & 0o077 == 0, "readable by others"


def test_unwritable_recycle_dir(spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder can be made below a file, not even by root")
    assert spark.start(always(in_the_way / "store")) is None
    answer = spark.run(source)
    assert answer["rows"] == plain
    assert "STORE_UNWRITABLE" in told(answer), told(answer)
    assert count(answer, "commits") == 0


def test_corrupt_catalog_is_moved_aside(spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]) -> None:
    recycle_dir = tmp_path / "r"
    assert spark.start(always(recycle_dir)) is None
    assert spark.run(source)["rows"] == plain
    (catalog,) = recycle_dir.glob("v1/*/catalog.sqlite")
    for beside in catalog.parent.glob("catalog.sqlite-*"):
        beside.unlink()
    catalog.write_bytes(b"not a database " * 1000)
    assert spark.start(always(recycle_dir)) is None
    answers = [spark.run(source), spark.run(source)]
    assert [answer["rows"] for answer in answers] == [plain, plain]
    assert "CATALOG_RECREATED" in told(answers[0]), told(answers[0])
    assert count(answers[1], "loads") > 0, "the new catalog serves"


def damage_overwritten(file: Path) -> None:
    file.write_bytes(os.urandom(file.stat().st_size))


def damage_truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def damage_missing(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    ("damage", "code"),
    [(damage_overwritten, "ENTRY_DAMAGED"), (damage_truncated, "ENTRY_DAMAGED"), (damage_missing, "ENTRY_")],
)
def test_damaged_data_files(
    spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]], damage: Any, code: str
) -> None:
    recycle_dir = tmp_path / "r"
    assert spark.start(always(recycle_dir)) is None
    assert spark.run(source)["rows"] == plain
    files = data_files(recycle_dir)
    assert files
    for file in files:
        damage(file)
    answers = [spark.run(source), spark.run(source)]
    assert [answer["error"] for answer in answers] == [None, None]
    assert [answer["rows"] for answer in answers] == [plain, plain]
    assert code in told(answers[0]) + told(answers[1]), told(answers[0])


# Inputs that change between runs


def lineitem(tables: Path) -> Path:
    return tables / "lineitem.parquet"


def change_quantity(tables: Path) -> None:
    """Other values in a file of other size."""
    table = parquet.read_table(lineitem(tables))
    position = table.schema.get_field_index("l_quantity")
    doubled = pc.add(table["l_quantity"], table["l_quantity"]).cast(table.schema.field(position).type)
    parquet.write_table(table.set_column(position, "l_quantity", doubled), lineitem(tables))


def append_rows(tables: Path) -> None:
    table = parquet.read_table(lineitem(tables))
    parquet.write_table(pa.concat_tables([table, table.slice(0, 100)]), lineitem(tables))


def replace_by_equal_size(tables: Path) -> None:
    """Other rows, same length in bytes: an uncompressed column's values are exchanged in place."""
    table = parquet.read_table(lineitem(tables))
    plain_pages = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    parquet.write_table(table, lineitem(tables), **plain_pages)
    before = lineitem(tables).stat().st_size
    position = table.schema.get_field_index("l_linenumber")
    shifted = pc.add(table["l_linenumber"], 1).cast(table.schema.field(position).type)
    parquet.write_table(
        table.set_column(position, table.schema.field(position), shifted), lineitem(tables), **plain_pages
    )
    assert lineitem(tables).stat().st_size == before


CHANGES = (change_quantity, append_rows, replace_by_equal_size)


@pytest.mark.parametrize("change", CHANGES)
def test_changed_input_is_seen(
    spark: Driver, tables: Path, tmp_path: Path, rows: dict[str, list[list[str]]], change: Any
) -> None:
    if change is replace_by_equal_size:
        table = parquet.read_table(lineitem(tables))
        parquet.write_table(table, lineitem(tables), compression="none", use_dictionary=False, write_statistics=False)
    assert spark.start(always(tmp_path / "r")) is None
    before = [spark.run(tables), spark.run(tables)]
    time.sleep(0.05)
    change(tables)
    after = spark.run(tables)
    assert [answer["rows"] for answer in before] == [rows["plain"], rows["plain"]]
    assert count(before[1], "loads") > 0
    assert rows[change.__name__] != rows["plain"]
    assert after["rows"] == rows[change.__name__]
    assert count(after, "loads") == count(before[1], "loads"), "nothing old may serve"


# The planner


def test_planner_that_cannot_start(spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]) -> None:
    assert spark.start(always(tmp_path / "r") | {"spark.regions.planner.python": "/no/such/python"}) is None
    answer = spark.run(source)
    assert answer["rows"] == plain
    assert answer["status"]["active"] == "false"
    assert "PLANNER_NOT_STARTABLE" in answer["status"]["reason"], answer["status"]


def test_planner_python_without_the_package(
    spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    python.chmod(0o755)
    assert spark.start(always(tmp_path / "r") | {"spark.regions.planner.python": str(python)}) is None
    answer = spark.run(source)
    assert answer["rows"] == plain
    assert "PLANNER_NOT_STARTABLE" in told(answer), told(answer)


def test_planner_killed_in_mid_session(spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]) -> None:
    """The next one is slow to start, so that a query meets none."""
    slow, python = tmp_path / "slow", tmp_path / "python"
    python.write_text(f'#!/bin/sh\ntest -e {slow} && sleep 8\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert spark.start(always(tmp_path / "r") | {"spark.regions.planner.python": str(python)}) is None
    first = spark.run(source)
    slow.touch()
    os.kill(int(first["status"]["planner.pid"]), signal.SIGKILL)
    second = spark.run(source)
    slow.unlink()
    deadline = time.monotonic() + 60
    later = spark.run(source)
    while count(later, "loads") == count(second, "loads") and time.monotonic() < deadline:
        time.sleep(2)
        later = spark.run(source)
    assert [first["rows"], second["rows"], later["rows"]] == [plain, plain, plain]
    assert "PLANNER_DOWN" in told(second), told(second)
    assert later["status"]["planner.pid"] != first["status"]["planner.pid"], "it was not started again"
    assert count(later, "loads") > count(second, "loads")


def test_planner_that_hangs(spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]) -> None:
    assert spark.start(always(tmp_path / "r", planner_deadline="500ms")) is None
    first = spark.run(source)
    pid = int(first["status"]["planner.pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        second = spark.run(source)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert [first["rows"], second["rows"]] == [plain, plain]
    assert "PLANNER_DEADLINE" in told(second), told(second)
    assert second["seconds"] < 60


def test_a_late_answer_is_waited_for_where_answers_have_saved_a_lot(
    spark: Driver, source: Path, tmp_path: Path
) -> None:
    """Seconds of hashing were read back three times; then the planner is late, by more than the deadline."""
    dear = {"run": str(source), "queries": [DEAR]}
    assert spark.start(always(tmp_path / "r")) is None
    first = spark.ask(dear)
    assert spark.start(always(tmp_path / "r", planner_deadline="200ms")) is None
    answers = [spark.ask(dear)]
    # On a busy machine the first ones of a JVM may be late by themselves.
    while count(answers[-1], "loads") < 3 and len(answers) < 10:
        answers.append(spark.ask(dear))
    pid = int(answers[-1]["status"]["planner.pid"])
    late = told(answers[-1]).count("PLANNER_DEADLINE")
    os.kill(pid, signal.SIGSTOP)
    resume = subprocess.Popen(["sh", "-c", f"sleep 0.4; kill -CONT {pid}"])
    answers.append(spark.ask(dear))
    assert resume.wait() == 0
    assert [answer["rows"] for answer in answers] == len(answers) * [first["rows"]]
    assert told(answers[-1]).count("PLANNER_DEADLINE") == late, told(answers[-1])
    assert count(answers[-1], "loads") == 4
    assert answers[-1]["seconds"] > 0.3


def test_jar_and_python_of_different_versions(
    spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]
) -> None:
    """The planner's package claims another version: a copy of it stands first on the planner's path."""
    package = tmp_path / "other" / "spark_regions"
    shutil.copytree(ROOT / "spark_regions", package, ignore=shutil.ignore_patterns("__pycache__", "jars"))
    (package / "_version.py").write_text('__version__ = "99.0.0"\n')
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={package.parent} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert spark.start(always(tmp_path / "r") | {"spark.regions.planner.python": str(python)}) is None
    answer = spark.run(source)
    assert answer["rows"] == plain
    assert "PLANNER_VERSION_MISMATCH" in told(answer), told(answer)
    assert count(answer, "stores") == 0


def test_planner_that_writes_garbage(spark: Driver, source: Path, tmp_path: Path, plain: list[list[str]]) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'this is no protocol'\nsleep 60\n")
    python.chmod(0o755)
    assert spark.start(always(tmp_path / "r") | {"spark.regions.planner.python": str(python)}) is None
    answer = spark.run(source)
    assert answer["rows"] == plain
    assert "PLANNER_PROTOCOL" in told(answer) or "PLANNER_NOT_STARTABLE" in told(answer), told(answer)


# Executors


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The master's URL, and the folder that executors work in."""
    folder = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(folder) as master:
        yield master, folder


def executors(folder: Path) -> list[int]:
    """Processes of the newest application of the cluster whose workers have their folders there."""
    found: dict[str, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            works_in = (process / "cwd").readlink()
            command = (process / "cmdline").read_bytes()
        except OSError:  # somebody else's, or it has ended
            continue
        if works_in.is_relative_to(folder) and b"CoarseGrainedExecutorBackend" in command:
            found.setdefault(works_in.parent.name, []).append(int(process.name))
    return found[max(found)] if found else []  # of the one before, some may still be ending


def writes(executor: int, recycle_dir: Path) -> bool:
    """Whether it has a data file of the store open."""
    found = []
    for file in Path(f"/proc/{executor}/fd").glob("*"):
        try:
            found.append(file.readlink())
        except OSError:  # closed meanwhile
            continue
    return any(file.is_relative_to(recycle_dir) and file.name.startswith("part-") for file in found)


def awaited(wanted: Callable[[], int | None]) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := wanted():
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come to that within a minute")


def while_it_writes(folder: Path, recycle_dir: Path) -> list[int]:
    return [awaited(lambda: next((each for each in executors(folder) if writes(each, recycle_dir)), None))]


def runs_a_task(executor: int) -> bool:
    """Whether it has begun more tasks than it has ended, by its own log."""
    try:
        log = Path(f"/proc/{executor}/cwd/stderr").read_text()
    except OSError:  # it has ended
        return False
    return log.count("Executor: Running task") > log.count("Executor: Finished task")


def while_it_holds_rows(folder: Path, recycle_dir: Path) -> list[int]:
    """The entry's directory is made when the last stage begins, whose tasks take some seconds for their rows.

    Both executors: there may be one task alone.
    """
    entry = "e" + "[0-9a-f]" * 32  # what the place takes is measured there, too, by files of other names
    awaited(lambda: len(list(recycle_dir.glob(f"v1/*/data/{entry}"))))
    awaited(lambda: any(runs_a_task(each) for each in executors(folder)))
    assert data_files(recycle_dir) == []
    return executors(folder)


@pytest.mark.parametrize("attempts", [4, 1])
@pytest.mark.parametrize(
    ("query", "strategy", "moment"), [(MANY, "always", while_it_writes), (FEW, "markov", while_it_holds_rows)]
)
def test_killed_executor(
    spark: Driver,
    cluster: tuple[str, Path],
    source: Path,
    tmp_path: Path,
    rows: dict[str, list[list[str]]],
    query: str,
    strategy: str,
    moment: Callable[[Path, Path], list[int]],
    attempts: int,
) -> None:
    """Its tasks run again and their rows are stored once; where they may not, the query fails and leaves nothing."""
    master, folder = cluster
    recycle_dir = tmp_path / "r"
    confs = {"spark.master": master, "spark.executor.memory": "512m", "spark.task.maxFailures": str(attempts)}
    assert spark.start(always(recycle_dir, recycle_strategy=strategy) | confs) is None
    asked = {"run": str(source), "queries": [query]}
    with ThreadPoolExecutor(1) as beside:
        answer = beside.submit(spark.ask, asked)
        for executor in moment(folder, recycle_dir):
            os.kill(executor, signal.SIGKILL)
        first = answer.result(120)
    if attempts == 1:
        assert "ExecutorLostFailure" in first["error"]
        assert list(recycle_dir.glob("v1/*/data/*/_manifest.json")) == []
        first = spark.ask(asked)
    second = spark.ask(asked)
    assert [answer["rows"] for answer in (first, second)] == [rows[query], rows[query]]
    assert count(second, "loads") == 1, told(second)
    (manifest,) = recycle_dir.glob("v1/*/data/*/_manifest.json")
    named = {each["name"]: each["bytes"] for each in json.loads(manifest.read_text())["files"]}
    assert {file.name: file.stat().st_size for file in data_files(recycle_dir)} == named


# In a JVM of their own


def test_planner_ends_with_a_killed_driver(source: Path, tmp_path: Path) -> None:
    confs = always(tmp_path / "r")
    with driver(confs["spark.jars"]) as running:
        assert running.start(confs) is None
        planner = int(running.run(source)["status"]["planner.pid"])
        jvm = int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(planner)], text=True))
        os.kill(jvm, signal.SIGKILL)
        running.process.kill()
        deadline = time.monotonic() + 5
        while os.path.exists(f"/proc/{planner}") and time.monotonic() < deadline:
            time.sleep(0.05)
    assert not os.path.exists(f"/proc/{planner}")


def test_jar_without_a_class(source: Path, tmp_path: Path, plain: list[list[str]]) -> None:
    """A broken build: NoClassDefFoundError is not NonFatal, and yet the job runs."""
    confs = always(tmp_path / "r")
    broken = tmp_path / "broken.jar"
    dropped = 0
    with zipfile.ZipFile(confs["spark.jars"]) as whole, zipfile.ZipFile(broken, "w") as copy:
        for entry in whole.infolist():
            if "/exec/" in entry.filename and entry.filename.endswith(".class"):
                dropped += 1
            else:
                copy.writestr(entry, whole.read(entry))
    assert dropped
    with driver(str(broken)) as running:
        assert running.start(confs | {"spark.jars": str(broken)}) is None
        answer = running.run(source)
    assert answer["rows"] == plain
    assert "NoClassDefFoundError" in told(answer) or "INTERNAL_ERROR" in told(answer), told(answer)
