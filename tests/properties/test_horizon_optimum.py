"""The program finds what trying everything finds, for persisted results of a few small queries."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from horizon_cases import RATES, cheapest, step

from spark_regions.runs.program import GAP, Budget
from spark_regions.runs.results import results
from spark_regions.runs.solve import TIE_SECONDS, solve

CHAINS = (("A",), ("B",), ("A", "B"), ("B", "A"), ())


@st.composite
def runs(draw):
    seconds = {name: draw(st.floats(0.05, 5)) for name in "AB"} | {"source": draw(st.floats(0, 1))}
    rows = draw(st.floats(1e4, 2e7))
    chains = draw(st.lists(st.sampled_from(CHAINS), min_size=2, max_size=4))
    return [step(f"r{n}", *chain, "source", seconds=seconds, rows=rows) for n, chain in enumerate(chains)]


@settings(max_examples=400, deadline=None)
@given(runs(), st.sampled_from((0.0, 0.5, 1.5, 2.5)))
def test_the_program_is_as_cheap_as_trying_everything(steps, results_that_fit):
    limit = results_that_fit * steps[0].measured.rows[0] * 10
    found = results(steps, range(len(steps)))[:2]
    solved = solve(steps, range(len(steps)), found, Budget(limit, 0.0), RATES, 2, 30.0)
    best = cheapest(steps, found, limit, 2)
    made = sum(map(len, solved.makes.values()))
    assert solved.chosen_seconds == pytest.approx(best, rel=2 * GAP, abs=(made + 1) * TIE_SECONDS + 1e-6)
    assert solved.chosen_seconds <= solved.plain_seconds * (1 + GAP) + 1e-6
