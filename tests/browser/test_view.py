"""The view by itself, in a page that stands alone: figures, layout, pictures of any size, and text that stays text."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from spark_regions.reports.page import shell
from tests.harness.browser import Reader

pytestmark = pytest.mark.browser

EVIL = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>\"'<!--"
MOST_BOXES = 150


def action(kind: str, node: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "node": node, "operator": "Join", "entry": "e123456789abcdef", "savingSeconds": 1.5, "ran": True,
            "reason": "BENEFIT", "detail": "", "refusal": None, **more}  # fmt: skip


def execution(nodes: list[dict[str, Any]], actions: list[dict[str, Any]] = (), **more: Any) -> dict[str, Any]:  # type: ignore[assignment]
    """The JSON of a query's page (docs/ui.md)."""
    decision = {
        "session": "s",
        "topic": "",
        "plannerMillis": 5.0,
        "actions": list(actions),
        "declines": [],
        "refusal": None,
    }
    query = {"query": 7, "executionId": 3, "partOf": 7, "operators": len(nodes), "planningMillis": 20.0, "predicted": 1.5,
             "saved": 1.2, "declined": 0, "truncated": False, "nodes": nodes, "decisions": [decision], "loads": []}  # fmt: skip
    return {"executionId": 3, "query": 7, "description": "collect", "subqueries": 0, "notRun": 0, "status": "ok", "error": "",
            "time": 1_700_000_000_000, "planningMillis": 20.0, "notRunMillis": 0.0, "counted": True, "done": {"load": 1},
            "summary": "loaded", "declined": 0, "refusal": "", "predicted": 1.5, "saved": 1.2, "seconds": 2.5,
            "sinceStart": 2.5, "taskSeconds": 4.0, "truncated": False, "queries": [query], "wall": {}} | more  # fmt: skip


def node(number: int, *children: int, operator: str = "Project", **more: Any) -> dict[str, Any]:
    return {"id": number, "operator": operator, "children": list(children), "label": f"{operator} [k#1]", **more}


def opened(reader: Reader, data: dict[str, Any], page: str = "execution") -> Chrome:
    reader.drawn(shell(page, data, "test"))
    reader.browser.refresh()
    return reader.browser


@pytest.fixture(autouse=True)
def no_complaints(browser: Chrome) -> Iterator[None]:
    browser.get_log("browser")
    yield
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.fixture(scope="module")
def view(reader: Reader) -> Chrome:
    return opened(reader, execution([node(0)]))


def boxes(browser: Chrome) -> list[str]:
    found: list[str] = browser.execute_script(
        "return Array.from(document.querySelectorAll('.regions-box'), box => box.textContent)"
    )
    return found


def test_bytes_and_times_have_three_or_four_digits(view: Chrome) -> None:
    def told(function: str, *values: object) -> list[str]:
        found: list[str] = view.execute_script(
            f"return arguments[0].map(value => regionsView.{function}(...[].concat(value)))", list(values)
        )
        return found

    sizes = [0, 591, 1036.2 * 1024, 1995, 135000, 999.7 * 1024, 119959552, 3e18]
    assert told("bytes", *sizes) == [
        "0 B", "591 B", "1.0 MiB", "1.9 KiB", "132 KiB", "1.0 MiB", "114 MiB", "2665 PiB",
    ]  # fmt: skip
    assert told("millis", 2551, 20, 603) == ["2.6 s", "20 ms", "0.6 s"]
    settings = [("rssBytes", "119959552"), ("startupMillis", "1076"), ("ttl", "604800000ms"), ("max", "10737418240b")]
    assert told("setting", *settings, ("hits", "27"), ("dir", "/tmp")) == [
        "114 MiB", "1.1 s", "7 d", "10.0 GiB", "27", "/tmp",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("Join Inner, (k#1L = m#22)", "inner, k = m"),
        ("Join LeftSemi, ((a#1 <=> b#2) AND (c#3 = d#4))", "leftsemi, (a <=> b) AND (c = d)"),
        ("Join Cross", "cross"),
        ("Aggregate [k#1L, m#2], [k#1L, count(1) AS c#3L]", "by k, m"),
        ("Aggregate [count(1) AS c#3L]", "over all rows"),
        ("Filter (isnotnull(k#1L) AND (k#1L > 3))", "k > 3"),
        ("Filter ((isnotnull(a#1) AND ((a#1 > 3) AND (b#2 < 1))) AND isnotnull(b#2))", "a > 3 AND b < 1"),
        ("Filter isnotnull(k#1L)", "isnotnull(k)"),
        ("Sort [k#1 ASC NULLS FIRST, m#2 DESC NULLS LAST], true", "k ASC, m DESC"),
        ("GlobalLimit 100", "100 rows"),
        ("Project [k#1]", ""),
        ("Union false, false", ""),
        ("Filter", ""),
        ("Join", ""),
        ("Aggregate", "over all rows"),
        ("Filter (((", "((("),
        ("Filter )", ")"),
    ],
)
def test_an_operator_s_second_line_says_what_it_does(view: Chrome, label: str, words: str) -> None:
    said = view.execute_script(
        "return regionsView.operatorWords(arguments[0], arguments[1])", label.split(" ")[0], label
    )
    assert said == words
    assert view.execute_script("return regionsView.operatorWords('Scan parquet x', 'Relation [a#1] parquet')") == ""


