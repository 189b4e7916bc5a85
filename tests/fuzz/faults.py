"""Faults that are planted to see that they are found. None is in the code under test: the world around it is wrong.

- `stale-listing`: a replaced file keeps its length and its time, so that the plugin must take it for unchanged.
- `dropped-filter`, `swapped-column`: the planner answers wrongly, see `faulty_planner.py`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fuzz import oracle
from tests.fuzz.prelude import OLD, Inputs

NAMES = ("dropped-filter", "stale-listing", "swapped-column")
LENGTH = 1 << 16
"""Of every file, where files lie about themselves."""


@contextmanager
def planted(fault: str | None) -> Iterator[Path | None]:
    """With the fault, if any; gives what stands in for the planner's Python: that one, with one function changed."""
    if fault is None:
        yield None
    elif fault == "stale-listing":
        honest = oracle.Inputs
        oracle.Inputs = _liar(honest)  # type: ignore[misc]
        try:
            yield None
        finally:
            oracle.Inputs = honest  # type: ignore[misc]
    else:
        program = Path(__file__).with_name("faulty_planner.py")
        with tempfile.TemporaryDirectory(prefix="fuzz-planner-") as folder:
            target = Path(folder) / "python"
            planner = f'case "$*" in *spark_regions.planner*) exec "{sys.executable}" -P "{program}" {fault};; esac'
            target.write_text(f'#!/bin/sh\n{planner}\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
            target.chmod(0o700)
            yield target


def _liar(honest: type[Inputs]) -> type[Inputs]:
    class Liar(honest):  # type: ignore[misc]
        def _put(self, name: str, number: int, target: int) -> None:
            super()._put(name, number, target)
            for file in self._numbered(self.folder / name, target):
                _pad(file)
                os.utime(file, (OLD, OLD))

    return Liar


def _pad(file: Path) -> None:
    """To LENGTH, with what readers of the format skip; ORC has no such place."""
    content = file.read_bytes()
    missing = LENGTH - len(content)
    if file.suffix == ".parquet":
        footer = int.from_bytes(content[-8:-4], "little") + 8
        file.write_bytes(content[:-footer] + bytes(missing) + content[-footer:])
    elif file.suffix in (".json", ".csv"):
        file.write_bytes(content + b"\n" * missing)
