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
from spark_regions.store.entries import all_entries
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
    for record in scenario:
        planner, message = planners.get(record["planner"]), record["message"]
        if "confs" in record:
            planner = planners[record["planner"]] = Service(record["confs"] | {"recycle.dir": str(folder)})
            planner.hello(read(message))
            continue
        assert planner is not None
        answer = planner.handle(read(_renamed(message, planner, names)))
        while callable(answer):
            answer = answer()
        yield message, answer
        if (session := planner.session) is not None:
            session.settle(60.0)


def _renamed(message: dict[str, Any], planner: Service, names: dict[str, str]) -> dict[str, Any]:
    """With the entries that this planner made, in the places of those that the recorded one made."""
    name, session = message.get("entry"), planner.session
    # What is persisted is numbered, and has the same name again.
    if name is not None and name.startswith("e") and name not in names and session is not None:
        made = session.store.catalog.read(all_entries)
        left = [each.id for each in made if each.query == message["query"] and each.id not in names.values()]
        names[name] = left[0] if left else name
    loads = [each | {"entry": names.get(each["entry"], each["entry"])} for each in message.get("loads", ())]
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
