"""`python -m spark_regions.planner`: started by the shim (docs/protocol.md)."""

import sys

from spark_regions.planner.server import main

if __name__ == "__main__":
    sys.exit(main())
