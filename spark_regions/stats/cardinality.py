"""How many rows an operator has: as they were seen, else what is to be expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_regions.dag.plan import Node, Plan, Signature
from spark_regions.dag.records import GraphView, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.stats.estimate import Estimate, estimate

FILTERED = 1 / 3
"""Share of rows that a filter of unknown effect is taken to keep."""
GROUPED = 0.1
UNKNOWN_SOURCE_BYTES = 10e6
OTHER_FILTERS = 0.3
"""Trust in rows that were seen under other filters."""


def rows(lineage: str, view: GraphView) -> Estimate | None:
    """Seen: equal for every operator of one lineage, so all of them count."""
    merged = RunningStatistics()
    for variant in sorted(view.variants.get(lineage, ()), key=lambda each: each.last):
        merged = merged.merge(variant.rows)
    return estimate(merged)


def unfiltered_rows(
    conjuncts: frozenset[str], seen: Iterable[tuple[frozenset[str], Estimate | None]]
) -> Estimate | None:
    """Rows under `conjuncts`, from rows of the same core that were seen under others; the fewest filters count.

    Every filter that was there and is not among `conjuncts` may have removed rows: two thirds, as a guess.

    >>> unfiltered_rows(frozenset("a"), [(frozenset("ab"), Estimate(20.0, 1.0)), (frozenset("abc"), None)])
    Estimate(value=60.0, confidence=0.3)
    """
    known = [(filters, found) for filters, found in seen if found is not None]
    if not known:
        return None
    filters, found = min(known, key=lambda each: len(each[0]))
    return found.scaled((1 / FILTERED) ** len(filters - conjuncts), OTHER_FILTERS)


def rows_for(wanted: Signature, node: Signature, view: GraphView, kin: Iterable[OperatorStatistics]) -> Estimate | None:
    """Rows of a DataFrame that can stand in for a node: its own, else those of its `kin`, else the node's.

    :param kin: what was seen of the same core
    """
    return (
        rows(wanted.lineage, view)
        or unfiltered_rows(wanted.conjuncts, ((each.conjuncts, estimate(each.rows)) for each in kin))
        or unfiltered_rows(wanted.conjuncts, [(node.conjuncts, rows(node.lineage, view))])
    )


def guessed_rows(
    plan: Plan,
    numbers: Iterable[int] | None = None,
    *,
    known: Mapping[int, float] | None = None,
    reduced: bool = True,
    unknown_bytes: float = UNKNOWN_SOURCE_BYTES,
    least_row_bytes: float = 1.0,
) -> dict[int, float]:
    """Rows of each node before any of it ran, from the sizes of its sources.

    A join has as many rows as its larger input; where they are `reduced`, each filter that does more than test for null
    keeps a third and a group-by a tenth, else they are an upper bound for whatever does not multiply rows.

    :param numbers: the nodes, children first; all of them without
    :param known: rows that were seen
    :param unknown_bytes: of a source that does not tell its size
    """

    def guessed(node: Node) -> float:
        if not node.children:
            if node.source_rows is not None:
                return node.source_rows
            size = unknown_bytes if node.source_bytes is None else node.source_bytes
            return size / max(node.row_bytes, least_row_bytes)
        most = max(found[child] for child in node.children)
        if reduced and node.operator == "Filter":
            return most if _tests_for_null(plan, node) else most * FILTERED
        return most * GROUPED if reduced and node.operator.startswith(("Aggregate", "Distinct")) else most

    found: dict[int, float] = {}
    for number in plan.bottom_up() if numbers is None else numbers:
        seen = (known or {}).get(number)
        found[number] = guessed(plan.nodes[number]) if seen is None else seen
    return found


def _tests_for_null(plan: Plan, node: Node) -> bool:
    """Whether the filter leaves out what is null, and no more: so Spark prepares for a join."""
    below = plan.nodes[node.children[0]].signature
    if node.signature is None or below is None or below.core != node.signature.core:
        return False
    said = [plan.predicates.get(each) for each in node.signature.conjuncts - below.conjuncts]
    return all(each is not None and () in each.any for each in said)
