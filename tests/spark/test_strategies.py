"""Every strategy on real Spark, and one of an installed package; a name that nobody knows says which there are."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from hashlib import sha512
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from spark_regions.store.entries import all_entries
from spark_regions.store.opening import open_catalog, place
from tests.harness.session import counters, decisions, sibling, spark_session, status
from tests.spark.stop_job import QUERIES

pytestmark = pytest.mark.spark

QUERY = "SELECT k, max(reverse(text)) AS last, count(*) AS rows FROM t GROUP BY k"
NARROWER = QUERY.replace("FROM t", "FROM t WHERE k < 50")

PACKAGE = '''
"""A strategy of another package: store the topmost eligible node, load nothing."""

from spark_regions.decision.values import Selection, unmeasured


def choose(given):
    node = min(given.eligible)
    return Selection({}, ((unmeasured(node, given.plan.nodes[node].signature), "MINE"),), ())
'''


def job(store: str, data: str, strategy: str) -> None:
    """Two queries, four times each."""
    with spark_session(Path(store)) as spark:
        own = {"spark.regions.workflow.enabled": "false", "spark.regions.recycle.firstUseOverhead": "0"}
        session = sibling(spark, {"spark.regions.recycle.strategy": strategy} | own)
        session.read.parquet(data).createOrReplaceTempView("t")
        plain = sibling(spark, {"spark.regions.recycle.strategy": "off"})
        plain.read.parquet(data).createOrReplaceTempView("t")
        for text in (QUERY, NARROWER):
            expected = sorted(plain.sql(text).collect())
            for _ in range(4):
                assert sorted(session.sql(text).collect()) == expected
                counters(spark)
        found = counters(spark)
        codes = sorted({str(each["code"]) for each in decisions(spark) if each["kind"] == "store"})
        unknown = [each["detail"] for each in decisions(spark) if each["code"] == "UNKNOWN_STRATEGY"]
        print("found", found.stores, found.loads, ",".join(codes), unknown[0] if unknown else "", sep="|")
        assert status(spark)["active"] == "true"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("strategies") / "t.parquet"
    texts = [sha512(str(number).encode()).hexdigest() for number in range(400_000)]
    parquet.write_table(pa.table({"k": [number % 100 for number in range(len(texts))], "text": texts}), file)
    return str(file)


def ran(strategy: str, data: str, folder: Path) -> tuple[int, int, list[str], str, str]:
    """Stores, loads, reasons of stores, what is said of an unknown name, and the driver's log."""
    package = folder / "package"
    (package / "mine-1.0.dist-info").mkdir(parents=True)
    (package / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (package / "mine-1.0.dist-info" / "entry_points.txt").write_text("[spark_regions.strategies]\nmine = mine\n")
    (package / "mine.py").write_text(PACKAGE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package), os.getcwd()])}
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(folder / "store"), data, strategy],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("found|")]
    _, stores, loads, codes, unknown = line.split("|", 4)
    return int(stores), int(loads), codes.split(",") if codes else [], unknown, done.stderr


@pytest.mark.parametrize(
    ("strategy", "reasons"),
    [
        ("markov", {"SKI_RENTAL"}),
        ("maxbenefit", {"BENEFIT"}),
        ("latest", {"LATEST"}),
        ("mine", {"MINE"}),
    ],
)
def test_a_strategy_stores_by_its_own_reason(strategy: str, reasons: set[str], data: str, tmp_path: Path) -> None:
    stores, loads, found, unknown, _ = ran(strategy, data, tmp_path)
    assert stores >= 2
    assert set(found) >= reasons
    assert (loads >= 2) == (strategy != "mine")
    assert unknown == ""


def test_an_unknown_name_lists_those_that_exist(data: str, tmp_path: Path) -> None:
    stores, loads, _, unknown, log = ran("markof", data, tmp_path)
    expected = "Found recycle.strategy='markof', expected one of always, latest, markov, maxbenefit, mine, off."
    assert (stores, loads) == (0, 0)
    assert unknown.startswith(expected)
    assert log.count(expected) == 1


def test_an_application_that_stops_at_once_leaves_whole_results_or_none(data: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.stop_job", str(store), data],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        said.append([line for line in done.stdout.splitlines() if line.startswith("rows|")])
    assert len(said[0]) == QUERIES
    assert said[0] == said[1]
    where = place(str(store), getpass.getuser(), "")
    assert where.local_data is not None
    catalog = open_catalog(where)
    entries = catalog.read(all_entries)
    catalog.close()
    assert len(entries) >= 1
    assert {entry.state for entry in entries} == {"committed"}
    for entry in entries:
        folder = where.local_data / entry.id
        named = json.loads((folder / "_manifest.json").read_text())["files"]
        assert {each["name"]: each["bytes"] for each in named} == {
            file.name: file.stat().st_size for file in folder.glob("part-*")
        }


if __name__ == "__main__":
    job(*sys.argv[1:])
