"""A stage of a `skew` request, as the shim tells it (docs/protocol.md)."""

from __future__ import annotations

from spark_regions.errors import InvalidRequest
from spark_regions.skew.operators import Operator
from spark_regions.skew.reduce_stage import Shuffle, Stage, together
from spark_regions.skew.task_time_model import TaskTimeModel
from spark_regions.wire.messages import ReduceStage, ShuffleRead


def stage_of(told: ReduceStage, model: TaskTimeModel) -> Stage:
    """
    >>> size = ShuffleRead(bytes=(100, 900), rows=(1, 9), maps=2)
    >>> model = TaskTimeModel(seconds_per_byte=0.01, seconds_per_row=0.0)
    >>> stage_of(ReduceStage("group_apply", 2, size), model).balanced_bound
    5.0

    :param model: what tells the seconds of each partition from its size
    :raises InvalidRequest: where a field contradicts another one
    """
    try:
        left = _shuffle(told.left)
        right = None if told.right is None else _shuffle(told.right)
        return Stage(
            operator=Operator(told.operator),
            seconds=model.partition_seconds(*together([each for each in (left, right) if each is not None])),
            left=left,
            cores=told.cores,
            right=right,
            error_share=model.error_share,
            residual=told.residual,
            salted=told.salted,
            reshuffle_bytes=told.reshuffle_bytes,
            hashable=told.hashable,
            sorts=told.sorts,
            task_memory=told.task_memory,
            executor_memory=told.executor_memory,
        )
    except ValueError as problem:
        raise InvalidRequest(f"A stage cannot be read: {problem!r}.") from problem


def _shuffle(told: ShuffleRead) -> Shuffle:
    count = sum(told.rows)
    return Shuffle(
        bytes=told.bytes,
        rows=told.rows,
        maps=told.maps,
        blocks={int(at): parts for at, parts in told.blocks.items()},
        repeatable=told.repeatable,
        # All rows taken for one width, as they are before they are compressed.
        data=tuple(
            max(told.data_bytes * each / count, float(size)) for size, each in zip(told.bytes, told.rows, strict=True)
        )
        if count
        else (),
    )
