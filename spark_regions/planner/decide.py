"""One decision: what to load, store and persist for a plan. No side effects; `session` carries it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_regions.costs.rates import Rates
from spark_regions.costs.recompute import recompute_seconds
from spark_regions.dag.plan import Plan
from spark_regions.dag.records import Entry, GraphView
from spark_regions.errors import InvalidRequest
from spark_regions.recycle.admission import expired, shadowed
from spark_regions.recycle.antichain import Choice, best_antichain
from spark_regions.recycle.first_use import held_point, small_result
from spark_regions.recycle.matching import Match, match
from spark_regions.recycle.points import Decline, Point, Situation, eligible, points, shared_points
from spark_regions.recycle.repeats import Share, shares
from spark_regions.recycle.strategies import strategy
from spark_regions.stats.estimate import Estimate
from spark_regions.stats.operators import own_seconds, total_seconds

MAX_DECLINES = 50


@dataclass(frozen=True, slots=True)
class Confs:
    strategy: str = "markov"
    max_bytes: int = 0
    ttl_seconds: float = 0.0
    recycle: bool = True
    persist: bool = True
    persist_max_bytes: int = 0
    window: int = 20
    first_use_overhead: float = 0.0
    sharing: bool = False
    workflow: bool = False

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Confs:
        """
        :raises InvalidRequest: a value has another type
        """
        try:
            return cls(
                strategy=str(raw.get("strategy") or "markov"),
                max_bytes=int(raw.get("maxBytes") or 0),
                ttl_seconds=float(raw.get("ttlSeconds") or 0),
                recycle=_flag(raw.get("recycle", True)),
                persist=_flag(raw.get("persist", True)),
                persist_max_bytes=int(raw.get("persistMaxBytes") or 0),
                window=int(raw.get("window") or 20),
                sharing=_flag(raw.get("sharing", False)),
                workflow=_flag(raw.get("workflow", False)),
                first_use_overhead=float(raw.get("firstUseOverhead") or 0.0),
            )
        except (TypeError, ValueError) as error:
            raise InvalidRequest(f"confs: {error}") from error


@dataclass(slots=True)
class Proposal:
    """What is told of savings counts copies of a subplan once, each saving its part: Spark might reuse an exchange.

    :param saved: seconds that loading each node would save, by node
    :param fresh: seconds to compute each node without any load
    :param own: task-seconds of each node alone
    """

    choice: Choice
    loads: dict[int, Match] = field(default_factory=dict)
    saved: dict[int, float] = field(default_factory=dict)
    fresh: dict[int, Estimate] = field(default_factory=dict)
    own: dict[int, Estimate] = field(default_factory=dict)
    persists: list[Point] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    declines: list[Decline] = field(default_factory=list)


def propose(
    plan: Plan,
    view: GraphView,
    entries: list[Entry],
    rates: Rates,
    confs: Confs,
    parallelism: int,
    now: float,
    recorded: Mapping[int, float] | None = None,
    unordered: Collection[tuple[int, str]] = (),
) -> Proposal:
    """Match, estimate, choose.

    :param recorded: wall seconds of each node alone in the last run, where that is being followed: then what this run
        will use again is known, and nothing is stored on suspicion
    :param unordered: nodes and entries that do not go together, see `match`
    """
    declines: list[Decline] = []
    own = own_seconds(plan, view)
    for number, seconds in (recorded or {}).items():
        if number in plan.nodes:
            own.setdefault(number, Estimate(seconds * parallelism, 0.5))
    prefixes = total_seconds(plan, view)
    floors: dict[int, float] = {}
    kept = [entry for entry in entries if entry.persisted]
    recycling = confs.recycle and confs.strategy != "off"
    entries = [entry for entry in entries if recycling and not entry.persisted]
    usable = kept + [
        e for e in entries if e.state == "committed" and not shadowed(e) and not expired(e, confs.ttl_seconds, now)
    ]
    if usable or entries:
        loads, missed = match(plan, usable, rates, parallelism, own, unordered)
        unusable = [entry for entry in entries if entry not in usable]
        for number, found in match(plan, unusable, rates, parallelism, own)[0].items():
            if number not in loads:
                declines.append(Decline(number, _unusable(found.entry), found.entry.id))
        declines += [Decline(number, near.code, f"{near.detail}: {near.entry}") for number, near in missed.items()]
        # An entry remembers what it cost to make, with all of its columns: an upper bound, for plans whose own
        # statistics are gone or saw it loaded only.
        floors = {n: found.entry.recompute_seconds for n, found in loads.items() if n not in prefixes}
    else:
        loads = {}
    fresh = recompute_seconds(plan, own, parallelism, prefixes=prefixes, floors=floors)
    gains = {number: _seconds(fresh.get(number)) - found.seconds for number, found in loads.items()}
    stops = {number: found.seconds for number, found in loads.items()}
    with_loads = recompute_seconds(plan, own, parallelism, stops=stops, prefixes=prefixes) if stops else fresh
    candidates = eligible(plan, loads)
    loadable = {signed.lineage for number in loads if (signed := plan.nodes[number].signature)}
    measured, unmeasured = points(plan, view, candidates, with_loads, rates, parallelism, loadable)
    by_node = {point.node: point for point in measured}
    measured += shared_points(plan, view, by_node, with_loads, rates, parallelism, usable)
    fitting = [point for point in measured if point.bytes <= confs.max_bytes]
    if recorded is not None:
        fitting = [point for point in fitting if point.expected > 0 or confs.strategy == "always"]
    declines += [Decline(p.node, "TOO_LARGE", f"{p.bytes:.0f} bytes") for p in measured if p.bytes > confs.max_bytes]
    first = _first_uses(plan, view, confs, candidates, parallelism) if recorded is None else ()
    situation = Situation(plan, loads, gains, tuple(fitting), candidates, first)
    choice = strategy(confs.strategy if confs.recycle else "off")(situation)
    if not recycling and loads:
        choice = best_antichain(replace(situation, points=()), lambda point: Decline(point.node, "NOT_CHOSEN"))
    taken = set(choice.loads) | {point.node for point, _ in choice.stores}
    over = plan.above(taken)
    declines += choice.declines
    declines += [d for d in unmeasured if not _covered(plan, d.node, taken)]
    proposal = Proposal(choice, dict(loads), gains, dict(fresh), own)
    if len({node.copy for node in plan.nodes.values()}) < len(plan.nodes):
        once = recompute_seconds(plan, own, parallelism, prefixes=prefixes, floors=floors, reused=True)
        proposal.fresh = once
        proposal.saved |= _each_copy_its_part(plan, choice, loads, gains, once)
    if confs.persist and confs.persist_max_bytes > 0 and recorded is None:
        proposal.persists = _persists(plan, view, with_loads, rates, parallelism, taken | over)
    if confs.sharing:
        always = confs.strategy == "always" and confs.recycle
        replaced = set(choice.loads) | {point.node for point, _ in choice.stores if point.ref is not None}
        replaced |= {point.node for point in proposal.persists}
        stored = {point.node for point, _ in choice.stores}
        proposal.shares, lost = shares(plan, view, with_loads, own, parallelism, replaced, stored, always)
        declines += lost
    proposal.declines = declines
    return proposal


def _each_copy_its_part(
    plan: Plan,
    choice: Choice,
    loads: Mapping[int, Match],
    gains: Mapping[int, float],
    once: Mapping[int, Estimate],
) -> dict[int, float]:
    """What the chosen loads save at least, by node: without them Spark might have computed copies once."""
    copies = Counter(plan.nodes[number].copy for number in choice.loads)
    return {
        number: min(gains[number], _seconds(once.get(number)) / copies[plan.nodes[number].copy] - loads[number].seconds)
        for number in choice.loads
    }


def _first_uses(
    plan: Plan, view: GraphView, confs: Confs, candidates: Collection[int], parallelism: int
) -> tuple[Point, ...]:
    """What may be stored though the graph knows nothing of it; what it knows is judged by its numbers."""
    if confs.first_use_overhead <= 0:
        return ()
    unknown = [
        shared
        for shared in plan.shared
        if not any(variant.executions for variant in view.by_core.get(shared.signature.core, ()))
    ]
    known = {lineage for lineage, variants in view.variants.items() if any(v.executions for v in variants)}
    found = [held_point(plan, shared) for shared in unknown]
    found.append(small_result(plan, candidates, known, parallelism))
    return tuple(point for point in found if point is not None)


def _persists(
    plan: Plan, view: GraphView, seconds: Mapping[int, Estimate], rates: Rates, parallelism: int, blocked: set[int]
) -> list[Point]:
    """Measured points that cannot be stored for others, topmost first, apart from what was chosen."""
    candidates = [
        number
        for number, node in plan.nodes.items()
        if node.signature and node.children and (node.session or node.refusal == "TYPE_NOT_STORABLE")
    ]
    found, _ = points(plan, view, candidates, seconds, rates, parallelism)
    taken: set[int] = set()
    chosen: list[Point] = []
    for point in sorted(found, key=lambda each: each.node):
        if point.node in blocked or _covered(plan, point.node, taken | blocked):
            continue
        taken.add(point.node)
        chosen.append(point)
    return chosen


def _covered(plan: Plan, node: int, taken: set[int]) -> bool:
    """Whether the node or one above it was taken."""
    current: int | None = node
    while current is not None:
        if current in taken:
            return True
        current = plan.parents.get(current)
    return False


def _seconds(estimate: Estimate | None) -> float:
    return estimate.value if estimate else 0.0


def _unusable(entry: Entry) -> str:
    if entry.state == "pending":
        return "PENDING_ELSEWHERE"
    return "SHADOWED" if shadowed(entry) else "EXPIRED"


def _flag(value: Any) -> bool:
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)
