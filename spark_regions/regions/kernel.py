"""What is left of a plan's search space once everything that has a known answer is taken out (cost: a sum over edges).

All rules rest on one equivalence: a plan is schedulable exactly when there is a potential f over the operators with
f(u) = f(v) on each pipelined edge and f(v) >= f(u) + 1 on each materialized one. (Ranks of regions are such a
potential; and where there is one, regions sorted by it are an execution order.) Hence

* blocks (biconnected components) do not depend on each other: at their one common operator their potentials can be
  shifted to agree. Blocks without a blocking edge hold the clean edges (Pasta def. 3.9): f = 0 pipelines all of them.
* of a chain (def. 3.1) one edge stays: its blocking edge, else its cheapest one (lemmas 3.3 and 3.4, corollary 3.5).
* parallel edges are materialized together or not at all: they become one edge of their common weight, and are paid
  at once where one of them is blocking.
* an edge u -> v beside a path from u to v with a blocking edge is materialized in every schedulable plan, and asks for
  nothing that the path does not ask for; so is a blocking edge beside such a path. Both go.
* a blocking edge whose target cannot come before its source by any path (forward over any edge, backward over
  non-blocking ones) is never on a cycle.

Each rule makes room for the others, so they run until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spark_regions.dag.region_plan import components, strong_components
from spark_regions.dag.workflow import PhysicalPlan

CHAINS = "chains"
CLEAN = "clean"


@dataclass(slots=True)
class Link:
    """An edge of the kernel.

    :param forced: materialized in every schedulable plan
    :param edges: positions of the plan's edges that are materialized if this one is
    """

    tail: int
    head: int
    weight: float
    forced: bool
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One block, on which every link that is not forced still has to be decided."""

    size: int
    links: tuple[Link, ...]

    @property
    def free(self) -> tuple[int, ...]:
        return tuple(place for place, link in enumerate(self.links) if not link.forced)


@dataclass(slots=True)
class Reduced:
    """The kernels of a plan and the edges found to be materialized in every schedulable plan."""

    kernels: list[Kernel] = field(default_factory=list)
    forced: set[int] = field(default_factory=set)


def reduce_plan(plan: PhysicalPlan, weights: Sequence[float], without: frozenset[str] = frozenset()) -> Reduced:
    """Kernels of a plan under non-negative weights of its edges. Pipelined are all edges that appear nowhere in it.

    :param without: `chains` keeps all edges of chains, `clean` does not part the plan into blocks
    """
    reduced = Reduced(forced=set(plan.blocking))
    links = [
        Link(tail, head, weights[place], place in plan.blocking, () if place in plan.blocking else (place,))
        for place, (tail, head) in enumerate(zip(plan.tails, plan.heads, strict=True))
    ]
    waiting = [links]
    while waiting:
        links = waiting.pop()
        before = len(links)
        links = _merge_parallel(links, reduced.forced)
        links = _drop_implied(links, reduced.forced)
        links = _drop_idle(links)
        if CHAINS not in without:
            links = _contract_chains(links)
        parts = [part for part in ([links] if CLEAN in without else blocks(links)) if any(link.forced for link in part)]
        if len(parts) == 1 and len(parts[0]) == before:
            reduced.kernels.append(_numbered(parts[0]))
        else:
            waiting += parts
    return reduced


@dataclass(frozen=True, slots=True)
class RegionKernel:
    """
    :param group: of each operator of the plan its number in the kernel
    :param forced: edges of the plan that are materialized in every schedulable plan
    """

    kernel: Kernel
    group: tuple[int, ...]
    forced: frozenset[int]


def region_kernel(plan: PhysicalPlan, pipelined: frozenset[int]) -> RegionKernel:
    """One kernel for costs of regions, in which only edges known to be `pipelined` are contracted.

    Chains stay: which of their edges parts two regions makes a difference.
    """
    ends = ((plan.tails[edge], plan.heads[edge]) for edge in sorted(pipelined))
    group = components(len(plan.operators), ends)
    links = [
        Link(group[tail], group[head], 0.0, edge in plan.blocking, (edge,))
        for edge, (tail, head) in enumerate(zip(plan.tails, plan.heads, strict=True))
        if edge not in pipelined
    ]
    forced = set(plan.blocking)
    links = _drop_idle(_drop_implied(_merge_parallel(links, forced), forced))
    return RegionKernel(Kernel(max(group, default=-1) + 1, tuple(links)), group, frozenset(forced))


def _merge_parallel(links: list[Link], forced: set[int]) -> list[Link]:
    merged: dict[tuple[int, int], Link] = {}
    for link in links:
        known = merged.get((link.tail, link.head))
        if known is None:
            merged[link.tail, link.head] = link
        elif known.forced or link.forced:
            forced.update(known.edges, link.edges)
            merged[link.tail, link.head] = Link(link.tail, link.head, 0.0, True, ())
        else:
            both = (*known.edges, *link.edges)
            merged[link.tail, link.head] = Link(link.tail, link.head, known.weight + link.weight, False, both)
    return list(merged.values())


