"""The recorded run of an application, followed; and what its plan needs to know of the store."""

from __future__ import annotations

from msgspec.structs import replace

from spark_regions.costs.calibrate import observed_rate, observed_ratio, rates_of
from spark_regions.costs.policy import MOST_OFFERS
from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import Plan, parse_plan
from spark_regions.decision.values import RunDecision
from spark_regions.effects.persisted import PersistedResults
from spark_regions.runs.expected import Seen, expected
from spark_regions.runs.program import Budget
from spark_regions.runs.recorded_query import RecordedQuery, decoded, query_part
from spark_regions.runs.run_matcher import KEPT_BEHIND
from spark_regions.runs.run_planner import RunPlanner, Stored, Waiting
from spark_regions.runs.run_view import Key, RunView
from spark_regions.stats.cardinality import rows
from spark_regions.stats.operators import self_seconds
from spark_regions.store.entries import entries_on
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.store.steps import steps_of
from spark_regions.wire.messages import Announce, BatchPlan, Confs, Decide, Decision

BATCH_SECONDS = 3.0
"""How long a batch waits for its plan; nothing else runs meanwhile."""
PLANNED_AGAIN = (1, 4)
"""After so many queries of a batch: a plan from the sizes of sources alone is a guess, one from the first query is of
cold code."""


class RunFollower:
    """Called under the session's lock."""

    def __init__(self, graph: OperatorGraph, persisted: PersistedResults) -> None:
        self.graph = graph
        self.persisted = persisted
        run = graph.run
        self._recorded = decoded(graph.catalog.read(lambda connection: steps_of(connection, run.name, run.id)))
        self.planner = RunPlanner(self._recorded)
        self._batch: tuple[Decide, ...] = ()
        self._plans: list[Plan] = []
        self._in_order = False
        self._again: tuple[int, ...] = PLANNED_AGAIN

    def recurs(self, confs: Confs) -> bool:
        """Whether the run is planned as a whole."""
        return bool(self.planner) and confs.workflow

    def look(self, plan: Plan, confs: Confs, cores: int) -> int | None:
        """Which query of the recorded run it is; planning what is ahead begins, if that is due."""
        if not self.recurs(confs):
            return None
        step = self.planner.look(plan)
        if self._batch and self._again and self.planner.ended >= self._again[0]:
            self._again = self._again[1:]
            self.planner.known(self._expected(cores))
        budget, kept, stored = self._means(confs)
        self.planner.prepare(budget, rates_of(self.graph.calibration), cores, kept, stored)
        return step

    def follow_up(self, step: int | None, offered: int) -> Decision | Waiting | None:
        """What comes before an answer: the driver is asked for more DataFrames, or the run has to be planned."""
        if offered < MOST_OFFERS and self.planner.wants_more(step):
            return Decision(offer=MOST_OFFERS)
        return self.planner.waiting(step)

    def view(self, query: int, plan: Plan, step: int | None) -> RunView | None:
        """Where the query stands in the recorded run, of which it is `step`."""
        return None if step is None else self.planner.view(query, plan, step, self._kept().keys())

    def decided(self, run: RunDecision | None) -> None:
        if run is not None:
            self.planner.decided(run.paired)

    def announce(self, message: Announce) -> BatchPlan:
        """Plan for the queries of a batch; without any, the batch is over.

        What was kept for the batch before goes, but for what this one computes as well. Of queries in order, what is
        kept need not fit at once: it goes after its last use, or once that was left out.

        :raises InvalidRequest: the message breaks the protocol
        """
        self._batch, self._again = tuple(message.queries), PLANNED_AGAIN
        self._in_order = message.at_once > 0
        self._plans = [query_part(parse_plan(query.plan)) for query in message.queries]
        computed = {node.signature.lineage for plan in self._plans for node in plan.nodes.values() if node.signature}
        kept_before = [(each.id, each.planned) for each in self.persisted.kept if each.planned is not None]
        released = [name for name, (lineage, _) in kept_before if lineage not in computed]
        for name in released:
            self.persisted.drop(name)
        if not message.queries:
            self.planner = RunPlanner(self._recorded)
            return BatchPlan(release=tuple(released))
        confs, cores = message.queries[0].confs, max(1, message.queries[0].parallelism)
        self.planner = RunPlanner(
            self._expected(cores), together=not message.at_once, late=message.at_once or KEPT_BEHIND
        )
        budget, kept, stored = self._means(confs)
        rates = rates_of(self.graph.calibration)
        self.planner.prepare(budget, rates, cores, kept, stored, BATCH_SECONDS)
        ordered: BatchPlan = replace(self.planner.order(), release=tuple(released))
        return ordered

    def _expected(self, cores: int) -> list[RecordedQuery]:
        batch = zip(self._plans, self._batch, strict=True)
        return expected(self._plans, [self._seen(plan, query.confs.window) for plan, query in batch], cores)

    def _seen(self, plan: Plan, window: int) -> list[Seen]:
        view = self.graph.view(plan, window)
        known = self_seconds(plan, view)
        found = []
        for number in plan.below(plan.root):
            signed = plan.nodes[number].signature
            counted = rows(signed.lineage, view) if signed else None
            took = known[number].value if number in known else None
            found.append(Seen(took, counted.value if counted else None))
        return found

    def resized(self, name: str, size: int, seconds: float = 0.0) -> None:
        """The real size of something persisted, and the task-seconds that keeping it took."""
        self.persisted.resize(name, size)
        kept = self.persisted.get(name)
        rate = observed_rate(float(size), seconds, 0.0)
        if rate is not None and kept is not None and not kept.timed:
            kept.timed = True
            self.graph.blend("persist_write", rate, float(size), Rates().persist_write_bytes_per_second)
        if kept is None or kept.planned is None:
            return
        self.planner.resized(kept.planned, float(size))
        ratio = observed_ratio(size, kept.row_bytes)
        if ratio is not None:
            self.graph.blend("persisted_ratio", ratio)
            kept.row_bytes = 0.0

    def dropped(self, name: str, code: str) -> None:
        """Something persisted is gone."""
        if code not in ("", "LAST_USE"):
            self.planner.failed()
        self.persisted.drop(name)

    def _means(self, confs: Confs) -> tuple[Budget, dict[Key, float], Stored]:
        """What may be kept, and what is kept and stored now.

        What the branches of an exploration have in common goes with them: where there is memory, it is not worth files.
        """
        budget = Budget(
            persist=confs.persist_max_bytes if confs.persist else 0.0,
            store=float(confs.max_bytes) if confs.recycling else 0.0,
            memory_first=self._in_order,
        )

        def stored() -> list[tuple[str, frozenset[str]]]:
            if not confs.recycling:
                return []
            entries = self.graph.catalog.read(lambda connection: entries_on(connection, self.planner.matcher.cores))
            return [(e.lineage, frozenset(e.columns)) for e in entries if e.state == "committed"]

        return budget, self._kept(), stored

    def _kept(self) -> dict[Key, float]:
        """Planned results that are persisted now, with their bytes."""
        return {each.planned: float(each.bytes) for each in self.persisted.kept if each.planned}
