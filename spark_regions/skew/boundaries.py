"""Range boundaries from an observed distribution; a heavy value goes to several partitions where order allows."""

from __future__ import annotations

from collections.abc import Sequence

from spark_regions.skew.packing import pack
from spark_regions.skew.spec import Boundary

Distribution = Sequence[tuple[str, float]]


def boundaries(values: Distribution, partitions: int, ties_free: bool) -> tuple[Boundary, ...]:
    """Ends of all range partitions but the last, for equal weight.

    With `ties_free`, rows of one value may fill neighbouring partitions: then all are equal. Else values stay whole and
    the heaviest partition is the lightest possible.

    >>> boundaries([("a", 1.0), ("b", 6.0), ("c", 1.0)], 2, ties_free=True)
    (Boundary(value='b', fraction=0.5),)
    >>> boundaries([("a", 1.0), ("b", 6.0), ("c", 1.0)], 2, ties_free=False)
    (Boundary(value='b', fraction=1.0),)
    """
    known = [(value, weight) for value, weight in values if weight > 0]
    if not known or partitions < 2:
        return ()
    if not ties_free:
        groups = pack([weight for _, weight in known], partitions, contiguous=True)
        return tuple(Boundary(known[group[-1]][0]) for group in groups[:-1])
    total = sum(weight for _, weight in known)
    found: list[Boundary] = []
    at, below = 0, 0.0
    for number in range(1, partitions):
        target = number * total / partitions
        while at < len(known) - 1 and below + known[at][1] <= target:
            below += known[at][1]
            at += 1
        found.append(Boundary(known[at][0], min(max((target - below) / known[at][1], 0.0), 1.0)))
    return tuple(found)


def weights(values: Distribution, ends: Sequence[Boundary]) -> tuple[float, ...]:
    """Weight of each range partition under these ends, for a distribution of the same order.

    :param values: in the sort's order; a boundary whose value is missing stands where the next one in `ends` does

    >>> weights([("a", 1.0), ("b", 6.0), ("c", 1.0)], [Boundary("b", 0.5)])
    (4.0, 4.0)
    """
    start: dict[str, float] = {}
    size: dict[str, float] = {}
    below = 0.0
    for value, weight in values:
        start[value], size[value] = below, weight
        below += weight
    places: list[float] = []
    following = below
    for end in reversed(ends):
        if end.value in start:
            following = start[end.value] + end.fraction * size[end.value]
        places.append(following)
    places.reverse()
    edges = [0.0, *places, below]
    return tuple(max(upper - lower, 0.0) for lower, upper in zip(edges, edges[1:], strict=False))
