"""Results that this application keeps in Spark's block manager."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from spark_regions.dag.plan import Signature
from spark_regions.dag.records import Entry
from spark_regions.runs.run_view import Key
from spark_regions.wire.messages import Predicate


@dataclass(slots=True)
class PersistedResult:
    """
    :param timed: whether what keeping it took was learned
    :param row_bytes: of its rows, as they were estimated; 0 once the real size is known
    :param planned: the result of the recorded run that it is; such are released when their last reader has run
    :param predicates: what its simple filters say
    :param leaving: whether its last reader lets it go
    """

    id: str
    signature: Signature
    rows: float
    bytes: int
    recompute_seconds: float
    planned: Key | None = None
    row_bytes: float = 0.0
    timed: bool = False
    predicates: tuple[Predicate, ...] = ()
    leaving: bool = False


class PersistedResults:
    """What of this session is persisted, least recently used first, within a byte budget."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, PersistedResult] = OrderedDict()
        self._made = 0

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self._kept.values() if not each.leaving)

    @property
    def kept(self) -> Iterable[PersistedResult]:
        return list(self._kept.values())

    def get(self, name: str) -> PersistedResult | None:
        return self._kept.get(name)

    def entries(self, cores: Collection[str]) -> list[Entry]:
        """What is kept on these cores, as something to read."""
        return [
            Entry(
                id=each.id, lineage=each.signature.lineage, core=each.signature.core,
                conjuncts=each.signature.conjuncts, columns=each.signature.columns, location="", state="committed",
                rows=int(each.rows), bytes=each.bytes, created=0.0, used=0.0,
                recompute_seconds=each.recompute_seconds, persisted=True,
                predicates=each.predicates,
            )
            for each in self._kept.values()
            if each.signature.core in cores
        ]  # fmt: skip

    def touch(self, name: str) -> None:
        """It was read again."""
        if name in self._kept:
            self._kept.move_to_end(name)

    def keep(self, result: PersistedResult, budget: int) -> tuple[str | None, list[str]]:
        """An id for a result, and what to release first; None where it is kept already, or cannot fit.

        What was planned for is not released for anything else.
        """
        key = (result.signature.lineage, result.signature.shape)
        if any((each.signature.lineage, each.signature.shape) == key for each in self._kept.values()):
            return None, []
        released: list[str] = []
        free = budget - self.bytes
        for each in list(self._kept.values()):
            if free >= result.bytes:
                break
            if each.planned is None:
                released.append(each.id)
                free += each.bytes
        if free < result.bytes:
            return None, []
        for name in released:
            del self._kept[name]
        self._made += 1
        result.id = f"p{self._made}"
        self._kept[result.id] = result
        return result.id, released

    def resize(self, name: str, size: int) -> None:
        if name in self._kept:
            self._kept[name].bytes = size

    def leave(self, name: str) -> None:
        """There is room for what the next query makes: the driver tells late that it is gone."""
        self._kept[name].leaving = True

    def drop(self, name: str) -> None:
        self._kept.pop(name, None)
