"""Progress of long work: one look everywhere, on stderr. Only where somebody watches: a terminal or a notebook."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Protocol

OFF = "SPARK_REGIONS_PROGRESS"
"""Environment variable; `0` turns every bar off that was not asked for."""


class Advance(Protocol):
    def __call__(self, units: float, description: str | None = None, /) -> None: ...


@contextmanager
def bar(
    description: str, total: float | None, wanted: bool | None = None, *, is_bytes: bool = False
) -> Iterator[Advance]:
    """A progress bar; what it gives moves it on by so many units, and says what it is about.

    :param total: units of all the work; None where that is not known
    :param wanted: None: where somebody watches
    :param is_bytes: units are bytes, shown as such
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    count: ProgressColumn = DownloadColumn(binary_units=True) if is_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not is_shown(wanted)) as progress:
        task = progress.add_task(description, total=total)
        yield lambda units, text=None: progress.update(task, advance=units, description=text)


def only_if_asked() -> bool:
    return os.environ.get(OFF) == "0"


def is_shown(wanted: bool | None = None) -> bool:
    """Whether `bar` draws anything."""
    from rich.console import Console

    console = Console(stderr=True)
    return _watched(console.is_terminal, console.is_jupyter) if wanted is None else wanted


def _watched(terminal: bool, notebook: bool) -> bool:
    if only_if_asked():
        return False
    # In a notebook rich draws with ipywidgets, and only warns without them.
    return find_spec("ipywidgets") is not None if notebook else terminal
