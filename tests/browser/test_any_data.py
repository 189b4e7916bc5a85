"""Pages of any data: a thousand operators, hostile names, and what cannot be drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from spark_regions.reports.page import shell
from tests.harness.browser import Reader
from tests.harness.pages import action, deep, execution, node, wide

pytestmark = pytest.mark.browser

EVIL = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>\"'<!--"
MOST_BOXES = 150


def opened(reader: Reader, data: dict[str, Any], page: str = "execution") -> Chrome:
    return reader.opened(shell(page, data, "test"))


@pytest.fixture(autouse=True)
def no_complaints(browser: Chrome) -> Iterator[None]:
    browser.get_log("browser")
    yield
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def boxes(browser: Chrome) -> list[str]:
    found: list[str] = browser.execute_script(
        "return Array.from(document.querySelectorAll('.regions-box'), box => box.textContent)"
    )
    return found


@pytest.mark.parametrize("plan", [wide(), deep()], ids=["wide", "deep"])
def test_a_thousand_operators_are_drawn_as_stacks_that_open(reader: Reader, plan: list[dict[str, Any]]) -> None:
    place = plan[500]["id"]
    browser = opened(reader, execution(plan, [action("store", place), action("share", plan[900]["id"])]))
    shown = boxes(browser)
    assert len(shown) <= MOST_BOXES
    assert sum("▲ stored" in box for box in shown) == sum("⇉ computed once" in box for box in shown) == 1
    # All are accounted for: in boxes of their own, or in a stack that says how many.
    stacks = browser.execute_script(
        """var names = document.querySelectorAll('.regions-stack .regions-name');
        return Array.from(names, name => parseInt(name.textContent))"""
    )
    assert sum(stacks) + len(shown) - len(stacks) == len(plan) >= 999
    size = browser.find_element(By.CSS_SELECTOR, "svg.regions-picture")
    took = browser.execute_script("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert took < 5000
    # A link to an operator takes it out of its stack.
    box = f"regions-plan-7-box-{plan[300]['id']}"
    assert not browser.find_elements(By.ID, box)
    browser.execute_script("location.hash = arguments[0]", box)
    reader_sees = browser.execute_async_script(
        """var [box, done] = arguments;
        setTimeout(() => done((document.getElementById(box) || document.body).getAttribute('class')), 200)""",
        box,
    )
    assert reader_sees and "regions-here" in reader_sees
    assert len(boxes(browser)) <= 2 * MOST_BOXES
    # A stack opens by a click, and everything by a button that a keyboard reaches.
    before = len(boxes(browser))
    browser.execute_script(
        """var press = new MouseEvent('click', {bubbles: true, cancelable: true});
        document.querySelector('.regions-stack').dispatchEvent(press)"""
    )
    assert len(boxes(browser)) > before
    every = browser.find_element(By.CSS_SELECTOR, "[data-zoom=all]")
    every.send_keys(Keys.ENTER)
    assert every.get_dom_attribute("aria-pressed") == "true"
    assert len(boxes(browser)) == len(plan) and str(len(plan)) in every.text
    assert size.get_dom_attribute("role") == "img"
    rows = browser.execute_script("return document.querySelectorAll('#regions-plan-7-operators tbody tr').length")
    assert rows == len(plan)


def test_hundreds_of_branches_below_a_decision_stay_one_stack(reader: Reader) -> None:
    browser = opened(reader, execution(wide(), [action("store", 0)]))
    assert len(boxes(browser)) == 2


def test_text_from_data_stays_text(reader: Reader) -> None:
    """In every text of every page, as data of a hostile name may be."""

    def poisoned(value: Any) -> Any:
        if isinstance(value, str):
            return value + EVIL
        if isinstance(value, list):
            return [poisoned(each) for each in value]
        if isinstance(value, dict):
            return {key: value[key] if key in ("kind", "topic", "status") else poisoned(value[key]) for key in value}
        return value

    skew = {
        "session": "s",
        "topic": "skew",
        "declines": [{"node": -1, "operator": "Join", "code": "X", "detail": "d"}],
        "actions": [
            action(
                "split_by_records",
                -1,
                makespan={"stage": 0, "plain": 2.0, "predicted": 1.0, "balanced": 1.0, "partitions": 4, "tasks": 6},
                splits=[{"partition": 1, "side": "left", "share": 0.9, "tasks": 3, "how": "cut"}],
            ),
            action(
                "measured",
                -1,
                stageRun={
                    "stage": 0,
                    "sparkStage": 3,
                    "attempt": 0,
                    "began": 1,
                    "ended": 9,
                    "tasks": 2,
                    "keys": [{"key": "k", "share": 0.5, "error": 0.1}],
                },
            ),
        ],
    }
    plan = [node(0, 1, operator="Join"), node(1, operator="MaterializedRead", label="MaterializedRead [entry e9]")]
    query = execution(
        plan, [action("load", 0), action("store", 1, refusal={"code": "X", "detail": "d"})], error="failed"
    )
    query["queries"][0]["decisions"].append(skew)
    query["queries"][0]["decisions"][0]["declines"] = [
        {"node": 1, "operator": "Join", "code": "TOO_CHEAP", "detail": "x"}
    ]
    overview = {
        "asOf": 1,
        "mode": "apply",
        "strategy": "markov",
        "saved": {"predicted": 1.0, "measured": 1.0, "choicesMeasured": 1, "estimated": 1.0, "loadsEstimated": 1},
        "held": {"bytes": 1, "entries": 1},
        "planner": {"healthy": False, "state": "down", "reason": "gone"},
        "counters": {},
        "confs": {"spark.regions.x": "y"},
        "actions": {"load": 1},
        "declines": {EVIL: 1},
        "lost": 0,
        "queriesDecided": 1,
        "executionsKept": 1,
        "executions": [query],
    }
    branches = [{"branch": 0, "parameters": {"t": "1", EVIL: "2"}, "score": 1.5, "seconds": 1.0, "state": "kept"}]
    exploration = {
        "exploration": 3,
        "function": "f",
        "select": "top(1)",
        "shape": "convex",
        "order": "given",
        "began": 1,
        "time": 1,
        "seconds": 1.0,
        "status": "ok",
        "error": "e",
        "branches": 5,
        "states": {"kept": 5},
        "best": 1.5,
        "parents": [],
        "bytes": 1,
        "tree": branches,
    }
    pages = {
        "execution": query,
        "": overview,
        "cache": {
            "asOf": 1,
            "truncated": False,
            "entries": [
                {
                    "entry": "e1",
                    "state": "committed",
                    "operator": "Join",
                    "application": "a",
                    "name": "n",
                    "reason": "r",
                    "code": "c",
                    "detail": "d",
                    "readBy": [],
                    "columns": 2,
                }
            ],
        },
        "graph": {"asOf": 1, "operators": 1, "edges": [], "nodes": [{"lineage": "l", "operator": "Join", "uses": 2}]},
        "lost": {
            "lost": [
                {
                    "query": 1,
                    "executionId": 1,
                    "time": 1,
                    "what": "w",
                    "entry": "e",
                    "operator": "o",
                    "code": "c",
                    "reason": "r",
                    "detail": "d",
                }
            ]
        },
        "explorations": {"explorations": [exploration]},
        "exploration": {"exploration": 3, "above": [], "explorations": [exploration]},
        "running": {
            "badRows": 3,
            "note": "n",
            "state": {
                "paused": True,
                "controller": "c",
                "breakpoints": [{"number": 1, "operator": "o", "action": "ask", "sql": "x < 0", "target": 0}],
                "held": [
                    {
                        "attempt": {"stage": 1, "partition": 0, "number": 4},
                        "operator": "o",
                        "ordinal": 7,
                        "values": {"k": "v"},
                        "why": "w",
                        "error": "e",
                        "types": {"w": "INT"},
                        "nullable": True,
                        "answer": "fix",
                        "fixed": {"w": "3"},
                    }
                ],
            },
            "operators": [{"id": 1, "name": "o", "query": 2, "detail": "d", "passed": 5, "inputs": []}],
            "tasks": [
                {
                    "stage": 1,
                    "partition": 0,
                    "attempt": 4,
                    "executor": "e",
                    "stands": True,
                    "at": "o",
                    "row": [["k", "v"]],
                    "rows": {"1": 4},
                }
            ],
            "params": {"p": {"type": "INT", "value": "v"}},
            "changes": [
                {
                    "name": "p",
                    "value": "v",
                    "row": 7,
                    "stage": 1,
                    "partition": 0,
                    "attempt": 4,
                    "replayed": False,
                    "reason": "r",
                }
            ],
        },
        "report": {
            "headline": "h",
            "notes": ["n"],
            "saved": overview["saved"],
            "actions": {},
            "declines": {EVIL: 2},
            "sections": [{"title": "t", "rows": [["a", "b"]], "hint": "h"}],
            "candidates": {"columns": ["c"], "rows": [["r"]], "hint": "h"},
            "plots": [{"title": "t", "points": [[1, 2]]}],
        },
    }
    for page, data in pages.items():
        html = shell(page, poisoned(data), EVIL)
        assert html.count("</script>") == 2, "a text ended the block"
        browser = opened(reader, poisoned(data), page)
        assert "could not be made" not in browser.find_element(By.TAG_NAME, "body").text, page
        assert EVIL in browser.execute_script("return document.getElementById('regions-view').textContent")
        assert browser.execute_script("return window.hurt") is None
        made = "return document.querySelectorAll('#regions-view script, #regions-view img').length"
        assert browser.execute_script(made) == 0


def test_a_page_that_cannot_be_drawn_says_so(reader: Reader) -> None:
    reader.browser.get_log("browser")  # of pages before
    html = reader.drawn(shell("execution", {"executionId": 3, "queries": 7}, "test") + "<!-- broken -->")
    assert 'role="alert"' not in html and "Nothing is known of it" in html
    html = reader.drawn(shell("cache", {"asOf": 0}, "test"))
    assert 'role="alert"' in html and "This page could not be made: TypeError" in html
    complaints = [entry["message"] for entry in reader.browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert len(complaints) == 1 and "TypeError" in complaints[0]
