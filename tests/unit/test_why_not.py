"""Reading the shim's answer to `why_not`."""

from __future__ import annotations

import json

from spark_regions.spark.explanation import read_answer

ANSWER = {
    "nodes": [
        {"id": 0, "operator": "Aggregate", "children": [1], "code": None, "detail": None},
        {"id": 1, "operator": "Project", "children": [2], "code": "NONDETERMINISTIC", "detail": "rand(5)"},
        {"id": 2, "operator": "LogicalRDD", "children": [], "code": "RDD_SOURCE", "detail": ""},
    ]
}


def test_nodes_are_indented_and_codes_become_sentences() -> None:
    answer = read_answer(json.dumps(ANSWER))
    assert str(answer).splitlines() == [
        "(0) Aggregate: can be stored",
        "  (1) Project: NONDETERMINISTIC: The expression may give another value in another run (rand(5)).",
        "    (2) LogicalRDD: RDD_SOURCE: The rows come from an RDD, which has no identity across applications.",
    ]
    assert [node.node for node in answer.refused] == [1, 2]


def test_an_empty_plan_has_no_answers() -> None:
    assert str(read_answer('{"nodes":[]}')) == ""
