"""`spark-regions plan`: a region plan for a workflow DAG."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spark_regions.errors import ConfError, RegionsError

if TYPE_CHECKING:
    from spark_regions.regions.planned import Planned

METHODS = ("exact", "top-down", "bottom-up", "baseline", "tds", "bus", "maestro")


@click.command()
@click.argument("dag", type=click.Path(path_type=Path))
@click.option("--cost", default="bytes", show_default=True, help="bytes, seconds, first-response, or one of your own.")
@click.option("--method", type=click.Choice(METHODS), default="exact", show_default=True)
@click.option("--greedy", is_flag=True, help="top-down, bottom-up: follow only the cheapest neighbour.")
@click.option("--without", default="", metavar="LIST", help="Of chains,clean,hopeless,early-stop: not to be used.")
@click.option("--deadline", type=click.FloatRange(min=0), default=math.inf, help="Seconds; then the best so far.")
@click.option("--json", "as_json", is_flag=True, help="One object.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw the plan into this file.")
@click.pass_context
def plan(
    context: click.Context,
    dag: Path,
    cost: str,
    method: str,
    greedy: bool,
    without: str,
    deadline: float,
    as_json: bool,
    svg: Path | None,
) -> None:
    """Which edges of a workflow DAG to materialize, the regions that follow, and the order to run them in.

    DAG is a JSON file: {"operators": [{"id": "v1", "seconds": 1.2}], "edges": [{"source": "v1", "target": "v2",
    "bytes": 10, "blocking": false}]}.
    """
    from spark_regions.dag.workflow import read_plan
    from spark_regions.regions import planning

    techniques = [name.strip() for name in without.split(",") if name.strip()]
    try:
        planned = planning.plan(read_plan(dag), cost, method, greedy=greedy, without=techniques, deadline=deadline)
        if svg is not None:
            if method == "maestro":
                raise ConfError("Found --svg with --method maestro, expected a method whose regions do not overlap.")
            from spark_regions.regions.drawing import draw

            svg.write_text(draw(planned.best), encoding="utf-8")
    except (RegionsError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        context.exit(2)
    if as_json:
        click.echo(json.dumps(planned.document(), indent=2))
    else:
        click.echo(text(planned), nl=False)


def text(planned: Planned) -> str:
    """The plan as people read it: the outcome, then regions by rank, then what is materialized though not blocking."""
    facts = planned.document()
    physical = planned.best.plan
    blocking = len(physical.blocking)
    chosen = facts["materialized_non_blocking"]
    regions = facts["regions"]
    outcome = "proven" if planned.proven else "not proven"
    if not planned.proven and planned.bound > 0:
        outcome += f" (no plan below {quantity(planned.bound, planned.cost_model)})"
    lines = [
        f"{facts['name'] or 'workflow'}: {facts['operators']} operators, {facts['edges']} edges, {blocking} blocking",
        f"cost      {quantity(planned.cost, planned.cost_model)}, {outcome}",
        f"searched  {planned.states} states by {planned.method} in {planned.seconds:.3f} s",
        f"regions   {len(regions)}"
        + (f", {facts['ranks']} ranks" if facts["schedulable"] else "; unschedulable: the region graph has a cycle"),
    ]
    for number, region in sorted(enumerate(regions, 1), key=lambda item: (item[1]["rank"] or 0, item[0])):
        rank = f"rank {region['rank']:<4d}" if facts["schedulable"] else " " * 9
        lines.append(f"  {rank} R{number}: {_some(region['operators'])}")
    lines.append(f"materialized, besides the {blocking} blocking edges: {len(chosen) or 'none'}")
    for edge in sorted(planned.best.materialized - physical.blocking):
        found = physical.edges[edge]
        lines.append(f"  {found.id}: {found.source} -> {found.target}, {quantity(found.bytes, 'bytes')}")
    for conflict in facts.get("conflicts", ()):
        more = "" if conflict["complete"] else " and more"
        lines.append(f"choices at {conflict['operator']}: {conflict['count']}{more}")
        for number, choice in enumerate(conflict["choices"][:12]):
            mark = f" <- {conflict['how']}" if number == conflict["chosen"] else ""
            size, again = quantity(choice["bytes"], "bytes"), choice["recompute_seconds"]
            lines.append(f"  {_some(choice['edges'])}: {size}, or {again:g} s to run again{mark}")
    return "\n".join(lines) + "\n"


def quantity(value: float, cost_model: str) -> str:
    """
    >>> quantity(1536, "bytes"), quantity(2.5, "seconds"), quantity(math.inf, "bytes"), quantity(7.25, "mine")
    ('1.5 KiB (1,536 bytes)', '2.5 s', 'infinite', '7.25')
    """
    if math.isinf(value):
        return "infinite"
    if cost_model == "bytes":
        from spark_regions.cli.text import size

        return f"{size(round(value))} ({value:,.0f} bytes)" if value >= 1024 else f"{value:g} bytes"
    return f"{value:g} s" if cost_model in ("seconds", "first-response") else f"{value:g}"


def _some(names: list[str], shown: int = 12) -> str:
    rest = len(names) - shown
    return ", ".join(names) if rest <= 0 else f"{', '.join(names[:shown])} and {rest} more"
