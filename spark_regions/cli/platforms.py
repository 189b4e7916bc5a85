"""`spark-regions platforms`: which other engines are there, and what is proven equal in them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from spark_regions.cli.stores import StoreOptions, at_store, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_regions.platforms.equivalents import Equivalent


@click.command()
@at_store
@click.option("--table", is_flag=True, help="Each expression that an engine has, of what, and why it is equal.")
@click.option("--json", "as_json", is_flag=True, help="An object.")
def platforms(location: StoreOptions, table: bool, as_json: bool) -> None:
    """Other engines that can compute parts of a query: whether they are installed, what they have of Spark, and what
    their processes and statements took on this machine, as far as the store knows.
    """
    from spark_regions.platforms.duckdb import EQUIVALENTS
    from spark_regions.platforms.duckdb.operators import OPERATORS
    from spark_regions.platforms.installed import PROVEN, installed_version, usable_engines

    record: dict[str, Any] = {
        "name": "duckdb",
        "version": installed_version(),
        "proven": list(PROVEN),
        "usable": bool(usable_engines()),
        "costs": _costs(location),
        "operators": sorted(OPERATORS),
        "expressions": [_fields(each) for each in EQUIVALENTS],
    }
    if as_json:
        click.echo(json.dumps({"platforms": [record]}, indent=2))
        return
    click.echo(_state(record))
    start, factor = (record["costs"][name] for name in ("start_seconds", "factor"))
    click.echo(f"costs: {start:.2f} s to start, statements {factor:.2f} x of the rates that are shipped")
    click.echo(f"operators: {', '.join(record['operators'])}")
    if not table:
        families = Counter(each.family for each in EQUIVALENTS)
        click.echo("expressions: " + ", ".join(f"{count} of {family}" for family, count in families.items()))
        click.echo("--table shows each of them")
        return
    for line in _lines(EQUIVALENTS):
        click.echo(line)


def _costs(location: StoreOptions) -> dict[str, float]:
    """Those that a choice goes by: of the store, or shipped."""
    from spark_regions.costs.engines import engine_rates
    from spark_regions.store.graph import calibration

    learned: dict[str, float] = {}
    if location.exists():
        with opened(location) as store:
            learned = store.catalog.read(lambda connection: calibration(connection, store.where.data[:512]))
    rates = engine_rates(learned, "duckdb")
    return {"start_seconds": rates.start_seconds, "factor": rates.factor}


def _fields(entry: Equivalent) -> dict[str, str]:
    return {name: getattr(entry, name) for name in ("kind", "family", "args", "why")}


def _state(record: dict[str, Any]) -> str:
    if record["version"] is None:
        return "duckdb: not installed. Hint: pip install 'spark-regions[duckdb]'"
    proven = ", ".join(f"{each}.x" for each in record["proven"])
    if not record["usable"]:
        return f"duckdb: found {record['version']}, expected {proven}. Hint: pip install 'spark-regions[duckdb]'"
    return f"duckdb: {record['version']}"


def _lines(entries: Sequence[Equivalent]) -> list[str]:
    return [f"{each.kind} ({each.family}): {each.args}\n    {each.why}" for each in entries]
