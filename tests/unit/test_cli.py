"""The command line on a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spark_regions.cli.commands import commands
from spark_regions.costs.rates import ENGINE_START_SECONDS
from spark_regions.dag.records import Entry, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.store import admin
from spark_regions.store.graph import Batch, write_batch

LINEAGES = ("a" * 32, "b" * 32)


def call(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(commands, words, input=stdin, catch_exceptions=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with one committed entry, its data folder, and a graph of two operators."""
    with admin.opened(str(tmp_path), "anna") as store:
        run = store.begin("app-1", "report")
        wanted = Entry("", LINEAGES[0], "c" * 32, frozenset(), ("d" * 32,), "", "pending", 0, 10_000, 0.0, 0.0)
        entry = store.new_entry(wanted)
        admitted = store.admit([], [(entry, lambda known, leased: [])], 10_000, 5.0)
        assert admitted == (frozenset(), {}, {entry.id: 10_000})
        files = tmp_path / "v1" / "anna" / "data" / entry.id
        files.mkdir()
        (files / "part-00000.parquet").write_bytes(b"x" * 2048)
        assert store.commit(entry.id, 7, 2048, 0.1, lambda new, old: False) == ""
        batch = Batch(queries=1)
        for lineage, kind, demands in zip(LINEAGES, ("Join", "Aggregate"), (3, 1), strict=True):
            batch.add_variant(
                OperatorStatistics(
                    lineage, kind, "s", "c" * 32, frozenset(), (), rows=RunningStatistics.of(7.0), demands=demands
                )
            )
        batch.add_edge(*LINEAGES)
        batch.calibration[(store.where.data, "duckdb.start")] = 0.7
        store.catalog.write(lambda connection: write_batch(connection, batch, run.id))
    return tmp_path


def test_platforms_tells_what_is_installed_and_proven(folder: Path, tmp_path: Path) -> None:
    found = json.loads(call("platforms", "--json", *place(tmp_path / "none")).stdout)["platforms"][0]
    assert found["costs"] == {"start_seconds": ENGINE_START_SECONDS, "factor": 1.0}
    told = json.loads(call("platforms", "--json", *place(folder)).stdout)["platforms"][0]
    assert told["costs"] == {"start_seconds": 0.7, "factor": 1.0}
    assert (found["name"], found["usable"]) == ("duckdb", True)
    assert {"Aggregate", "Join", "Sort"} <= {*found["operators"]}
    assert all(each["why"] for each in found["expressions"])
    assert "--table" in call("platforms").stdout
    assert found["expressions"][0]["why"] in call("platforms", "--table").stdout


def place(folder: Path) -> tuple[str, ...]:
    return ("--dir", str(folder), "--namespace", "anna")


def entry_id(folder: Path) -> str:
    (entry,) = json.loads(call("cache", "ls", "--json", *place(folder)).stdout)
    return str(entry["id"])


def test_ls_shows_size_and_budget(folder: Path) -> None:
    result = call("cache", "ls", *place(folder))
    assert entry_id(folder)[:13] in result.stdout
    assert "1 entries, 2.0 KiB of 10.0 GiB" in result.stdout


def test_ls_of_no_store_makes_none(tmp_path: Path) -> None:
    result = call("cache", "ls", "--dir", str(tmp_path / "none"), "--namespace", "anna")
    assert result.exit_code == 0
    assert result.stdout.startswith("Nothing is stored in ")
    assert not (tmp_path / "none").exists()


def test_rm_asks_and_deletes_files(folder: Path) -> None:
    files = folder / "v1" / "anna" / "data" / entry_id(folder)
    refused = call("cache", "rm", entry_id(folder)[:10], *place(folder), stdin="n\n")
    assert refused.exit_code == 1
    assert files.exists()
    done = call("cache", "rm", entry_id(folder)[:10], *place(folder), stdin="y\n")
    assert done.exit_code == 0
    assert not files.exists()
    assert json.loads(call("cache", "ls", "--json", *place(folder)).stdout) == []


def test_rm_of_an_unknown_entry_says_so(folder: Path) -> None:
    result = call("cache", "rm", "e123456", "--yes", *place(folder))
    assert "No single entry starts with e123456. Hint: " in str(result.exception)


def test_clear_deletes_files_and_keeps_the_graph(folder: Path) -> None:
    result = call("cache", "clear", "--yes", *place(folder))
    assert result.stdout == "Removed 1 entries.\n"
    assert list((folder / "v1" / "anna" / "data").iterdir()) == []
    assert "2 operators, 1 edges" in call("graph", *place(folder)).stdout


def test_clear_of_no_store_is_an_error(tmp_path: Path) -> None:
    result = call("cache", "clear", "--yes", "--dir", str(tmp_path / "none"))
    assert "No store at" in str(result.exception)
    assert not (tmp_path / "none").exists()


def test_graph_lists_the_most_used_first(folder: Path) -> None:
    lines = call("graph", *place(folder)).stdout.splitlines()
    assert lines == [
        "2 operators, 1 edges",
        "    3 x Join aaaaaaaaaaaa, 7 rows, 0.000 s, stored",
        "        -> Aggregate bbbbbbbbbbbb (1 x)",
        "    1 x Aggregate bbbbbbbbbbbb, 7 rows, 0.000 s",
    ]


def test_graph_in_other_forms(folder: Path) -> None:
    dot = call("graph", "--dot", *place(folder)).stdout
    assert dot.startswith("digraph regions {")
    assert f'"{LINEAGES[0]}" -> "{LINEAGES[1]}" [label="1"];' in dot
    data = json.loads(call("graph", "--json", *place(folder)).stdout)
    assert [node["id"] for node in data["nodes"]] == list(LINEAGES)
    assert data["edges"] == [{"runs": 1, "occurrences": 1, "source": LINEAGES[0], "target": LINEAGES[1]}]


def test_doctor_passes_and_starts_a_planner(folder: Path) -> None:
    result = call("doctor", "--json", *place(folder))
    checks = {check["name"]: check for check in json.loads(result.stdout)}
    assert list(checks) == ["python", "java", "pyspark", "jar", "planner", "store", "catalog", "disk"]
    assert [name for name, check in checks.items() if not check["passed"]] == []
    assert result.exit_code == 0
    assert "1 entries, 2.0 KiB" in checks["catalog"]["text"]


def test_doctor_fails_on_a_budget_larger_than_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text("spark.regions.recycle.maxBytes 900000t\n", encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder / "conf"))
    result = call("doctor", *place(folder))
    assert result.exit_code == 1
    assert "FAIL disk:" in result.stdout
    assert "Hint: lower spark.regions.recycle.maxBytes" in result.stdout


def test_doctor_names_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = call("doctor", "--dir", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert "FAIL store:" in result.stdout
