"""`spark-regions platforms`: which other engines are there, and what is proven equal in them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_regions.platforms.equivalents import Equivalent


@click.command()
@click.option("--table", is_flag=True, help="Each expression that an engine has, of what, and why it is equal.")
@click.option("--json", "as_json", is_flag=True, help="An object.")
def platforms(table: bool, as_json: bool) -> None:
    """Other engines that can compute parts of a query: whether they are installed, and what they have of Spark."""
    from spark_regions.platforms.duckdb import EQUIVALENTS
    from spark_regions.platforms.duckdb.operators import OPERATORS
    from spark_regions.platforms.installed import PROVEN, installed_version, usable

    record: dict[str, Any] = {
        "name": "duckdb",
        "version": installed_version(),
        "proven": list(PROVEN),
        "usable": usable(),
        "operators": sorted(OPERATORS),
        "expressions": [_fields(each) for each in EQUIVALENTS],
    }
    if as_json:
        click.echo(json.dumps({"platforms": [record]}, indent=2))
        return
    click.echo(_state(record))
    click.echo(f"operators: {', '.join(record['operators'])}")
    if not table:
        families = Counter(each.family for each in EQUIVALENTS)
        click.echo("expressions: " + ", ".join(f"{count} of {family}" for family, count in families.items()))
        click.echo("--table shows each of them")
        return
    for line in _lines(EQUIVALENTS):
        click.echo(line)


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
