"""Results that only this application can use again, kept by Spark's block manager."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from spark_regions.recycle.antichain import Verdict
from spark_regions.recycle.points import MIN_BENEFIT_SECONDS, Point
from spark_regions.recycle.ski_rental import ski_rental


@dataclass(slots=True)
class Persisted:
    id: str
    lineage: str
    shape: str
    bytes: int


class Persists:
    """What of this session is persisted, least recently used first, within a byte budget."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Persisted] = OrderedDict()
        self._made = 0

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self._kept.values())

    def touch(self, lineages: set[str]) -> None:
        """The session used these again."""
        for number, each in list(self._kept.items()):
            if each.lineage in lineages:
                self._kept.move_to_end(number)

    def admit(self, point: Point, budget: int) -> tuple[str | None, list[str]]:
        """An id for the point's rows, and what to release first; None where it should not be persisted."""
        size = int(point.bytes)
        if point.benefit < MIN_BENEFIT_SECONDS or size > budget or not isinstance(ski_rental(point), Verdict):
            return None, []
        key = (point.signature.lineage, point.signature.shape)
        if any((each.lineage, each.shape) == key for each in self._kept.values()):
            return None, []
        released: list[str] = []
        while self._kept and self.bytes + size > budget:
            released.append(self._kept.popitem(last=False)[0])
        self._made += 1
        number = f"p{self._made}"
        self._kept[number] = Persisted(number, point.signature.lineage, point.signature.shape, size)
        return number, released

    def resize(self, number: str, size: int) -> None:
        if number in self._kept:
            self._kept[number].bytes = size

    def drop(self, number: str) -> None:
        self._kept.pop(number, None)
