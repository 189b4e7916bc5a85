"""The HTML page of a report, as a browser shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from spark_regions.reports.page import page
from spark_regions.reports.summary import Prices, read_report
from spark_regions.reports.wording import sections
from tests.harness.browser import Reader
from tests.harness.ui import texts
from tests.unit.report_logs import reused, write

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def told(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The page, and the text of the same report."""
    report = read_report(write(tmp_path_factory.mktemp("log") / "log", reused()), Prices(1.0, 1.0))
    report.measured.points.append((2.6, 2.5))
    reader.browser.get_log("browser")  # of pages before
    html = reader.drawn(page(report))
    complaints = [entry["message"] for entry in reader.browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert complaints == [], "an error of a script, or something from outside"
    yield html, "\n".join(f"{name} {row}" for section in sections(report) for name, row in section.rows)


def test_it_has_all_that_the_text_has(told: tuple[str, str]) -> None:
    html, text = told
    said = texts(html)
    for line in text.splitlines():
        code = re.match(r"([A-Z_]+) (\d+)", line)
        # Reasons stand in a table as in the tab: sentence, times, code.
        expected = f"{code[2]} {code[1]}" if code else line
        assert expected.replace("<", "&lt;").replace(">", "&gt;") in said, line
    assert "2.6 s saved as predicted, 2.5 s as estimated" in said
    assert "Best candidates" in said and "stored" in said


def test_pictures_have_their_words_and_ids_are_unique(told: tuple[str, str], browser: Chrome) -> None:
    pictures = [each.get_attribute("aria-label") for each in browser.find_elements(By.CSS_SELECTOR, "svg")]
    assert len(pictures) == 2
    assert all("s measured in all" in (label or "") for label in pictures)
    points = browser.execute_script("return document.querySelectorAll('svg circle').length")
    assert points == 2
    ids = [each.get_attribute("id") for each in browser.find_elements(By.CSS_SELECTOR, "[id]")]
    assert len(ids) == len(set(ids))


def test_tables_are_sorted_by_the_keyboard(told: tuple[str, str], browser: Chrome) -> None:
    from selenium.webdriver.common.keys import Keys

    name, _, _, size, *_ = browser.find_elements(By.CSS_SELECTOR, "#regions-candidates th")
    cells = {}
    for place, head in ((1, name), (4, size)):
        head.send_keys(Keys.ENTER)
        assert head.get_dom_attribute("aria-sort") == "ascending"
        found = browser.find_elements(By.CSS_SELECTOR, f"#regions-candidates tbody tr td:nth-child({place})")
        cells[place] = [each.text for each in found]
    assert cells[1] == sorted(cells[1])
    assert cells[4] == ["100 B", "100 B", "50.0 MB"], "by the number of bytes, not by the text"
    assert name.get_dom_attribute("aria-sort") == "none"


def test_the_last_report_of_a_name_is_written_whole(tmp_path: Path, reader: Reader) -> None:
    """A name that would be markup."""
    events = reused()
    events[3] |= {"App Name": "</title><script>window.hurt = 1</script>"}
    html = reader.drawn(page(read_report(write(tmp_path / "log", events), Prices())))
    assert reader.browser.execute_script("return window.hurt") is None
    assert "window.hurt = 1" in texts(html)
