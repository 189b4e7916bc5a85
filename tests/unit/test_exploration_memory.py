"""The simulation of memory reads what it should, and calls by its name what it is."""

from __future__ import annotations

import pytest

from benchmarks import exploration_memory
from benchmarks.exploration_memory import BLOCKS, WAYS, Job, Memory, explored


def test_all_that_fits_is_hit() -> None:
    assert "simulation" in exploration_memory.__doc__  # type: ignore[operator]
    for policy, incremental in WAYS.values():
        found = explored(Job(outer=3, inner=4, memory=100.0), policy, incremental, seed=1)
        # The source by each outer branch, each of theirs by each inner one, whose own are scored, and the winner.
        assert found.reads == BLOCKS * (3 + 3 * 4 + 3 * 4 + 1)
        assert found.hits == found.reads


@pytest.mark.parametrize("memory", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_nobody_is_ahead_of_knowing_the_whole_order(memory: float) -> None:
    hits = {policy: explored(Job(6, 5, memory), policy, True, seed=2).hits for policy in ("lru", "amm", "farthest")}
    assert hits["farthest"] >= max(hits.values())


def test_who_leaves() -> None:
    """Of two that are there, b was read last, and a is read more often from now on."""
    gone = {}
    for policy, ahead in (("lru", ()), ("amm", ()), ("farthest", ("b", "a", "b", "a"))):
        memory = Memory(2.0, policy, ahead)
        memory.write("a", 1.0, uses=5)
        memory.write("b", 1.0, uses=2)
        memory.read("b")
        memory.write("c", 1.0, uses=1)
        before = memory.hits
        memory.read("a")
        gone[policy] = "a" if memory.hits == before else "b"
    assert gone == {"lru": "a", "amm": "b", "farthest": "b"}
