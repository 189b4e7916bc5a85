"""All minimal sets of edges that part a target from sources (thesis §21.1: the materialization choices)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Ends = tuple[int, int]


def minimal_cuts(edges: Mapping[int, Ends], sources: Sequence[int], target: int) -> Iterator[frozenset[int]]:
    """Each minimal set of `edges` (name to tail and head) whose removal leaves no way from a source to the target.

    Grows the side S of the sources: an edge that leaves S is either cut, or its head joins S. A cut is minimal exactly
    when the head of each cut edge still reaches the target outside S; heads that do not must join. Putting those in
    takes no such way from any other head, so every branch ends in a cut and none is met twice: the delay between two
    cuts is polynomial. The cuts come by how far they are from the sources, the nearest first.

    >>> diamond = {1: (0, 1), 2: (0, 2), 3: (1, 3), 4: (2, 3)}
    >>> [sorted(cut) for cut in minimal_cuts(diamond, [0], 3)]
    [[1, 2], [1, 4], [2, 3], [3, 4]]
    """
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for edge, (tail, head) in edges.items():
        after.setdefault(tail, []).append(edge)
        before.setdefault(head, []).append(edge)
    start = frozenset(sources)
    if target in start:
        return
    waiting: list[tuple[frozenset[int], frozenset[int]]] = [(start, frozenset())]
    while waiting:
        inside, kept_out = waiting.pop()
        inside, heads = _closed(edges, after, before, inside, target)
        if not kept_out.isdisjoint(inside):
            continue
        undecided = sorted(heads - kept_out)
        if undecided:
            head = undecided[0]
            if head != target:
                waiting.append((inside | {head}, kept_out))
            waiting.append((inside, kept_out | {head}))
        elif heads:
            yield frozenset(edge for node in inside for edge in after.get(node, ()) if edges[edge][1] in heads)


def _closed(
    edges: Mapping[int, Ends],
    after: Mapping[int, list[int]],
    before: Mapping[int, list[int]],
    inside: frozenset[int],
    target: int,
) -> tuple[frozenset[int], set[int]]:
    """`inside` with all heads that reach the target only through it, and the heads that are left."""
    grown = set(inside)
    while True:
        outside = {target}
        stack = [target]
        while stack:
            for edge in before.get(stack.pop(), ()):
                tail = edges[edge][0]
                if tail not in grown and tail not in outside:
                    outside.add(tail)
                    stack.append(tail)
        heads = {edges[edge][1] for node in grown for edge in after.get(node, ())} - grown
        stranded = heads - outside
        if not stranded:
            return frozenset(grown), heads
        grown |= stranded
