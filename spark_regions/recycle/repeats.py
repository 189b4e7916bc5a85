"""Subplans that stand in several places of one query (DESIGN §8).

Spark inlines every deterministic common table expression, and reuses an exchange only where two places are equal down
to their columns and filters: the others are computed once for each place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spark_regions.costs.sharing import SharingCosts, guessed, measured
from spark_regions.dag.digests import digest
from spark_regions.dag.moments import Moments
from spark_regions.dag.plan import Plan, Repeated
from spark_regions.dag.records import GraphView, Variant
from spark_regions.recycle.points import MIN_BENEFIT_SECONDS, Decline
from spark_regions.stats.estimate import Estimate

MIN_SHARE = 0.15
"""Of what the places cost: less is within the error of the estimate."""
MIN_GUESS_SECONDS = 0.5
MIN_GUESS_SHARE = 0.2
"""What a saving has to be at least where nothing was measured."""
SURE_SHARE = 0.25
"""A saving of more than this share of the query's seconds needs no run without it for comparison."""
APART, SHARED = "Query apart", "Query shared"


@dataclass(frozen=True, slots=True)
class Share:
    """One computation, with the columns and rows of all, for several nodes.

    :param saving: seconds
    :param detail: of what it was judged by
    """

    nodes: tuple[int, ...]
    saving: float
    reason: str
    detail: str = ""


def shares(
    plan: Plan,
    view: GraphView,
    seconds: Mapping[int, Estimate],
    own: Mapping[int, Estimate],
    parallelism: int,
    replaced: Collection[int],
    stored: Collection[int],
    always: bool = False,
) -> tuple[list[Share], list[Decline]]:
    """What to compute once: of subplans that overlap, those that save most.

    :param seconds: to compute each node
    :param own: task-seconds of each node alone
    :param replaced: nodes that something else stands in for; they and what is below them do not run
    :param stored: nodes that are stored as they are computed
    """
    idle = {below for number in replaced for below in plan.below(number)}
    acted = {*replaced, *stored}
    free = [
        repeated for repeated in plan.repeated if not _inside(plan, repeated) & acted and not set(repeated.nodes) & idle
    ]
    if always:
        return _disjoint(plan, [(repeated, Share(repeated.nodes, 0.0, "ALWAYS")) for repeated in free]), []
    worth: list[tuple[Repeated, Share]] = []
    declines: list[Decline] = []
    for repeated in free:
        costs = measured(plan, view, repeated, seconds, own, parallelism)
        reason = "SHARED"
        if costs is None:
            costs, reason = guessed(plan, repeated, parallelism), "SHARED_UNSEEN"
        if costs is None:
            declines.append(Decline(repeated.nodes[0], "NO_HISTORY"))
        elif not _pays(costs, reason):
            declines.append(Decline(repeated.nodes[0], "NOT_WORTH_SHARING", str(costs)))
        else:
            worth.append((repeated, Share(repeated.nodes, costs.saving, reason, str(costs))))
    worth.sort(key=lambda each: -each[1].saving)
    found = _disjoint(plan, worth)
    withdrawn = _withdrawn(plan, view, sum(share.saving for share in found)) if found else None
    if withdrawn is not None:
        return [], [*declines, *(Decline(share.nodes[0], *withdrawn) for share in found)]
    return found, declines


def query_key(plan: Plan) -> str:
    """Names a plan by the rows of its operators, for what is known of the whole query."""
    lineages = [node.signature.lineage for node in plan.nodes.values() if node.signature]
    return digest(["query", *sorted(lineages)])


def run_of(plan: Plan, shared: bool, seconds: float, now: float) -> Variant:
    """What a run teaches of sharing in its query.

    :param seconds: from the query's start to its end
    """
    key = query_key(plan)
    kind = SHARED if shared else APART
    observed = Moments.of(seconds)
    return Variant(key, kind, "", key, frozenset(), (), seconds=observed, executions=1, last=now)


def _pays(costs: SharingCosts, reason: str) -> bool:
    least = max(MIN_BENEFIT_SECONDS, MIN_SHARE * costs.apart)
    if reason != "SHARED":
        least = max(MIN_GUESS_SECONDS, MIN_GUESS_SHARE * costs.apart)
    return costs.saving >= least


def _disjoint(plan: Plan, ranked: list[tuple[Repeated, Share]]) -> list[Share]:
    taken: set[int] = set()
    found: list[Share] = []
    for repeated, share in ranked:
        inside = _inside(plan, repeated)
        if not inside & taken:
            found.append(share)
            taken |= inside
    return sorted(found, key=lambda share: share.nodes)


def _inside(plan: Plan, repeated: Repeated) -> set[int]:
    return {below for node in repeated.nodes for below in plan.below(node)}


def _withdrawn(plan: Plan, view: GraphView, saving: float) -> tuple[str, str] | None:
    """Why sharing has to pause in this query: earlier runs with it were no faster than those without it.

    The first run of all is slow for other reasons. So where the saving is small beside the query, one more run without
    it is made, after two with it, and both are compared by their last. Whichever was slower is not repeated before
    the other has been slower still.
    """
    runs = {variant.kind: variant.seconds for variant in view.variants.get(query_key(plan), ())}
    apart, shared = runs.get(APART, Moments()), runs.get(SHARED, Moments())
    if not apart.count or not shared.count:
        return None
    detail = f"{shared.last:.2f} s with it, {apart.last:.2f} s without"
    if shared.last > apart.last:
        return "DISAPPOINTED", detail
    if shared.count >= 2 and apart.count < 2 and saving < SURE_SHARE * apart.last:
        return "COMPARED", detail
    return None
