"""The stack of every function of the standard library can be followed."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.machine import Machine
from spark_regions.identity.udf.values import DATA, Function, Value

PACKAGES = ("[a-m]*.py", "json", "email", "asyncio", "importlib", "collections")

# Nothing that a function of rows needs.
DECLINED = (
    "GET_AWAITABLE",
    "GET_AITER",
    "GET_ANEXT",
    "BEFORE_ASYNC_WITH",
    "END_ASYNC_FOR",
    "IMPORT_STAR",
    "PRINT_EXPR",
)


class Anything:
    """Takes everything for data, so that only the following of the stack is left."""

    def __init__(self) -> None:
        self.marks: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: DATA

    def store(self, machine: Machine, owner: Function, name: str, value: Value) -> None:
        owner.locals[name] = DATA

    def add_defaults(self, function: Value, value: Value) -> None:
        assert isinstance(value, Value)


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_function_of_the_library_can_be_followed(package: str) -> None:
    folder = Path(sysconfig.get_path("stdlib"))
    files = folder.glob(package) if "*" in package else (folder / package).rglob("*.py")
    followed, failed = 0, []
    for path in sorted(files):
        for code in codes(compile(path.read_bytes(), str(path), "exec", dont_inherit=True)):
            function = Function(code, None)
            try:
                Machine(Anything(), function, {} if code.co_name == "<module>" or not code.co_flags & 2 else None).run()
                followed += 1
            except UdfRefused as refused:
                if refused.code == "UDF_UNREADABLE":
                    failed.append((path.name, code.co_name, refused.detail))
    assert [each for each in failed if not any(name in each[2] for name in DECLINED)] == []
    assert followed > 20
