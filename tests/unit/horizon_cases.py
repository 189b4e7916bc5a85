"""Recorded steps by short names, and the cheapest schedule of few of them by trying all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from builders import plan, signature

from spark_regions.costs.rates import Rates
from spark_regions.runs.program import PERSIST, making_seconds, read_seconds, trees
from spark_regions.runs.recorded_query import Measured, RecordedQuery
from spark_regions.runs.results import Result

RATES = Rates(persisted_ratio=1.0, persist_read_bytes_per_second=500e6, persist_write_bytes_per_second=200e6)


def step(
    *cores: str, seconds: Mapping[str, float], rows: float = 1e6, columns: Mapping[str, Sequence[str]] | None = None
) -> RecordedQuery:
    """A chain, the root first and a source last; every core takes its seconds."""
    last = len(cores) - 1
    wanted = columns or {}
    tree = {
        n: ("Op", signature(core, wanted.get(core, ("a",))), () if n == last else (n + 1,))
        for n, core in enumerate(cores)
    }
    measured = Measured(
        {n: seconds.get(core, 0.0) for n, core in enumerate(cores)}, dict.fromkeys(range(len(cores)), rows), {}
    )
    return RecordedQuery(plan(tree), measured)


def cheapest(steps: Sequence[RecordedQuery], found: Sequence[Result], limit: float, parallelism: int) -> float:
    """Least total seconds with persisted results only: every way to hold them is tried, and every way to read them."""
    ahead = range(len(steps))
    trimmed = trees(steps, list(ahead), found)
    best = float("inf")
    spans = len(steps) - 1
    for bits in product((0, 1), repeat=len(found) * spans):
        held = [bits[r * spans : (r + 1) * spans] for r in range(len(found))]
        total = 0.0
        for k in ahead:
            there = {r for r in range(len(found)) if k > 0 and held[r][k - 1]}
            after = {r for r in range(len(found)) if k < spans and held[r][k]}
            spent = _step(trimmed[k], k, found, there, after, limit, parallelism)
            if spent is None:
                break
            total += spent
        else:
            best = min(best, total)
    return best


def _step(tree, k, found, there, after, limit, parallelism):
    """Least seconds of one query, over the nodes at which it reads, and those at which it makes what is held after."""
    makes = sorted(after - there)
    options = [[p.node for p in found[r].makers() if p.step == k] for r in makes]
    readable = [(p.node, r, p) for r in there for p in found[r].places if p.step == k]
    best = None
    for nodes in product(*options):
        if any(one != other and _on_one_way(tree, one, other) for one in nodes for other in nodes):
            continue
        if len(set(nodes)) < len(nodes):
            continue
        for bits in product((False, True), repeat=len(readable)):
            reads = {node: (r, p) for (node, r, p), on in zip(readable, bits, strict=True) if on}
            used = {r for r, _ in reads.values()}
            if sum(found[r].bytes for r in after | used) > limit * (1 + 1e-6):
                continue
            computed = _computed(tree, set(reads))
            if not set(nodes) <= computed:
                continue
            needed = {n for n in reads if tree.parents.get(n) is None or tree.parents[n] in computed}
            spent = sum(tree.seconds[n] for n in computed)
            spent += sum(
                read_seconds(found[r], p, PERSIST, RATES, parallelism) for n, (r, p) in reads.items() if n in needed
            )
            for r, node in zip(makes, nodes, strict=True):
                place = next(p for p in found[r].places if (p.step, p.node) == (k, node))
                spent += making_seconds(found[r], place, PERSIST, RATES, parallelism)
            best = spent if best is None or spent < best else best
    return best


def _computed(tree, reads):
    found = set()
    for node in tree.nodes:
        above = tree.parents.get(node)
        if node not in reads and (above is None or above in found):
            found.add(node)
    return found


def _on_one_way(tree, one, other):
    def above(node):
        while node in tree.parents:
            node = tree.parents[node]
            yield node

    return one in above(other) or other in above(one)
