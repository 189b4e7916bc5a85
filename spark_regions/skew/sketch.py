"""A mergeable summary of the heaviest keys of a shuffle (Misra and Gries, 1982; merged as Agarwal et al., 2012)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from spark_regions.errors import InvalidRequest

KEYS_PER_CORE = 10
"""Counters per core: then a count is at most a tenth of a core's fair share too low."""
SMALLEST_CAPACITY = 64
DEVIATIONS = 3.0
"""Standard errors that a sampled share may be off."""


def capacity_for(cores: int) -> int:
    """Counters that tell apart what matters on so many cores: a key matters from about 1 / cores of the rows.

    >>> capacity_for(2), capacity_for(480)
    (64, 4800)
    """
    return max(SMALLEST_CAPACITY, KEYS_PER_CORE * cores)


@dataclass(frozen=True, slots=True)
class KeyShare:
    """A key's share of the rows lies in [share, share + error].

    :param key: a digest or a literal; what it stands for is the shim's affair
    """

    key: str
    share: float
    error: float


@dataclass(frozen=True, slots=True)
class HeavyHitters:
    """Counts of at most `capacity` keys, each too low by at most `error`.

    Of every key, counted or not: count ≤ rows ≤ count + error. And (capacity + 1) · error ≤ total - Σ counts, because
    whenever `d` is taken from the counts, at least capacity + 1 of them lose `d`. Both stay so under merges, in any
    order and grouping. `error` is what was really taken, often far less than the bound.

    :param total: rows that were seen, those of forgotten keys included
    :param sampled: the rows were a random sample; shares then also carry three standard errors
    """

    capacity: int
    total: int = 0
    error: int = 0
    counts: Mapping[str, int] | None = None
    sampled: bool = False

    @classmethod
    def of(cls, rows: Iterable[tuple[str, int]], capacity: int, sampled: bool = False) -> HeavyHitters:
        """Summarize pairs of key and number of rows, in one pass, with room for twice the capacity.

        >>> HeavyHitters.of([("a", 5), ("b", 1), ("c", 2), ("a", 3)], 2)
        HeavyHitters(capacity=2, total=11, error=1, counts={'a': 7, 'c': 1}, sampled=False)
        """
        if capacity < 1:
            raise ValueError(f"A summary needs at least one counter, not {capacity}.")
        counts: dict[str, int] = {}
        total = error = 0
        for key, weight in rows:
            if weight < 0:
                raise ValueError(f"A key cannot have {weight} rows.")
            total += weight
            counts[key] = counts.get(key, 0) + weight
            if len(counts) > 2 * capacity:
                counts, taken = _reduced(counts, capacity)
                error += taken
        counts, taken = _reduced(counts, capacity)
        return cls(capacity, total, error + taken, counts, sampled)

    def merge(self, other: HeavyHitters) -> HeavyHitters:
        """Both together, in the smaller capacity; the errors add up, and so does what the merge takes."""
        capacity = min(self.capacity, other.capacity)
        counts = dict(self.counts or {})
        for key, count in (other.counts or {}).items():
            counts[key] = counts.get(key, 0) + count
        counts, taken = _reduced(counts, capacity)
        error = self.error + other.error + taken
        return HeavyHitters(capacity, self.total + other.total, error, counts, self.sampled or other.sampled)

    def bounds(self, key: str) -> tuple[int, int]:
        """Fewest and most rows that the key can have had among those seen."""
        count = (self.counts or {}).get(key, 0)
        return count, min(count + self.error, self.total)

    def shares(self, at_least: float = 0.0) -> tuple[KeyShare, ...]:
        """Counted keys whose share may reach `at_least`, the heaviest first."""
        if not self.total:
            return ()
        found = []
        for key, count in (self.counts or {}).items():
            low, high = count / self.total, min(count + self.error, self.total) / self.total
            if self.sampled:
                low, high = _widened(low, high, self.total)
            if high >= at_least:
                found.append(KeyShare(key, low, high - low))
        return tuple(sorted(found, key=lambda each: (-each.share, each.key)))

    def to_json(self) -> dict[str, Any]:
        return {
            "capacity": self.capacity,
            "total": self.total,
            "error": self.error,
            "sampled": self.sampled,
            "counts": dict(sorted((self.counts or {}).items(), key=lambda each: (-each[1], each[0]))),
        }

    @classmethod
    def from_json(cls, record: Any) -> HeavyHitters:
        """Read what `to_json` or the shim wrote.

        :raises InvalidRequest: where it is no such record, or its numbers contradict each other
        """
        try:
            counts = {str(key): int(count) for key, count in record["counts"].items()}
            made = cls(int(record["capacity"]), int(record["total"]), int(record["error"]), counts)
            made = cls(made.capacity, made.total, made.error, counts, bool(record.get("sampled", False)))
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise InvalidRequest(f"A summary of heavy keys cannot be read: {problem!r}.") from problem
        spare = made.total - sum(counts.values())
        if made.capacity < 1 or len(counts) > made.capacity or min(counts.values(), default=1) < 1:
            raise InvalidRequest("A summary of heavy keys has too many counters, or empty ones.")
        if made.error < 0 or made.error * (made.capacity + 1) > spare:
            raise InvalidRequest(f"A summary of heavy keys has error {made.error} with {spare} rows uncounted.")
        return made


def _reduced(counts: dict[str, int], capacity: int) -> tuple[dict[str, int], int]:
    """At most `capacity` counters, and what each lost: the count of the heaviest one without a place."""
    taken = sorted(counts.values(), reverse=True)[capacity] if len(counts) > capacity else 0
    return {key: count - taken for key, count in counts.items() if count > taken}, taken


def _widened(low: float, high: float, rows: int) -> tuple[float, float]:
    spread = [DEVIATIONS * sqrt(max(share * (1 - share), 1 / rows) / rows) for share in (low, high)]
    return max(0.0, low - spread[0]), min(1.0, high + spread[1])
