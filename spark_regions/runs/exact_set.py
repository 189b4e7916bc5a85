"""The set of most net benefit by integer programming: for small workloads, to see how far from it greedy is."""

from __future__ import annotations

from spark_regions.runs.milp import Program, Var, solved
from spark_regions.runs.net_benefit import Workload

MOST_READS = 20_000
"""Pairs of a place and a result that serves it, beyond which no program is made."""


def exact_set(workload: Workload, budget: float, seconds: float) -> frozenset[int] | None:
    """Maximise Σ weight · gain · read - Σ cost · held, with held in {0, 1}, read <= held, at most one read on a way
    from root to leaf, and the bytes within the budget. The best to a relative gap of 0.5 %; None where that is not
    proven within `seconds`, or there are too many reads.
    """
    if sum(len(place.gains) for query in workload.queries for place in query.places) > MOST_READS:
        return None
    program = Program()
    for number, result in enumerate(workload.results):
        program.add(_held(number), result.cost, binary=True)
        if result.pinned:
            program.at_least(1.0, {_held(number): 1.0})
    for i, query in enumerate(workload.queries):
        reads: list[list[Var]] = []
        for at, place in enumerate(query.places):
            names = [Var("read", i, at, result) for result in place.gains]
            for name in names:
                program.add(name, -query.weight * place.gains[name.result])
                program.at_least(0.0, {_held(name.result): 1.0, name: -1.0})
            reads.append(names)
        inner = {place.above for place in query.places}
        for leaf in (at for at in range(len(query.places)) if at not in inner):
            way: list[Var] = []
            at = leaf
            while at >= 0:
                way += reads[at]
                at = query.places[at].above
            program.at_least(-1.0, dict.fromkeys(way, -1.0))
    # In units of the budget: the solver's tolerance is absolute.
    program.at_least(-1.0, {_held(n): -each.bytes / max(budget, 1.0) for n, each in enumerate(workload.results)})
    values, proven = solved(program, seconds)
    if values is None or not proven:
        return None
    return frozenset(n for n in range(len(workload.results)) if values[program.names[_held(n)]] > 0.5)


def _held(result: int) -> Var:
    return Var("held", -1, result=result)
