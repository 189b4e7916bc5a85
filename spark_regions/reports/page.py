"""A report as one HTML page, or as the part of one that a notebook shows. Nothing is loaded from anywhere."""

from __future__ import annotations

from html import escape

from spark_regions.reports.plots import scatter
from spark_regions.reports.summary import Report
from spark_regions.reports.wording import (
    CANDIDATE_COLUMNS,
    CANDIDATES_HINT,
    Section,
    candidate_rows,
    headline,
    sections,
)

_STYLE = """
.regions-report { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; background: #fff; }
.regions-report h2 { font-size: 1.1em; margin: 1.8em 0 .4em; border-bottom: 1px solid #c9d2da; }
.regions-report .headline { font-size: 1.25em; margin: .6em 0; }
.regions-report table { border-collapse: collapse; }
.regions-report th, .regions-report td { text-align: left; vertical-align: top; padding: .2em 1.2em .2em 0;
  font-weight: normal; }
.regions-report tbody th { white-space: nowrap; color: #45525f; }
.regions-report thead th { border-bottom: 1px solid #c9d2da; font-weight: 600; white-space: nowrap; }
.regions-report td.number, .regions-report th.number { text-align: right; white-space: nowrap; }
.regions-report .hint { color: #55626f; font-size: .9em; max-width: 60em; }
.regions-report .plots { display: flex; flex-wrap: wrap; gap: 1em; }
.regions-report figure { margin: 0; max-width: 30em; }
.regions-report svg { width: 100%; height: auto; }
.regions-report .wide { overflow-x: auto; }
"""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ margin: 1.5em auto; padding: 0 1.5em; max-width: 70em; }}</style>
</head>
<body>
<h1 style="font: 600 1.5em system-ui, sans-serif">{title}</h1>
{body}
</body>
</html>
"""


def page(report: Report) -> str:
    """A whole page, with plots.

    :raises ReportError: matplotlib is not installed
    """
    name = report.application.name or report.application.id or "an application"
    return _PAGE.format(title=escape(f"spark_regions: {name}"), body=fragment(report, plots=True))


def fragment(report: Report, plots: bool = False) -> str:
    """What stands in the page; also for notebooks.

    :raises ReportError: plots are wanted, and matplotlib is not installed
    """
    parts = [f"<style>{_STYLE}</style>", f'<p class="headline">{escape(headline(report))}</p>']
    parts += [f'<p role="note">{escape(note)}</p>' for note in report.notes]
    parts += [_section(section) for section in sections(report)]
    if report.candidates:
        parts.append(_candidates(report))
    if plots:
        parts.append(_plots(report))
    return f'<div class="regions-report">{"".join(parts)}</div>'


def _section(section: Section) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(told)}</td></tr>' for name, told in section.rows
    )
    return f"<h2>{escape(section.title)}</h2><table><tbody>{rows}</tbody></table>{_hint(section.hint)}"


def _hint(hint: str) -> str:
    return f'<p class="hint">{escape(hint)}</p>' if hint else ""


def _candidates(report: Report) -> str:
    ends = (0, len(CANDIDATE_COLUMNS) - 1)

    def numeric(place: int) -> str:
        return "" if place in ends else ' class="number"'

    head = "".join(
        f'<th scope="col"{numeric(place)}>{escape(column)}</th>' for place, column in enumerate(CANDIDATE_COLUMNS)
    )
    rows = "".join(
        "<tr>" + "".join(f"<td{numeric(place)}>{escape(cell)}</td>" for place, cell in enumerate(row)) + "</tr>"
        for row in candidate_rows(report)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h2>Best candidates</h2><div class="wide">{table}</div>{_hint(CANDIDATES_HINT)}'


def _plots(report: Report) -> str:
    seconds = ("predicted, s", "measured, s")
    wanted = (
        (report.query_points, "Time of queries", "queries"),
        (report.measured.points, "Saving of reads", "reads"),
    )
    drawn = [f"<figure>{scatter(points, title, seconds, name)}</figure>" for points, title, name in wanted if points]
    plots = f'<div class="plots">{"".join(drawn)}</div>' if drawn else "<p>No query has both.</p>"
    return f"<h2>Predicted against measured</h2>{plots}"
