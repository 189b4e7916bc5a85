"""The documentation builds without a warning, is complete, and needs nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import spark_regions
from spark_regions.reasons import REASONS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "WARNING" not in result.stdout + result.stderr
    return folder


class Loaded(HTMLParser):
    """What a browser fetches for a page by itself: not the links that a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.classes |= set(named.get("class", "").split())
        fetching = {"stylesheet", "preconnect", "preload", "icon", "modulepreload", "prefetch", "dns-prefetch"}
        if tag != "link" or fetching & set(named.get("rel", "").split()):
            self.found += [named[name] for name in ("src", "srcset", "data", "poster") if name in named]
            self.found += [named["href"]] if tag in ("link", "use", "image") and "href" in named else []
        if "style" in named:
            self.found += re.findall(r"url\(([^)]*)\)", named["style"])


def loaded(page: Path) -> Loaded:
    parser = Loaded()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def outside(address: str) -> bool:
    return re.match(r"([a-z]+:)?//", address.strip("'\" ")) is not None


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    fetched = {str(page.relative_to(site)): loaded(page).found for page in pages}
    assert any(fetched.values())
    assert {page: found for page, each in fetched.items() if (found := list(filter(outside, each)))} == {}


def test_style_sheets_and_pictures_load_nothing_from_elsewhere(site: Path) -> None:
    sheets = [*site.rglob("*.css"), *site.rglob("*.svg")]
    assert sheets
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        addresses = re.findall(r"(?:url\(|@import\s+|(?:href|src)=)[\"']?([^\"')\s>]*)", text)
        assert [address for address in addresses if outside(address)] == [], sheet


def test_no_page_makes_the_theme_load_scripts(site: Path) -> None:
    """The theme fetches mermaid where a page has a diagram of it, and a repository's figures where one is named."""
    for page in site.rglob("*.html"):
        assert not loaded(page).classes & {"mermaid", "md-source"}, page


def test_the_api_page_has_every_public_name(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    missing = [
        name for name in spark_regions.__all__ if name != "__version__" and f'id="spark_regions.{name}"' not in page
    ]
    assert missing == []


def test_every_reason_code_is_on_the_page_of_refusals(site: Path) -> None:
    page = (site / "refusals.html").read_text(encoding="utf-8")
    assert [code for code in REASONS if f"<code>{code}</code>" not in page] == []


def test_generated_pages_are_fresh() -> None:
    sys.path.insert(0, str(DOCS))
    try:
        import generate
    finally:
        sys.path.remove(str(DOCS))
    stale = [name for name, text in generate.pages().items() if (DOCS / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs`"


def test_pictures_can_be_read_without_seeing_them() -> None:
    for picture in ("processes", "one-query", "storing"):
        root = ElementTree.parse(DOCS / "images" / f"{picture}.svg").getroot()
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
    for page in DOCS.rglob("*.md"):
        assert "![](" not in page.read_text(encoding="utf-8"), page


def test_keys_and_commands_of_the_pages_exist() -> None:
    from spark_regions import conf
    from spark_regions.cli.commands import commands

    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        keys = set(re.findall(r"spark\.regions\.[A-Za-z.]*[A-Za-z]", text))
        assert {key for key in keys if conf.find(key) is None} == set(), page
        named = set(re.findall(r"\$ spark-regions ([a-z]+)", text))
        assert named <= set(commands.commands), page
