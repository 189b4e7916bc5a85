"""Which version of an engine is installed, without importing it."""

from __future__ import annotations

from functools import cache
from importlib import metadata

from spark_regions.platforms.duckdb import PROVEN


@cache
def installed_version(package: str = "duckdb") -> str | None:
    """None where it is not installed beside this package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def usable() -> bool:
    """Whether the installed version is one of which equality is proven."""
    version = installed_version()
    return version is not None and version.startswith(tuple(f"{each}." for each in PROVEN))
