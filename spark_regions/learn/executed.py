"""What an executed query teaches: an `executed` event into statistics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_regions.dag.plan import Plan, Signature, signature
from spark_regions.dag.records import OperatorStatistics, StatisticsKey
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.store.graph import Batch
from spark_regions.wire.messages import Executed, RanNode


@dataclass(frozen=True, slots=True)
class Observation:
    """Observations of one query.

    :param totals: task-seconds of each node with all below it, where nothing below was loaded
    :param private: variants that only this application can meet again
    :param demanded: edges of the query, private ones too
    """

    variants: list[OperatorStatistics]
    private: list[OperatorStatistics]
    edges: list[tuple[str, str]]
    demanded: list[tuple[str, str]]
    totals: Mapping[int, float] = field(default_factory=dict)

    def fill(self, batch: Batch) -> None:
        for variant in self.variants:
            batch.add_variant(variant)
        for child, parent in self.edges:
            batch.add_edge(child, parent)
        batch.queries += 1


def observation_of(event: Executed, plan: Plan | None, loaded: set[int]) -> Observation:
    """What an executed query tells of its operators.

    :param plan: as it was sent to `decide`, where it is remembered; demand is counted from it, since operators below a
        load were asked for although they did not run
    :param loaded: nodes that were not computed at their place: read from an entry, or from another place
    """
    raw = {node.id: node for node in event.nodes}
    signed = {number: signature(node) or _planned(plan, number) for number, node in raw.items()}
    spared = _spared(plan, loaded)
    totals = _totals(raw, plan, loaded, spared)
    now = time.time()
    # Where one place of several was not computed, nobody knows how often Spark would have computed the rows.
    elsewhere = {
        _variant(node.operator, node.signature, now).key
        for number in loaded | spared
        if plan and (node := plan.nodes.get(number)) and node.signature
    }
    by_key: dict[StatisticsKey, OperatorStatistics] = {}
    for number, ran in raw.items():
        signed_node = signed[number]
        if signed_node is None or number in spared:
            continue
        empty = _variant(ran.operator, signed_node, now)
        own_time = number not in loaded and empty.key not in elsewhere
        variant = replace(
            empty,
            rows=_moments(ran.rows),
            bytes=_moments(ran.bytes),
            seconds=_moments(ran.seconds if own_time else None),
            total=_moments(totals.get(number) if own_time else None),
            executions=1 if own_time else 0,
        )
        before = by_key.get(variant.key)
        # Twice in one query is one execution of one query.
        by_key[variant.key] = replace(before.merge(variant), executions=variant.executions) if before else variant
    demands = _demands(plan, raw, signed)
    for operator, each in demands:
        variant = _variant(operator, each, now)
        by_key[variant.key] = replace(by_key.get(variant.key, variant), demands=1)
    session = (
        {node.signature.lineage for node in plan.nodes.values() if node.signature and node.session} if plan else set()
    )
    edges = list(plan.edges()) if plan else []
    return Observation(
        variants=[variant for variant in by_key.values() if variant.lineage not in session],
        private=[variant for variant in by_key.values() if variant.lineage in session],
        edges=[(child, parent) for child, parent in edges if child not in session and parent not in session],
        demanded=edges,
        totals=totals,
    )


def _demands(
    plan: Plan | None, raw: Mapping[int, RanNode], signed: Mapping[int, Signature | None]
) -> list[tuple[str, Signature]]:
    if plan is not None:
        return [(node.operator, node.signature) for node in plan.nodes.values() if node.signature]
    found = []
    for number, node in raw.items():
        each = signed[number]
        if each is not None:
            found.append((node.operator, each))
    return found


def _variant(operator: str, signed: Signature, now: float) -> OperatorStatistics:
    return OperatorStatistics(
        signed.lineage, operator[:128], signed.shape, signed.core, signed.conjuncts, signed.columns, last=now
    )


def _planned(plan: Plan | None, number: int) -> Signature | None:
    node = plan.nodes.get(number) if plan else None
    return node.signature if node else None


def _spared(plan: Plan | None, loaded: set[int]) -> set[int]:
    """Nodes below a load: they did not run."""
    if plan is None:
        return set()
    return {below for number in loaded if number in plan.nodes for below in plan.below(number) if below != number}


def _totals(raw: Mapping[int, RanNode], plan: Plan | None, loaded: set[int], spared: set[int]) -> dict[int, float]:
    """Task-seconds of each node with all below it, where nothing below was loaded."""
    totals: dict[int, float] = {}
    partial = set(loaded) | spared

    def children(number: int) -> list[int]:
        if plan is not None and number in plan.nodes:
            return list(plan.nodes[number].children)
        return list(raw[number].children)

    # Pre-order numbers: a child's is higher than its parent's.
    for number in sorted(raw, reverse=True):
        below = children(number)
        if any(child in partial for child in below):
            partial.add(number)
        own = raw[number].seconds
        known = [totals[child] for child in below if child in totals]
        if own is not None or known:
            totals[number] = float(own or 0.0) + sum(known)
    return {number: total for number, total in totals.items() if number not in partial}


def _moments(value: float | None) -> RunningStatistics:
    return RunningStatistics() if value is None else RunningStatistics.of(float(value))
