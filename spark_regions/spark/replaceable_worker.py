"""Runs in Python workers, around a job's own functions: others can take their places while they run.

The shim sends this text along with each function, so that workers need nothing installed. It must stand alone.
With each row comes which replacement of a function holds, 0 for none; they are in files on the executor's disk.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

Function = Callable[..., Any]

SLOTS = "spark_regions_slots"

_CALL = """
def made(function, slot, {slots}):
    def call({arguments}{versions}):
        {moves}
        return (slot.function or function)({arguments})
    return call
"""


def wrap(command: bytes, settings: str) -> tuple[Any, ...]:
    """What the worker gets in the place of a function: the same, until it is replaced.

    :param command: the function and what belongs to it, pickled by PySpark
    :param settings: JSON: `function`, its name; `arity`; `told`: names of the functions whose replacements come as last
        arguments, its own and those that are called with what it returns; `batches`: whether it takes many rows at once
    """
    given = json.loads(settings)
    told = pickle.loads(command)
    if type(told).__name__ == "Broadcast":
        told = pickle.loads(told.value)
    function, *rest = told
    known = slots()
    own, *others = (known.setdefault(name, Slot()) for name in (given["function"], *given["told"]))
    return replaceable(function, own, others, given["arity"], given["batches"]), *rest


class Slot:
    """Which replacement of a function holds.

    :ivar function: None where it was not replaced
    """

    def __init__(self) -> None:
        self.version = 0
        self.function: Function | None = None

    def move(self, version: int) -> None:
        if version != self.version:
            self.function = loaded(version) if version else None
            self.version = version

    def begin(self, versions: Any) -> None:
        """A batch: all of its rows are computed by what holds at the first one."""
        if len(versions):
            self.move(int(versions.iloc[0] if hasattr(versions, "iloc") else versions[0].as_py()))


def slots() -> dict[str, Slot]:
    """Of the task, by the name of a function; functions of a worker that call each other share them."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    home: Any = sys.modules.setdefault(SLOTS, ModuleType(SLOTS))
    if getattr(home, "task", None) != context.taskAttemptId():
        home.task, home.slots = context.taskAttemptId(), {}
    found: dict[str, Slot] = home.slots
    return found


def loaded(version: int) -> Function:
    path = Path(os.environ["SPARK_LOCAL_DIRS"].split(",")[0], f"spark-regions-function-{version}")
    if not path.exists():
        raise RuntimeError(f"Found no replacement {version} of a Python function on this executor, expected {path}.")
    found: Function = pickle.loads(path.read_bytes())
    return found


def replaceable(function: Function, slot: Slot, told: Sequence[Slot], arity: int, batches: bool) -> Function:
    """Called with the function's arguments, and then the version of each slot that is told.

    >>> slot = Slot()
    >>> call = replaceable(lambda text: text + "!", slot, [slot], 1, False)
    >>> call("a", 0)
    'a!'
    """
    move = "s{0}.begin(v{0})" if batches else "if v{0} != s{0}.version: s{0}.move(v{0})"
    scope: dict[str, Any] = {}
    text = _CALL.format(
        slots="".join(f"s{i}, " for i in range(len(told))),
        arguments="".join(f"a{i}, " for i in range(arity)),
        versions="".join(f"v{i}, " for i in range(len(told))),
        moves="\n        ".join(move.format(i) for i in range(len(told))) or "pass",
    )
    exec(text, scope)
    made: Function = scope["made"](function, slot, *told)
    return made
