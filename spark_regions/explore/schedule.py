"""Branch-aware scheduling: algorithm 1 of Meta-Dataflows §4.2.

A graph names each stage and the stages that it reads, as `graphlib` takes it. Every choose names its explore: the stage
whose dataset its branches read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from spark_regions.errors import ExploreError

Graph = Mapping[str, Sequence[str]]
Hint = Callable[[Sequence[str]], str]


def oldest(candidates: Sequence[str]) -> str:
    """The hint that says nothing: what became ready first."""
    return candidates[0]


def branch_aware(
    graph: Graph, chooses: Mapping[str, str], hint: Hint = oldest
) -> Generator[str, Collection[str] | None, None]:
    """The stages in order: depth first within an explore, breadth first outside of all.

    A choose comes after each of its branches, since it is incremental; it counts as executed when all of them are. What
    is sent is not to run any more, such as all stages of superfluous branches.

    Algorithm 1 takes what the last stage made ready, else all that is ready, and leaves the rest to hints: depth first
    only where explores do not nest. Here the candidates are those in the same branch, else in another branch of the
    same explore, else of the one around it, else all.

    >>> graph = {"s": [], "a1": ["s"], "b1": ["s"], "a2": ["a1"], "b2": ["b1"], "c": ["a2", "b2"], "end": ["c"]}
    >>> " ".join(branch_aware(graph, {"c": "s"}))
    's a1 a2 c b1 b2 c end'
    >>> stages = branch_aware(graph, {"c": "s"})
    >>> [next(stages) for _ in range(4)], stages.send(["b1", "b2"])
    (['s', 'a1', 'a2', 'c'], 'end')

    :param chooses: choose to explore
    :param hint: which of several candidates is next; they stand in the order in which they became ready
    :raises ExploreError: a cycle, a stage or explore that is not there, or a hint that names no candidate
    """
    places = scopes(graph, chooses)
    readers = _readers(graph)
    executed: set[str] = set()
    ready = dict.fromkeys(stage for stage, reads in graph.items() if not reads)
    at: tuple[str, ...] = ()
    while ready:
        candidates = _nearest(tuple(ready), places, at, chooses)
        stage = hint(candidates)
        if stage not in candidates:
            raise ExploreError(f"Found the hint {stage!r}, expected one of {', '.join(candidates)}. Hint: return one.")
        del ready[stage]
        skipped = (yield stage) or ()
        executed.update(skipped)
        for each in skipped:
            ready.pop(each, None)
        done = [*skipped]
        if stage not in chooses or executed.issuperset(graph[stage]):
            executed.add(stage)
            done.append(stage)
            at = places[stage]
        for each in done:
            for reader in readers[each]:
                if reader not in executed and (reader in chooses or executed.issuperset(graph[reader])):
                    ready[reader] = None


def scopes(graph: Graph, chooses: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Of each stage, from the outermost on, the explores around it, each followed by the first stage of its branch.

    >>> graph = {"s": [], "a1": ["s"], "b1": ["s"], "a2": ["a1"], "c": ["a2", "b1"]}
    >>> scopes(graph, {"c": "s"})
    {'s': (), 'a1': ('s', 'a1'), 'b1': ('s', 'b1'), 'a2': ('s', 'a1'), 'c': ()}

    :raises ExploreError: a cycle, or a stage or explore that is not there
    """
    strange = [each for reads in graph.values() for each in reads if each not in graph]
    strange += [each for pair in chooses.items() for each in pair if each not in graph]
    if strange:
        raise ExploreError(f"Found {strange[0]!r}, expected a stage of the graph. Hint: name all stages as keys.")
    try:
        ordered = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise ExploreError(f"Found the cycle {error.args[1]}, expected none. Hint: unroll iterations.") from None
    readers = _readers(graph)
    first: dict[tuple[str, str], str] = {}
    for choose, explore in chooses.items():
        inside = _reached({choose}, graph, until=explore)
        if explore not in inside:
            raise ExploreError(f"Found no way from {explore!r} to {choose!r}, expected a branch. Hint: swap them.")
        for branch in readers[explore]:
            if branch in inside and branch != choose:
                for stage in _reached({branch}, readers, until=choose) & inside - {choose}:
                    first.setdefault((explore, stage), branch)
    explores = [stage for stage in ordered if stage in set(chooses.values())]
    return {
        stage: tuple(
            name for explore in explores if (explore, stage) in first for name in (explore, first[explore, stage])
        )
        for stage in graph
    }


def stored(graph: Graph, executed: Collection[str]) -> frozenset[str]:
    """Datasets that are still needed after these stages: D^c, those that a stage that has not been executed reads.

    >>> sorted(stored({"s": [], "a": ["s"], "b": ["s"], "c": ["a", "b"]}, {"s", "a"}))
    ['a', 's']

    :param executed: also those that are not to run any more
    """
    return frozenset(
        read for stage, reads in graph.items() if stage not in executed for read in reads if read in executed
    )


def _nearest(
    ready: tuple[str, ...], places: Mapping[str, tuple[str, ...]], at: tuple[str, ...], chooses: Mapping[str, str]
) -> Sequence[str]:
    fed = [stage for stage in ready if stage in chooses]
    if fed:
        return fed
    for length in range(len(at), 0, -1):
        near = [stage for stage in ready if places[stage][:length] == at[:length]]
        if near:
            return near
    return ready


def _readers(graph: Graph) -> dict[str, list[str]]:
    readers: dict[str, list[str]] = {stage: [] for stage in graph}
    for stage, reads in graph.items():
        for read in reads:
            readers[read].append(stage)
    return readers


def _reached(start: set[str], edges: Mapping[str, Sequence[str]], until: str) -> set[str]:
    """What can be reached, `until` too, but nothing through it."""
    seen, ahead = set(start), list(start)
    while ahead:
        stage = ahead.pop()
        if stage != until:
            new = set(edges[stage]) - seen
            seen |= new
            ahead += new
    return seen
