"""`spark-regions calibrate`: what operators take on a row of this machine, as its stages tell."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from spark_regions.cli.stores import StoreOptions, at_store, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_regions.costs.learned import Work


@click.command()
@at_store
@click.option("--run", is_flag=True, help="First run some queries on generated rows.")
@click.option("--forget", is_flag=True, help="Go back to fixed weights, and forget this machine's stages.")
@click.option("--json", "as_json", is_flag=True, help="An object.")
@click.pass_context
def calibrate(context: click.Context, location: StoreOptions, run: bool, forget: bool, as_json: bool) -> None:
    """Learn the weights of operators from this machine's stages, and show them.

    By itself a planner does so, too, whenever enough stages ran.
    """
    from spark_regions.costs.learned import LEAST_STAGES, work_of
    from spark_regions.store.timed_stages import forget_machine, machine, timed_stages
    from spark_regions.store.weights import fit

    if run and forget:
        raise click.UsageError("--run and --forget exclude each other.")
    if run:
        from spark_regions.spark.calibration import run_queries

        run_queries(location.confs(), lambda name: click.echo(f"  {name}", err=True))
    with opened(location) as store:
        if forget:
            store.catalog.write(lambda connection: forget_machine(connection, machine()))
            click.echo(f"Fixed weights from now on, until stages of {machine()} are learned from again.")
            return
        stages = store.catalog.read(lambda connection: timed_stages(connection, machine()))
        if len(stages) < LEAST_STAGES:
            click.echo(
                f"Found {len(stages)} stages of {machine()}, expected at least {LEAST_STAGES}. "
                "Hint: spark-regions calibrate --run",
                err=True,
            )
            context.exit(1)
        fit(store.catalog, stages)
    found = summary([work_of(stage) for stage in stages], machine())
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _print(found)


def summary(works: Sequence[Work], machine: str) -> dict[str, Any]:
    """The weights of each kind in µs, and by how much stages that had no part in them are off."""
    from spark_regions.costs.learned import LEAST_OF_KIND, counted, fixed, held_out, intervals, learned

    weights, ranges, counts, errors = learned(works), intervals(works), counted(works), held_out(works)
    kinds = []
    for kind in sorted(weights, key=lambda kind: -counts[kind]):
        mine = [each for each in errors if kind in each.work.amounts]
        kinds.append({
            "kind": kind,
            "fixedMicros": 1e6 * fixed(kind),
            "micros": 1e6 * weights[kind],
            "interval": [1e6 * end for end in ranges[kind]],
            "stages": counts[kind],
            "learned": counts[kind] >= LEAST_OF_KIND and fixed(kind) > 0,
            "errorLearned": median(each.learned for each in mine),
            "errorFixed": median(each.fixed for each in mine),
        })  # fmt: skip
    whole = {
        name: median(getattr(each, field) for each in errors)
        for name, field in (("errorLearned", "learned"), ("errorFixed", "fixed"))
    }
    return {"machine": machine, "stages": len(works), **whole, "kinds": kinds}


def _print(found: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("operator", no_wrap=True)
    for column in ("µs a row", "90 %", "fixed", "stages", "error", "if fixed"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in found["kinds"]:
        low, high = each["interval"]
        spread = f"{low:.3g} to {high:.3g}" if each["learned"] else "too few"
        errors = (f"{each[name]:.0%}" for name in ("errorLearned", "errorFixed"))
        table.add_row(
            each["kind"].replace("Exec", ""),
            f"{each['micros']:.3g}",
            spread,
            f"{each['fixedMicros']:.3g}",
            str(each["stages"]),
            *errors,
        )
    Console().print(table)
    click.echo(
        f"{found['stages']} stages of {found['machine']}. Half of those held out are predicted within "
        f"{found['errorLearned']:.0%}, with fixed weights, scaled, within {found['errorFixed']:.0%}."
    )
    click.echo("A task's and an expression's µs are of each task, and of each µs by fixed weights.")
