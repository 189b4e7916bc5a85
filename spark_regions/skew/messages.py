"""A stage of a `skew` request, as the shim tells it (docs/protocol.md)."""

from __future__ import annotations

from typing import Any

from spark_regions.errors import InvalidRequest
from spark_regions.skew.operators import Operator
from spark_regions.skew.reduce_stage import Shuffle, Stage, together
from spark_regions.skew.task_time_model import TaskTimeModel


def stage_from_json(record: Any, model: TaskTimeModel) -> Stage:
    """
    >>> size = {"bytes": [100, 900], "rows": [1, 9], "maps": 2}
    >>> model = TaskTimeModel(seconds_per_byte=0.01, seconds_per_row=0.0)
    >>> stage_from_json({"operator": "group_apply", "cores": 2, "left": size}, model).balanced_bound
    5.0

    :param model: what tells the seconds of each partition from its size
    :raises InvalidRequest: where a field is missing, of another type, or contradicts another one
    """
    try:
        left = _shuffle(record["left"])
        right = None if record.get("right") is None else _shuffle(record["right"])
        return Stage(
            operator=Operator(record["operator"]),
            seconds=model.partition_seconds(*together([each for each in (left, right) if each is not None])),
            left=left,
            cores=int(record["cores"]),
            right=right,
            error_share=model.error_share,
            residual=bool(record.get("residual", False)),
            salted=bool(record.get("salted", False)),
            reshuffle_bytes=int(record.get("reshuffleBytes", 0)),
            hashable=bool(record.get("hashable", False)),
            sorts=bool(record.get("sorts", False)),
            task_memory=int(record.get("taskMemory", 0)),
            executor_memory=int(record.get("executorMemory", 0)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise InvalidRequest(f"A stage cannot be read: {problem!r}.") from problem


def _shuffle(record: Any) -> Shuffle:
    rows = tuple(int(each) for each in record["rows"])
    sizes = tuple(int(each) for each in record["bytes"])
    data, count = int(record.get("dataBytes", 0)), sum(rows)
    return Shuffle(
        bytes=sizes,
        rows=rows,
        maps=int(record.get("maps", 1)),
        blocks={int(at): tuple(int(each) for each in parts) for at, parts in record.get("blocks", {}).items()},
        repeatable=bool(record.get("repeatable", False)),
        # All rows taken for one width, as they are before they are compressed.
        data=tuple(max(data * each / count, float(size)) for size, each in zip(sizes, rows, strict=True))
        if count
        else (),
    )
