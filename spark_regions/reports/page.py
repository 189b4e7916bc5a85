"""A report as one HTML page that loads nothing, drawn by the Regions tab's view; and as a part of one for notebooks."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from spark_regions.reasons import REASONS
from spark_regions.reports.summary import Report
from spark_regions.reports.wording import (
    CANDIDATE_COLUMNS,
    CANDIDATES_HINT,
    DECLINED,
    candidate_rows,
    headline,
    sections,
)

VIEW = files("spark_regions.reports") / "view"
"""The scripts of the tab's pages and of this one; `files.txt` names them in their order."""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src '{digest}'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<div id="regions-view">{body}</div>
<script type="application/json" id="regions-data">{data}</script>
<script>{code}</script>
</body>
</html>
"""


def page(report: Report) -> str:
    """A whole page; without scripts it shows what `fragment` has."""
    name = report.application.name or report.application.id or "an application"
    return shell("report", facts(report), f"spark_regions: {name}", fragment(report))


def shell(name: str, data: Mapping[str, Any], title: str, body: str = "") -> str:
    """A page of the view that stands alone.

    :param name: of the page, as in `view.pages`
    :param body: HTML that is shown where scripts do not run
    """
    code = "".join((VIEW / file).read_text(encoding="utf-8") for file in _lines("files.txt"))
    whole = {"page": name, "root": None, "zone": "UTC", "reasons": dict(REASONS), "data": data, "failed": None}
    return _PAGE.format(
        digest=f"sha256-{b64encode(sha256(code.encode()).digest()).decode()}",
        title=escape(title),
        style="\n".join((VIEW / file).read_text(encoding="utf-8") for file in ("report.css", "regions.css")),
        body=body,
        # No text can end the block.
        data=json.dumps(whole).replace("<", "\\u003c"),
        code=code,
    )


def facts(report: Report) -> dict[str, Any]:
    """What the page shows: the overview's figures as the tab has them (docs/ui.md), and the sections of the text."""
    measured = report.measured
    plots = (("Time of queries", report.query_points), ("Saving of choices", measured.points))
    told = [section._asdict() for section in sections(report) if section.title != DECLINED]
    return {
        "headline": headline(report),
        "notes": report.notes,
        "saved": {
            "predicted": report.predicted_seconds,
            "measured": measured.saved,
            "choicesMeasured": measured.choices,
            "estimated": measured.estimated_seconds,
            "loadsEstimated": measured.estimated,
        },
        "actions": dict(report.actions),
        "declines": dict(report.declines),
        "sections": told,
        "candidates": {"columns": CANDIDATE_COLUMNS, "rows": _candidates(report), "hint": CANDIDATES_HINT},
        "plots": [{"title": title, "points": points} for title, points in plots if points],
    }


def _candidates(report: Report) -> list[list[object]]:
    """Cells as the view sorts them: figures by their values."""
    rows: list[list[object]] = []
    for each, (point, *figures, so_far) in zip(report.candidates, candidate_rows(report), strict=True):
        values = (each.uses, each.seconds, each.bytes, each.saved_seconds, each.write_seconds)
        cells = [{"show": text, "key": value} for text, value in zip(figures, values, strict=True)]
        rows.append([point, *cells, so_far])
    return rows


def fragment(report: Report) -> str:
    """What a notebook shows: the text's sections as tables, without plots and scripts."""
    parts = [f"<p><strong>{escape(headline(report))}</strong></p>"]
    parts += [f'<p role="note">{escape(note)}</p>' for note in report.notes]
    for section in sections(report):
        rows = "".join(f'<tr><th scope="row">{escape(name)}</th>{_cell(told)}</tr>' for name, told in section.rows)
        parts.append(f"<h2>{escape(section.title)}</h2><table><tbody>{rows}</tbody></table>{_hint(section.hint)}")
    if report.candidates:
        head = "".join(f'<th scope="col">{escape(column)}</th>' for column in CANDIDATE_COLUMNS)
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in candidate_rows(report))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        parts.append(f"<h2>Best candidates</h2>{table}{_hint(CANDIDATES_HINT)}")
    return f'<div class="regions-report">{"".join(parts)}</div>'


def _cell(text: str) -> str:
    return f'<td style="text-align:left">{escape(text)}</td>'


def _hint(hint: str) -> str:
    return f"<p>{escape(hint)}</p>" if hint else ""


def _lines(name: str) -> list[str]:
    return (VIEW / name).read_text(encoding="utf-8").split()
