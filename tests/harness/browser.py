"""A headless Chromium, and pages as it has drawn them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness.suites import cannot_run

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def installed(*names: str) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


@contextlib.contextmanager
def chrome(size: tuple[int, int] = (1400, 1000)) -> Iterator[Chrome]:
    """A browser of its own profile, which keeps what its console says."""
    binary, driver = installed("chromium", "chromium-browser", "google-chrome"), installed("chromedriver")
    if binary is None or driver is None:
        cannot_run(
            "no browser here: neither chromium nor Chrome with chromedriver is on PATH",
            "apt-get install chromium chromium-driver",
            "browser",
        )
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(prefix="profile-", ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={profile}"):
            options.add_argument(flag)
        started = webdriver.Chrome(options=options, service=Service(driver))
        try:
            yield started
        finally:
            started.quit()


class Reader:
    """Reads pages as a person would: what stands in them once their scripts have run."""

    def __init__(self, browser: Chrome, folder: Path) -> None:
        self.browser = browser
        self._file = folder / "page.html"
        self._drawn: dict[str, str] = {}

    def opened(self, page: str) -> Chrome:
        """A page needs no more than it holds itself: it may come from a server that has ended."""
        self._file.write_text(page, encoding="utf-8")
        self.browser.get("about:blank")
        self.browser.get(self._file.as_uri())
        return self.browser

    def drawn(self, page: str) -> str:
        """The HTML that a page becomes."""
        if page not in self._drawn:
            self._drawn[page] = self.opened(page).execute_script("return document.documentElement.outerHTML")
        return self._drawn[page]
