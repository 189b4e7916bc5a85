"""Messages of a real shim: the answers stay, and the room holds nothing else than what they need."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.skew_messages import FILES, FIXTURES, answer, traced_answer
from tests.harness.statements import not_run

RECORDED = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FIXTURES.glob("*.json"))}


def rounded(value: Any) -> Any:
    """From Python 3.12 on, a sum of floats can have another last digit."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


@pytest.mark.parametrize("name", RECORDED)
def test_the_answer_stays(name: str) -> None:
    found, expected = answer(RECORDED[name]["before"]), RECORDED[name]["after"]
    assert rounded(found) == rounded(expected), RECORDED[name]["title"]


def test_the_room_holds_what_the_shim_can_ask_for() -> None:
    """What is left are errors that are raised, and ends of searches that these messages do not reach."""
    ran = {line for each in RECORDED.values() for line in traced_answer(each["before"])[1]}
    missing, count = not_run(FILES, ran)
    print(f"not run, {len(missing)} of {count} statements:", *missing, sep="\n")
    assert len(missing) <= 0.05 * count, missing
