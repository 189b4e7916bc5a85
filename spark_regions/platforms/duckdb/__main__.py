"""`python -m spark_regions.platforms.duckdb`: started by the shim (docs/protocol.md)."""

import sys

from spark_regions.wire.messages import Greeting
from spark_regions.wire.process import Refused, Work, serve


def begin(greeting: Greeting) -> Work:
    try:
        from spark_regions.platforms.duckdb.engine import Engine
    except ImportError as missing:
        hint = "Hint: pip install 'spark-regions[duckdb]' into the driver's Python."
        raise Refused("ENGINE_NOT_INSTALLED", f"{missing}. {hint}") from missing
    try:
        return Engine(greeting)
    except OSError as error:  # no folder for what does not fit into memory
        raise Refused("ENGINE_NOT_STARTABLE", str(error)) from error


if __name__ == "__main__":
    sys.exit(serve(begin))
