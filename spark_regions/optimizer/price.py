"""Seconds to compute each node, and what reading a match saves (Piglet §4.2, eq. 1 to 3)."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.costs.recompute import recompute_seconds
from spark_regions.decision.draft import Draft, Seconds
from spark_regions.decision.question import Question


def price(question: Question, draft: Draft) -> Draft:
    """After `match`, since an entry remembers what it cost to make, and what can be read shortens what is above it."""
    plan, cores = question.plan, question.cores
    alone, whole = draft.self_seconds, draft.inclusive_seconds
    # With all of its columns: an upper bound, for plans whose own statistics are gone or saw it loaded only.
    lower_bounds = {n: found.entry.recompute_seconds for n, found in draft.matches.items() if n not in whole}
    uncached = recompute_seconds(plan, alone, cores, inclusive_seconds=whole, lower_bounds=lower_bounds)
    reads = {number: found.seconds for number, found in draft.matches.items()}
    gains = {number: seconds_of(uncached, number) - read for number, read in reads.items()}
    # What was read before is known to save, and by how much loads contradict it is counted.
    least_gains = {
        number: uncached[number].low - found.seconds
        for number, found in draft.matches.items()
        if number in uncached and not found.entry.uses
    }
    cached = recompute_seconds(plan, alone, cores, cut_points=reads, inclusive_seconds=whole) if reads else uncached
    least = uncached
    if len({node.copy for node in plan.nodes.values()}) < len(plan.nodes):
        least = recompute_seconds(plan, alone, cores, inclusive_seconds=whole, lower_bounds=lower_bounds, reused=True)
    return replace(
        draft, uncached_seconds=uncached, seconds=cached, least_seconds=least, gains=gains, least_gains=least_gains
    )


def seconds_of(known: Seconds, node: int) -> float:
    """0 where nothing is known."""
    found = known.get(node)
    return found.value if found else 0.0
