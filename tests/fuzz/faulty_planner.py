"""The real planner, which spoils the loads that it answers; started in the place of the planner's Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from spark_regions.planner import server
from spark_regions.planner.session import Session
from spark_regions.runs.run_planner import Waiting
from spark_regions.wire.actions import Load
from spark_regions.wire.messages import Decide, DecideAgain, Decision

Spoil = Callable[[Load, Sequence[str]], Load]


def dropped_filter(action: Load, conjuncts: Sequence[str]) -> Load:
    """What is stored is said to be filtered as the query asks for."""
    return replace(action, conjuncts=tuple(conjuncts))


def swapped_column(action: Load, conjuncts: Sequence[str]) -> Load:
    """Two columns of the same type are said to be each other, in the manifest, too, which the shim compares."""
    manifest = Path(unquote(urlsplit(action.location).path)) / "_manifest.json"
    stored = json.loads(manifest.read_text(encoding="utf-8"))
    types = [json.dumps(field["type"]) for field in json.loads(stored["schema"])["fields"]]
    columns = list(action.columns)
    for first, kind in enumerate(types):
        if kind in types[first + 1 :]:
            second = types.index(kind, first + 1)
            columns[first], columns[second] = columns[second], columns[first]
            break
    stored["columns"] = columns
    manifest.write_text(json.dumps(stored), encoding="utf-8")
    return replace(action, columns=tuple(columns))


SPOILS: dict[str, Spoil] = {"dropped-filter": dropped_filter, "swapped-column": swapped_column}


def main(fault: str) -> int:
    decide = Session.decide

    def spoiled(self: Session, message: Decide | DecideAgain) -> Decision | Waiting:
        answer = decide(self, message)
        if not isinstance(answer, Decision):
            return answer
        asked = self._asked[message.query]
        conjuncts = {node.id: node.conjuncts for node in asked.plan.nodes}
        actions = (
            SPOILS[fault](each, conjuncts[each.node]) if isinstance(each, Load) else each for each in answer.actions
        )
        return replace(answer, actions=tuple(actions))

    Session.decide = spoiled  # type: ignore[method-assign]
    return server.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
