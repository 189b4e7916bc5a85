"""Which statements of a room's functions ran."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

Lines = set[tuple[str, int]]


def statements(path: Path) -> Iterator[tuple[int, range]]:
    """Of a module's functions: the line of each statement, and the lines that tell that it ran."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in (each for statement in function.body for each in ast.walk(statement)):
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if isinstance(node, ast.stmt) and not docstring and not isinstance(node, ast.Nonlocal):
                body = getattr(node, "body", None)
                end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
                yield node.lineno, range(node.lineno, max(end, node.lineno) + 1)


def not_run(files: Iterable[Path], ran: Lines) -> tuple[list[str], int]:
    """Statements in functions that did not run, as `file:line text`, and how many there are in all."""
    missing, count = [], 0
    for path in sorted(files):
        text = path.read_text(encoding="utf-8").splitlines()
        for line, lines in dict(statements(path)).items():
            count += 1
            if not any((path.name, each) in ran for each in lines):
                missing.append(f"{path.name}:{line} {text[line - 1].strip()}")
    return missing, count


@contextlib.contextmanager
def traced(rooms: Iterable[Path]) -> Iterator[Lines]:
    """The lines of these folders that run meanwhile, in this thread."""
    ran: Lines = set()
    within = tuple(map(str, rooms))

    def line(frame: FrameType, event: str, _: Any) -> Any:
        ran.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(within) else None

    earlier = sys.gettrace()
    sys.settrace(call)
    try:
        yield ran
    finally:
        sys.settrace(earlier)
