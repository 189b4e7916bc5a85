"""What was seen of a query's nodes, from the event that tells of its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spark_regions.runs.recorded_query import Measured


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


def measured_of(
    event: Mapping[str, Any], parallelism: int, spared: Iterable[int], widened: Iterable[int] = ()
) -> Measured:
    """The numbers of an `executed` event, without nodes that did not run or that something stood in for."""
    left_out = set(spared)
    values: dict[str, dict[int, float]] = {"seconds": {}, "rows": {}, "bytes": {}}
    for node in event.get("nodes") or ():
        for name, found in values.items():
            value = node.get(name)
            if value is not None and (name != "seconds" or int(node["id"]) not in left_out):
                found[int(node["id"])] = float(value) / (parallelism if name == "seconds" else 1)
    return Measured(values["seconds"], values["rows"], values["bytes"], frozenset(widened) & values["seconds"].keys())
