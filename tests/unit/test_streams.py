"""What real drivers said, said again: the decision holds nothing else than what they need, and nothing breaks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from spark_regions.wire.actions import Store
from spark_regions.wire.messages import Decision, ErrorAnswer
from tests.harness.statements import not_run, traced
from tests.harness.streams import FILES, ROOMS, said, scenarios


def test_real_drivers_reach_what_a_decision_is_made_of(tmp_path: Path) -> None:
    """What is left is how failing passes, unknown strategies and broken invariants are told, and what these jobs lack.

    How many that are differs a little from run to run: costs are learned of the machine, and plans are made in time.
    """
    decisions, broken = 0, []
    with traced(ROOMS) as ran:
        for name, scenario in scenarios():
            for message, answer in said(scenario, tmp_path / name):
                decisions += isinstance(answer, Decision)
                if isinstance(answer, ErrorAnswer):
                    broken.append((name, message["type"], answer.code, answer.detail))
    missing, count = not_run(FILES, ran)
    print(f"{decisions} decisions; not run, {len(missing)} of {count} statements:", *missing, sep="\n")
    assert decisions > 50 and broken == []
    assert len(missing) <= 0.12 * count, missing


def test_a_replay_commits_what_was_committed_when_it_was_recorded(tmp_path: Path) -> None:
    """Entries have other names in a replay; what tasks hold in memory is in no catalog before it is committed."""
    expected: set[str] = set()
    found: set[str] = set()
    for name, scenario in scenarios():
        held: dict[int, list[str]] = {}
        for message, answer in said(scenario, tmp_path / name):
            if isinstance(answer, Decision):
                stores = [action for action in answer.actions if isinstance(action, Store)]
                held[message["query"]] = [store.entry for store in stores if store.in_memory]
            elif message["type"] == "committed":
                expected |= set(held.get(message["query"], ()))
        (catalog,) = (tmp_path / name).rglob("catalog.sqlite")
        with closing(sqlite3.connect(catalog)) as connection:
            found |= {entry for (entry,) in connection.execute("SELECT id FROM entry WHERE state = 'committed'")}
    print(f"{len(expected & found)} of {len(expected)} entries out of memory are committed")
    assert len(expected) >= 5
    assert len(expected & found) >= 0.8 * len(expected)
