"""Sizes and ages as people read them, and whether they see bars."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spark_regions.dag.records import Entry

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
with_progress = click.option(
    "--progress/--no-progress", default=None, help="A bar on stderr; by default only on a terminal."
)
_AGES = ((86_400, "d"), (3600, "h"), (60, "min"))


def size(count: int) -> str:
    """
    >>> size(0), size(2048), size(5 * 1024**3)
    ('0 B', '2.0 KiB', '5.0 GiB')
    """
    value, power = float(count), 0
    while value >= 1024 and power < len(_SIZES) - 1:
        value, power = value / 1024, power + 1
    return f"{count} B" if power == 0 else f"{value:.1f} {_SIZES[power]}"


def age(seconds: float) -> str:
    """
    >>> age(5), age(130), age(90_000)
    ('5 s', '2 min', '1 d')
    """
    for length, unit in _AGES:
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def entry_fields(entry: Entry) -> dict[str, object]:
    """As JSON types."""
    import msgspec

    told = {name: msgspec.to_builtins(getattr(entry, name)) for name in ("predicates", "grouping")}
    plain = asdict(replace(entry, predicates=(), grouping=None))
    return {**plain, "conjuncts": sorted(entry.conjuncts), **told}
