"""`spark-regions cache why`: where a stored result comes from, what it has saved, and whether it stays."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from spark_regions.cli.stores import StoreOptions, at_store, opened
from spark_regions.cli.text import age, entry_fields, size

if TYPE_CHECKING:
    from spark_regions.store.store import Store


@click.command()
@click.argument("entry")
@at_store
@click.option("--json", "as_json", is_flag=True, help="One object.")
def why(entry: str, location: StoreOptions, as_json: bool) -> None:
    """Who made ENTRY, which queries read it, what it saved, and why it stays or is the next to go."""
    with opened(location) as store:
        facts = _facts(store, location, entry)
    click.echo(json.dumps(facts, indent=2) if as_json else _text(facts, location), nl=as_json)


def _facts(store: Store, location: StoreOptions, name: str) -> dict[str, Any]:
    from spark_regions.planner.workload import observed_workload
    from spark_regions.runs.best_set import ranked
    from spark_regions.runs.net_benefit import reads
    from spark_regions.store import entries as records
    from spark_regions.store.admin import find_entry, job_of, list_entries
    from spark_regions.store.admission import next_to_go, shadowed

    entry = find_entry(store, name)
    now = store.clock()
    uses = store.catalog.read(lambda connection: records.uses_of(connection, entry.id))
    leased = store.catalog.read(lambda connection: records.leased(connection, now))
    found = observed_workload(store, location.query_confs(), location.prices())
    stored = found.stored()
    worths = ranked(stored)
    numbers = {each.id: number for number, each in enumerate(found.entries) if each.id}
    number = numbers.get(entry.id, -1)
    asked = [
        {"job": each.job, "query": each.position, "runs_per_day": each.runs_per_day, "times_per_run": each.per_run,
         "reads_it": number in dict(reads(query, numbers.values()))}
        for each, query in zip(found.asked, stored.queries, strict=False)
        if any(number in place.gains for place in query.places)
    ]  # fmt: skip
    line = [each.id for each in next_to_go(list_entries(store), now, leased)]
    return {
        **entry_fields(entry),
        "job": store.catalog.read(lambda connection: job_of(connection, entry.application)),
        "used_by": [use._asdict() for use in uses],
        "asked_by": asked,
        "worth": worths.get(number, 0.0),
        "worth_alone": stored.saved({number}) if number >= 0 else 0.0,
        "shadowed": shadowed(entry),
        "leased": entry.id in leased,
        "place_to_go": line.index(entry.id) + 1 if entry.id in line else None,
        "entries_that_may_go": len(line),
        "ttl_seconds": location.query_confs().ttl_seconds,
    }


def _text(facts: dict[str, Any], location: StoreOptions) -> str:
    now = time.time()
    lines = [
        f"{facts['id']}  {facts['operator']}, {facts['state']}{', pinned' if facts['pinned'] else ''}",
        f"made by    {facts['job'] or 'a job that is forgotten'} ({facts['application']}), query {facts['query']}, "
        f"{age(now - facts['created'])} ago: {facts['reason'] or 'no reason is known'}",
        f"holds      {facts['rows']:,} rows of {len(facts['columns'])} columns, {size(facts['bytes'])}, "
        f"at {facts['location']}",
        f"cost       {facts['recompute_seconds']:.2f} s to compute",
        f"used       {_used(facts, now)}",
    ]
    lines += [
        f"           {use['job'] or use['application']}, query {use['query']}, {age(now - use['at'])} ago: "
        f"{use['saved']:.2f} s {'measured' if use['measured'] else 'estimated'}"
        for use in facts["used_by"]
    ]
    asked = facts["asked_by"]
    lines.append(
        f"asked for  by {len(asked)} recorded queries" + ("" if asked else ": no later run is expected to read it")
    )
    lines += [
        f"           {each['job']}, query {each['query']}: {each['times_per_run']:.1f} a run, "
        f"{each['runs_per_day']:.1f} runs a day" + ("" if each["reads_it"] else "; another entry serves it better")
        for each in asked
    ]
    worth, alone = location.amount(facts["worth"]), location.amount(facts["worth_alone"])
    lines.append(f"worth      {worth} beside the other entries, {alone} if it were the only one")
    return "\n".join([*lines, f"stays      {_stays(facts, now)}"]) + "\n"


def _used(facts: dict[str, Any], now: float) -> str:
    if not facts["uses"]:
        return "never"
    return (
        f"{facts['uses']} times, last {age(now - facts['used'])} ago; saved {facts['measured_seconds']:.2f} s measured "
        f"in {facts['measured_uses']}, {facts['estimated_seconds']:.2f} s estimated in "
        f"{facts['uses'] - facts['measured_uses']}; {facts['predicted_seconds']:.2f} s were predicted"
    )


def _stays(facts: dict[str, Any], now: float) -> str:
    if facts["state"] != "committed":
        return f"no: it is {facts['state']}"
    if facts["shadowed"]:
        return "unread, since reading it disappointed twice in a row; it is among the first to go"
    if facts["pinned"]:
        return "whatever room is needed for, since it is pinned"
    if facts["leased"]:
        return "now, since a query reads it"
    left = facts["ttl_seconds"] - (now - facts["used"])
    until = "" if not facts["ttl_seconds"] else f"; goes in {age(left)} if nobody reads it"
    return f"number {facts['place_to_go']} of {facts['entries_that_may_go']} to go when room is needed{until}"
