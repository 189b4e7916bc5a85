"""What was seen of a query's nodes, from the event that tells of its end."""

from __future__ import annotations

from collections.abc import Iterable

from spark_regions.runs.recorded_query import Measured
from spark_regions.wire.messages import Executed


def with_carried(measured: Measured, carried: Measured | None) -> Measured:
    """What was seen now, and what was known of the nodes that did not run."""
    if carried is None:
        return measured
    certain = {node: spent for node, spent in measured.seconds.items() if node not in measured.widened}
    return Measured(
        {**measured.seconds, **carried.seconds, **certain},
        {**carried.rows, **measured.rows},
        {**carried.bytes, **measured.bytes},
        measured.widened - carried.seconds.keys(),
    )


def measured_of(event: Executed, parallelism: int, spared: Iterable[int], widened: Iterable[int] = ()) -> Measured:
    """The numbers of an `executed` event, without nodes that did not run or that something stood in for."""
    left_out = set(spared)
    ran = [node for node in event.nodes if node.seconds is not None and node.id not in left_out]
    seconds = {node.id: (node.seconds or 0.0) / parallelism for node in ran}
    rows = {node.id: float(node.rows) for node in event.nodes if node.rows is not None}
    sizes = {node.id: float(node.bytes) for node in event.nodes if node.bytes is not None}
    return Measured(seconds, rows, sizes, frozenset(widened) & seconds.keys())
