"""The real planner, which spoils the loads that it answers; started in the place of the planner's Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from spark_regions.planner import server
from spark_regions.planner.session import Session

Spoil = Callable[[dict[str, Any], Mapping[str, Any]], None]


def dropped_filter(action: dict[str, Any], node: Mapping[str, Any]) -> None:
    """What is stored is said to be filtered as the query asks for."""
    action["conjuncts"] = list(node["conjuncts"])


def swapped_column(action: dict[str, Any], node: Mapping[str, Any]) -> None:
    """Two columns of the same type are said to be each other, in the manifest, too, which the shim compares."""
    manifest = Path(unquote(urlsplit(action["location"]).path)) / "_manifest.json"
    stored = json.loads(manifest.read_text(encoding="utf-8"))
    types = [json.dumps(field["type"]) for field in json.loads(stored["schema"])["fields"]]
    columns = list(action["columns"])
    for first, kind in enumerate(types):
        if kind in types[first + 1 :]:
            second = types.index(kind, first + 1)
            columns[first], columns[second] = columns[second], columns[first]
            break
    action["columns"] = stored["columns"] = columns
    manifest.write_text(json.dumps(stored), encoding="utf-8")


SPOILS: dict[str, Spoil] = {"dropped-filter": dropped_filter, "swapped-column": swapped_column}


def main(fault: str) -> int:
    decide = Session.decide

    def spoiled(self: Session, message: Mapping[str, Any]) -> dict[str, Any]:
        answer = decide(self, message)
        nodes = {node["id"]: node for node in message["nodes"]}
        for action in answer.get("actions", ()):
            if action["kind"] == "load":
                SPOILS[fault](action, nodes[action["node"]])
        return answer

    Session.decide = spoiled  # type: ignore[method-assign]
    return server.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