def _drop_implied(links: list[Link], forced: set[int]) -> list[Link]:
    """Without links beside a path that contains a forced link; those not forced yet are."""
    after: dict[int, list[Link]] = {}
    for link in links:
        after.setdefault(link.tail, []).append(link)
    number = {operator: place for place, operator in enumerate(_reverse_topological(links))}
    # Sets of operators as bits of one integer: all that are reached, and those reached over a forced link.
    reached: dict[int, int] = {}
    strictly: dict[int, int] = {}
    for operator in number:
        anywhere = strict = 0
        for link in after.get(operator, ()):
            below = reached[link.head] | 1 << number[link.head]
            anywhere |= below
            strict |= below if link.forced else strictly[link.head]
        reached[operator], strictly[operator] = anywhere, strict
    kept = []
    for link in links:
        bit = 1 << number[link.head]
        # After merging, any path to the head that starts with another link has another operator next.
        if any(
            other is not link and (reached[other.head] if other.forced else strictly[other.head]) & bit
            for other in after[link.tail]
        ):
            forced.update(link.edges)
        else:
            kept.append(link)
    return kept


def _drop_idle(links: list[Link]) -> list[Link]:
    """Without forced links between operators that no cycle can hold together."""
    number = {operator: place for place, operator in enumerate(_operators(links))}
    pairs = [(number[link.tail], number[link.head]) for link in links]
    back = [(head, tail) for (tail, head), link in zip(pairs, links, strict=True) if not link.forced]
    knot = strong_components(len(number), pairs + back)
    return [link for link, (tail, head) in zip(links, pairs, strict=True) if knot[tail] == knot[head]]


def _contract_chains(links: list[Link]) -> list[Link]:
    into: dict[int, list[Link]] = {}
    out: dict[int, list[Link]] = {}
    for link in links:
        out.setdefault(link.tail, []).append(link)
        into.setdefault(link.head, []).append(link)
    inner = {operator for operator in into if len(into[operator]) == 1 and len(out.get(operator, ())) == 1}
    kept = []
    for link in links:
        if link.tail in inner:
            continue
        while link.head in inner:
            (after,) = out[link.head]
            # A forced link keeps the place; the others of the chain are pipelined. Ties go to the first.
            stays = link if link.forced or (not after.forced and link.weight <= after.weight) else after
            link = Link(link.tail, after.head, stays.weight, stays.forced, stays.edges)
        kept.append(link)
    return kept


def blocks(links: Sequence[Link]) -> Iterator[list[Link]]:
    """Biconnected components, by links (Hopcroft and Tarjan 1973, without recursion)."""
    around: dict[int, list[tuple[int, int]]] = {}
    for place, link in enumerate(links):
        around.setdefault(link.tail, []).append((link.head, place))
        around.setdefault(link.head, []).append((link.tail, place))
    depth: dict[int, int] = {}
    low: dict[int, int] = {}
    taken = [False] * len(links)
    stack: list[int] = []
    for root in around:
        if root in depth:
            continue
        depth[root] = low[root] = len(depth)
        # (operator, height of the stack below the link that led to it, links still to follow)
        work = [(root, 0, iter(around[root]))]
        while work:
            operator, below, following = work[-1]
            for other, place in following:
                if taken[place]:
                    continue
                taken[place] = True
                stack.append(place)
                if other in depth:
                    low[operator] = min(low[operator], depth[other])
                else:
                    depth[other] = low[other] = len(depth)
                    work.append((other, len(stack) - 1, iter(around[other])))
                    break
            else:
                work.pop()
                if not work:
                    continue
                parent = work[-1][0]
                low[parent] = min(low[parent], low[operator])
                if low[operator] >= depth[parent]:
                    yield [links[place] for place in stack[below:]]
                    del stack[below:]


def _operators(links: Sequence[Link]) -> dict[int, None]:
    return dict.fromkeys(end for link in links for end in (link.tail, link.head))


def _reverse_topological(links: Sequence[Link]) -> list[int]:
    """Each operator after all that it feeds."""
    waiting = dict.fromkeys(_operators(links), 0)
    into: dict[int, list[int]] = {}
    for link in links:
        waiting[link.tail] += 1
        into.setdefault(link.head, []).append(link.tail)
    order = [operator for operator, count in waiting.items() if not count]
    for operator in order:
        for tail in into.get(operator, ()):
            waiting[tail] -= 1
            if not waiting[tail]:
                order.append(tail)
    return order


def _numbered(links: Sequence[Link]) -> Kernel:
    number = {operator: place for place, operator in enumerate(_operators(links))}
    renamed = (Link(number[link.tail], number[link.head], link.weight, link.forced, link.edges) for link in links)
    return Kernel(len(number), tuple(renamed))
