"""Savings are measured against plain runs; queries that run both ways are found out where their rows differ."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyarrow import compute, parquet
from pyspark.sql import DataFrame, SparkSession

from spark_regions.cli.commands import commands
from tests.harness.session import decisions, settle, sibling

pytestmark = pytest.mark.spark

OFF = {"spark.regions.mode": "observe"}
BOTH_WAYS = {"spark.regions.verify.fraction": "1", "spark.regions.recycle.strategy": "always"}


@pytest.fixture
def both(spark: SparkSession) -> SparkSession:
    return sibling(spark, BOTH_WAYS)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> str:
    rows = sibling(spark, OFF).range(0, 20_000, 1, 2).selectExpr("id", "id % 50 AS k", "id * 0.5D AS x")
    rows.write.parquet(str(tmp_path / "t"))
    return str(tmp_path / "t")


def sums(session: SparkSession, folder: str) -> DataFrame:
    return session.read.parquet(folder).groupBy("k").sum("id").orderBy("k")


def until(session: SparkSession, found: Callable[[], object], seconds: float = 30) -> object:
    """What is found, once it is."""
    end = time.monotonic() + seconds
    while not (answer := found()) and time.monotonic() < end:
        settle(session)
        time.sleep(0.05)
    assert answer
    return answer


def last(session: SparkSession, kind: str) -> dict[str, object] | None:
    return next((each for each in reversed(decisions(session)) if each["kind"] == kind), None)


def told(session: SparkSession) -> dict[str, int]:
    """The counters, without a query, beside which nothing could be timed."""
    api = session._jvm.org.apache.spark.sql.regions.RegionsApi
    return json.loads(api.counters(session._jsparkSession))  # type: ignore[no-any-return]


def ran_both_ways(session: SparkSession, frame: DataFrame, kind: str = "verified") -> list[object]:
    """Rows of the frame, when it has been run both ways."""
    counter = "verified" if kind == "verified" else "differences"
    before = told(session)[counter]
    rows = frame.collect()
    until(session, lambda: told(session)[counter] > before)
    return rows


def stored(session: SparkSession, frame: DataFrame) -> str:
    """The entry that a first run leaves."""
    before, noted = told(session)["commits"], last(session, "committed")
    frame.collect()
    until(session, lambda: told(session)["commits"] > before)
    until(session, lambda: last(session, "committed") != noted)
    found = last(session, "committed")
    assert found
    return str(found["entry"])


def corrupt(recycle_dir: Path, entry: str) -> None:
    """Another value in one row, and a manifest that says that this is as it was written."""
    (manifest,) = [path for path in recycle_dir.rglob("*.json") if entry in str(path.parent)]
    held = json.loads(manifest.read_text())
    file = next(each for each in held["files"] if each["rows"])
    path = manifest.parent / file["name"]
    table = parquet.read_table(path)
    place = table.schema.names.index("c1")
    column = compute.add(table.column(place), compute.equal(table.column(0), table.column(0)[0]).cast("int64"))
    os.chmod(path, 0o600)
    parquet.write_table(table.set_column(place, table.schema.field(place), column.combine_chunks()), path)
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    found = path.stat()
    held["bytes"] += found.st_size - file["bytes"]
    file |= {"bytes": found.st_size, "modified": found.st_mtime_ns // 1_000_000}
    os.chmod(manifest, 0o600)
    manifest.write_text(json.dumps(held))
    (manifest.parent / f".{manifest.name}.crc").unlink(missing_ok=True)


def test_a_query_that_runs_both_ways_has_a_measured_saving(both: SparkSession, folder: str) -> None:
    stored(both, sums(both, folder))
    ran_both_ways(both, sums(both, folder))
    until(both, lambda: last(both, "verified"))
    pair = last(both, "verified")
    assert pair
    assert (pair["code"], str(pair["detail"]).split(" rows")[0]) == ("VERIFIED", "50")
    ran_both_ways(both, sums(both, folder))
    load = last(both, "load")
    assert load
    assert isinstance(load["measured_seconds"], float)
    assert load["estimated_seconds"] is None


def test_a_saving_without_a_plain_run_is_estimated_and_explain_says_so(spark: SparkSession, folder: str) -> None:
    session = sibling(spark, {"spark.regions.recycle.strategy": "always"})
    frame = session.read.parquet(folder).groupBy("k").max("id")
    stored(session, frame)
    again = session.read.parquet(folder).groupBy("k").max("id")
    again.collect()
    settle(session)
    load = last(session, "load")
    assert load
    # The first run was cold, and stored; this one is warm.
    assert load["measured_seconds"] is None
    explained = again._jdf.queryExecution().toString()
    assert "no plain run is known (warm): savings are estimated" in explained


def test_runs_without_an_action_are_what_savings_are_measured_against(spark: SparkSession, folder: str) -> None:
    def minima(session: SparkSession) -> DataFrame:
        return session.read.parquet(folder).groupBy("k").min("id")

    watching = sibling(spark, OFF)
    for _ in range(3):
        minima(watching).collect()
    session = sibling(spark, {"spark.regions.recycle.strategy": "always"})
    stored(session, minima(session))
    frame = minima(session)
    frame.collect()
    settle(session)
    load = last(session, "load")
    assert load
    assert isinstance(load["measured_seconds"], float)
    assert load["estimated_seconds"] is None
    explained = frame._jdf.queryExecution().toString()
    assert "(warm, " in explained
    assert ", measured " in explained


def test_a_changed_value_is_found_and_switched_off_until_it_is_lifted(
    spark: SparkSession, both: SparkSession, folder: str, recycle_dir: Path
) -> None:
    plain = sums(sibling(spark, OFF), folder).collect()
    entry = stored(both, sums(both, folder))
    corrupt(recycle_dir, entry)
    wrong = ran_both_ways(both, sums(both, folder), "differs")
    assert wrong != plain  # What the plugin cannot see, it reads.
    # It is counted first, and noted then.
    until(both, lambda: last(both, "differs"))
    found = last(both, "differs")
    assert found
    assert (found["code"], found["detail"]) == ("DIFFERS", "1 of 50 rows are others than plain Spark's")

    def off() -> bool:
        assert sums(both, folder).collect() == plain
        return any(each["code"] == "DIFFERS" and each["kind"] == "decline" for each in decisions(both))

    until(both, off)
    loads = told(both)["loads"]
    assert sums(both, folder).collect() == plain
    assert told(both)["loads"] == loads
    at = ["--dir", str(recycle_dir)]
    listed = CliRunner().invoke(commands, ["cache", "off", "--json", *at])
    off_now = json.loads(listed.output)
    assert {each["detail"] for each in off_now} == {found["detail"]}
    for each in off_now:
        assert CliRunner().invoke(commands, ["cache", "lift", each["lineage"], "-y", *at]).exit_code == 0
    assert CliRunner().invoke(commands, ["cache", "lift", off_now[0]["lineage"], "-y", *at]).exit_code == 1
    assert "Nothing is switched off." in CliRunner().invoke(commands, ["cache", "off", *at]).output
    assert stored(both, sums(both, folder)) != entry
    assert ran_both_ways(both, sums(both, folder)) == plain


def test_a_listener_hears_of_no_further_query(both: SparkSession, folder: str) -> None:
    """Both ways run outside of any SQL execution, and in a job group of their own."""
    stored(both, sums(both, folder))
    store = both._jsparkSession.sharedState().statusStore()
    settle(both)
    last = store.executionsList().last().executionId()
    ran_both_ways(both, sums(both, folder))
    settle(both)
    assert store.executionsList().last().executionId() == last + 1
    assert both.sparkContext.getLocalProperty("spark.jobGroup.id") is None
