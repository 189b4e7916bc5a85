"""First on the module path of a test run or a benchmark, has every planner write down what the shim says.

See `tests/harness/streams.py` and `tests/harness/skew_messages.py`. Any other Python that finds this file does nothing
with it.
"""

import json
import os
import sys
from typing import Any

FILE = os.environ.get("PLANNER_RECORD", "")


def write(**record: Any) -> None:
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps({"planner": os.getpid()} | record) + "\n")


if FILE and "spark_regions.planner" in sys.orig_argv:
    import msgspec

    from spark_regions.planner import skew
    from spark_regions.planner.service import Service
    from spark_regions.wire.messages import Status

    decide, hello, handle = skew.decide_skew, Service.hello, Service.handle

    def json_of(message: Any) -> Any:
        return json.loads(msgspec.json.encode(message))

    def decided(message: Any, before: Any = None) -> Any:
        history = before and {"history": json.loads(before.history.encode()), "sameRows": before.same_rows}
        write(message=json_of(message), learned=history)
        return decide(message, before)

    def greeted(self: Service, message: Any) -> Any:
        write(message=json_of(message) | {"token": ""}, confs=self.confs)
        return hello(self, message)

    def handled(self: Service, message: Any) -> Any:
        if not isinstance(message, skew.DecideSkew | Status):
            write(message=json_of(message))
        return handle(self, message)

    skew.decide_skew, Service.hello, Service.handle = decided, greeted, handled  # type: ignore[method-assign]
