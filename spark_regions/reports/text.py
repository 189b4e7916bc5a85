"""A report for terminals."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from spark_regions.reports.summary import Report
from spark_regions.reports.wording import (
    CANDIDATE_COLUMNS,
    CANDIDATES_HINT,
    candidate_rows,
    headline,
    sections,
)

if TYPE_CHECKING:
    from rich.console import Console


def show(report: Report, console: Console) -> None:
    """Write the report."""
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console.print(Text(headline(report), style="bold"))
    for section in sections(report):
        console.print(Text(f"\n{section.title}", style="bold"))
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, told in section.rows:
            table.add_row(Text(name), Text(told))
        console.print(Padding(table, (0, 0, 0, 2)))
        if section.hint:
            console.print(Padding(Text(section.hint, style="dim"), (0, 0, 0, 2)))
    if report.candidates:
        console.print(Text("\nBest candidates", style="bold"))
        best = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
        best.add_column(CANDIDATE_COLUMNS[0], no_wrap=True, overflow="ellipsis", ratio=1, min_width=20)
        for column in CANDIDATE_COLUMNS[1:-1]:
            best.add_column(column, justify="right", no_wrap=True)
        best.add_column(CANDIDATE_COLUMNS[-1], overflow="fold", max_width=18)
        for row in candidate_rows(report):
            best.add_row(*map(Text, row))
        console.print(best)
        console.print(Padding(Text(CANDIDATES_HINT, style="dim"), (0, 0, 0, 2)))
    for note in report.notes:
        console.print(Text(f"\nNote: {note}"))


def text(report: Report, width: int = 110) -> str:
    """The report as plain text."""
    from rich.console import Console

    written = io.StringIO()
    show(report, Console(file=written, width=width, color_system=None, force_jupyter=False))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())
