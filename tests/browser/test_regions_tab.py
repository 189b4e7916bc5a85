"""What a person does in a browser: from Spark's SQL tab to our page and back, sort, filter, zoom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.ui import Application

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.spark, pytest.mark.browser]


@pytest.fixture(scope="module")
def load(application: Application) -> dict[str, Any]:
    """The decision on the first query that read a stored result."""
    found: dict[str, Any] = next(d for d in application.ask("decisions") if d["kind"] == "load")
    return found


@pytest.fixture(autouse=True)
def no_complaints(request: pytest.FixtureRequest) -> Iterator[None]:
    """The console stays silent: no error of a script, nothing that the content security policy held back."""
    yield
    browser = request.getfixturevalue("browser")
    complaints = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not [text for text in complaints if "/regions/" in text or "Content Security Policy" in text]


def css(browser: Chrome, selector: str) -> WebElement:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    found: WebElement = WebDriverWait(browser, 20).until(lambda b: b.find_element(By.CSS_SELECTOR, selector))
    return found


def column(browser: Chrome, table: str, name: str) -> list[str]:
    """The cells of a column that are shown, from above."""
    cells: list[str] = browser.execute_script(
        """var table = document.getElementById(arguments[0]), name = arguments[1];
        var plain = cell => cell.textContent.trim();
        var at = Array.from(table.tHead.rows[0].cells).findIndex(cell => plain(cell) === name);
        var shown = Array.from(table.tBodies[0].rows).filter(row => row.offsetParent).map(row => row.cells[at]);
        return shown.map(cell => cell.getAttribute('data-key') || cell.textContent.trim());""",
        table,
        name,
    )
    return cells


def header(browser: Chrome, table: str, name: str) -> WebElement:
    found: WebElement = browser.execute_script(
        """return Array.from(document.getElementById(arguments[0]).tHead.rows[0].cells)
        .find(c => c.textContent.trim().startsWith(arguments[1]))""",
        table,
        name,
    )
    return found


def test_from_spark_s_sql_tab_to_our_page_and_back(
    browser: Chrome, application: Application, load: dict[str, Any]
) -> None:
    queries = application.ui.json("/regions/json")["queries"]
    execution = next(q["executionId"] for q in queries if q["query"] == load["query"])
    browser.get(f"{application.ui.base}/SQL/execution/?id={execution}")
    css(browser, "#regions-link").click()
    assert css(browser, ".container-fluid h3").text.strip() == f"Regions of SQL execution {execution}"
    said = css(browser, "#regions-actions tbody").text
    assert load["entry"][:11] in said and load["code"] in said
    shown = re.search(r"([0-9.]+) (s|ms)", said)
    assert shown is not None
    seconds = float(shown[1]) / (1000 if shown[2] == "ms" else 1)
    assert seconds == pytest.approx(load["predicted_seconds"], abs=0.06)
    assert css(browser, "svg.regions-picture").get_attribute("role") == "img"
    css(browser, "#regions-to-sql").click()
    assert f"/SQL/execution/?id={execution}" in browser.current_url
    css(browser, "#plan-viz-graph")


def test_the_overview_has_the_figures_of_the_decisions(browser: Chrome, application: Application) -> None:
    browser.get(f"{application.ui.base}/SQL/")
    css(browser, "a.nav-link[href$='/regions/']").click()
    decisions = application.ask("decisions")
    predicted = sum(d["predicted_seconds"] for d in decisions if d["kind"] == "load")
    number, unit = css(browser, "#regions-predicted").text.split()
    assert float(number) / (1000 if unit == "ms" else 1) == pytest.approx(predicted, abs=0.06)
    executions = {d["execution"] for d in decisions if d["kind"] in ("load", "store") and d["execution"] is not None}
    shown = [int(execution) for execution in column(browser, "regions-queries", "SQL")]
    assert executions <= set(shown) and len(shown) == len(set(shown))


def test_the_cache_is_sorted_and_filtered(browser: Chrome, application: Application) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{application.ui.base}/regions/cache/")
    css(browser, "#regions-cache")
    sizes = [float(size) for size in column(browser, "regions-cache", "Size")]
    assert len(sizes) >= 2
    size = header(browser, "regions-cache", "Size")
    size.click()
    first = [float(each) for each in column(browser, "regions-cache", "Size")]
    # The same by the keyboard turns the order round.
    size.send_keys(Keys.ENTER)
    second = [float(each) for each in column(browser, "regions-cache", "Size")]
    assert {tuple(first), tuple(second)} == {tuple(sorted(sizes)), tuple(sorted(sizes, reverse=True))}
    assert size.get_attribute("aria-sort") in ("ascending", "descending")
    entry = column(browser, "regions-cache", "Entry")[0]
    css(browser, "#regions-cache-filter").send_keys(entry[:8])
    assert column(browser, "regions-cache", "Entry") == [entry]
    assert css(browser, "#regions-cache-count").text == "1 shown"


def test_the_graph_opens_zooms_and_moves(browser: Chrome, application: Application) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{application.ui.base}/regions/graph/")
    picture = css(browser, "svg#regions-graph")
    nodes = application.ui.json("/regions/graph/json")["nodes"]
    boxes = browser.execute_script("return document.querySelectorAll('#regions-graph .regions-box').length")
    assert boxes == len(nodes) == len(column(browser, "regions-operators", "Uses"))
    seen = [picture.get_dom_attribute("viewBox")]
    for act in (
        lambda: css(browser, "[data-zoom=in]").click(),
        lambda: picture.send_keys("+"),
        lambda: picture.send_keys(Keys.ARROW_LEFT),
        lambda: css(browser, "[data-zoom=fit]").click(),
    ):
        act()
        seen.append(picture.get_dom_attribute("viewBox"))
    assert all(before != after for before, after in zip(seen, seen[1:], strict=False))
    width, height = (float(picture.get_dom_attribute(f"data-{side}") or 0) for side in ("width", "height"))
    assert [float(number) for number in (seen[-1] or "").split()] == [0, 0, width, height]


def test_a_picture_goes_from_decision_to_decision_and_links_lead_to_boxes_and_entries(
    browser: Chrome, application: Application, load: dict[str, Any]
) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{application.ui.base}/regions/execution/?id={load['execution']}")
    picture = css(browser, f"#regions-plan-{load['query']}")
    box = f"regions-plan-{load['query']}-box-{load['node']}"
    css(browser, "[data-zoom=next]").click()
    assert "regions-here" in (css(browser, f"#{box}").get_dom_attribute("class") or "")
    assert load["entry"][:9] in css(browser, "[data-told]").get_attribute("textContent")

    def centred() -> bool:
        x, y, width, height = (float(number) for number in (picture.get_dom_attribute("viewBox") or "").split())
        at = [float(css(browser, f"#{box}").get_dom_attribute(f"data-{side}") or 0) for side in ("x", "y")]
        return at == pytest.approx([x + width / 2, y + height / 2])

    assert centred()
    picture.send_keys(Keys.ARROW_LEFT)
    assert not centred()
    picture.send_keys("n")
    assert centred()
    picture.send_keys(Keys.ARROW_LEFT)
    css(browser, f"#regions-actions a[href='#{box}']").click()
    assert browser.execute_script("return location.hash") == f"#{box}"
    WebDriverWait(browser, 20).until(lambda _: centred())
    # The row of an operator comes out of its fold; what is clicked before the page has moved there is missed.
    row = f"regions-plan-{load['query']}-node-0"
    browser.execute_async_script(
        """window.addEventListener('hashchange', () => requestAnimationFrame(arguments[1]), {once: true});
        location.hash = arguments[0];""",
        row,
    )
    assert browser.find_element("id", row).is_displayed()
    css(browser, f"#regions-actions a[href$='#entry-{load['entry']}']").click()
    entry = css(browser, f"#entry-{load['entry']}").find_element("xpath", "ancestor::tr")
    assert entry.find_elements("css selector", f"a[href$='/regions/execution/?id={load['execution']}']")


def test_every_control_has_a_name_and_every_picture_its_words(browser: Chrome, application: Application) -> None:
    for page in ("", "cache/", "graph/", "explorations/", "running/", "lost/"):
        browser.get(f"{application.ui.base}/regions/{page}")
        css(browser, "nav[aria-label='Regions pages']")
        nameless = browser.execute_script(
            """var named = {
              svg: e => e.querySelector('title').textContent,
              INPUT: e => document.querySelector('label[for="' + e.id + '"]'),
              BUTTON: e => e.getAttribute('aria-label') || e.textContent.trim()};
            var found = ['button', 'input', 'svg'].flatMap(
              kind => Array.from(document.querySelectorAll('.container-fluid ' + kind)));
            return found.filter(e => !named[e.tagName](e)).map(e => e.outerHTML.slice(0, 200))"""
        )
        assert nameless == []
        assert css(browser, "a[aria-current=page]").text
