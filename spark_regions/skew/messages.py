"""A stage as JSON: what the shim reports, and what recorded runs are kept as."""

from __future__ import annotations

from typing import Any

from spark_regions.errors import InvalidRequest
from spark_regions.skew.operators import Operator
from spark_regions.skew.stage import HeavyKey, Shuffle, Stage


def stage_from_json(record: Any) -> Stage:
    """
    >>> size = {"bytes": [100, 900], "rows": [1, 9], "maps": 2}
    >>> stage_from_json({"operator": "group_apply", "cores": 2, "seconds": [1.0, 9.0], "left": size}).balanced_bound
    5.0

    :raises InvalidRequest: where a field is missing, of another type, or contradicts another one
    """
    try:
        right = record.get("right")
        return Stage(
            operator=Operator(record["operator"]),
            seconds=tuple(float(each) for each in record["seconds"]),
            left=_shuffle(record["left"]),
            cores=int(record["cores"]),
            right=None if right is None else _shuffle(right),
            error_share=float(record.get("errorShare", 0.0)),
            observed=bool(record.get("observed", False)),
            residual=bool(record.get("residual", False)),
            salted=bool(record.get("salted", False)),
            ordered=bool(record.get("ordered", False)),
            reshuffle_bytes=int(record.get("reshuffleBytes", 0)),
            state_ratio=float(record.get("stateRatio", 1.0)),
            float_sums=bool(record.get("floatSums", False)),
            layout_fixed=bool(record.get("layoutFixed", False)),
            distribution=tuple((str(value), float(weight)) for value, weight in record.get("distribution", ())),
            ties_free=bool(record.get("tiesFree", False)),
            hashable=bool(record.get("hashable", False)),
            sorts=bool(record.get("sorts", False)),
            task_memory=int(record.get("taskMemory", 0)),
            executor_memory=int(record.get("executorMemory", 0)),
            aqe=bool(record.get("aqe", True)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise InvalidRequest(f"A stage cannot be read: {problem!r}.") from problem


def _shuffle(record: Any) -> Shuffle:
    rows = tuple(int(each) for each in record["rows"])
    keys = tuple(
        HeavyKey(
            key=str(each["key"]),
            share=float(each["share"]),
            error=float(each["error"]),
            partition=int(each["partition"]),
            null=bool(each.get("null", False)),
            other_rows=None if each.get("otherRows") is None else int(each["otherRows"]),
            least_rows=int(each.get("leastRows", 0)),
        )
        for each in record.get("keys", ())
    )
    outside = [each.key for each in keys if not 0 <= each.partition < len(rows)]
    if outside:
        raise ValueError(f"keys outside of all partitions: {outside}")
    blocks = {int(at): tuple(int(each) for each in sizes) for at, sizes in record.get("blocks", {}).items()}
    sizes = tuple(int(each) for each in record["bytes"])
    data, count = int(record.get("dataBytes", 0)), sum(rows)
    return Shuffle(
        bytes=sizes,
        rows=rows,
        keys=keys,
        maps=int(record.get("maps", 1)),
        blocks=blocks,
        repeatable=bool(record.get("repeatable", False)),
        # All rows taken for one width, as they are before they are compressed.
        data=tuple(max(data * each / count, float(size)) for size, each in zip(sizes, rows, strict=True))
        if count
        else (),
    )
