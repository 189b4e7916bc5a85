"""What real drivers said to their planners, whole: kept in tests/fixtures/streams, and said again by a test.

`PLANNER_RECORD=FILE PYTHONPATH=tests/harness/recorder pytest tests/spark/…` records, with the jar built;
`python -m tests.harness.streams FILE` keeps, instead of what is there, the scenarios that run a statement of the
decision which no other one does. A scenario is all planners of one store, one after the other or side by side.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import spark_regions
from spark_regions.planner.service import Service
from spark_regions.wire.actions import Store
from spark_regions.wire.messages import Decision
from tests.harness.statements import Lines, not_run, traced
from tests.harness.wire import read

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "streams"
PACKAGE = Path(spark_regions.__file__).parent
ROOMS = (PACKAGE / "optimizer", PACKAGE / "decision")
FILES = [path for room in ROOMS for path in room.rglob("*.py")]
MOST_MESSAGES = 400
Scenario = list[dict[str, Any]]


def scenarios() -> Iterator[tuple[str, Scenario]]:
    """By name."""
    for file in sorted(FIXTURES.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield file.name.removesuffix(".jsonl.gz"), [json.loads(line) for line in lines]


def said(scenario: Iterable[dict[str, Any]], folder: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each message with its answer, from planners that share a store below `folder`."""
    planners: dict[int, Service] = {}
    names: dict[str, str] = {}
    stored: dict[tuple[int, int], list[str]] = {}
    for record in scenario:
        number, message = record["planner"], record["message"]
        if "confs" in record:
            planners[number] = Service(record["confs"] | {"recycle.dir": str(folder)})
            planners[number].hello(read(message))
            continue
        planner, query = planners[number], (number, message.get("query", -1))
        answer = planner.handle(read(_renamed(message, stored.get(query, ()), names)))
        while callable(answer):
            answer = answer()
        if isinstance(answer, Decision):
            stored[query] = [action.entry for action in answer.actions if isinstance(action, Store)]
        yield message, answer
        if (session := planner.session) is not None:
            session.settle(60.0)
            # Drivers took their time between two queries: the run was planned meanwhile.
            if (planned := session.follower.planner.waiting(0)) is not None:
                planned.done.wait(60.0)


def _renamed(message: dict[str, Any], stored: Iterable[str], names: dict[str, str]) -> dict[str, Any]:
    """With the entries that this planner told to store, in the places of those that the recorded one did.

    :param stored: by the message's query
    :param names: recorded entries to this planner's, known so far
    """
    name = message.get("entry")
    # What is persisted is numbered, and has the same name again.
    if name is not None and name.startswith("e") and name not in names:
        names[name] = next((each for each in stored if each not in names.values()), name)
    loads = [each | {"entry": names.get(each["entry"], each["entry"])} for each in message.get("loads", ())]
    if "plan" in message:
        for grown in (each for node in message["plan"]["nodes"] for each in node.get("grown", ())):
            grown["entry"] = names.get(grown["entry"], grown["entry"])
    return message | ({"entry": names.get(name, name)} if name else {}) | ({"loads": loads} if loads else {})


def run(scenario: Scenario) -> Lines:
    with tempfile.TemporaryDirectory() as folder, traced(ROOMS) as ran:
        for _ in said(scenario, Path(folder)):
            pass
    return ran


def recorded(file: Path) -> list[Scenario]:
    """A recording's scenarios, each message of which belongs to one planner."""
    stores: dict[int, tuple[str, str]] = {}
    found: dict[tuple[str, str], Scenario] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "confs" in record:
            confs = record["confs"]
            stores[record["planner"]] = (confs.get("recycle.dir", ""), confs.get("recycle.namespace", ""))
        if "learned" not in record and record["planner"] in stores:
            found.setdefault(stores[record["planner"]], []).append(record)
    return list(found.values())


def main(file: Path) -> None:
    left = [(scenario[:MOST_MESSAGES], run(scenario[:MOST_MESSAGES])) for scenario in recorded(file)]
    FIXTURES.mkdir(exist_ok=True)
    for old in FIXTURES.glob("*.jsonl.gz"):
        old.unlink()
    ran, count = Lines(), 0
    while left:
        scenario, own = max(left, key=lambda each: len(each[1] - ran) / len(each[0]))
        if not own - ran:
            break
        left.remove((scenario, own))
        ran |= own
        count += 1
        text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in scenario)
        (FIXTURES / f"{count:02}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    missing, all_of_them = not_run(FILES, ran)
    print(f"{count} scenarios; not run, {len(missing)} of {all_of_them} statements:", *missing, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
