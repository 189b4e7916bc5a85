"""The benchmark's inputs are what its page says, and recorded stages are replayed."""

from __future__ import annotations

import json

import pytest

from benchmarks import skew_simulation
from benchmarks.skew_simulation import PARTITIONS, distributions, generated, headlines, replays, tweets, workload
from spark_regions.skew.operators import Operator


def test_the_tweets_are_those_of_the_thesis():
    found = tweets()
    assert len(found) == 56, "§15.4: 56 locations"
    assert sum(found.values()) == pytest.approx(180)
    assert max(found, key=found.get) == "California"
    assert found["California"] / found["Arizona"] == pytest.approx(6.85, abs=0.02), "§15.2"
    assert found["California"] / found["Illinois"] == pytest.approx(4.05, abs=0.06)
    stream, skewed, helpers = workload()
    assert len(stream.shares) == 48
    assert sum(stream.shares) == pytest.approx(1)
    assert len({*skewed, *helpers}) == 4
    assert stream.shares[skewed[0]] == max(stream.shares)


def test_shares_add_up():
    for shares in distributions().values():
        assert sum(shares) == pytest.approx(1)
    assert distributions()["one key 60 %"][0] == pytest.approx(0.6)


def test_generated_stages_differ_from_what_the_decision_saw(monkeypatch):
    monkeypatch.setattr(skew_simulation, "SUMMARIES", 2)
    name, seen, truth = next(generated(48, 1))
    assert name == f"{Operator.INNER_JOIN.value}, uniform"
    assert len(seen.seconds) == len(truth.seconds) == PARTITIONS
    assert sum(truth.seconds) == pytest.approx(2_880, rel=0.02)
    assert seen.seconds != truth.seconds
    assert 0.05 < seen.error_share < 0.2


def test_recorded_stages_are_replayed(tmp_path):
    rows = [1_000_000] * 19 + [40_000_000]
    key = {"key": "k", "share": 0.66, "error": 0.0, "partition": 19, "leastRows": 39_000_000}
    left = {"bytes": [count * 10 for count in rows], "rows": rows, "maps": 16, "keys": [key]}
    stage = {"name": "group", "operator": "repartition", "cores": 2, "seconds": [n / 1e6 for n in rows], "left": left}
    file = tmp_path / "recorded.json"
    file.write_text(json.dumps([stage, stage | {"operator": "group_apply"}]))
    spread, alone = replays(file, 8)
    assert spread["stage"] == "group"
    assert spread["ours"]["makespan"] < 1.2 * spread["bound"]
    assert spread["plain"]["makespan"] > 5 * spread["bound"]
    assert alone["ours"]["makespan"] <= alone["aqe"]["makespan"]
    assert headlines([spread], [])["largest_ours_over_bound"]["8"] < 1.2
