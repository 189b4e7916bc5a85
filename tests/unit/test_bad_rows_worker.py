"""What runs in Python workers around a job's functions; the whole way is in tests/spark/test_bad_rows.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from spark_regions.spark.bad_rows_worker import MOST, by_batch, by_batch_of_table, by_row, text_of


class Failures(list[tuple[Any, ...]]):
    def __call__(self, row: int, error: BaseException, values: Any) -> None:
        self.append((row, values))


@pytest.mark.parametrize("arity", [-1, 2])
def test_a_row_that_fails_gives_none(arity: int) -> None:
    failed = Failures()
    call = by_row(lambda a, b: a // b, failed, arity)
    assert [call(4, b) for b in (2, 0, 1, 0)] == [2, None, 4, None]
    assert failed == [(2, (4, 0)), (4, (4, 0))]


def test_a_worker_without_memory_ends() -> None:
    def full(value: int) -> int:
        raise MemoryError

    for call in (by_row(full, Failures(), 1), by_batch(full, Failures(), None)):
        with pytest.raises(MemoryError):
            call(pd.Series([1]))


def test_a_value_without_text_is_told_of() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise KeyError("none")

    assert text_of(Broken(), repr) == "<Broken, which has no text: KeyError>"
    assert text_of("x" * 9999, str) == "x" * MOST


def test_a_batch_without_rows_has_no_culprit() -> None:
    empty = pd.DataFrame({"a": []})
    with pytest.raises(ZeroDivisionError):
        list(by_batch_of_table(lambda batches: (1 // len(batch) for batch in batches), Failures())([empty]))
    with pytest.raises(ZeroDivisionError):
        by_batch(lambda column: 1 // len(column), Failures(), None)(empty["a"])


@pytest.mark.parametrize(
    ("good", "missing"),
    [([1, 2**62 + 1, 3], None), ([1.5, 2.5], float("nan")), (["a", "b"], None), ([True, False], None)],
)
def test_other_rows_of_a_batch_keep_their_values(good: list[Any], missing: object) -> None:
    failed = Failures()

    def same(column: pd.Series) -> pd.Series:
        if (column.index == len(good)).any():
            raise ValueError(column)
        return column.head(len(good)).infer_objects()

    result = by_batch(same, failed, None)(pd.Series([*good, good[0]], dtype=object))
    assert list(result[:-1]) == good and pd.isna(result.iloc[-1])
    assert [row for row, _ in failed] == [len(good) + 1]
    times = by_batch(lambda c: c.map({0: pd.Timestamp(0)}.__getitem__), Failures(), None)(pd.Series([0, 1, 0]))
    assert times.dtype.kind == "M" and times.isna().tolist() == [False, True, False]


def test_a_table_function_goes_on_behind_the_culprit() -> None:
    failed, calls = Failures(), []

    def number(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        calls.append(1)
        for batch in batches:
            yield batch.head(1).assign(n=0)
            yield batch.assign(n=batch["a"].astype(int))

    frames = [pd.DataFrame({"a": list(text)}) for text in ("12", "3x5", "67")]
    rows = [list(frame["n"]) for frame in by_batch_of_table(number, failed)(frames)]
    assert rows == [[0], [1, 2], [0], [3], [0], [5], [0], [6, 7]]
    assert failed == [(0, {"a": "x"})]

    def broken() -> Iterator[pd.DataFrame]:
        yield frames[0]
        raise OSError("the input ends here")

    with pytest.raises(OSError, match="ends here"):
        list(by_batch_of_table(number, failed)(broken()))
