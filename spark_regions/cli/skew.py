"""`spark-regions skew`: the heaviest keys of the stages that were arranged, the last one first."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from spark_regions.cli.stores import StoreOptions, at_store, opened
from spark_regions.cli.text import age
from spark_regions.errors import InvalidRequest

if TYPE_CHECKING:
    from spark_regions.store.stages import CountedStage


@click.command()
@at_store
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@click.option("--limit", default=20, show_default=True, help="Stages to be shown.")
def skew(location: StoreOptions, as_json: bool, limit: int) -> None:
    """Stages with heavy keys: their shares of the rows, and what the stages took."""
    from spark_regions.store.stages import counted_stages

    found: list[CountedStage] = []
    count = 0
    if location.exists():
        with opened(location) as store:
            found, count = store.catalog.read(lambda connection: counted_stages(connection, max(limit, 0)))
    now = time.time()
    records = [_record(stage, now) for stage in found]
    if as_json:
        click.echo(json.dumps(records, indent=2))
        return
    for record in records:
        click.echo("\n".join(_lines(record)))
    if not count:
        click.echo("No keys were counted yet: no stage had to be arranged, or spark.regions.skew.keys is false.")
    elif count > len(records):
        click.echo(f"and {count - len(records)} more; --limit shows them")


def _record(stage: CountedStage, now: float) -> dict[str, Any]:
    """What could be read of it: the store may be newer than this command."""
    import msgspec

    from spark_regions.skew.history import StageHistory
    from spark_regions.skew.key_frequencies import KeyFrequencies

    record: dict[str, Any] = {"secondsAgo": round(now - stage.last, 1)}
    try:
        record |= msgspec.to_builtins(KeyFrequencies.decode(stage.keys))
        history = StageHistory.decode(stage.history) if stage.history is not None else None
    except InvalidRequest as problem:
        return record | {"problem": str(problem)}
    if history is not None and history.seconds:
        whole = sum(history.seconds)
        record |= {"partitions": len(history.seconds), "taskSeconds": round(whole, 3)}
        record |= {"longestShare": round(max(history.seconds) / whole, 4) if whole else None}
    return record


def _lines(record: dict[str, Any]) -> list[str]:
    ago = f"{age(record['secondsAgo'])} ago"
    if "problem" in record:
        return [f"a stage of {ago}: {record['problem']}"]
    took = ""
    if record.get("longestShare") is not None:
        took = f", {record['taskSeconds']:.1f} task-seconds in {record['partitions']} partitions, "
        took += f"{record['longestShare']:.0%} of it in the longest"
    keys = [f"    {each['key']}: {each['share']:.1%} of the rows (± {each['error']:.1%})" for each in record["keys"]]
    return [f"{record['operator']}, {ago}{took}", *(keys or ["    no key with a hundredth of the rows"])]
