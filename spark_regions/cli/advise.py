"""`spark-regions advise`: what would be stored for all that was observed, and what that would save."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from spark_regions.cli.stores import StoreOptions, at_store, opened
from spark_regions.cli.text import size

if TYPE_CHECKING:
    from spark_regions.planner.workload import ObservedWorkload
    from spark_regions.runs.best_set import BestSet

EXACT_SECONDS = 30.0


@click.command()
@at_store
@click.option("--json", "as_json", is_flag=True, help="One object.")
@click.option("--max-bytes", help="spark.regions.recycle.maxBytes, as 512m or 10g")
@click.option("--exact", is_flag=True, help=f"Also the best set by integer programming, within {EXACT_SECONDS:.0f} s.")
@click.option("--limit", default=20, show_default=True, help="Results in the text form.")
def advise(location: StoreOptions, as_json: bool, max_bytes: str | None, exact: bool, limit: int) -> None:
    """What to store for the queries of the recorded runs of all applications, within the budget, and what it saves.

    Runs in mode `observe` count as any others. It is what would be stored if the jobs run again on the same inputs:
    the results of most net benefit, by the seconds that a decision would go by.
    """
    budget = _budget(location, max_bytes)
    facts: dict[str, Any] = {"queries": 0, "jobs": [], "results": []}
    if location.exists():
        with opened(location) as store:
            facts = _facts(store, location, budget, exact)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    elif not facts["queries"]:
        click.echo(
            f"Nothing was observed in {location.dir} for namespace {location.namespace}. Hint: run a job with "
            "spark.regions.enabled=true; with spark.regions.mode=observe its plans stay as they are."
        )
    else:
        _print(facts, location, limit)


def _budget(location: StoreOptions, text: str | None) -> int:
    from spark_regions import conf

    if text is None:
        return location.max_bytes
    try:
        return int(conf.value_of("recycle.maxBytes", {"recycle.maxBytes": text}) or 0)
    except ValueError as error:
        raise click.BadParameter(f"found {text!r}, expected {error}", param_hint="--max-bytes") from error


def _facts(store: Any, location: StoreOptions, budget: int, exact: bool) -> dict[str, Any]:
    from spark_regions.errors import StoreError
    from spark_regions.planner.workload import observed_workload
    from spark_regions.runs.best_set import best_set
    from spark_regions.runs.exact_set import exact_set

    found = observed_workload(store, location.query_confs(), location.prices())
    try:
        best = best_set(found.workload, budget)
    except ValueError as error:
        raise StoreError(f"{error}. Hint: unpin some, or give more with --max-bytes.") from error
    facts = {
        "queries": len(found.asked),
        "unit": "money" if location.prices().given else "seconds",
        "budget_bytes": budget,
        "bytes": best.bytes,
        "net_benefit": best.net,
        "bound": best.bound,
        **_saved(found, best),
    }
    if exact:
        chosen = exact_set(found.workload, budget, EXACT_SECONDS)
        facts["exact_net_benefit"] = None if chosen is None else found.workload.net(chosen)
    return facts


def _saved(found: ObservedWorkload, best: BestSet) -> dict[str, Any]:
    """Jobs and results, each with what it saves a run or a day, where each query reads the best of the set."""
    from spark_regions.runs.net_benefit import reads

    workload = found.workload
    jobs: dict[str, dict[str, Any]] = {}
    readers: dict[int, dict[str, list[int]]] = {number: {} for number in best.gains}
    per_day = dict.fromkeys(best.gains, 0.0)
    for asked, query in zip(found.asked, workload.queries, strict=False):
        job = jobs.setdefault(
            asked.job,
            {"job": asked.job, "runs_recorded": asked.of_runs, "runs_per_day": asked.runs_per_day,
             "seconds_per_run": 0.0, "saved_per_run": 0.0},
        )  # fmt: skip
        job["seconds_per_run"] += asked.seconds * asked.per_run
        for number, gain in reads(query, best.gains):
            job["saved_per_run"] += gain * asked.per_run
            per_day[number] += gain * asked.per_day
            readers[number].setdefault(asked.job, []).append(asked.position)
    results = [
        {
            "entry": found.entries[number].id or None,
            "operator": found.entries[number].operator,
            "lineage": found.entries[number].lineage,
            "rows": found.entries[number].rows,
            "bytes": found.entries[number].bytes,
            "columns": len(found.entries[number].columns),
            "pinned": found.entries[number].pinned,
            "read_by": readers[number],
            "saved_per_day": per_day[number],
            "cost": workload.results[number].cost,
            "net_benefit": gain,
        }
        for number, gain in best.gains.items()
    ]
    would_go = [e.id for number, e in enumerate(found.entries) if e.id and number not in best.gains]
    return {
        "jobs": list(jobs.values()),
        "results": sorted(results, key=lambda each: -each["saved_per_day"]),
        "not_worth_keeping": would_go,
        "saved_per_day": sum(per_day.values()),
        "cost_once": sum(workload.results[number].cost for number in best.gains),
    }


def _print(facts: dict[str, Any], location: StoreOptions, limit: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    amount = location.amount
    if facts["results"]:
        table = Table(box=box.SIMPLE_HEAD)
        for column in ("operator", "read by", "state"):
            table.add_column(column)
        for column in ("rows", "size", "saves a day", "costs once"):
            table.add_column(column, justify="right", no_wrap=True)
        for each in facts["results"][:limit]:
            read_by = "; ".join(f"{job}: {', '.join(map(str, sorted(at)))}" for job, at in each["read_by"].items())
            state = "to store" if each["entry"] is None else each["entry"][:13]
            table.add_row(
                each["operator"], read_by or "-", state + ("*" if each["pinned"] else ""), f"{each['rows']:,}",
                size(each["bytes"]), amount(each["saved_per_day"]), amount(each["cost"]),
            )  # fmt: skip
        Console().print(table)
        if len(facts["results"]) > limit:
            click.echo(f"and {len(facts['results']) - limit} more; --limit shows them")
    for job in facts["jobs"]:
        click.echo(
            f"{job['job']}: saves {amount(job['saved_per_run'])} of a run of {job['seconds_per_run']:,.1f} s, "
            f"{job['runs_per_day']:.1f} runs a day ({job['runs_recorded']} recorded)"
        )
    share = facts["net_benefit"] / facts["bound"] if facts["bound"] > 0 else 1.0
    click.echo(
        f"{len(facts['results'])} results, {size(int(facts['bytes']))} of {size(facts['budget_bytes'])}: save "
        f"{amount(facts['saved_per_day'])} a day, cost {amount(facts['cost_once'])} once. "
        f"No other set has more than {amount(facts['bound'])} net benefit; this has {amount(facts['net_benefit'])} "
        f"({share:.0%})."
    )
    if facts["not_worth_keeping"]:
        click.echo(f"Not worth keeping: {', '.join(name[:13] for name in facts['not_worth_keeping'])}")
    if "exact_net_benefit" in facts:
        best = facts["exact_net_benefit"]
        click.echo("The best set was not proven in time." if best is None else f"The best set has {amount(best)}.")
