from __future__ import annotations

from spark_regions.cli import main

main()
