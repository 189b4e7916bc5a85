"""The command `spark-regions`, also `python -m spark_regions`."""

from __future__ import annotations

from spark_regions.cli.commands import main

__all__ = ["main"]
