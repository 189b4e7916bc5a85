"""What runs in Python workers around functions that can be replaced; the whole way: tests/spark/control_cases.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from spark_regions.spark.replaceable_worker import Slot, replaceable


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},elsewhere")
    return tmp_path


def put(folder: Path, version: int, function: Any) -> None:
    Path(folder, f"spark-regions-function-{version}").write_bytes(cloudpickle.dumps(function))


def test_each_row_is_computed_by_what_holds(folder: Path) -> None:
    for version in (1, 2):
        put(folder, version, lambda value, version=version: value * 10**version)
    slot = Slot()
    call = replaceable(lambda value: value, slot, [slot], 1, False)
    assert [call(3, version) for version in (0, 0, 1, 1, 2, 0)] == [3, 3, 30, 30, 300, 3]


def test_functions_that_call_each_other(folder: Path) -> None:
    """The inner one is told what holds of the outer one, which has its result alone."""
    put(folder, 1, lambda value: -value)
    inner, outer = Slot(), Slot()
    first = replaceable(lambda a, b: a + b, inner, [inner, outer], 2, False)
    then = replaceable(lambda value: value * 2, outer, [], 1, False)
    assert [then(first(1, 2, *versions)) for versions in ((0, 0), (0, 1), (0, 0))] == [6, -3, 6]


@pytest.mark.parametrize("column", [pd.Series, pa.array])
def test_a_batch_is_computed_by_what_holds_at_its_first_row(folder: Path, column: Any) -> None:
    put(folder, 1, lambda values: "new")
    slot = Slot()
    call = replaceable(lambda values: "old", slot, [slot], 1, True)
    versions = ([0, 0], [0, 1], [1, 1], [])
    assert [call(column([5] * len(each)), column(each)) for each in versions] == ["old", "old", "new", "new"]


def test_a_replacement_that_is_not_there() -> None:
    slot = Slot()
    with pytest.raises(RuntimeError, match="Found no replacement 7 of a Python function on this executor"):
        replaceable(lambda value: value, slot, [slot], 1, False)(3, 7)
