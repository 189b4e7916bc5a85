"""Time to compute a prefix again: Piglet §4.2, eq. 2 and 3, and the total work."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from spark_regions.dag.plan import Plan
from spark_regions.stats.estimate import Estimate, total


def recompute_seconds(
    plan: Plan,
    own: Mapping[int, Estimate],
    parallelism: int,
    cut_points: Mapping[int, float] | None = None,
    inclusive_seconds: Mapping[int, Estimate] | None = None,
    lower_bounds: Mapping[int, float] | None = None,
    reused: bool = False,
) -> dict[int, Estimate]:
    """Seconds to compute each node of the plan, where anything is known.

    The branches below a join add up. Eq. 3 takes the longest, as where they run side by side on their own machines; in
    Spark the branches of one query share the same cores, so that a shorter one delays the longer.
    Worked example on two cores: scan A 4, scan B 2, join 6 task-seconds: (4 + 2 + 6)/2 = 6 s (by eq. 3,
    max(4, 2)/2 + 6/2 = 5 s). If A's result can be loaded in 0.5 s: (0.5 + 2/2 + 6/2) = 4.5 s. If B is a copy of A that
    is `reused`: (4 + 6)/2 = 5 s.

    :param own: task-seconds of each operator alone
    :param cut_points: nodes that can be loaded, with the seconds to read them; the cheaper way counts
    :param inclusive_seconds: task-seconds of a node with everything below it, used where operators below were
        never measured
    :param lower_bounds: seconds that a node is known to take at least, from the entry that once was made of it
    :param reused: copies of a subplan count once, as where Spark reuses the exchange of the first: the least that it
        takes. A loop that uses its last result twice else seems to double its work each time
    """
    cores = max(parallelism, 1)
    copies = _Copies(plan, own) if reused else None
    known: dict[int, Estimate] = {}
    measured: dict[int, tuple[int, int]] = {}
    for number in plan.bottom_up():
        node = plan.nodes[number]
        below = [known[child] for child in node.children if child in known]
        alone = own.get(number)
        seen = sum(measured[child][0] for child in node.children) + (alone is not None)
        all_nodes = sum(measured[child][1] for child in node.children) + 1
        measured[number] = (seen, all_nodes)
        base = total(below)
        twice = copies.twice(number) / cores if copies else 0.0
        if twice > 0:
            base = replace(base, value=max(base.value - twice, *(each.value for each in below)))
        parts = [base] if below else []
        if alone is not None:
            parts.append(alone.scaled(1 / cores))
        found = total(parts) if parts else None
        if found is not None and seen < all_nodes:
            found = found.scaled(1.0, seen / all_nodes)
        prefix = (inclusive_seconds or {}).get(number)
        if prefix is not None and seen < all_nodes:
            whole = prefix.scaled(1 / cores)
            if found is None or (whole.value > found.value and not _stopped(plan, number, cut_points)):
                found = whole
        floor = (lower_bounds or {}).get(number, 0.0)
        if floor > 0 and (found is None or found.value < floor):
            found = Estimate(floor, found.confidence if found else 0.5)
        read = (cut_points or {}).get(number)
        if read is not None and (found is None or read < found.value):
            found = Estimate(read, found.confidence if found else 0.5)
            if copies:
                copies.stop(number)
        if found is not None:
            known[number] = found
    return known


class _Copies:
    """What branches have in common, as sets of operators in the bits of a number."""

    def __init__(self, plan: Plan, own: Mapping[int, Estimate]) -> None:
        self._places: dict[Hashable, int] = {}
        self._seconds: list[float] = []
        self._own: dict[int, int] = {}
        for number, node in plan.nodes.items():
            place = self._places.setdefault(node.copy, len(self._places))
            if place == len(self._seconds):
                self._seconds.append(own[number].value if number in own else 0.0)
            self._own[number] = 1 << place
        self._nodes = plan.nodes
        self._below: dict[int, int] = {}
        self._sums: dict[int, float] = {}

    def stop(self, node: int) -> None:
        """It is read instead, so that nothing below runs."""
        self._below[node] = 0

    def twice(self, node: int) -> float:
        """Task-seconds of operators that stand in more than one branch below the node, beyond the first time.

        Asked for every node once, children first.
        """
        seen, found = 0, 0.0
        for child in self._nodes[node].children:
            found += self._sum(seen & self._below[child])
            seen |= self._below[child]
        self._below[node] = seen | self._own[node]
        return found

    def _sum(self, operators: int) -> float:
        known = self._sums.get(operators)
        if known is None:
            known, rest = 0.0, operators
            while rest:
                lowest = rest & -rest
                known += self._seconds[lowest.bit_length() - 1]
                rest ^= lowest
            self._sums[operators] = known
        return known


def _stopped(plan: Plan, node: int, cut_points: Mapping[int, float] | None) -> bool:
    return bool(cut_points) and any(each in (cut_points or {}) for each in plan.below(node))
