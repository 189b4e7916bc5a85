"""First on the module path of a test run or a benchmark, has every planner write down what the shim says about skew.

See tests/harness/skew_messages.py. Any other Python that finds this file does nothing with it.
"""

import json
import os
import sys
from typing import Any

FILE = os.environ.get("SKEW_RECORD", "")


def write(record: dict[str, Any]) -> None:
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


if FILE and "spark_regions.planner" in sys.orig_argv:
    import msgspec

    from spark_regions.planner import skew
    from spark_regions.planner.service import Service
    from spark_regions.wire.messages import CountedKeys, RanStage

    decide, handle = skew.decide_skew, Service.handle

    def decided(message: Any, before: Any = None) -> Any:
        history = before and {"history": json.loads(before.history.encode()), "sameRows": before.same_rows}
        write({"message": json.loads(msgspec.json.encode(message)), "learned": history})
        return decide(message, before)

    def handled(self: Service, message: Any) -> Any:
        if isinstance(message, RanStage | CountedKeys):
            write({"message": json.loads(msgspec.json.encode(message))})
        return handle(self, message)

    skew.decide_skew, Service.handle = decided, handled  # type: ignore[method-assign]
