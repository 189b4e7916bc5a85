"""What statements of another engine teach: its rates, and what it gave up."""

from __future__ import annotations

import time

from spark_regions.costs.engines import observed_factor
from spark_regions.effects.open_queries import MAX_OPEN, OpenQuery
from spark_regions.stats.engine_runs import engine_run
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.wire.actions import Route
from spark_regions.wire.messages import RanRoute, Why

PASSING = frozenset({"CANCELLED", "INPUT_CHANGED", "ENGINE_DOWN"})
"""Another time it may go well."""


class EngineRuns:
    """Of one application.

    :ivar refused: lineages that it is not asked for again, with why
    """

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.refused: dict[str, Why] = {}

    def ran(self, told: RanRoute, query: OpenQuery) -> None:
        """A statement that the query asked for is over."""
        node = query.plan.nodes.get(told.node)
        lineage = node.signature.lineage if node is not None and node.signature is not None else None
        if told.refusal is not None:
            if lineage is not None and told.refusal.code not in PASSING:
                self.refused[lineage] = told.refusal
                if len(self.refused) > MAX_OPEN:
                    del self.refused[next(iter(self.refused))]
            return
        if told.start_seconds > 0:
            self.graph.blend(f"{told.platform}.start", told.start_seconds)
        seconds = max(told.seconds - told.start_seconds, 0.0)
        routes = [each for each in query.actions if isinstance(each, Route)]
        # Several share the cores, and each waits for the others.
        asked = routes[0] if len(routes) == 1 and routes[0].node == told.node else None
        before = query.engine_factor
        factor = observed_factor(before, asked.predicted_seconds, seconds) if asked is not None else None
        if factor is not None:
            self.graph.blend(f"{told.platform}.factor", factor)
        if lineage is not None and node is not None and not node.session:
            run = engine_run(lineage, told.platform, seconds, float(told.rows), time.time())
            self.graph.record(lambda batch: batch.add_variant(run), (), ())
