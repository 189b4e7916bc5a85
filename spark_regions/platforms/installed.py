"""Which version of an engine is installed, without importing it."""

from __future__ import annotations

from functools import cache
from importlib import metadata

PROVEN = ("1.5",)
"""Minor versions of DuckDB whose sources were read, and which the tests of the entries run on."""


@cache
def installed_version(package: str = "duckdb") -> str | None:
    """None where it is not installed beside this package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def usable_engines() -> tuple[str, ...]:
    """By name, those whose installed version is one of which equality is proven."""
    version = installed_version()
    proven = version is not None and version.startswith(tuple(f"{each}." for each in PROVEN))
    return ("duckdb",) if proven else ()
