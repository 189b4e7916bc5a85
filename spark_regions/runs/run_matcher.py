"""Where a run is in the recorded run of the same application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_regions.dag.plan import Plan, Signature
from spark_regions.runs.recorded_query import RecordedQuery, recurring_signature

KEPT_BEHIND = 32
"""How many places a step may be late before it counts as left out in this run."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry in the recorded run's identifiers.

    :param of_this_run: this run knows its lineage, so that it was computed from the files that are there now
    """

    lineage: str
    columns: frozenset[str]
    of_this_run: bool


class RunMatcher:
    """Matches the queries of a run with recorded steps.

    Tomorrow's run reads other files, so that its identifiers differ; a query is then recognised by its form, and its
    nodes by their numbers. One recorded identifier stands for one new one throughout, else the queries differ.
    """

    def __init__(self, steps: Sequence[RecordedQuery], late: int = KEPT_BEHIND) -> None:
        self.steps = steps
        self._late = late
        self._by_recurring_signature: dict[str, list[int]] = {}
        for place, step in enumerate(steps):
            self._by_recurring_signature.setdefault(step.recurring_signature, []).append(place)
        self._taken: set[int] = set()
        self._furthest = -1
        self.lineages: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self._columns: dict[str, str] = {}
        signed = (node.signature for step in steps for node in step.plan.nodes.values())
        self._cores = {signature.core for signature in signed if signature}
        nodes = (node for step in steps for node in step.plan.nodes.values() if not node.children)
        self._sources = frozenset(node.signature.lineage for node in nodes if node.signature)

    def find(self, plan: Plan) -> int | None:
        """The step that the plan is: of those with its form and with consistent identifiers the one with most equal
        identifiers, else the first."""
        best: tuple[int, int] | None = None
        for place in self._by_recurring_signature.get(recurring_signature(plan), ()):
            if place in self._taken or not self._is_consistent(plan, self.steps[place].plan):
                continue
            rank = (-_equal(plan, self.steps[place].plan), place)
            best = rank if best is None or rank < best else best
        return best[1] if best else None

    def learn(self, plan: Plan, place: int) -> None:
        """The plan is step `place`: its identifiers stand for the recorded ones."""
        for new, old in _pairs(plan, self.steps[place].plan):
            self.pair(new, old)

    def pair(self, new: Signature, old: Signature) -> None:
        """A node or DataFrame of this run is one of the recorded run."""
        self.lineages[new.lineage] = old.lineage
        self._recorded[old.lineage] = new.lineage
        self._cores.add(new.core)
        self._columns.update((present, recorded) for recorded, present in columns_of(new, old).items())

    @property
    def cores(self) -> frozenset[str]:
        """Of everything that the recorded run computed, and of what this run has had of it."""
        return frozenset(self._cores)

    def take(self, place: int) -> None:
        """The step has run."""
        self._taken.add(place)
        self._furthest = max(self._furthest, place)

    def ahead(self, now: int = -1) -> list[int]:
        """Steps that are still to come, where step `now` begins."""
        furthest = max(self._furthest, now)
        return [k for k in range(len(self.steps)) if k not in self._taken and k > furthest - self._late]

    def recorded(self, lineage: str) -> str:
        """The recorded lineage that a new one stands for."""
        return self.lineages.get(lineage, lineage)

    def entry(self, lineage: str, columns: frozenset[str]) -> StoredEntry:
        """An entry of the store; its identifiers are of this run, or of one before."""
        names = frozenset(self._columns.get(column, column) for column in columns)
        return StoredEntry(self.recorded(lineage), names, lineage in self.lineages)

    @property
    def changed(self) -> frozenset[str]:
        """Recorded lineages of sources that this run has other ones for: the files are not the same."""
        return frozenset(old for old in self._sources if self._recorded.get(old, old) != old)

    def _is_consistent(self, plan: Plan, recorded: Plan) -> bool:
        return all(
            self.lineages.get(new.lineage, old.lineage) == old.lineage
            and self._recorded.get(old.lineage, new.lineage) == new.lineage
            for new, old in _pairs(plan, recorded)
        )


def _pairs(plan: Plan, recorded: Plan) -> list[tuple[Signature, Signature]]:
    """Signatures of the nodes of two plans of one form, node by node."""
    return [
        (new, old)
        for mine, theirs in zip(plan.below(plan.root), recorded.below(recorded.root), strict=True)
        if (new := plan.nodes[mine].signature) and (old := recorded.nodes[theirs].signature)
    ]


def _equal(plan: Plan, recorded: Plan) -> int:
    return sum(new.lineage == old.lineage for new, old in _pairs(plan, recorded))


def columns_of(present: Signature, recorded: Signature) -> Mapping[str, str]:
    """Recorded columns of a DataFrame to its present ones: by place, where it has as many."""
    if len(present.columns) == len(recorded.columns):
        return dict(zip(recorded.columns, present.columns, strict=True))
    return {each: each for each in recorded.columns if each in present.columns}
