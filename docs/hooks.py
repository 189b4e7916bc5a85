"""MkDocs' hook: the page of the architecture is the file of the top folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of the top folder's file, as they are from here."""
    if page.file.src_uri != "architecture.md":
        return markdown
    return (TOP / "ARCHITECTURE.md").read_text(encoding="utf-8").replace("](docs/", "](")