class Layout:
    """Boxes of 200 x 50 with gaps of 20 and 40."""

    def __init__(self, browser: Chrome, count: int, edges: list[tuple[int, int]]) -> None:
        size = {"boxWidth": 200, "boxHeight": 50, "gapX": 20, "gapY": 40}
        found = browser.execute_script(
            """var began = performance.now(), made = regionsView.layered(...arguments);
            return Object.assign(made, {millis: performance.now() - began})""",
            count, edges, size,
        )  # fmt: skip
        self.x, self.y, self.bends = found["x"], found["y"], found["bends"]
        self.width, self.height, self.millis = found["width"], found["height"], found["millis"]
        self.edges = edges

    def check(self, acyclic: bool = True) -> None:
        rows = defaultdict(list)
        for x, y in zip(self.x, self.y, strict=True):
            rows[y].append(x)
            assert -1e-6 <= x <= self.width - 200 + 1e-6 and 0 <= y <= self.height - 50 + 1e-6
        for row in rows.values():
            row.sort()
            assert all(right - left >= 219.999 for left, right in zip(row, row[1:], strict=False))
        if acyclic:
            assert all(self.y[above] < self.y[below] for above, below in self.edges)


def test_each_node_stands_over_the_one_that_it_feeds(view: Chrome) -> None:
    tree = Layout(view, 5, [(1, 0), (2, 0), (3, 1), (4, 1)])
    tree.check()
    assert tree.y[0] == max(tree.y)
    assert tree.x[1] == pytest.approx((tree.x[3] + tree.x[4]) / 2)
    assert Layout(view, 0, []).height == 0
    alone = Layout(view, 1, [])
    assert (alone.width, alone.height) == (200, 50)
    Layout(view, 7, []).check()


def test_loops_and_cycles_are_drawn_and_end(view: Chrome) -> None:
    knot = Layout(view, 4, [(0, 0), (0, 1), (1, 2), (2, 0), (3, 2)])
    knot.check(acyclic=False)
    assert len(knot.bends) == 5


def test_a_long_edge_bends_around_the_boxes_of_the_layers_between(view: Chrome) -> None:
    assert len(Layout(view, 4, [(1, 0), (2, 1), (3, 2), (3, 0)]).bends[3]) == 2


def test_random_graphs_keep_order_and_distance(view: Chrome) -> None:
    drawn = random.Random(7)
    for _ in range(30):
        count = 1 + drawn.randrange(60)
        pairs = {(drawn.randrange(count), drawn.randrange(count)) for _ in range(drawn.randrange(2 * count))}
        Layout(view, count, sorted((a, b) for a, b in pairs if a > b)).check()


