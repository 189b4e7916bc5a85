"""What a real shim said about skew, kept in tests/fixtures/skew: each message, what was known before, and the answer.

`tests.harness.record_skew` records anew; `python -m tests.harness.skew_messages RECORDING` keeps few of what it
recorded: those that run a statement of `spark_regions.skew` which no other one does, and one of each operator, strategy
and outcome. Digests and numbers that tell runs apart are left out.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

import spark_regions.skew
from spark_regions.planner.skew import Learned, decide_skew
from spark_regions.skew.history import StageHistory, observed
from spark_regions.skew.key_frequencies import KeyFrequencies, key_frequencies
from tests.harness.wire import read

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "skew"
KEPT = ("spec", "learned", "keys")
ROOM = Path(spark_regions.skew.__file__).parent
Lines = set[tuple[str, int]]


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


def statements(path: Path) -> Iterator[tuple[int, range]]:
    """Of a module's functions: the line of each statement, and the lines that tell that it ran."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in (each for statement in function.body for each in ast.walk(statement)):
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if isinstance(node, ast.stmt) and not docstring and not isinstance(node, ast.Nonlocal):
                body = getattr(node, "body", None)
                end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
                yield node.lineno, range(node.lineno, max(end, node.lineno) + 1)


def not_run(ran: Lines) -> tuple[list[str], int]:
    """Statements in functions of the room that did not run, as `file:line text`, and how many there are in all."""
    missing, count = [], 0
    for path in sorted(ROOM.glob("*.py")):
        text = path.read_text(encoding="utf-8").splitlines()
        for line, lines in dict(statements(path)).items():
            count += 1
            if not any((path.name, each) in ran for each in lines):
                missing.append(f"{path.name}:{line} {text[line - 1].strip()}")
    return missing, count


def traced(before: dict[str, Any]) -> tuple[Any, Lines]:
    """The answer, and the lines of the room that it took."""
    ran: Lines = set()

    def line(frame: FrameType, event: str, _: Any) -> Any:
        ran.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(str(ROOM)) else None

    earlier = sys.gettrace()
    sys.settrace(call)
    try:
        return answer(before), ran
    finally:
        sys.settrace(earlier)


def anonymous(record: dict[str, Any]) -> dict[str, Any]:
    message = {key: value for key, value in record["message"].items() if key not in ("seq", "query")}
    for name in ("shape", "lineage"):
        if message.get(name) is not None:
            message[name] = name
    return record | {"message": message}


def title(before: dict[str, Any], after: Any) -> str:
    message = before["message"]
    if message["type"] != "skew":
        return f"{message['type']} event"
    learned = ", as it ran before" if before["learned"] else ""
    return f"{message['stage']['operator']}, {message['strategy']}{learned}: {after['spec']['reason']}"


def main(file: Path) -> None:
    """Keep some of the messages of a recording, instead of those that are there."""
    records = sorted({json.dumps(anonymous(json.loads(line))) for line in file.read_text().splitlines()}, key=len)
    found = []
    for text in records:
        before = json.loads(text)
        after, ran = traced(before)
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
    missing, count = not_run(run)
    print(f"{len(chosen)} of {len(records)} messages; not run, of {count} statements:", *missing, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
