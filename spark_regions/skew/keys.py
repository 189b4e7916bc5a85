"""What each heavy key of a stage costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_regions.skew.operators import JOINS, Input, Operator
from spark_regions.skew.stage import HeavyKey, Stage


@dataclass(frozen=True, slots=True)
class KeyLoad:
    """:param side: the input that has more rows of the key, which are what a split would spread
    :param rows: of that input; :param least_rows: so many there are for certain; :param bytes: of that input
    :param other_bytes: what the other input adds to every slice; all of its partition where the rows are unknown
    """

    key: str
    partition: int
    seconds: float
    side: Input
    rows: float
    least_rows: int
    bytes: float
    other_bytes: float
    share: float
    error: float
    null: bool


@dataclass(frozen=True, slots=True)
class _Rows:
    """A key's rows in the input that has more of it, and in the other one (None: unknown)."""

    heavy: HeavyKey
    side: Input
    mine: float
    other: float | None


def key_loads(stage: Stage) -> dict[str, KeyLoad]:
    """Seconds of each heavy key: a part of its partition's, by the rows that it reads and brings out.

    A join reads a and b rows of a key and brings out a · b. Worked example: a partition of 8 s with 300 rows against
    10. A key with 200 of the rows against 1 stands for 200 + 1 + 200 of them, the others for 100 + 9 + 100: 5.3 s.
    """
    left = stage.left.key_rows()
    right = stage.right.key_rows() if stage.right else {}
    by_partition: dict[int, list[_Rows]] = {}
    for each in stage.left.keys:
        if each.key not in right or left[each.key] >= right[each.key]:
            found = _Rows(each, Input.LEFT, left[each.key], _other(each, right))
            by_partition.setdefault(each.partition, []).append(found)
    for each in stage.right.keys if stage.right else ():
        if each.key not in left or left[each.key] < right[each.key]:
            found = _Rows(each, Input.RIGHT, right[each.key], _other(each, left))
            by_partition.setdefault(each.partition, []).append(found)
    return {
        load.key: load
        for partition, keys in sorted(by_partition.items())
        for load in _loads_of_partition(stage, partition, keys)
    }


def _other(each: HeavyKey, counted: dict[str, float]) -> float | None:
    return 0.0 if each.null else counted.get(each.key, each.other_rows)


def _loads_of_partition(stage: Stage, partition: int, keys: Sequence[_Rows]) -> list[KeyLoad]:
    # By input: rows that no listed key has.
    rest = {side: float(shuffle.rows[partition]) for side in Input if (shuffle := stage.input(side))}
    work = []
    for each in keys:
        rest[each.side] = max(rest[each.side] - each.mine, 0.0)
        if stage.right is None:
            work.append(each.mine)
            continue
        other = each.other if each.other is not None else rest[each.side.other] * _share(stage, partition, each)
        rest[each.side.other] = max(rest[each.side.other] - other, 0.0)
        out = each.mine * max(other, 1.0) if each.other is not None else max(each.mine, other)
        work.append(each.mine + other + (out if _multiplies(stage.operator) else 0.0))
    others = sum(rest.values()) + (max(rest.values()) if _multiplies(stage.operator) else 0.0)
    total = sum(work) + others
    found = []
    for each, units in zip(keys, work, strict=True):
        shuffle, other_shuffle = stage.input(each.side), stage.input(each.side.other)
        assert shuffle is not None
        held = shuffle.rows[partition]
        other_bytes = 0.0
        if other_shuffle and not each.heavy.null:
            count = other_shuffle.rows[partition]
            part = 1.0 if each.other is None or not count else min(each.other / count, 1.0)
            other_bytes = other_shuffle.bytes[partition] * part
        found.append(
            KeyLoad(
                key=each.heavy.key,
                partition=partition,
                seconds=stage.seconds[partition] * units / total if total else 0.0,
                side=each.side,
                rows=each.mine,
                least_rows=each.heavy.least_rows,
                bytes=shuffle.bytes[partition] * each.mine / held if held else 0.0,
                other_bytes=other_bytes,
                share=each.heavy.share,
                error=each.heavy.error,
                null=each.heavy.null,
            )
        )
    return found


def _share(stage: Stage, partition: int, each: _Rows) -> float:
    shuffle = stage.input(each.side)
    held = shuffle.rows[partition] if shuffle else 0
    return each.mine / held if held else 0.0


def _multiplies(operator: Operator) -> bool:
    return operator in JOINS - {Operator.SEMI_JOIN, Operator.ANTI_JOIN}
