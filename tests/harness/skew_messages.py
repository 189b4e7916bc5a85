"""What a real shim said about skew, kept in tests/fixtures/skew: each message, what was known before, and the answer.

`tests.harness.record_skew` records anew; `python -m tests.harness.skew_messages RECORDING` keeps few of what it
recorded: those that run a statement of `spark_regions.skew` which no other one does, and one of each operator, strategy
and outcome. Digests and numbers that tell runs apart are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

import spark_regions.skew
from spark_regions.planner.skew import Learned, decide_skew
from spark_regions.skew.history import StageHistory, observed
from spark_regions.skew.key_frequencies import KeyFrequencies, key_frequencies
from tests.harness.statements import Lines, not_run, traced
from tests.harness.wire import read

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "skew"
KEPT = ("spec", "learned", "keys")
ROOM = Path(spark_regions.skew.__file__).parent
FILES = list(ROOM.glob("*.py"))


def answer(before: dict[str, Any]) -> Any:
    """What the planner answers, or keeps of an event."""
    message = before["message"]
    if message["type"] == "stage":
        return json.loads(StageHistory.decode(observed(read(message)).encode()).encode())
    if message["type"] == "keys":
        return json.loads(KeyFrequencies.decode(key_frequencies(read(message)).encode()).encode())
    learned = before.get("learned")
    if learned is not None:
        learned = Learned(StageHistory.decode(json.dumps(learned["history"]).encode()), learned["sameRows"])
    found = decide_skew(read(message | {"deadlineSeconds": 600.0}), learned)
    return {name: value for name, value in json.loads(msgspec.json.encode(found)).items() if name in KEPT}


def traced_answer(before: dict[str, Any]) -> tuple[Any, Lines]:
    """The answer, and the lines of the room that it took."""
    with traced([ROOM]) as ran:
        return answer(before), ran


def anonymous(record: dict[str, Any]) -> dict[str, Any]:
    message = {key: value for key, value in record["message"].items() if key not in ("seq", "query")}
    for name in ("shape", "lineage"):
        if message.get(name) is not None:
            message[name] = name
    return {name: value for name, value in record.items() if name != "planner"} | {"message": message}


def title(before: dict[str, Any], after: Any) -> str:
    message = before["message"]
    if message["type"] != "skew":
        return f"{message['type']} event"
    learned = ", as it ran before" if before["learned"] else ""
    return f"{message['stage']['operator']}, {message['strategy']}{learned}: {after['spec']['reason']}"


def main(file: Path) -> None:
    """Keep some of the messages of a recording, instead of those that are there."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    about = [each for each in lines if "learned" in each or each["message"]["type"] in ("stage", "keys")]
    records = sorted({json.dumps(anonymous(each)) for each in about}, key=len)
    found = []
    for text in records:
        before = json.loads(text)
        after, ran = traced_answer(before)
        found.append((title(before, after), before, after, ran))
    chosen, run = [], Lines()
    while new := max((each for each in found), key=lambda each: len(each[3] - run), default=None):
        if not new[3] - run:
            break
        chosen.append(new)
        run |= new[3]
    titles = {each[0] for each in chosen}
    for each in found:
        if each[0] not in titles:
            titles.add(each[0])
            chosen.append(each)
    for old in FIXTURES.glob("*.json"):
        old.unlink()
    for number, (name, before, after, _) in enumerate(sorted(chosen, key=lambda each: each[0]), start=1):
        record = {"title": name, "before": before, "after": after}
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
        (FIXTURES / f"{number:02}.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    missing, count = not_run(FILES, run)
    print(f"{len(chosen)} of {len(records)} messages; not run, of {count} statements:", *missing, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