def test_the_layout_of_many_operators_takes_time_in_line_with_their_number(view: Chrome) -> None:
    """In a row, as a bush, and as a dense graph; a square would be sixteen times the time for four times the operators."""
    drawn = random.Random(3)

    def shapes(count: int) -> list[list[tuple[int, int]]]:
        dense = {(i, drawn.randrange(i)) for i in range(1, count // 4) for _ in range(4)}
        return [[(i, i - 1) for i in range(1, count)], [(i, (i - 1) // 2) for i in range(1, count)], sorted(dense)]

    def fastest(count: int, edges: list[tuple[int, int]]) -> float:
        return min(Layout(view, count, edges).millis for _ in range(3))

    for few, many in zip(shapes(500), shapes(2000), strict=True):
        long = fastest(2000, many)
        assert long < 1000
        assert long < 10 * max(fastest(500, few), 3)


def wide(branches: int = 333) -> list[dict[str, Any]]:
    """A union of branches of three operators each, in pre-order."""
    union = node(0, *range(1, 3 * branches, 3), operator="Union", region=1, seconds=0.1)
    parts = []
    for first in range(1, 3 * branches, 3):
        parts += [
            node(first, first + 1, region=1, seconds=0.001),
            node(first + 1, first + 2, operator="Filter", region=1, seconds=0.002),
            node(first + 2, operator="Scan parquet", region=1, rows=10, seconds=0.003),
        ]
    return [union, *parts]


def deep(regions: int = 250) -> list[dict[str, Any]]:
    """Operators in a row, four to a region."""
    return [
        node(
            i,
            *([i + 1] if i + 1 < 4 * regions else []),
            region=regions - i // 4,
            exchange="shuffle" if i % 4 == 0 else None,
        )
        for i in range(4 * regions)
    ]


@pytest.mark.parametrize("plan", [wide(), deep()], ids=["wide", "deep"])
def test_a_thousand_operators_are_drawn_as_stacks_that_open(reader: Reader, plan: list[dict[str, Any]]) -> None:
    place = plan[500]["id"]
    browser = opened(reader, execution(plan, [action("store", place), action("share", plan[900]["id"])]))
    shown = boxes(browser)
    assert len(shown) <= MOST_BOXES
    assert sum("▲ stored" in box for box in shown) == sum("⇉ computed once" in box for box in shown) == 1
    # All are accounted for: in boxes of their own, or in a stack that says how many.
    stacks = browser.execute_script(
        "return Array.from(document.querySelectorAll('.regions-stack .regions-name'), text => parseInt(text.textContent))"
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
        """var done = arguments[1], box = arguments[0];
        setTimeout(function () { var found = document.getElementById(box); done(found && found.getAttribute('class')); }, 200)""",
        box,
    )
    assert reader_sees and "regions-here" in reader_sees
    assert len(boxes(browser)) <= 2 * MOST_BOXES
    # A stack opens by a click, and everything by a button that a keyboard reaches.
    before = len(boxes(browser))
    browser.execute_script(
        "document.querySelector('.regions-stack').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
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

    skew = {"session": "s", "topic": "skew", "declines": [{"node": -1, "operator": "Join", "code": "X", "detail": "d"}],
            "actions": [action("split_by_records", -1, makespan={"stage": 0, "plain": 2.0, "predicted": 1.0, "balanced": 1.0,
                                                                 "partitions": 4, "tasks": 6},
                               splits=[{"partition": 1, "side": "left", "share": 0.9, "tasks": 3, "how": "cut"}]),
                        action("measured", -1, stageRun={"stage": 0, "sparkStage": 3, "attempt": 0, "began": 1, "ended": 9,
                                                         "tasks": 2, "keys": [{"key": "k", "share": 0.5, "error": 0.1}]})]}  # fmt: skip
    plan = [node(0, 1, operator="Join"), node(1, operator="Recycled", label="Recycled [entry e9]")]
    query = execution(
        plan, [action("load", 0), action("store", 1, refusal={"code": "X", "detail": "d"})], error="failed"
    )
    query["queries"][0]["decisions"].append(skew)
    query["queries"][0]["decisions"][0]["declines"] = [
        {"node": 1, "operator": "Join", "code": "TOO_CHEAP", "detail": "x"}
    ]
    overview = {
        "asOf": 1, "mode": "apply", "strategy": "markov", "saved": {"predicted": 1.0, "measured": 1.0, "loadsMeasured": 1},
        "held": {"bytes": 1, "entries": 1}, "planner": {"healthy": False, "state": "down", "reason": "gone"}, "counters": {},
        "confs": {"spark.regions.x": "y"}, "actions": {"load": 1}, "declines": {EVIL: 1}, "lost": 0, "queriesDecided": 1,
        "executionsKept": 1, "executions": [query],
    }  # fmt: skip
    pages = {
        "execution": query,
        "": overview,
        "cache": {"asOf": 1, "truncated": False, "entries": [
            {"entry": "e1", "state": "committed", "operator": "Join", "application": "a", "name": "n", "reason": "r", "code": "c",
             "detail": "d", "readBy": [], "columns": 2}]},
        "graph": {"asOf": 1, "operators": 1, "edges": [], "nodes": [{"lineage": "l", "operator": "Join", "uses": 2}]},
        "lost": {"lost": [{"query": 1, "executionId": 1, "time": 1, "what": "w", "entry": "e", "operator": "o", "code": "c",
                           "reason": "r", "detail": "d"}]},
        "report": {"headline": "h", "notes": ["n"], "saved": overview["saved"], "held": {"bytes": 1, "entries": None},
                   "actions": {}, "declines": {EVIL: 2}, "sections": [{"title": "t", "rows": [["a", "b"]], "hint": "h"}],
                   "candidates": {"columns": ["c"], "rows": [["r"]], "hint": "h"}, "plots": [{"title": "t", "points": [[1, 2]]}]},
    }  # fmt: skip
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
    html = reader.drawn(shell("execution", {"executionId": 3, "queries": 7}, "test") + "<!-- broken -->")
    assert 'role="alert"' not in html and "Nothing is known of it" in html
    html = reader.drawn(shell("cache", {"asOf": 0}, "test"))
    assert 'role="alert"' in html and "This page could not be made: TypeError" in html
    complaints = [entry["message"] for entry in reader.browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert len(complaints) == 1 and "TypeError" in complaints[0]
