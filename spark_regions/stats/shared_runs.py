"""Whole queries with repeated subplans: how long they ran with and without sharing."""

from __future__ import annotations

from spark_regions.dag.digests import digest
from spark_regions.dag.plan import Plan
from spark_regions.dag.records import GraphView, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics

SURE_SHARE = 0.25
"""A saving of more than this share of the query's seconds needs no run without it for comparison."""
APART, SHARED = "Query apart", "Query shared"


def query_key(plan: Plan) -> str:
    """Names a plan by the rows of its operators, for what is known of the whole query."""
    lineages = [node.signature.lineage for node in plan.nodes.values() if node.signature]
    return digest(["query", *sorted(lineages)])


def run_of(plan: Plan, shared: bool, seconds: float, now: float) -> OperatorStatistics:
    """What a run teaches of sharing in its query.

    :param seconds: from the query's start to its end
    """
    key = query_key(plan)
    kind = SHARED if shared else APART
    observed = RunningStatistics.of(seconds)
    return OperatorStatistics(key, kind, "", key, frozenset(), (), seconds=observed, executions=1, last=now)


def withdrawn(plan: Plan, view: GraphView, saving: float) -> tuple[str, str] | None:
    """Why sharing has to pause in this query: earlier runs with it were no faster than those without it.

    The first run of all is slow for other reasons. So where the saving is small beside the query, one more run without
    it is made, after two with it, and both are compared by their last. Whichever was slower is not repeated before
    the other has been slower still.
    """
    runs = {variant.kind: variant.seconds for variant in view.variants.get(query_key(plan), ())}
    apart, shared = runs.get(APART, RunningStatistics()), runs.get(SHARED, RunningStatistics())
    if not apart.count or not shared.count:
        return None
    detail = f"{shared.last:.2f} s with it, {apart.last:.2f} s without"
    if shared.last > apart.last:
        return "DISAPPOINTED", detail
    if shared.count >= 2 and apart.count < 2 and saving < SURE_SHARE * apart.last:
        return "COMPARED", detail
    return None
