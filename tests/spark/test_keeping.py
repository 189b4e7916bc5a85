"""What makes room and what stays, on real Spark: an entry that nobody used for long goes for a new one, a pinned one
does not; what was only observed can be advised on.
"""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from hashlib import sha512
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from spark_regions.cli.commands import commands
from spark_regions.store import admin
from spark_regions.store.schema import ENTRY, RUN
from tests.harness.session import counters, decisions, sibling, spark_session

pytestmark = pytest.mark.spark

QUERIES = {
    "first": "SELECT k, max(reverse(text)) AS last, count(*) AS rows FROM t GROUP BY k",
    "second": "SELECT k % 10 AS k, max(concat(text, reverse(text))) AS last, count(*) AS rows FROM t GROUP BY k % 10",
}
CONFS = {
    # A reservation is a megabyte at the least, so that each takes all of the budget.
    "spark.regions.recycle.maxBytes": "300k",
    "spark.regions.recycle.ttl": "0s",
    "spark.regions.recycle.firstUseOverhead": "0",
    "spark.regions.workflow.enabled": "false",
}
DAYS = 86_400.0


def job(store: str, data: str, name: str, mode: str) -> None:
    """A query, four times."""
    with spark_session(Path(store), CONFS | {"spark.regions.mode": mode}) as spark:
        spark.read.parquet(data).createOrReplaceTempView("t")
        plain = sibling(spark, {"spark.regions.recycle.strategy": "off"})
        plain.read.parquet(data).createOrReplaceTempView("t")
        expected = sorted(plain.sql(QUERIES[name]).collect())
        for _ in range(4):
            assert sorted(spark.sql(QUERIES[name]).collect()) == expected
            counters(spark)
        found = counters(spark)
        codes = sorted({str(each["code"]) for each in decisions(spark)})
        print("found", json.dumps({"stores": found.stores, "loads": found.loads, "codes": codes}), sep="|")


def ran(store: Path, data: str, name: str, mode: str = "apply") -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(store), data, name, mode],
        env=os.environ | {"PYTHONPATH": os.getcwd()}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("found|")]
    told: dict[str, Any] = json.loads(line.removeprefix("found|"))
    return told


def told(store: Path, *words: str) -> Any:
    result = CliRunner().invoke(commands, [*words, "--dir", str(store)])
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout) if "--json" in words else result.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("keeping") / "t.parquet"
    texts = [sha512(str(number).encode()).hexdigest() for number in range(400_000)]
    parquet.write_table(pa.table({"k": [number % 100 for number in range(len(texts))], "text": texts}), file)
    return str(file)


def test_an_old_entry_makes_room_and_a_pinned_one_does_not(data: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert ran(store, data, "first")["stores"] == 1
    (entry,) = told(store, "cache", "ls", "--json")
    with admin.opened(str(store), getpass.getuser()) as opened:
        long_ago = entry["used"] - 100 * DAYS
        opened.catalog.write(lambda c: c.execute(ENTRY.update().values(used=long_ago, net_benefit=None)))
        opened.catalog.write(lambda c: c.execute(RUN.update().values(started=long_ago)))
    assert told(store, "cache", "pin", entry["id"]) == f"Pinned {entry['id']}.\n"

    pinned = ran(store, data, "second")
    assert (pinned["stores"], pinned["loads"]) == (0, 0)
    assert "OVER_BUDGET" in pinned["codes"]
    why = told(store, "cache", "why", entry["id"], "--json")
    assert (why["state"], why["pinned"], why["job"]) == ("committed", True, "spark_regions suite")
    # The run that made it asked four times, and read it once it was there.
    assert why["uses"] == len(why["used_by"]) >= 1
    assert {use["job"] for use in why["used_by"]} == {"spark_regions suite"}
    assert [each["job"] for each in why["asked_by"]] == ["spark_regions suite"]

    told(store, "cache", "unpin", entry["id"])
    other = ran(store, data, "second")
    assert (other["stores"], other["loads"] >= 1) == (1, True), other
    (kept,) = told(store, "cache", "ls", "--json")
    assert kept["id"] != entry["id"]


def test_advise_after_a_run_that_was_only_observed(data: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    observed = ran(store, data, "first", "observe")
    assert (observed["stores"], observed["loads"]) == (0, 0)
    facts = told(store, "advise", "--json", "--exact")
    assert facts["queries"] == 1
    (result,) = facts["results"]
    assert (result["operator"], result["entry"]) == ("Aggregate", None)
    assert 0 < result["bytes"] <= 300_000
    (found,) = facts["jobs"]
    assert found["job"] == "spark_regions suite"
    assert 0 < found["saved_per_run"] <= found["seconds_per_run"]
    assert facts["net_benefit"] == pytest.approx(facts["exact_net_benefit"], rel=0.01)


if __name__ == "__main__":
    job(*sys.argv[1:])
