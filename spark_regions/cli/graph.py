"""`spark-regions graph`: the global operator graph, most used operators first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from spark_regions.cli.stores import StoreOptions, at_store, opened
from spark_regions.errors import RegionsError, StoreError

if TYPE_CHECKING:
    import networkx

    from spark_regions.store.admin import GraphSnapshot


@click.command()
@at_store
@click.option("--dot", "form", flag_value="dot", help="Graphviz.")
@click.option("--json", "form", flag_value="json", help="Node-link JSON, as networkx reads it.")
@click.option(
    "--workflow",
    metavar="NAME",
    help="The last run of the application of this name, its queries merged, as a DAG for `spark-regions plan`.",
)
@click.option("--limit", default=50, show_default=True, help="Operators in the text form.")
@click.pass_context
def graph(context: click.Context, location: StoreOptions, form: str | None, workflow: str | None, limit: int) -> None:
    """Operators that jobs had in common, with their observed rows and seconds."""
    from spark_regions.store.admin import GraphSnapshot, graph_snapshot

    if workflow is not None:
        try:
            click.echo(json.dumps(recorded(location, workflow), indent=1))
        except RegionsError as error:
            click.echo(f"error: {error}", err=True)
            context.exit(2)
        return
    snapshot = GraphSnapshot([], [], [], 0)
    if location.exists():
        with opened(location) as store:
            snapshot = graph_snapshot(store)
    built = build(snapshot)
    if form == "json":
        import networkx

        click.echo(json.dumps(networkx.node_link_data(built, edges="edges"), indent=2))
    elif form == "dot":
        click.echo(dot(built), nl=False)
    else:
        click.echo(text(built, limit), nl=False)


def recorded(location: StoreOptions, name: str) -> dict[str, Any]:
    """The last run of an application as a workflow, in the form of `spark-regions plan`.

    :raises StoreError: there is no store, or no run of that name in it
    """
    from spark_regions.dag.workflow import document
    from spark_regions.runs.recorded_query import decode
    from spark_regions.runs.workflow import workflow
    from spark_regions.store.steps import recorded_names, steps_of

    with opened(location) as store:
        bodies = store.catalog.read(lambda connection: steps_of(connection, name))
        if not bodies:
            names = store.catalog.read(recorded_names)
            known = ", ".join(names) if names else "none"
            raise StoreError(f"Found no recorded run of {name!r}, expected one of: {known}.")
    return document(workflow([decode(body) for body in bodies], name))


def build(snapshot: GraphSnapshot) -> networkx.DiGraph:
    """The snapshot as a graph: nodes by lineage, edges from an operator to the one that it feeds."""
    import networkx

    built = networkx.DiGraph(runs=snapshot.runs)
    stored = {entry.lineage for entry in snapshot.entries if entry.state == "committed"}
    for facts in snapshot.operators:
        operator = " + ".join(facts["kinds"])
        built.add_node(facts["lineage"], **facts, operator=operator, stored=facts["lineage"] in stored)
    for edge in snapshot.edges:
        # An edge to "" says that a query ended there; one to a forgotten operator says nothing.
        if edge["child"] in built and edge["parent"] in built:
            built.add_edge(edge["child"], edge["parent"], runs=edge["runs"], occurrences=int(edge["occurrences"]))
    return built


def text(built: networkx.DiGraph, limit: int) -> str:
    """One operator a line, most used first, each with what it feeds."""
    if not built:
        return "The graph is empty: no query was observed yet.\n"
    nodes = sorted(built.nodes(data=True), key=lambda item: (-item[1]["demands"], item[0]))
    lines = [f"{len(built)} operators, {built.number_of_edges()} edges"]
    for name, facts in nodes[:limit]:
        lines.append(f"{facts['demands']:5d} x {facts['operator']} {name[:12]}{_measured(facts)}")
        lines += [
            f"        -> {built.nodes[parent]['operator']} {parent[:12]} ({edge['occurrences']} x)"
            for _, parent, edge in built.out_edges(name, data=True)
        ]
    if len(nodes) > limit:
        lines.append(f"and {len(nodes) - limit} more; --limit shows them")
    return "\n".join(lines) + "\n"


def dot(built: networkx.DiGraph) -> str:
    """The graph in Graphviz's language. Operators may bear a file's name."""
    lines = ["digraph regions {", "  rankdir=BT;", "  node [shape=box];"]
    for name, facts in built.nodes(data=True):
        operator = facts["operator"].replace("\\", "/").replace('"', "'")
        label = f"{operator}\\n{name[:12]}\\n{facts['demands']} x{_measured(facts)}"
        lines.append(f'  "{name}" [label="{label}"];')
    lines += [
        f'  "{child}" -> "{parent}" [label="{edge["occurrences"]}"];' for child, parent, edge in built.edges(data=True)
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _measured(facts: Mapping[str, Any]) -> str:
    rows = "" if facts["rows"] is None else f", {facts['rows']:.0f} rows"
    return f"{rows}, {facts['seconds']:.3f} s" + (", stored" if facts["stored"] else "")
