"""The simulation's inputs are what its page says, and it calls by its name what it is."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks import skew_simulation
from benchmarks.skew_simulation import PARTITIONS, distributions, simulated, stage
from spark_regions.skew.operators import Operator


def test_shares_add_up():
    for shares in distributions().values():
        assert sum(shares) == pytest.approx(1)
    assert distributions()["one key 60 %"][0] == pytest.approx(0.6)
    assert "simulation" in skew_simulation.__doc__


def test_a_heavy_key_on_48_workers():
    seen = stage(Operator.FULL_JOIN, distributions()["one key 60 %"], 48)
    assert len(seen.seconds) == PARTITIONS
    assert sum(seen.seconds) == pytest.approx(2_880, rel=0.02)
    found = simulated(seen, Random(1))
    assert found["reason"] == "SPLIT_BY_RECORDS"
    assert found["ours"] < 1.4 * found["bound"] and found["aqe"] > 20 * found["bound"]
