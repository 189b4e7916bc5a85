"""Time to compute a prefix again: Piglet §4.2, eq. 2 and 3, and the total work."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from spark_regions.dag.plan import Plan
from spark_regions.stats.estimate import Estimate, total


class Branches(StrEnum):
    """How the branches below a join count.

    `LONGEST` is eq. 3, where branches run side by side on their own machines. `WORK` adds them up: in Spark
    the branches
    of one query share the same cores, so that a shorter branch delays the longer one; it is what we use.
    """

    LONGEST = "longest"
    WORK = "work"


def recompute_seconds(
    plan: Plan,
    own: Mapping[int, Estimate],
    parallelism: int,
    branches: Branches = Branches.WORK,
    stops: Mapping[int, float] | None = None,
    prefixes: Mapping[int, Estimate] | None = None,
    floors: Mapping[int, float] | None = None,
) -> dict[int, Estimate]:
    """Seconds to compute each node of the plan, where anything is known.

    Worked example on two cores: scan A 4, scan B 2, join 6 task-seconds. Eq. 3: max(4, 2)/2 + 6/2 = 5 s; total work:
    (4 + 2 + 6)/2 = 6 s. If A's result can be loaded in 0.5 s: (0.5 + 2/2 + 6/2) = 4.5 s.

    :param own: task-seconds of each operator alone
    :param stops: nodes that can be loaded, with the seconds to read them; the cheaper way counts
    :param prefixes: task-seconds of a node with everything below it, used where operators below were never measured
    :param floors: seconds that a node is known to take at least, from the entry that once was made of it
    """
    cores = max(parallelism, 1)
    known: dict[int, Estimate] = {}
    measured: dict[int, tuple[int, int]] = {}
    for number in plan.bottom_up():
        node = plan.nodes[number]
        below = [known[child] for child in node.children if child in known]
        alone = own.get(number)
        seen = sum(measured[child][0] for child in node.children) + (alone is not None)
        all_nodes = sum(measured[child][1] for child in node.children) + 1
        measured[number] = (seen, all_nodes)
        base = _join(below, branches)
        parts = [base] if below else []
        if alone is not None:
            parts.append(alone.scaled(1 / cores))
        found = total(parts) if parts else None
        if found is not None and seen < all_nodes:
            found = found.scaled(1.0, seen / all_nodes)
        prefix = (prefixes or {}).get(number)
        if prefix is not None and seen < all_nodes:
            whole = prefix.scaled(1 / cores)
            if found is None or (whole.value > found.value and not _stopped(plan, number, stops)):
                found = whole
        floor = (floors or {}).get(number, 0.0)
        if floor > 0 and (found is None or found.value < floor):
            found = Estimate(floor, found.confidence if found else 0.5)
        read = (stops or {}).get(number)
        if read is not None and (found is None or read < found.value):
            found = Estimate(read, found.confidence if found else 0.5)
        if found is not None:
            known[number] = found
    return known


def _join(below: list[Estimate], branches: Branches) -> Estimate:
    if branches is Branches.LONGEST and below:
        return max(below, key=lambda each: each.value)
    return total(below)


def _stopped(plan: Plan, node: int, stops: Mapping[int, float] | None) -> bool:
    return bool(stops) and any(each in (stops or {}) for each in plan.below(node))
