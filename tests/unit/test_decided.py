from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from report_logs import action

from spark_regions.spark import decided
from spark_regions.spark.decided import Decisions, as_decisions, table_rows


def classic() -> dict[str, Any]:
    refused = action("load", 2, "e2", 1.0, refusal={"code": "ENTRY_MISSING", "detail": ""})
    return {
        "query": 7,
        "actions": [action("load", 1, "e1", 1.25), refused],
        "declines": [{"node": 3, "operator": "Join", "code": "TOO_CHEAP", "detail": "0.02 s"}],
        "refusal": None,
    }


def connect() -> list[dict[str, Any]]:
    """Rows of `SELECT * FROM spark_regions_decisions()`."""

    def row(kind: str, code: str, node: int | None = 1, seconds: float | None = None) -> dict[str, Any]:
        told = {"entry": "e1" if kind == "load" else None, "predicted_seconds": seconds, "code": code, "detail": None}
        return {"query": 7, "node": node, "operator": "Join", "kind": kind, "execution": 3, **told}

    return [row("load", "BENEFIT", seconds=1.25), row("decline", "TOO_CHEAP"), row("refused", "PLANNER_DEADLINE", None)]


def test_rows_of_a_classic_session() -> None:
    load, failed, declined = table_rows([classic()])
    assert load[:5] == ("7", "load", "Join (1)", "e1", "1.25 s")
    assert load[5] == ""
    assert load[6].startswith("BENEFIT: ")
    (measured, *_) = table_rows([classic() | {"actions": [classic()["actions"][0] | {"measuredSeconds": -0.5}]}])
    assert measured[4:6] == ("1.25 s", "-0.50 s measured")
    assert failed[1:5] == ("could not load", "Join (2)", "e2", "")
    assert failed[6].startswith("ENTRY_MISSING: ")
    assert declined[1:] == (
        "declined", "Join (3)", "", "", "", "TOO_CHEAP: Recomputing costs too little to be worth an entry (0.02 s)."
    )  # fmt: skip


def test_rows_of_a_connect_session() -> None:
    load, declined, refused = table_rows(connect())
    assert load[:5] == ("7", "load", "Join (1)", "e1", "1.25 s")
    assert declined[1] == "decline"
    assert refused[1:3] == ("refused", "Join")


def test_both_sessions_have_one_shape() -> None:
    (found,) = as_decisions(connect())
    assert (found["query"], found["execution"]) == (7, 3)
    assert [each["ran"] for each in found["actions"]] == [True]
    assert [(each["kind"], each["savingSeconds"], each["reason"]) for each in found["actions"]] == [
        ("load", 1.25, "BENEFIT")
    ]
    assert [each["code"] for each in found["declines"]] == ["TOO_CHEAP"]
    assert found["refusal"]["code"] == "PLANNER_DEADLINE"
    assert as_decisions([classic()]) == [classic()]


def test_what_another_engine_took_is_told_whichever_session_asks() -> None:
    run = {"predictedSeconds": 0.5, "predictedRows": 9.6, "predictedBytes": 80.0}
    run |= {"measuredSeconds": 0.25, "measuredRows": 1000, "measuredBytes": 8000}
    snake = {name.replace("S", "_s").replace("R", "_r").replace("B", "_b"): value for name, value in run.items()}
    row = connect()[0] | {"kind": "route", "code": "ENGINE", "detail": "duckdb", "engine": snake}
    (found,) = as_decisions([row])
    assert found["actions"][0]["engine"] == run
    whole = classic() | {"actions": [action("route", 1, engine=run) | {"reason": "ENGINE", "detail": "duckdb"}]}
    for told in (row, whole):
        (shown, *_) = table_rows([told])
        assert shown[6].endswith("Predicted 0.50 s, 10 rows, 80 bytes; took 0.25 s, 1,000 rows, 8,000 bytes.")


def test_a_notebook_sees_a_table_without_anybodys_markup() -> None:
    shown = Decisions([classic() | {"query": "<script>"}])._repr_html_()
    assert "<script>" not in shown
    root = ElementTree.fromstring(f"<div>{shown}</div>")
    assert len(root.findall("./table/tbody/tr")) == 3


def test_a_long_table_is_cut_and_says_so() -> None:
    rows = Decisions([classic()] * 100)
    shown = rows._repr_html_()
    assert shown.count("<tr>") == decided.ROWS_SHOWN + 1
    assert "The latest 200 of 300 rows." in shown
    assert len(rows) == 100
