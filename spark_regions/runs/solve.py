"""The program of `program.py`, built and solved by HiGHS."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from spark_regions.costs.rates import Rates
from spark_regions.runs.milp import Program, Var, solved
from spark_regions.runs.program import (
    LEVELS,
    PERSIST,
    Budget,
    Make,
    Schedule,
    Tree,
    making_seconds,
    read_seconds,
    trees,
)
from spark_regions.runs.recorded_query import RecordedQuery
from spark_regions.runs.results import Occurrence, Result

TIE_SECONDS = 1e-4
"""What keeping costs at least, so that nothing is kept for nothing."""


def solve(
    steps: Sequence[RecordedQuery],
    ahead: Sequence[int],
    found: Sequence[Result],
    budget: Budget,
    rates: Rates,
    parallelism: int,
    seconds: float,
    kept: Collection[int] = (),
    stored: Collection[int] = (),
    together: bool = False,
) -> Schedule | None:
    """The cheapest schedule of the steps ahead; None where none was found in time.

    :param kept: numbers of results that are persisted now
    :param stored: numbers of results that an entry serves now; nobody has to make room for them
    :param together: the queries run side by side: all that is persisted has to fit at once
    :param seconds: the solver's limit
    """
    trimmed = trees(steps, ahead, found)
    place = {k: i for i, k in enumerate(ahead)}
    program = Program()
    for k in ahead:
        _query(program, place[k], trimmed[k])
    for number, result in enumerate(found):
        size = rates.level_bytes(result.bytes, True)
        for level in LEVELS:
            room = budget.takes(level, size) or number in kept or number in stored
            if (level == PERSIST or result.storable) and room:
                _result(program, place, number, result, level, rates, parallelism, kept, stored)
    for k in ahead:
        _paths(program, place[k], trimmed[k])
        _demand(program, place[k], trimmed[k])
    for level in LEVELS:
        sizes = [rates.level_bytes(result.bytes, level == PERSIST) for result in found]
        _capacity(program, len(ahead), sizes, level, budget.of(level), frozenset(kept) | frozenset(stored))
    if together and budget.persist > 0:
        _at_once(program, [rates.level_bytes(result.bytes, True) for result in found], budget.persist)
    values, proven = solved(program, seconds)
    if values is None:
        return None
    return _schedule(program, values, proven, steps, ahead, trimmed, tuple(found))


def _query(program: Program, i: int, tree: Tree) -> None:
    for node in tree.nodes:
        program.add(Var("computed", i, node), tree.seconds[node])


def _result(
    program: Program,
    place: Mapping[int, int],
    number: int,
    result: Result,
    level: str,
    rates: Rates,
    parallelism: int,
    kept: Collection[int],
    stored: Collection[int],
) -> None:
    there = number in kept if level == PERSIST else number in stored
    last = max(place[p.step] for p in result.places)
    first = 0 if there else min((place[p.step] for p in result.makers()), default=last)
    for i in range(first, last):
        program.add(Var("held", i, result=number, level=level), 0.0, binary=True)
    if not there:
        for p in result.makers():
            if place[p.step] < last:
                cost = making_seconds(result, p, level, rates, parallelism) + TIE_SECONDS
                program.add(Var("made", place[p.step], p.node, number, level), cost, binary=True)
                step = Var("made", place[p.step], p.node, number, level)
                program.at_least(0.0, {Var("computed", place[p.step], p.node): 1.0, step: -1.0})
    makers: dict[int, list[Occurrence]] = {}
    for p in result.makers():
        makers.setdefault(place[p.step], []).append(p)
    for i in range(first, last):
        terms: dict[Var, float] = {
            Var("held", i, result=number, level=level): -1.0,
            Var("held", i - 1, result=number, level=level): 1.0,
        }
        terms |= {Var("made", i, p.node, number, level): 1.0 for p in makers.get(i, ())}
        program.at_least(-1.0 if there and i == 0 else 0.0, terms)
    for p in result.places:
        i = place[p.step]
        if i > first or there:
            read: Var = Var("read", i, p.node, number, level)
            program.add(read, read_seconds(result, p, level, rates, parallelism), binary=True)
            lower = -1.0 if there and i == 0 else 0.0
            program.at_least(lower, {Var("held", i - 1, result=number, level=level): 1.0, read: -1.0})


def _demand(program: Program, i: int, tree: Tree) -> None:
    """What is needed is computed or read."""
    reads: dict[int, list[Var]] = {}
    for name in program.by_query[i]:
        if name.kind == "read":
            reads.setdefault(name.node, []).append(name)
    for node in tree.nodes:
        terms: dict[Var, float] = {Var("computed", i, node): 1.0}
        terms |= dict.fromkeys(reads.get(node, ()), 1.0)
        above = tree.parents.get(node)
        if above is None:
            program.at_least(1.0, terms)
        else:
            program.at_least(0.0, terms | {Var("computed", i, above): -1.0})


def _paths(program: Program, i: int, tree: Tree) -> None:
    """On a way from root to leaf one result is made."""
    made: dict[int, list[Var]] = {}
    for name in program.by_query[i]:
        if name.kind == "made":
            made.setdefault(name.node, []).append(name)
    inner = set(tree.parents.values())
    for leaf in (node for node in tree.nodes if node not in inner):
        way = [leaf]
        while way[-1] in tree.parents:
            way.append(tree.parents[way[-1]])
        program.at_least(-1.0, {name: -1.0 for node in way for name in made.get(node, ())})


def _capacity(
    program: Program, count: int, sizes: Sequence[float], level: str, limit: float, free: frozenset[int]
) -> None:
    """What is held after a query, or read by it, fits at once."""
    reads: dict[tuple[int, int], list[Var]] = {}
    for name in list(program.names):
        if name.kind == "read" and name.level == level:
            reads.setdefault((name.i, name.result), []).append(name)
    for i in range(count):
        used: dict[Var, float] = {}
        for number, size in enumerate(sizes):
            if level != PERSIST and number in free:
                continue
            held: Var = Var("held", i, result=number, level=level)
            names = reads.get((i, number), [])
            if held not in program.names and not names:
                continue
            present: Var = Var("present", i, result=number, level=level)
            program.add(present)
            for name in (held, *names):
                program.at_least(0.0, {present: 1.0, name: -1.0})
            # In units of the limit: the solver's tolerance is absolute.
            used[present] = -size / max(limit, 1.0)
        if used:
            program.at_least(-1.0 if limit > 0 else 0.0, used)


def _at_once(program: Program, sizes: Sequence[float], limit: float) -> None:
    made = [name for name in program.names if name.kind == "made" and name.level == PERSIST]
    if made:
        program.at_least(-1.0, {name: -sizes[name.result] / limit for name in made})


def _schedule(
    program: Program,
    values: Sequence[float],
    proven: bool,
    steps: Sequence[RecordedQuery],
    ahead: Sequence[int],
    trimmed: Mapping[int, Tree],
    found: tuple[Result, ...],
) -> Schedule:
    chosen = dict.fromkeys(ahead, 0.0)
    on: dict[str, list[Var]] = {"made": [], "read": [], "held": []}
    for name, column in program.names.items():
        chosen[ahead[name.i]] += program.costs[column] * values[column]
        if name.kind in on and values[column] > 0.5:
            on[name.kind].append(name)
    last: dict[tuple[int, str], int] = {}
    for name in on["read"]:
        key = (name.result, name.level)
        last[key] = max(last.get(key, -1), name.i)
    makes: dict[int, list[Make]] = {}
    for name in on["made"]:
        if (name.result, name.level) in last:
            make = Make(name.result, name.node, name.level, ahead[last[name.result, name.level]])
            makes.setdefault(ahead[name.i], []).append(make)
    held = {(name.i, name.result) for name in on["held"] if name.level == PERSIST}
    used = {(name.i, name.result) for name in on["read"] if name.level == PERSIST}
    releases: dict[int, set[int]] = {}
    for i, number in sorted(used):
        if (i, number) not in held:
            releases.setdefault(ahead[i], set()).add(number)
    plain = {k: sum(trimmed[k].seconds.values()) for k in ahead}
    return Schedule(
        found,
        {k: tuple(each) for k, each in makes.items()},
        {k: frozenset(each) for k, each in releases.items()},
        {k: (chosen[k], plain[k]) for k in ahead},
        proven,
    )
