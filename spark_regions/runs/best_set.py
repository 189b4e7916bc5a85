"""The results to hold under a byte budget: those of most net benefit, by lazy greedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from spark_regions.runs.net_benefit import Workload, reads, upper_bound

LEAST = 1e-9
"""What a result has to add to be chosen."""


@dataclass(frozen=True, slots=True)
class BestSet:
    """
    :param gains: the chosen results in the order of choice, each with the net benefit that it added then
    :param bound: no set within the budget has more net benefit
    """

    gains: Mapping[int, float]
    net: float
    bytes: float
    bound: float


def best_set(workload: Workload, budget: float) -> BestSet:
    """Greedy by net benefit per byte, and by net benefit alone; the better of both, with its bound.

    For a submodular benefit and results that are there, the better of both has at least (1 - 1/e)/2 of the best. Worked
    example: A (60 bytes, saves 9) and B (50, saves 8) with 100 bytes: by bytes B comes first (0.16 against 0.15), and A
    does not fit; by benefit A does. A is the set; the bound is 8 + 50/60 · 9 = 15.5 from nothing chosen, and 9 + 8 = 17
    from A, so 15.5.

    :raises ValueError: what is pinned alone is larger than the budget
    """
    pinned = sum(each.bytes for each in workload.results if each.pinned)
    if pinned > budget:
        raise ValueError(f"pinned results have {pinned:.0f} bytes, the budget has {budget:.0f}")
    by_bytes, bound = _greedy(workload, budget, per_byte=True)
    by_benefit, other = _greedy(workload, budget, per_byte=False)
    grown = max((by_bytes, by_benefit), key=lambda each: each.net)
    return BestSet(grown.gains, grown.net, grown.bytes, max(min(bound, other), grown.net))


def ranked(workload: Workload) -> dict[int, float]:
    """What each result adds to those that are worth more per byte, by its number; 0 where they spare all that it would.

    Whoever removes the least of it per byte first keeps, for any smaller budget, what greedy would choose for that.
    """
    grown = _Grown(workload)
    _grow(grown, float("inf"), True, [])
    return {number: grown.gains.get(number, 0.0) for number in range(len(workload.results))}


@dataclass
class _Grown:
    """A set that grows, with what its queries save."""

    workload: Workload
    gains: dict[int, float] = field(default_factory=dict)
    saved: dict[int, float] = field(default_factory=dict)
    bytes: float = 0.0

    @property
    def net(self) -> float:
        return self.workload.net(self.gains)

    def adds(self, result: int) -> float:
        """Net benefit of one more."""
        workload = self.workload
        self.gains[result] = 0.0
        more = sum(
            workload.queries[number].weight * (self._query(number) - self.saved.get(number, 0.0))
            for number in workload.readers[result]
        )
        del self.gains[result]
        return more - workload.results[result].cost

    def add(self, result: int, gain: float) -> None:
        self.gains[result] = gain
        self.bytes += self.workload.results[result].bytes
        self._again(result)

    def drop_idle(self) -> bool:
        """Remove what later ones have made superfluous; whether there was any."""
        dropped = False
        for result in list(self.gains):
            gain = self.gains.pop(result)
            before = dict(self.saved)
            self._again(result)
            if not self.workload.results[result].pinned and self.adds(result) <= LEAST:
                self.bytes -= self.workload.results[result].bytes
                dropped = True
            else:
                self.gains[result], self.saved = gain, before
        return dropped

    def _query(self, number: int) -> float:
        return sum(gain for _, gain in reads(self.workload.queries[number], self.gains))

    def _again(self, result: int) -> None:
        for number in self.workload.readers[result]:
            self.saved[number] = self._query(number)


def _greedy(workload: Workload, budget: float, per_byte: bool) -> tuple[_Grown, float]:
    """The set, and the least bound that was met on the way."""
    grown = _Grown(workload)
    for number, result in enumerate(workload.results):
        if result.pinned:
            grown.add(number, grown.adds(number))
    bounds = [upper_bound(workload, budget, grown.gains)]
    while _grow(grown, budget, per_byte, bounds) and grown.drop_idle():
        pass
    return grown, min([*bounds, upper_bound(workload, budget, grown.gains)])


def _grow(grown: _Grown, budget: float, per_byte: bool, bounds: list[float]) -> bool:
    """Add what adds most, until nothing does; whether anything did. Lazily: what a result added before is looked at
    again only when it would be the first.
    """
    workload, added = grown.workload, 0

    def key(result: int, gain: float) -> float:
        return -gain / max(workload.results[result].bytes, 1.0) if per_byte else -gain

    again = True
    while again:
        again = False
        fresh = {n: grown.adds(n) for n in range(len(workload.results)) if n not in grown.gains}
        heap = [(key(n, gain), n) for n, gain in fresh.items() if gain > LEAST]
        heapify(heap)
        while heap:
            _, result = heappop(heap)
            if grown.bytes + workload.results[result].bytes > budget:
                continue
            gain = grown.adds(result)
            if gain <= LEAST:
                continue
            if heap and key(result, gain) > heap[0][0]:
                heappush(heap, (key(result, gain), result))
                continue
            grown.add(result, gain)
            added, again = added + 1, True
            if added & (added - 1) == 0 and budget < float("inf"):
                bounds.append(upper_bound(workload, budget, grown.gains))
    return added > 0
