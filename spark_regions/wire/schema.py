"""`python -m spark_regions.wire.schema` writes schema.json: the messages as the shim's build reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec

from spark_regions.wire import actions, engine, messages

FILE = Path(__file__).with_name("schema.json")


def schema() -> dict[str, Any]:
    """Each record as JSON Schema, without docstrings: msgspec's versions differ there; unions; which answers which."""
    unions = {
        "Request": messages.Request,
        "Event": messages.Event,
        "Answer": messages.Answer,
        "Action": actions.Action,
        "NodeAction": actions.NodeAction,
        "EngineRequest": engine.EngineRequest,
        "EngineAnswer": engine.EngineAnswer,
    }
    roots = (*unions.values(), messages.Greeting, messages.Started)
    _, records = msgspec.json.schema_components(roots, ref_template="{name}")
    return {
        "unions": {name: [each.__name__ for each in get_args(union)] for name, union in unions.items()},
        "answers": {asked.__name__: answered.__name__ for asked, answered in messages.ANSWERS.items()},
        "records": {name: {k: v for k, v in each.items() if k != "description"} for name, each in records.items()},
    }


def text() -> str:
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
