"""The user's own word that a Python function depends on its arguments alone."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")
PURE = "__spark_regions_pure__"


def pure(function: T) -> T:
    """The same function or class, marked: for equal arguments it gives equal results, in any process, at any time.

    Functions whose code is not shown to be pure have no identity, so that nothing above them is stored (reason
    `UDF_UNPROVEN`). This says that one is: what it calls is not looked into, while a change of its code, its defaults
    or what it closes over still makes it another function. `spark.regions.udf.trustedModules` says it of modules.

    >>> @pure
    ... def plus_one(x):
    ...     return x + 1
    >>> plus_one(1)
    2
    """
    setattr(function, PURE, True)
    return function
