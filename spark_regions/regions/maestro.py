"""Maestro (thesis ch. 4): an acyclic graph of regions by source, algorithms 2 and 3, with every choice enumerated.

Blocking edges are the thesis's blocking links: the target's regions wait for them, and nothing is written for them. It
is its materialization choices that are: minimal sets of links that cut an operator off the region that it would have to
wait for. Each can also be met by replication: what feeds the cut runs again (fig. 53 a).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from spark_regions.costs.rates import Rates
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.regions.cuts import minimal_cuts
from spark_regions.regions.flow import Flow

MATERIALIZE = "materialize"
REPLICATE = "replicate"
MOST_CHOICES = 1000
# Beyond these, response times are worked out only where they decide.
_FEW_CHOICES = 50


@dataclass(frozen=True, slots=True)
class MaterializationChoice:
    """A minimal cut, and what it would cost.

    :param edges: positions of the plan's edges
    :param recompute_seconds: of the operators that would run again if replicated instead
    :param transfer_seconds: to write the cut and read it back
    :param response_seconds: first response time with the cut materialized, without the regions that no choice changes;
        None where it was not asked for and there are too many choices
    :param response_replicated_seconds: the same with what feeds it replicated
    """

    edges: tuple[int, ...]
    bytes: float
    recompute_seconds: float
    transfer_seconds: float
    response_seconds: float | None
    response_replicated_seconds: float | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """An operator whose region would have to wait for itself.

    :param complete: all choices are listed, no more than `MOST_CHOICES`
    """

    operator: int
    choices: tuple[MaterializationChoice, ...]
    complete: bool
    chosen: int
    how: str


@dataclass(slots=True)
class Schedule:
    """The workflow made schedulable."""

    flow: Flow
    conflicts: list[Conflict] = field(default_factory=list)

    @property
    def response_seconds(self) -> float:
        """First response time (§21.3): the regions before the first that holds a result operator, and its first row."""
        flow = self.flow
        ends = ((source, result) for result in flow.plan.results for source in flow.sources_of(result))
        return min((_response(flow, source, result) for source, result in ends), default=0.0)

    @property
    def region_seconds(self) -> float:
        """Sum over regions of the slowest operator, as if they ran one after the other."""
        return sum(max(map(self.flow.seconds, self.flow.region(source))) for source in self.flow.sources)

    def document(self) -> dict[str, Any]:
        flow, edges = self.flow, self.flow.plan.edges
        ranks = flow.ranks
        return {
            "schedulable": 0 not in ranks,
            "ranks": max(ranks, default=0),
            "regions": [
                {"operators": [flow.names[node] for node in sorted(flow.region(source))], "rank": rank}
                for source, rank in zip(flow.sources, ranks, strict=True)
            ],
            "recomputed_seconds": flow.recomputed_seconds,
            "conflicts": [
                {
                    "operator": flow.names[conflict.operator],
                    "count": len(conflict.choices),
                    "complete": conflict.complete,
                    "choices": [
                        {
                            "edges": [edges[edge].id for edge in choice.edges],
                            "bytes": choice.bytes,
                            "recompute_seconds": choice.recompute_seconds,
                            "transfer_seconds": choice.transfer_seconds,
                            "response_seconds": choice.response_seconds,
                            "response_replicated_seconds": choice.response_replicated_seconds,
                        }
                        for choice in conflict.choices
                    ],
                    "chosen": conflict.chosen,
                    "how": conflict.how,
                }
                for conflict in self.conflicts
            ],
        }


def schedule(
    plan: PhysicalPlan, goal: str = "bytes", rates: Rates | None = None, deadline: float = math.inf
) -> Schedule:
    """Algorithm 2: operators in topological order; where a blocking link would close a cycle, algorithm 3.

    :param goal: `bytes` (materialize the smallest cut), `first-response` (the least first response time), or `seconds`
        (the least extra work, by a cut or by replication)
    :param deadline: of `time.monotonic`; after it the first choice is taken
    """
    done = Schedule(Flow(plan))
    rates = rates or Rates()
    for operator in plan.topological:
        if 0 not in done.flow.ranks:
            break
        while (conflict := _conflict(done.flow, operator)) is not None:
            _resolve(done, *conflict, goal, rates, deadline)
    return done


def _conflict(flow: Flow, operator: int) -> tuple[int, int, set[int]] | None:
    """(operator, source of its region, nodes from which that region feeds what it would wait for), or None."""
    waited = [flow.links[number].tail for number in flow.into[operator] if flow.links[number].waits]
    if not waited:
        return None
    limit = flow.order[operator]
    after: dict[int, dict[int, list[int]]] = {}
    for link in flow.links:
        if link.waits and flow.order[link.head] <= limit and link.head != operator:
            for before in flow.sources_of(link.tail):
                ways = after.setdefault(before, {})
                for then in flow.sources_of(link.head):
                    ways.setdefault(then, []).append(link.tail)
    for tail in waited:
        ends = set(flow.sources_of(tail))
        for own in flow.sources_of(operator):
            if own in ends:
                return operator, own, {tail}
            for then, tails in after.get(own, {}).items():
                if _leads(after, then, ends):
                    return operator, own, set(tails)
    return None


def _leads(after: dict[int, dict[int, list[int]]], start: int, ends: set[int]) -> bool:
    seen = {start}
    stack = [start]
    while stack:
        region = stack.pop()
        if region in ends:
            return True
        fresh = [then for then in after.get(region, ()) if then not in seen]
        seen.update(fresh)
        stack += fresh
    return False


def _resolve(
    done: Schedule, operator: int, source: int, feeds: set[int], goal: str, rates: Rates, deadline: float
) -> None:
    """Algorithm 3: G_o feeds the operator, G_m what it would wait for; cuts lie in G_f = G_o - G_m and on its rim."""
    flow = done.flow
    region = flow.region(source)
    feeding_operator = flow.upstream({operator}) & region
    feeding_wait = flow.upstream(feeds) & region
    inner = {
        number: (link.tail, link.head)
        for number, link in enumerate(flow.links)
        if not link.waits and link.head in feeding_operator - feeding_wait and link.tail in feeding_operator
    }
    rim = sorted({tail for tail, _ in inner.values()} & feeding_wait)
    cuts = list(islice(minimal_cuts(inner, rim, operator), MOST_CHOICES + 1))
    complete = len(cuts) <= MOST_CHOICES
    if time.monotonic() > deadline:
        cuts, complete = cuts[:1], False
    elif not complete:
        # The smallest is among them even if not all are.
        cuts[MOST_CHOICES:] = [_smallest(flow, inner, rim, operator)]
    responses = goal == "first-response" or len(cuts) <= _FEW_CHOICES
    choices = [_priced(flow, source, cut, rates, responses) for cut in cuts]
    chosen, how = _best(choices, goal)
    done.flow = flow.materialize(cuts[chosen]) if how == MATERIALIZE else flow.replicate(cuts[chosen])
    done.conflicts.append(Conflict(operator, tuple(choices), complete, chosen, how))


def _smallest(flow: Flow, inner: dict[int, tuple[int, int]], rim: list[int], operator: int) -> frozenset[int]:
    """The cut of fewest bytes, by maximum flow."""
    import networkx

    graph = networkx.DiGraph()
    for number, (tail, head) in inner.items():
        before = graph.get_edge_data(tail, head, {"capacity": 0.0})["capacity"]
        graph.add_edge(tail, head, capacity=before + flow.plan.edges[flow.links[number].edge].bytes)
    for node in rim:
        graph.add_edge("sources", node)
    _, (near, _) = networkx.minimum_cut(graph, "sources", operator)
    return frozenset(number for number, (tail, head) in inner.items() if tail in near and head not in near)


def _priced(flow: Flow, source: int, cut: frozenset[int], rates: Rates, responses: bool) -> MaterializationChoice:
    edges = sorted(flow.links[number].edge for number in cut)
    sizes = [flow.plan.edges[edge].bytes for edge in edges]
    again = flow.upstream({flow.links[number].tail for number in cut})
    return MaterializationChoice(
        tuple(edges),
        sum(sizes),
        flow.seconds_of(again),
        sum(rates.write_seconds(size, 1) + rates.read_seconds(size, 1) for size in sizes),
        _choice_response(flow, source, flow.materialize(cut)) if responses else None,
        _choice_response(flow, source, flow.replicate(cut)) if responses else None,
    )


def _best(choices: list[MaterializationChoice], goal: str) -> tuple[int, str]:
    def key(option: tuple[int, str]) -> tuple[float, float, int, str]:
        place, how = option
        choice = choices[place]
        if goal == "first-response" and choice.response_seconds is not None:
            return choice.response_seconds, choice.bytes, place, how
        if goal == "seconds":
            extra = choice.transfer_seconds if how == MATERIALIZE else choice.recompute_seconds
            return extra, choice.bytes, place, how
        return choice.bytes, 0.0, place, how

    # Copies write nothing: only where seconds are compared do they compete (the thesis holds computing for dearer).
    ways = (MATERIALIZE, REPLICATE) if goal == "seconds" else (MATERIALIZE,)
    return min(((place, how) for place in range(len(choices)) for how in ways), key=key)


def _choice_response(flow: Flow, source: int, changed: Flow) -> float:
    """tau_c(1) - T (§21.4): the rest of the broken region, then the new regions, the last only to its first row."""
    rest = max(map(changed.seconds, changed.region(source)))
    new = [node for node in changed.sources if node not in flow.sources]
    results = set(flow.plan.results)
    if results & flow.region(source):
        firsts = [_first_row(changed, node, result) for node in new for result in results & changed.region(node)]
        return rest + min(firsts, default=0.0)
    return rest + sum(max(map(changed.seconds, changed.region(node))) for node in new)


def _response(flow: Flow, source: int, result: int) -> float:
    """Seconds until a result shows its first row out of one of its regions."""
    needed: set[int] = set()
    waiting = [source]
    while waiting:
        for node in flow.region(waiting.pop()):
            for number in flow.into[node]:
                if flow.links[number].waits:
                    fresh = set(flow.sources_of(flow.links[number].tail)) - needed
                    needed |= fresh
                    waiting += fresh
    before = sum(max(map(flow.seconds, flow.region(other))) for other in sorted(needed - {source}))
    return before + _first_row(flow, source, result)


def _first_row(flow: Flow, source: int, result: int) -> float:
    """t(r(1)): the shortest way of first rows from the source to the result; one is enough for a row."""
    region = flow.region(source)
    ways: dict[int, float] = {}
    for node in flow.topological:
        if node not in region:
            continue
        before = [ways[flow.links[n].tail] for n in flow.into[node] if flow.links[n].tail in ways]
        operator = flow.operator_of[node]
        own = flow.plan.operators[operator].first_seconds if operator >= 0 else 0.0
        ways[node] = min(before, default=0.0) + own
    return ways[result]
