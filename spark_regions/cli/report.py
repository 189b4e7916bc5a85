"""`spark-regions report`: what an event log says of us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spark_regions.cli.text import with_progress
from spark_regions.errors import EventLogError

if TYPE_CHECKING:
    from spark_regions.reports.summary import Prices, Report

_PRICE = click.FloatRange(min=0)


@click.command()
@click.argument("eventlog", type=click.Path(path_type=Path))
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page into this file.")
@click.option("--json", "as_json", is_flag=True, help="One object.")
@click.option(
    "--core-hour-price",
    type=_PRICE,
    help="What an hour of one core costs, in any currency; else spark.regions.price.coreHour of the application.",
)
@click.option(
    "--gb-month-price", type=_PRICE, help="What holding 10^9 bytes for a month costs; else spark.regions.price.gbMonth."
)
@with_progress
@click.pass_context
def report(
    context: click.Context,
    eventlog: Path,
    html: Path | None,
    as_json: bool,
    core_hour_price: float | None,
    gb_month_price: float | None,
    progress: bool | None,
) -> None:
    """What was seen, chosen and saved in an application, from its event log.

    EVENTLOG is a file, or the folder of a rolling log; plain, gzip, or compressed by Spark with zstd, lz4 or snappy
    (those three need the extra `report`). Exit code 2: there is no event log, or the page cannot be written.
    """
    from spark_regions.reports.summary import Prices

    try:
        found = _read(eventlog, Prices(core_hour_price, gb_month_price), progress)
        if html is not None:
            from spark_regions.reports.page import page

            html.write_text(page(found), encoding="utf-8")
    except (EventLogError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        context.exit(2)
    if as_json:
        click.echo(json.dumps(found.document(), indent=2))
    elif html is not None:
        click.echo(f"Wrote {html}.")
    else:
        from rich.console import Console

        from spark_regions.reports.text import show

        show(found, Console())


def _read(eventlog: Path, prices: Prices, progress: bool | None) -> Report:
    from spark_regions.progress import bar
    from spark_regions.reports.eventlog import open_log
    from spark_regions.reports.summary import read_report

    with bar("reading", open_log(eventlog).bytes, progress, is_bytes=True) as moved:
        return read_report(eventlog, prices, moved)
