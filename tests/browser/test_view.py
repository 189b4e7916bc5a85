"""The view by itself: figures, words and layout."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from spark_regions.reports.page import shell
from tests.harness.browser import Reader
from tests.harness.pages import action, execution, node

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view(reader: Reader) -> Chrome:
    return reader.opened(shell("execution", execution([node(0)]), "test"))


def test_what_another_engine_was_expected_to_take_and_took(reader: Reader) -> None:
    run = {"predictedSeconds": 0.5, "predictedRows": 9.6, "predictedBytes": 80.0}
    run |= {"measuredSeconds": 2.0, "measuredRows": 1, "measuredBytes": 8}
    routed = action("route", 0, entry="", reason="ENGINE", detail="duckdb", engine=run)
    page = reader.opened(shell("execution", execution([node(0)], [routed]), "test"))
    said = page.find_element(By.CSS_SELECTOR, "#regions-actions tbody").text
    assert "Predicted 0.5 s, 10 rows, 80 B; took 2.0 s, 1 row, 8 B." in said, said


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


def test_the_layout_of_many_operators_ends_soon(view: Chrome) -> None:
    """In a row, as a bush, and as a dense graph; `benchmarks.ui` measures it, here only squares are seen."""
    drawn = random.Random(3)
    dense = {(i, drawn.randrange(i)) for i in range(1, 500) for _ in range(4)}
    row, bush = [(i, i - 1) for i in range(1, 2000)], [(i, (i - 1) // 2) for i in range(1, 2000)]
    for edges in (row, bush, sorted(dense)):
        assert min(Layout(view, 2000, edges).millis for _ in range(3)) < 1000
