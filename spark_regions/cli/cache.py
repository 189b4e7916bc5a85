"""`spark-regions cache`: what is stored, what of it stays, and how to get rid of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from spark_regions.cli.stores import StoreOptions, at_store, opened
from spark_regions.cli.text import age, entry_fields, size, with_progress
from spark_regions.cli.why import why
from spark_regions.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_regions.dag.records import Entry
    from spark_regions.store.store import Store

_YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


@click.group()
def cache() -> None:
    """Stored results: list, keep and remove them."""


SORTS: dict[str, Callable[[Entry], float]] = {
    "used": lambda entry: entry.used,
    "saved": lambda entry: entry.measured_seconds + entry.estimated_seconds,
    "bytes": lambda entry: entry.bytes,
    "net": lambda entry: entry.net_benefit or 0.0,
}


@cache.command("ls")
@at_store
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@click.option(
    "--sort",
    type=click.Choice(tuple(SORTS)),
    default="used",
    show_default=True,
    help="used: the last first. saved, bytes: the most first. net: by net benefit for the recorded workload.",
)
def list_stored(location: StoreOptions, as_json: bool, sort: str) -> None:
    """List stored results. ~: what they saved is estimated, at least in part, not measured. *: pinned."""
    from spark_regions.store.admin import list_entries

    entries: list[Entry] = []
    if location.exists():
        with opened(location) as store:
            entries = _valued(store, location) if sort == "net" else list_entries(store)
    entries.sort(key=SORTS[sort], reverse=True)
    if as_json:
        click.echo(json.dumps([entry_fields(entry) for entry in entries], indent=2))
    elif not entries:
        click.echo(f"Nothing is stored in {location.dir} for namespace {location.namespace}.")
    else:
        _print_table(entries, location, sort == "net")


def _valued(store: Store, location: StoreOptions) -> list[Entry]:
    """All entries, with what they are worth now."""
    from spark_regions.planner.workload import observed_workload
    from spark_regions.store.admin import list_entries

    known = observed_workload(store, location.query_confs(), location.prices()).worths()
    return [replace(entry, net_benefit=known.get(entry.id)) for entry in list_entries(store)]


def _print_table(entries: Sequence[Entry], location: StoreOptions, net: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    now = time.time()
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("entry", "operator", "state"):
        table.add_column(column, no_wrap=True)
    for column in ("rows", "size", "uses", "saved", "net" if net else "last used"):
        table.add_column(column, justify="right", no_wrap=True)
    for entry in entries:
        table.add_row(
            entry.id[:13] + ("*" if entry.pinned else ""),
            entry.operator,
            entry.state,
            f"{entry.rows:,}",
            size(entry.bytes),
            str(entry.uses),
            _saved(entry),
            location.amount(entry.net_benefit or 0.0) if net else age(now - entry.used),
        )
    Console().print(table)
    taken = sum(entry.bytes for entry in entries)
    click.echo(f"{len(entries)} entries, {size(taken)} of {size(location.max_bytes)} in {location.dir}")


def _saved(entry: Entry) -> str:
    """Seconds that its uses saved; with a sign before them where some of it is estimated, not measured."""
    about = "~" if entry.uses > entry.measured_uses else ""
    return f"{about}{entry.measured_seconds + entry.estimated_seconds:.1f} s"


@cache.command()
@click.argument("entry")
@at_store
def pin(entry: str, location: StoreOptions) -> None:
    """Keep ENTRY, an id of `cache ls` or the start of one, whatever room is needed for. It goes only where it cannot be
    read any more, is removed by hand, or was not read for spark.regions.recycle.ttl while its job read other inputs.
    """
    from spark_regions.store.admin import find_entry

    with opened(location) as store:
        found = find_entry(store, entry).id
        store.pin(found, location.max_bytes)
        click.echo(f"Pinned {found}.")


@cache.command()
@click.argument("entry")
@at_store
def unpin(entry: str, location: StoreOptions) -> None:
    """Let ENTRY go again where room is needed for what is worth more."""
    from spark_regions.store.admin import find_entry

    with opened(location) as store:
        found = find_entry(store, entry)
        store.unpin(found.id)
        click.echo(f"Unpinned {found.id}." if found.pinned else f"{found.id} was not pinned.")


@cache.command("off")
@at_store
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def list_switched_off(location: StoreOptions, as_json: bool) -> None:
    """List what is switched off, since a query that was run both ways gave other rows than plain Spark."""
    from spark_regions.store.switched_off import SwitchedOff, listed

    found: list[SwitchedOff] = []
    if location.exists():
        with opened(location) as store:
            found = store.catalog.read(listed)
    if as_json:
        click.echo(json.dumps([each._asdict() for each in found], indent=2))
    elif not found:
        click.echo("Nothing is switched off.")
    for each in () if as_json else found:
        click.echo(f"{each.lineage}  {age(time.time() - each.since)} ago, {each.application}: {each.detail}")


@cache.command()
@click.argument("lineage")
@at_store
@_YES
def lift(lineage: str, location: StoreOptions, yes: bool) -> None:
    """Trust LINEAGE again, of `cache off` or the start of it. What differed was removed, and is computed anew."""
    from spark_regions.store.switched_off import lift as trust_again

    if not yes:
        click.confirm(f"Read and store {lineage} again?", abort=True)
    with opened(location) as store:
        found = store.catalog.write(lambda c: trust_again(c, lineage), counted=True) if lineage else []
        if not found:
            raise StoreError(
                f"Nothing that starts with {lineage!r} is off. Hint: `spark-regions cache off` lists them."
            )
        click.echo(f"Lifted {len(found)}.")


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
        remove_entry(store, entry)
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


cache.add_command(why)
