"""A recorded run as a workflow DAG, and the command that prints it for the region planner."""

from __future__ import annotations

import json

from builders import plan, signature
from click.testing import CliRunner
from horizon_cases import step
from wire_client import decide, node

from spark_regions.cli.commands import commands
from spark_regions.dag.workflow import document, parse_plan
from spark_regions.regions import planning
from spark_regions.runs.recorded_query import Measured, RecordedQuery, encode
from spark_regions.runs.workflow import workflow
from spark_regions.store import admin
from spark_regions.store.graph import Batch, write_batch
from tests.harness.wire import read

SECONDS = {"A": 3.0, "source": 0.1}


def test_queries_meet_where_they_compute_the_same_rows():
    steps = [step(top, "A", "source", seconds=SECONDS) for top in ("r1", "r2")]
    physical = workflow(steps, "nightly")
    assert len(physical.operators) == 4  # source, A, and what each query has on top
    assert sorted(len(edges) for edges in physical.out_edges) == [0, 0, 1, 2]
    assert sorted(operator.seconds for operator in physical.operators) == [0.0, 0.0, 0.1, 3.0]
    assert {edge.bytes for edge in physical.edges} == {10e6}  # a million rows of 10 bytes


def test_a_shuffle_blocks_and_what_was_not_seen_has_the_rows_of_its_input():
    tree = {
        0: ("Aggregate", signature("count"), (1,)),
        1: ("Project", signature("wide"), (2,)),
        2: ("LogicalRelation", signature("source"), ()),
    }
    physical = workflow([RecordedQuery(plan(tree), Measured({}, {2: 1000.0}, {}))])
    by_source = {edge.source.split()[0]: edge for edge in physical.edges}
    assert by_source["Project"].blocking and not by_source["LogicalRelation"].blocking
    assert by_source["Project"].bytes == by_source["LogicalRelation"].bytes == 10000.0


def test_what_is_written_is_read_back_and_planned():
    physical = workflow([step("r1", "A", "source", seconds=SECONDS)], "nightly")
    again = parse_plan(json.loads(json.dumps(document(physical))))
    assert (again.name, again.operators, again.edges) == ("nightly", physical.operators, physical.edges)
    assert planning.plan(again).proven


def run_graph(folder, name):
    return CliRunner().invoke(commands, ["graph", "--dir", str(folder), "--namespace", "anna", "--workflow", name])


def test_graph_prints_the_last_run_of_a_name(tmp_path):
    message = decide([node(0, "Aggregate", (1,), "r1"), node(1, "LogicalRelation", (), "source")], 1)
    body = encode(read(message).plan, Measured({0: 2.0, 1: 1.0}, {0: 10.0, 1: 1000.0}, {}))
    with admin.opened(str(tmp_path), "anna") as store:
        run = store.begin("app-1", "nightly")
        batch = Batch(queries=1, steps={0: body})
        store.catalog.write(lambda connection: write_batch(connection, batch, run.id))
    found = run_graph(tmp_path, "nightly")
    assert found.exit_code == 0
    assert [each["seconds"] for each in json.loads(found.stdout)["operators"]] == [1.0, 2.0]
    missing = run_graph(tmp_path, "weekly")
    assert missing.exit_code == 2
    assert missing.stderr == "error: Found no recorded run of 'weekly', expected one of: nightly.\n"


def test_graph_of_a_store_that_is_not_there_says_so(tmp_path):
    found = run_graph(tmp_path / "nothing", "nightly")
    assert found.exit_code == 2 and found.stderr.startswith("error: ")
