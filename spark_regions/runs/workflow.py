"""A recorded run as one workflow: its queries merged by lineage, for the region planner (DESIGN §8)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from spark_regions.dag.digests import digest
from spark_regions.dag.exchanges import exchanges
from spark_regions.dag.workflow import Edge, Operator, PhysicalPlan, physical_plan
from spark_regions.runs.recorded_query import RecordedQuery, completed
from spark_regions.stats.cardinality import guessed_rows

DEFAULT_ROW_BYTES = 8.0
"""Of rows without columns, as for a count."""


def workflow(steps: Sequence[RecordedQuery], name: str = "") -> PhysicalPlan:
    """One operator for everything that computes the same rows in the same way, however many queries ask for it.

    Edges carry the bytes of their source's rows, in its widest form. Where rows were not seen, they are those of the
    input with the most: an upper bound for whatever does not multiply rows. An edge blocks where Spark shuffles or
    broadcasts it. Seconds are wall seconds of an operator alone, in the mean of the queries that ran it.

    :raises InvalidWorkflow: no step has an operator
    """
    taken: dict[str, str] = {}
    seconds: dict[str, list[float]] = {}
    sizes: dict[str, float] = {}
    edges: dict[tuple[str, str], bool] = {}
    for place, step in enumerate(completed(steps)):
        plan = step.plan
        names: dict[int, str] = {}
        moved = exchanges(plan)
        rows = guessed_rows(
            plan, known=step.measured.rows, reduced=False, unknown_bytes=0.0, least_row_bytes=DEFAULT_ROW_BYTES
        )
        for number in plan.bottom_up():
            node = plan.nodes[number]
            below = [names[child] for child in node.children]
            lineage = node.signature.lineage if node.signature else f"query {place} node {number}"
            identity = digest([lineage, node.operator, *below])
            names[number] = key = _name(taken, f"{node.operator} {lineage[:12]}", identity)
            sizes[key] = max(sizes.get(key, 0.0), rows[number] * max(node.row_bytes, DEFAULT_ROW_BYTES))
            spent = seconds.setdefault(key, [])
            if number in step.measured.seconds:
                spent.append(step.measured.seconds[number])
            for child in node.children:
                edge = names[child], key
                edges[edge] = edges.get(edge, False) or bool(moved[child])
    return physical_plan(
        [Operator(key, fmean(spent) if spent else 0.0) for key, spent in seconds.items()],
        # A port for each edge: two readers of a result may get it in two ways.
        [
            Edge(f"e{place}", tail, head, sizes[tail], blocking, f"to {head}")
            for place, ((tail, head), blocking) in enumerate(edges.items(), 1)
        ],
        name,
    )


def _name(taken: dict[str, str], wanted: str, identity: str) -> str:
    """The name, with a number where another operator has it: several may compute the same rows."""
    name, number = wanted, 1
    while taken.setdefault(name, identity) != identity:
        number += 1
        name = f"{wanted} ({number})"
    return name
