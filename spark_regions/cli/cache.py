"""`spark-regions cache`: what is stored, and how to get rid of it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from spark_regions.cli.stores import StoreOptions, at_store, opened
from spark_regions.cli.text import age, size, with_progress
from spark_regions.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_regions.dag.records import Entry
    from spark_regions.store.store import Store

_YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


@click.group()
def cache() -> None:
    """Stored results: list and remove them."""


@cache.command("ls")
@at_store
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def list_stored(location: StoreOptions, as_json: bool) -> None:
    """List stored results, the last used first."""
    from spark_regions.store.admin import list_entries

    entries: list[Entry] = []
    if location.exists():
        with opened(location) as store:
            entries = sorted(list_entries(store), key=lambda entry: -entry.used)
    if as_json:
        click.echo(json.dumps([_fields(entry) for entry in entries], indent=2))
    elif not entries:
        click.echo(f"Nothing is stored in {location.dir} for namespace {location.namespace}.")
    else:
        _print_table(entries, location)


def _fields(entry: Entry) -> dict[str, object]:
    return {**asdict(entry), "conjuncts": sorted(entry.conjuncts)}


def _print_table(entries: Sequence[Entry], location: StoreOptions) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    now = time.time()
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("entry", "operator", "state"):
        table.add_column(column, no_wrap=True)
    for column in ("rows", "size", "uses", "saved", "last used"):
        table.add_column(column, justify="right", no_wrap=True)
    for entry in entries:
        table.add_row(
            entry.id[:13],
            entry.operator,
            entry.state,
            f"{entry.rows:,}",
            size(entry.bytes),
            str(entry.uses),
            f"{entry.measured_seconds:.1f} s",
            age(now - entry.used),
        )
    Console().print(table)
    taken = sum(entry.bytes for entry in entries)
    click.echo(f"{len(entries)} entries, {size(taken)} of {size(location.max_bytes)} in {location.dir}")


@cache.command("rm")
@click.argument("entry")
@at_store
@_YES
def remove(entry: str, location: StoreOptions, yes: bool) -> None:
    """Remove ENTRY, an id of `cache ls` or the start of one. A query that reads it right now goes on."""
    from spark_regions.store.admin import remove_entry

    if not yes:
        click.confirm(f"Remove {entry}?", abort=True)
    with opened(location) as store:
        if not remove_entry(store, entry):
            raise StoreError(f"No single entry starts with {entry}. Hint: `spark-regions cache ls` lists them.")
        click.echo(f"Removed {entry}.")
        _name_leftovers(store)


@cache.command()
@at_store
@_YES
@with_progress
def clear(location: StoreOptions, yes: bool, progress: bool | None) -> None:
    """Remove everything that is stored. What was learnt about jobs stays."""
    from spark_regions.progress import bar
    from spark_regions.store.admin import clear as clear_store
    from spark_regions.store.admin import list_entries

    if not yes:
        click.confirm(f"Remove everything stored in {location.dir} for namespace {location.namespace}?", abort=True)
    with opened(location) as store:
        with bar("removing", len(list_entries(store)), progress) as moved:
            removed = clear_store(store, moved)
        click.echo(f"Removed {removed} entries.")
        _name_leftovers(store)


def _name_leftovers(store: Store) -> None:
    for left in store.take_sweep():
        click.echo(f"The files stay, since this machine cannot delete them: {left}", err=True)
