"""Which queries are verified, and which stages are trusted to be arranged as decided."""

from __future__ import annotations

from msgspec.structs import replace

from spark_regions.dag.digests import digest
from spark_regions.effects.open_queries import OpenQuery
from spark_regions.optimizer.withdraw import ALWAYS, stopped
from spark_regions.planner.skew import stage_key
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.wire import actions as wire
from spark_regions.wire.messages import Confs, DecideSkew, SkewDecision, SkewDecline


def runs_both_ways(query: OpenQuery, confs: Confs, application: str) -> bool:
    """Whether the query is one of those that run both ways: drawn by its number, the same ones whoever asks again."""
    spares = query.nodes_of(wire.Load, wire.ReadPersisted, wire.Share, wire.Route)
    # What is computed and kept for later would be kept twice.
    if query.asked.subquery or not spares or query.nodes_of(wire.Persist):
        return False
    drawn = int(digest(["verify", application, str(query.number)])[:8], 16)
    return drawn < confs.verify * 2**32


def trusted(graph: OperatorGraph, query: OpenQuery | None, asked: DecideSkew, answer: SkewDecision) -> SkewDecision:
    """The decision on a stage, unless it has lost before or its query is switched off; noted with the query."""
    spec = answer.spec
    name = digest(["stage", *stage_key(asked)])
    view = graph.seen(name)
    why = stopped(view, name, ("split",), asked.strategy == ALWAYS)
    if why is None and query is not None and query.top is not None:
        why = stopped(view, query.top.lineage, ())
    if why is not None:
        code, detail = why
        plain = replace(
            spec, kind="none", partitions=(), tasks=(), predicted_makespan=spec.plain_makespan, reason=code,
            detail=detail, declines=(*spec.declines, SkewDecline(spec.kind, code, detail)),
        )  # fmt: skip
        return replace(answer, spec=plain)
    if query is not None:
        query.splits[name] = spec.plain_makespan - spec.predicted_makespan
    return answer
