"""Entries of this application that are being written."""

from __future__ import annotations

from dataclasses import dataclass

from spark_regions.dag.records import Entry
from spark_regions.decision.question import Question
from spark_regions.decision.values import MaterializationCandidate
from spark_regions.matching.rolls_up import stored_grouping
from spark_regions.store.admission import reservation

OUTGROWN = 4
"""Room for a result that did not fit into what was reserved for it, as a multiple of that."""


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """
    :param row_bytes: of its rows, as expected; 0 for a first use, of which only a bound is known
    :param reserved: bytes that its files may take
    :param decided: seconds of a monotonic clock
    :param family: of a first use, see `first_uses`
    :param unreserved: the entry where nothing was reserved for it, and the budget
    """

    entry: str
    lineage: str
    query: int
    node: int
    cores: int
    row_bytes: float
    reserved: int
    decided: float
    unreserved: tuple[Entry, int] | None = None
    family: str = ""


class PendingWrites:
    """By entry, until they are committed or abandoned, or their query was taken back."""

    def __init__(self) -> None:
        self._writes: dict[str, PendingWrite] = {}
        self._uncosted: dict[str, PendingWrite] = {}
        self._planned: set[str] = set()
        self._outgrown: dict[str, int] = {}

    def add(self, write: PendingWrite, uncosted: bool, planned: bool) -> None:
        """
        :param uncosted: what computing it takes is known only when it was computed
        :param planned: the plan of the run relies on it
        """
        self._writes[write.entry] = write
        if uncosted:
            self._uncosted[write.entry] = write
        if planned:
            self._planned.add(write.entry)

    def committed(self, entry: str) -> tuple[PendingWrite | None, bool]:
        """The write, which is over; and whether nothing is known of what computing the entry took."""
        return self._writes.pop(entry, None), entry in self._uncosted

    def dropped(self, entry: str) -> tuple[PendingWrite | None, bool]:
        """The same of an entry that is given up or cannot be read; and whether the plan of the run relied on it."""
        planned = entry in self._planned
        self._planned.discard(entry)
        self._uncosted.pop(entry, None)
        return self._writes.pop(entry, None), planned

    def take_uncosted(self, query: int) -> list[PendingWrite]:
        """Entries of a query that ran, of which nothing else is known."""
        found = [each for each in self._uncosted.values() if each.query == query]
        for each in found:
            del self._uncosted[each.entry]
        return found

    def outgrew(self, write: PendingWrite) -> None:
        """Its rows are wider, or compress worse, than expected: how much is known only when all of it is there."""
        self._outgrown[write.lineage] = OUTGROWN * write.reserved

    def new_entry(
        self,
        question: Question,
        candidate: MaterializationCandidate,
        recompute: float,
        reason: str,
        query: int,
        application: str,
    ) -> Entry:
        """A candidate as an entry that is not there yet.

        :param recompute: seconds without any load, since what is loaded now may be evicted before this entry is
        """
        budget = question.confs.max_bytes
        # Without an estimate, a part of the budget: strategy always has other candidates to make room for.
        unknown = max(budget // (4 if candidate.first_use else 16), 1)
        size = reservation(candidate.bytes, budget) if candidate.bytes else unknown
        signed = candidate.signature
        grouping = question.plan.groupings.get(signed.core)
        return Entry(
            id="", lineage=signed.lineage, core=signed.core, conjuncts=signed.conjuncts,
            # A column that the plan gives twice is written once.
            columns=tuple(dict.fromkeys(signed.columns)), location="", state="pending", rows=0,
            bytes=min(max(size, self._outgrown.get(signed.lineage, 0)), budget), created=0.0, used=0.0,
            recompute_seconds=recompute, application=application, query=query,
            operator=question.plan.nodes[candidate.node].operator[:128], reason=reason,
            predicates=question.plan.predicates_of(signed.conjuncts),
            grouping=stored_grouping(grouping, signed.columns) if grouping else None,
        )  # fmt: skip
