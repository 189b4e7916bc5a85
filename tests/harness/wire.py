"""JSON messages to a planner without its process, as the driver would write and read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from spark_regions.identity.udf.request import digest_functions
from spark_regions.planner.service import Service
from spark_regions.wire.frames import decode, encode


def read(message: Mapping[str, Any]) -> Any:
    """As the planner reads it from the wire.

    Errors: `spark_regions.wire.frames.Unreadable`.
    """
    return decode(json.dumps(message).encode())


def handled(service: Service, message: Mapping[str, Any]) -> Any:
    """The answer; of one that takes a while what gives it."""
    answer = service.handle(read(message))
    return (lambda: written(answer())) if callable(answer) else written(answer)


def written(answer: Any) -> Any:
    """As the driver reads it."""
    return json.loads(encode(answer))


def digests(functions: Iterable[Mapping[str, str]], roots: Iterable[object] = ()) -> dict[str, dict[str, Any]]:
    """Digest or refusal of each function by its key."""
    asked = read({"type": "digest_udf", "functions": list(functions), "roots": [str(root) for root in roots]})
    found = written(digest_functions(asked))
    return {key: {name: value for name, value in each.items() if value is not None} for key, each in found.items()}
