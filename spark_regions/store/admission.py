"""Which entries make room for a new one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spark_regions.costs.policy import CONTRADICTION_SECONDS, CONTRADICTION_SHARE
from spark_regions.dag.records import Entry
from spark_regions.stats.frequency import fading

SLACK_BYTES = 1 << 20
SHADOW_AFTER = 2


@dataclass(frozen=True, slots=True)
class Admission:
    """:param evict: entries to remove first; None where there can be no room"""

    evict: tuple[str, ...] | None
    free_bytes: int


def reservation(expected_bytes: float, max_bytes: int) -> int:
    """Bytes to reserve: twice what is expected, plus a megabyte, but never more than the budget.

    >>> reservation(10_000_000, 10**9)
    21048576
    """
    return int(min(max_bytes, 2 * expected_bytes + SLACK_BYTES))


def density(entry: Entry, now: float) -> float:
    """Net benefit per byte. Until that was worked out for the workload: seconds that one use saves, times its uses, the
    older the less.
    """
    if shadowed(entry):
        return 0.0
    worth = entry.net_benefit
    if worth is None:
        worth = entry.recompute_seconds * entry.recent_uses * fading(now - entry.used)
    return worth / max(entry.bytes, 1)


def make_room(
    entries: Iterable[Entry], wanted: int, gain_density: float, budget: int, now: float, leased: frozenset[str]
) -> Admission:
    """The entries of least net benefit per byte whose removal leaves `wanted` bytes free.

    Pending, leased and pinned entries stay; so does whatever is worth more per byte than the newcomer. Worked example:
    budget 100,
    used 40 (density 3) + 50 (density 1), wanted 30 at density 2: the second goes. Wanted 70: the first would have to go
    too, and is worth more: no room.
    """
    known = list(entries)
    free = budget - sum(entry.bytes for entry in known)
    if wanted > budget:
        return Admission(None, free)
    evict: list[str] = []
    for entry in next_to_go(known, now, leased):
        if free >= wanted:
            break
        if density(entry, now) >= gain_density:
            break
        evict.append(entry.id)
        free += entry.bytes
    return Admission(tuple(evict) if free >= wanted else None, free)


def next_to_go(entries: Iterable[Entry], now: float, leased: frozenset[str] = frozenset()) -> list[Entry]:
    """What may be removed to make room, the first to go first."""
    removable = [e for e in entries if e.state == "committed" and e.id not in leased and not e.pinned]
    return sorted(removable, key=lambda each: density(each, now))


def expired(entry: Entry, ttl_seconds: float, now: float) -> bool:
    """Not used for longer than the limit, and not pinned; a clock that was set back counts as no time."""
    return ttl_seconds > 0 and not entry.pinned and max(0.0, now - entry.used) > ttl_seconds


def shadowed(entry: Entry) -> bool:
    """Withdrawn, since loading it disappointed twice in a row."""
    return entry.contradictions >= SHADOW_AFTER


def contradicts(predicted_seconds: float, measured_seconds: float) -> bool:
    """Whether a measured saving contradicts its prediction.

    >>> contradicts(2.0, 0.1), contradicts(2.0, 1.0), contradicts(0.06, 0.04)
    (True, False, False)
    """
    return (
        measured_seconds < CONTRADICTION_SHARE * predicted_seconds
        and predicted_seconds - measured_seconds > CONTRADICTION_SECONDS
    )


def supersedes(new: Entry, old: Entry) -> bool:
    """Whether a stored superset replaces an entry: the same rows, and at least its columns."""
    return new.id != old.id and new.lineage == old.lineage and set(old.columns) <= set(new.columns)
