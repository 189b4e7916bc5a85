"""What real drivers said, said again: the decision holds nothing else than what they need, and nothing breaks."""

from __future__ import annotations

from pathlib import Path

from spark_regions.wire.actions import Load
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


def test_a_replay_reads_what_was_read_when_it_was_recorded(tmp_path: Path) -> None:
    """Entries have other names in a replay; what tasks hold in memory is in no catalog before it is committed."""
    recorded = replayed = 0
    for name, scenario in scenarios():
        for message, answer in said(scenario, tmp_path / name):
            if message["type"] == "executed":
                recorded += any(load["entry"].startswith("e") for load in message.get("loads", ()))
            if isinstance(answer, Decision):
                replayed += any(isinstance(action, Load) for action in answer.actions)
    print(f"{recorded} queries read an entry when they were recorded, {replayed} decisions do in the replay")
    assert recorded > 50
    assert 0.9 * recorded <= replayed
