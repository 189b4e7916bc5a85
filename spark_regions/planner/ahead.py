"""What this application keeps in memory, and what it plans to keep for the queries ahead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spark_regions.costs.calibrate import observed_rate, observed_ratio, rates_of
from spark_regions.costs.guess import guessed
from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import Plan, Signature, parse_plan
from spark_regions.planner.decide import Confs
from spark_regions.planner.graph import OperatorGraph
from spark_regions.planner.horizon import OFFERS, Advice, Horizon, Key, Stored, Wanted, decoded
from spark_regions.recycle.admission import reservation
from spark_regions.recycle.horizon.program import Budget
from spark_regions.recycle.horizon.steps import Measured, Step, completed, query_part
from spark_regions.recycle.matching import Match
from spark_regions.recycle.persist import Persisted, Persists
from spark_regions.recycle.points import Point
from spark_regions.stats.cardinality import rows
from spark_regions.stats.operators import own_seconds
from spark_regions.store.entries import entries_on
from spark_regions.store.steps import steps_of

BATCH_SECONDS = 3.0
"""How long a batch waits for its plan; nothing else runs meanwhile."""

Action = dict[str, Any]


class Ahead:
    """Persisted results and the plan of the run. Called under the session's lock."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.persists = Persists()
        run = graph.run
        self._recorded = decoded(graph.catalog.read(lambda connection: steps_of(connection, run.name, run.id)))
        self.horizon = Horizon(self._recorded)

    def question(self, message: Mapping[str, Any], plan: Plan, confs: Confs, parallelism: int) -> Action | None:
        """What the driver is asked for in place of an answer: more DataFrames, or some patience."""
        if not self.horizon or not confs.workflow:
            return None
        if int(message.get("offered") or 0) < OFFERS:
            budget, kept, stored = self._means(confs)
            place = self.horizon.look(plan)
            # While the driver signs what it is asked for, the run is planned.
            rates = rates_of(self.graph.calibration)
            self.horizon.prepare(budget, rates, parallelism, kept, stored)
            if self.horizon.wants_more(place):
                return {"offer": OFFERS}
        return {"again": True} if self.horizon.is_worth_waiting_for(plan) else None

    def advise(self, query: int, plan: Plan, confs: Confs, rates: Rates, parallelism: int) -> Advice | None:
        """What the last run of this application tells about the query."""
        if not self.horizon or not confs.workflow:
            return None
        budget, kept, stored = self._means(confs)
        return self.horizon.advise(query, plan, budget, rates, parallelism, kept, stored)

    def announce(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Plan for the queries of a batch, which follow in any order; without any, the batch is over.

        :raises InvalidRequest: the message breaks the protocol
        """
        released = [each.id for each in self.persists.kept if each.planned is not None]
        for name in released:
            self.persists.drop(name)
        queries = message.get("queries") or []
        if not queries:
            self.horizon = Horizon(self._recorded)
            return {"ranks": [], "release": released}
        confs = Confs.parse(queries[0].get("confs") or {})
        parallelism = max(1, int(queries[0].get("parallelism") or 1))
        steps = [self._expected_step(query, confs, parallelism) for query in queries]
        self.horizon = Horizon(completed(steps), together=True)
        rates = rates_of(self.graph.calibration)
        budget, kept, stored = self._means(confs)
        self.horizon.prepare(budget, rates, parallelism, kept, stored, BATCH_SECONDS)
        return {"release": released, **self.horizon.order()}

    def _expected_step(self, query: Mapping[str, Any], confs: Confs, parallelism: int) -> Step:
        """A query of a batch with what is known of its operators, or is to be expected from its sources."""
        plan = query_part(parse_plan(query))
        view = self.graph.view(plan, confs.window)
        known = own_seconds(plan, view)
        guess = guessed(plan)
        seconds = {n: known[n].value if n in known else guess.task_seconds[n] for n in plan.below(plan.root)}
        cardinality = {}
        for number in plan.below(plan.root):
            signed = plan.nodes[number].signature
            seen = rows(signed.lineage, view) if signed else None
            cardinality[number] = seen.value if seen else guess.rows[number]
        return Step(plan, Measured({n: spent / parallelism for n, spent in seconds.items()}, cardinality, {}))

    def narrowed(self, point: Point) -> Point:
        """A DataFrame to be stored, with just the columns that the run reads."""
        read = self.horizon.columns_read(point.signature) if point.ref is not None else None
        kept = tuple(column for column in point.signature.columns if read is None or column in read)
        if not kept or len(kept) == len(point.signature.columns):
            return point
        share = len(kept) / len(point.signature.columns)
        signature = replace(point.signature, columns=kept)
        seconds = point.write_seconds * share
        return replace(point, signature=signature, bytes=point.bytes * share, write_seconds=seconds)

    def recall(self, node: int, match: Match, saving: float) -> Action:
        """A read of something persisted."""
        self.persists.touch(match.entry.id)
        return {
            "kind": "recall",
            "node": node,
            "entry": match.entry.id,
            "saving": round(saving, 4),
            "reason": "BENEFIT",
        }

    def keep(self, found: Wanted, confs: Confs) -> list[Action]:
        """Actions that persist a planned result."""
        size = int(rates_of(self.graph.calibration).level_bytes(found.bytes, True))
        result = Persisted("", found.signature, found.rows, size, found.recompute, found.key, found.bytes)
        name, released = self.persists.keep(result, confs.persist_max_bytes)
        if name is None:
            self.horizon.failed()
        return _persisting(name, released, found.node, found.signature, size, found.saving, "PLANNED", found.ref)

    def rent(self, point: Point, confs: Confs) -> list[Action]:
        """Actions that persist what only this application can use, once recomputing it has cost as much."""
        name, released = self.persists.admit(point, confs.persist_max_bytes)
        size = reservation(point.bytes, confs.persist_max_bytes)
        return _persisting(name, released, point.node, point.signature, size, point.benefit, "SKI_RENTAL")

    def released(self, actions: list[Action], advice: Advice | None) -> list[Action]:
        """The actions, with what no later query reads released: at once, or after this query if it reads it."""
        if advice is None:
            return actions
        used = {action["entry"] for action in actions if action["kind"] in ("recall", "persist")}
        over = [each.id for each in self.persists.kept if each.planned in advice.over]
        for action in actions:
            if action.get("entry") in over and action["kind"] in ("recall", "persist"):
                action["release"] = True
        for name in over:
            if name not in used:
                self.persists.drop(name)
                actions.append({"kind": "unpersist", "entry": name})
        return actions

    def resized(self, name: str, size: int, seconds: float = 0.0) -> None:
        """The real size of something persisted, and the task-seconds that keeping it took."""
        self.persists.resize(name, size)
        kept = self.persists.get(name)
        rate = observed_rate(float(size), seconds, 0.0)
        if rate is not None and kept is not None and not kept.timed:
            kept.timed = True
            self.graph.blend("persist_write", rate, float(size), Rates().persist_write_bytes_per_second)
        if kept is None or kept.planned is None:
            return
        self.horizon.resized(kept.planned, float(size))
        ratio = observed_ratio(size, kept.row_bytes)
        if ratio is not None:
            self.graph.blend("persisted_ratio", ratio)
            kept.row_bytes = 0.0

    def dropped(self, name: str, code: str | None) -> None:
        """Something persisted is gone."""
        if code not in (None, "LAST_USE"):
            self.horizon.failed()
        self.persists.drop(name)

    def _means(self, confs: Confs) -> tuple[Budget, dict[Key, float], Stored]:
        """What may be kept, and what is kept and stored now."""
        recycling = confs.recycle and confs.strategy != "off"
        budget = Budget(
            persist=confs.persist_max_bytes if confs.persist else 0.0,
            store=float(confs.max_bytes) if recycling else 0.0,
        )
        kept = {each.planned: float(each.bytes) for each in self.persists.kept if each.planned}

        def stored() -> list[tuple[str, frozenset[str]]]:
            if not recycling:
                return []
            entries = self.graph.catalog.read(lambda connection: entries_on(connection, self.horizon.following.cores))
            return [(e.lineage, frozenset(e.columns)) for e in entries if e.state == "committed"]

        return budget, kept, stored


def _persisting(
    name: str | None,
    released: list[str],
    node: int,
    signature: Signature,
    size: int,
    saving: float,
    reason: str,
    ref: str | None = None,
) -> list[Action]:
    """Actions that make room for a result, and persist it if there is a name for it."""
    actions: list[Action] = [{"kind": "unpersist", "entry": each} for each in released]
    if name is not None:
        actions.append(
            {
                "kind": "persist", "node": node, "ref": ref, "entry": name, "columns": list(signature.columns),
                "level": "MEMORY_AND_DISK", "maxBytes": size, "saving": round(saving, 4), "reason": reason,
            }
        )  # fmt: skip
    return actions
