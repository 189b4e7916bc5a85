"""Expected uses from the global operator graph: Piglet §4.4, eq. 6 and 7."""

from __future__ import annotations

from collections.abc import Collection

from spark_regions.dag.plan import Plan
from spark_regions.dag.records import GraphView

HALF_LIFE_SECONDS = 2 * 86_400.0
"""After so long a use counts half. All uses of three days (this over ln 2) count as much as all that ever were."""


def fading(seconds: float) -> float:
    """What is left of a use after so long; a clock that was set back counts as no time.

    >>> fading(0.0), fading(2 * 86_400.0), fading(-5.0)
    (1.0, 0.5, 1.0)
    """
    return float(0.5 ** (max(0.0, seconds) / HALF_LIFE_SECONDS))


def edge_probability(child: str, parent: str, view: GraphView) -> float:
    """P(child → parent) by eq. 7, in relation to all runs; eq. 8 would relate it to what else follows the child.

    Of 4 earlier runs, 3 had the edge: 3/4. A run counts once, however often it repeats the edge, so that P stays a
    probability.
    """
    use = view.edges.get(child, {}).get(parent)
    return min(1.0, use.runs / view.runs) if use and view.runs else 0.0


def total_probabilities(plan: Plan, view: GraphView) -> dict[str, float]:
    """Eq. 6 by lineage: the smallest probability on the way from the sources.

    A source starts at how often it was used at all. Worked example: P(scan → join) = 0.9, P(join → aggregate) = 0.4:
    the aggregate has 0.4, the join 0.9.
    """
    found: dict[str, float] = {}
    memo: dict[int, float] = {}
    for number in plan.bottom_up():
        node = plan.nodes[number]
        below = min((memo[child] for child in node.children), default=1.0)
        memo[number] = below
        if node.signature is None:
            continue
        lineage = node.signature.lineage
        for child in _signed_below(plan, number):
            if child != lineage:
                below = min(below, edge_probability(child, lineage, view))
        memo[number] = below
        found[lineage] = min(found.get(lineage, 1.0), below)
    return found


def unserved_shares(plan: Plan, view: GraphView, loadable: Collection[str]) -> dict[str, float]:
    """Which share of a lineage's uses no stored point above it answers, by lineage of the plan.

    What a point above already saves is no use of the point below. Worked example: a join was used 4 times under an
    aggregate that is stored by now, and once at the root: one fifth.

    :param loadable: lineages of this plan that an entry serves
    """
    above = plan.edge_map()
    shares: dict[str, float] = {"": 1.0}

    def served(lineage: str) -> bool:
        return lineage in view.served or lineage in loadable

    for lineage in above:
        uses: dict[str, float] = {}
        for parent, use in view.edges.get(lineage, {}).items():
            uses[parent] = uses.get(parent, 0.0) + use.occurrences
        for parent, times in view.session.get(lineage, {}).items():
            uses[parent] = uses.get(parent, 0.0) + times
        total = sum(uses.values())
        open_uses = sum(times * (0.0 if served(parent) else shares.get(parent, 1.0)) for parent, times in uses.items())
        shares[lineage] = open_uses / total if total else 1.0
    return shares


def expected_uses(lineage: str, probability: float, view: GraphView) -> float:
    """Uses in as many future runs as the window has past ones: P_total · uses per run that had it · runs.

    >>> from spark_regions.dag.records import EdgeUse
    >>> view = GraphView(edges={"join": {"agg": EdgeUse(runs=2, occurrences=6)}}, runs=4)
    >>> expected_uses("join", 0.5, view)
    6.0
    """
    uses = view.edges.get(lineage, {})
    runs = max((use.runs for use in uses.values()), default=0)
    if not runs or not view.runs:
        return 0.0
    return probability * sum(use.occurrences for use in uses.values()) / runs * view.runs


def session_uses(lineage: str, view: GraphView) -> int:
    """Times that this application has asked for the lineage before."""
    return sum(view.session.get(lineage, {}).values())


def _signed_below(plan: Plan, node: int) -> set[str]:
    """Lineages of the nearest signed nodes below."""
    found: set[str] = set()
    stack = list(plan.nodes[node].children)
    while stack:
        current = plan.nodes[stack.pop()]
        if current.signature is None:
            stack.extend(current.children)
        else:
            found.add(current.signature.lineage)
    return found
