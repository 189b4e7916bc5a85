"""The pages of explorations: while one runs, when it has ended, and in the History Server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from spark_regions.reports.page import shell
from spark_regions.spark.jar import jar_path
from spark_regions.spark.watch import BRANCHES_TOLD
from tests.harness.browser import Reader
from tests.harness.ui import Application, Served, history_server, texts
from tests.spark.ui_job import HOSTILE, SECRET

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = [pytest.mark.spark, pytest.mark.browser]

LIST, FIRST, MANY = "/regions/explorations/", "/regions/exploration/?id=1", "/regions/exploration/?id=7"
CELLS = """return Array.from(document.querySelectorAll('#regions-tree tbody tr')).filter(row => row.offsetParent)
    .map(row => [row.getAttribute('data-level'), ...Array.from(row.cells, cell => cell.textContent)])"""


@dataclass
class Explored:
    """What was served: pages by their addresses, at each time.

    :ivar log: of events
    """

    running: dict[str, str] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    past: dict[str, str] = field(default_factory=dict)
    released: dict[str, Any] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    folder = tmp_path_factory.mktemp("explored")
    application, found = Application(folder), Explored()
    try:
        ui = application.ui
        application.tell("explore")
        ui.until("/regions/explorations/json", lambda facts: facts["explorations"] and states(facts).get("running"))
        ui.until(
            "/regions/explorations/json",
            lambda facts: (states(facts).get("kept"), states(facts).get("running")) == (2, 1),
        )
        found.running = {page: ui.get(page) for page in (LIST, FIRST)}
        (folder / "go").touch()
        assert application.answer() == {"held": 2}
        assert application.ask("explore") == {"parameters": {"low": 25, "m": 3}}
        assert application.ask("many") == {"values": [1198, 1199]}
        ui.until("/regions/explorations/json", lambda facts: len(facts["explorations"]) == 7 and status(facts) == "ok")
        assert application.ask("explore") == {"released": True}
        found.released = ui.until("/regions/exploration/json?id=1", lambda facts: not facts["explorations"][0]["bytes"])
        found.ended = {page: ui.get(page) for page in (LIST, FIRST, MANY)}
        application.end()
        (log,) = (folder / "logs").glob(f"{application.id}*")
        found.log = [json.loads(line) for line in log.open() if "SparkListenerRegionsExploration" in line]
        with history_server(folder / "logs", folder, jar_path()) as server:
            past = Served(f"{server.base}/history/{application.id}")
            found.past = {page: past.get(page) for page in (LIST, FIRST, MANY)}
        yield found
    finally:
        application.end()


def states(facts: dict[str, Any]) -> dict[str, int]:
    """Of the newest exploration."""
    found: dict[str, int] = facts["explorations"][0]["states"]
    return found


def status(facts: dict[str, Any]) -> str:
    return str(facts["explorations"][0]["status"])


def tree(page: Chrome) -> list[list[str]]:
    found: list[list[str]] = page.execute_script(CELLS)
    return found


def test_a_running_exploration_is_shown(explored: Explored, reader: Reader) -> None:
    page = reader.opened(explored.running[FIRST])
    rows = tree(page)
    assert [row[5] for row in rows] == ["kept", "kept", "running", "waiting"]
    assert [row[3] for row in rows] == ["20000", "15000", "", ""]
    assert "low=25" in rows[1][2] and rows[0][6].endswith("iB") and rows[2][6] == ""
    assert "running" in page.find_element("css selector", "#regions-view").text
    said = texts(reader.drawn(explored.running[LIST]))
    assert "top(2)" in said and "2 kept, 1 running, 1 waiting" in said


def test_parameters_stay_text_secrets_stay_hidden_and_pages_stay_narrow(explored: Explored, reader: Reader) -> None:
    page = reader.opened(explored.ended[FIRST])
    row = tree(page)[0]
    assert HOSTILE[:13] in row[2] and "redacted" in row[2]
    assert page.execute_script("return window.hurt") is None
    assert not any(SECRET in each for each in (*explored.running.values(), *explored.ended.values()))
    wide = page.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


def test_scopes_nest_and_stay_with_their_branches(explored: Explored, reader: Reader) -> None:
    page = reader.opened(explored.ended[FIRST])
    rows = tree(page)
    # Each kept branch, the exploration that goes on from it, its branches, and what those explored by themselves.
    below = ["1", "2", "3", "4", "4", "2", "3", "4", "4"]
    assert [row[0] for row in rows] == ["0", *below, "0", *below, "0", "0"]
    assert [row[5] for row in rows if row[0] == "0"] == ["kept", "kept", "discarded", "discarded"]
    assert [row[2] for row in rows if row[0] == "2"] == ["m=2", "m=3"] * 2
    assert [row[5] for row in rows if row[0] == "2"] == ["discarded", "discarded", "discarded", "kept"]
    assert {row[2] for row in rows if row[0] == "4"} == {"r=0", "r=1"}
    page.find_element("xpath", "//table[@id='regions-tree']//th[starts-with(., 'Score')]").click()
    again = tree(page)
    first = [row for row in again if row[0] == "0"]
    assert first[-1][3] == "20000", "ascending by score"
    assert [row[0] for row in again[-10:]] == ["0", *below], "what stands below it came with it"
    toggle = page.find_element("css selector", "#regions-tree .regions-toggle")
    toggle.click()
    assert toggle.get_dom_attribute("aria-expanded") == "false"
    assert len(tree(page)) == len(rows) - 9
    toggle.click()
    page.find_element("id", "regions-tree-filter").send_keys("r=1")
    shown = tree(page)
    assert sum(row[2] == "r=1" for row in shown) == 4 and not any(row[2] == "r=0" for row in shown)
    assert page.find_element("id", "regions-tree-count").text == "4 shown"


def test_of_very_many_branches_the_rest_is_told(explored: Explored, reader: Reader) -> None:
    page = reader.opened(explored.ended[MANY])
    rows = tree(page)
    assert len(rows) == BRANCHES_TOLD + 2
    assert [row[5] for row in rows[-2:]] == ["kept", "kept"]
    assert "The others: 198 discarded." in page.find_element("id", "regions-rest-7").text
    events = [event for event in explored.log if event["exploration"] == 7]
    assert len(events) < 300
    assert len(json.dumps(events)) < 600 * BRANCHES_TOLD


def test_what_is_released_is_held_no_more(explored: Explored) -> None:
    outer, *_ = explored.released["explorations"]
    assert [branch.get("bytes") for branch in outer["tree"]] == [None] * 4
    assert [branch["state"] for branch in outer["tree"]].count("kept") == 2
    assert outer["status"] == "ok"


def test_the_history_server_shows_the_same(explored: Explored, reader: Reader) -> None:
    for page in (FIRST, MANY):
        then, since = (tree(reader.opened(pages[page])) for pages in (explored.ended, explored.past))
        assert len(then) > 4 and then == since
    then, since = (
        texts(reader.drawn(pages[LIST])).partition("Explorations, the newest first")[2].partition("The same as")[0]
        for pages in (explored.ended, explored.past)
    )
    assert then == since != ""


def test_an_unknown_one_and_one_without_branches_say_so(reader: Reader) -> None:
    unknown = {"exploration": 3, "above": [], "explorations": []}
    assert "Nothing is known of it" in texts(reader.drawn(shell("exploration", unknown, "test")))
    assert "Nothing has been explored" in texts(reader.drawn(shell("explorations", {"explorations": []}, "test")))
