"""Reading physical plans: what is accepted, and one clear sentence for what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_regions.dag.workflow import Edge, Operator, parse_plan, physical_plan, read_plan
from spark_regions.errors import InvalidWorkflow

V1, V2 = {"id": "v1", "seconds": 1.2}, {"id": "v2"}
EDGE = {"source": "v1", "target": "v2", "bytes": 10}


def document(*edges: dict[str, Any], operators: Any = (V1, V2)) -> dict[str, Any]:
    return {"operators": list(operators), "edges": list(edges)}


def test_optional_fields_have_defaults() -> None:
    plan = parse_plan(document(EDGE, EDGE | {"blocking": True}), "flow")
    assert plan.operators == (Operator("v1", 1.2), Operator("v2", 0.0))
    assert plan.edges == (Edge("e1", "v1", "v2", 10.0, False), Edge("e2", "v1", "v2", 10.0, True))
    assert (plan.name, plan.blocking, plan.results) == ("flow", {1}, (1,))


def test_ids_may_be_numbers_and_names_are_kept() -> None:
    plan = parse_plan(
        {"name": "mine", "operators": [{"id": 1}, {"id": 2}], "edges": [EDGE | {"source": 1, "target": 2}]}
    )
    assert plan.name == "mine"
    assert plan.edges[0].target == "2"


def test_an_empty_workflow_is_one() -> None:
    assert parse_plan({"operators": [], "edges": []}).topological == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], r"Found list, expected an object with operators and edges\."),
        ({"operators": [V1]}, r"Found nothing as 'edges', expected a list\."),
        (document(operators=["v1"]), r"Found str in 'operators', expected objects\."),
        (document(operators=[{"seconds": 1}]), r"Found None as 'id' of operator 1, expected a name\."),
        (document(operators=[V1, V1]), r"Two operators have the id 'v1'\."),
        (document(EDGE | {"id": "x"}, EDGE | {"id": "x"}), r"Two edges have the id 'x'\."),
        (document(EDGE | {"id": "e2"}, EDGE), r"Two edges have the id 'e2'\."),
        (document(EDGE | {"target": "v9"}), r"Edge e1 has the target 'v9', which is no operator\."),
        (document(EDGE | {"source": "v9"}), r"Edge e1 has the source 'v9', which is no operator\."),
        (document({"source": "v1", "target": "v2"}), r"Edge e1 has no bytes\."),
        (document(EDGE | {"bytes": -1}), r"Found -1 as bytes of edge e1, expected a finite number, zero or above\."),
        (document(EDGE | {"bytes": 1e400}), r"Found inf as bytes of edge e1"),
        (document(EDGE | {"bytes": 10**400}), r"Found inf as bytes of edge e1"),
        (document(EDGE | {"bytes": float("nan")}), r"Found nan as bytes of edge e1"),
        (document(EDGE | {"bytes": "10"}), r"Found bytes='10' of edge e1, expected a number\."),
        (document(EDGE | {"bytes": True}), r"Found bytes=True of edge e1, expected a number\."),
        (document(EDGE | {"bytes": None}), r"Found bytes=None of edge e1, expected a number\."),
        (document(EDGE | {"blocking": 1}), r"Found blocking=1 of edge e1, expected true or false\."),
        (document(operators=[V1 | {"seconds": -2}]), r"Found -2 as seconds of operator v1"),
        (document(EDGE, {"source": "v2", "target": "v1", "bytes": 1}), r"The graph has a cycle: v1 -> v2 -> v1\."),
        (document(EDGE | {"target": "v1"}), r"The graph has a cycle: v1 -> v1\."),
        (
            document(EDGE | {"port": "out"}, EDGE | {"port": "out", "blocking": True}),
            r"Edges e1 and e2 leave one port, but only one of them is blocking\.",
        ),
    ],
)
def test_what_is_wrong_is_said(given: Any, said: str) -> None:
    with pytest.raises(InvalidWorkflow, match=said):
        parse_plan(given)


def test_a_cycle_is_shown_without_what_leads_to_it() -> None:
    ends = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("d", "e")]
    edges = [Edge(f"e{place}", *pair, 1.0) for place, pair in enumerate(ends)]
    with pytest.raises(InvalidWorkflow) as found:
        physical_plan([Operator(name) for name in "abcde"], edges)
    assert str(found.value) in {
        f"The graph has a cycle: {' -> '.join(cycle)}. Expected an acyclic one." for cycle in ("bcdb", "cdbc", "dbcd")
    }


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidWorkflow, match="No such file or directory"):
        read_plan(tmp_path / "none.json")
    with pytest.raises(InvalidWorkflow, match="Is a directory"):
        read_plan(tmp_path)
    file = tmp_path / "dag.json"
    file.write_text('{"operators": [')
    with pytest.raises(InvalidWorkflow, match=r"dag\.json is no JSON"):
        read_plan(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidWorkflow, match="Cannot read"):
        read_plan(file)
    file.write_text("[" * 100_000)
    with pytest.raises(InvalidWorkflow, match="is no JSON"):
        read_plan(file)
    file.write_text(json.dumps(document(EDGE)))
    assert read_plan(file).name == "dag"


def test_topological_order_ignores_the_order_of_the_file() -> None:
    plan = parse_plan(document({"source": "v2", "target": "v1", "bytes": 1}))
    assert plan.topological == (1, 0)
