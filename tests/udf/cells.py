"""Cells of `pure.txt` and `impure.txt`, and how they are run and pickled."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def cells(name: str) -> dict[str, str]:
    """Source by title."""
    found: dict[str, str] = {}
    for cell in ("\n" + (HERE / name).read_text(encoding="utf-8")).split("\n%% ")[1:]:
        title, _, source = cell.partition("\n")
        assert title not in found, title
        found[title] = source
    return found


def files(source: str) -> tuple[str, dict[str, str]]:
    """The cell's own source, and the files beside it."""
    main, *others = ("\n" + source).split("\n#@ ")
    return main[1:], {name: text for name, _, text in (other.partition("\n") for other in others)}


def space_of(source: str) -> dict[str, Any]:
    """What the cell makes, as a script would: `f`, and `args`."""
    space: dict[str, Any] = {"__name__": "__main__", "args": ("env",)}
    exec(compile(source, "cell.py", "exec"), space)
    return space


def by_value(source: str) -> dict[str, str]:
    """As PySpark sends the function of a script."""
    from pyspark.cloudpickle import dumps
    from pyspark.sql.types import StringType

    return _function(dumps((space_of(source)["f"], StringType())))


def by_reference(module: str) -> dict[str, str]:
    """As PySpark sends the function of a module that workers can import."""
    return _function(f"c{module}\nf\n.".encode())


def _function(command: bytes) -> dict[str, str]:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return {"key": "f", "command": base64.b64encode(command).decode(), "pythonVersion": version}
