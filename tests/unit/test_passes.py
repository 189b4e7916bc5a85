"""Every pass of a decision by its fixtures, and the runner."""

from __future__ import annotations

import inspect
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from wire_client import decide, report

import spark_regions
from spark_regions.decision.draft import Draft
from spark_regions.decision.values import CommonSubplan, Decline, unmeasured
from spark_regions.optimizer import candidates, estimate, match, price
from spark_regions.optimizer.invariants import violation
from spark_regions.optimizer.optimizer import CHOICES, PASSES, optimize
from spark_regions.planner import session as planner_session
from tests.harness.decisions import changes, question, shown

FIXTURES = Path(__file__).parents[1] / "fixtures" / "passes"
PACKAGE = Path(spark_regions.__file__).parent
CASES = [
    pytest.param(each, case, id=f"{each.__name__}: {case['title']}")
    for each in PASSES
    for case in tomllib.loads((FIXTURES / f"{each.__name__}.toml").read_text(encoding="utf-8"))["case"]
]


@pytest.mark.parametrize(("each", "case"), CASES)
def test_pass(each, case):
    """`before` is the question, and what the passes before this one make of it; `after` is what this one changes."""
    asked = question(case["before"])
    before = optimize(asked, PASSES[: PASSES.index(each)], strict=True)
    after = each(asked, before)
    assert changes(shown(asked, before), shown(asked, after)) == case["after"]
    assert (after is before) == (not case["after"])
    assert violation(asked, after) is None


def test_a_pass_is_a_file_a_function_and_a_fixture_and_says_why_it_stands_where_it_stands():
    names = [each.__name__ for each in PASSES]
    assert len(names) >= 10
    assert {path.stem for path in FIXTURES.iterdir()} == set(names)
    for each in PASSES:
        assert each.__module__ == f"spark_regions.optimizer.{each.__name__}"
        assert len(inspect.getdoc(each).split()) >= 12
        cases = [case.values[1] for case in CASES if case.values[0] is each]
        assert any(case["after"] for case in cases)


def test_files_of_the_decision_are_short():
    rooms = ("decision", "optimizer", "effects", "runs", "matching")
    lengths = {path: len(path.read_text().splitlines()) for room in rooms for path in (PACKAGE / room).rglob("*.py")}
    lengths[PACKAGE / "planner" / "session.py"] = len((PACKAGE / "planner" / "session.py").read_text().splitlines())
    assert [path.name for path, lines in lengths.items() if lines > 250] == []


PLAN = """
0 Aggregate report(a)
  1 Join sales(a, b)
    2 Scan orders(a)
    3 Scan items(b)
"""
ASKED = question(
    {
        "plan": PLAN,
        "seen": ["Join sales(a, b): 8 s, 2 times", "Aggregate report(a): 2 s, 0.1 MB, 2 times"],
        "asked": [["sales", "report", 1], ["report", "", 1]],
        "confs": {"sharing": True},
    }
)


@pytest.mark.parametrize("broken", [each.__name__ for each in PASSES])
def test_a_pass_that_fails_loses_its_own_change_only(broken, caplog):
    def fails(asked, draft):
        raise ZeroDivisionError("on purpose")

    fails.__name__ = broken
    draft = optimize(ASKED, [fails if each.__name__ == broken else each for each in PASSES])
    (failed,) = [each for each in draft.declines if each.code == "INTERNAL_ERROR"]
    assert failed == Decline(0, "INTERNAL_ERROR", f"pass {broken}: ZeroDivisionError: on purpose")
    needed = {"estimate", "price", "candidates", "choose"}
    assert [each.node for each, _ in draft.stores] == ([] if broken in needed else [0])
    assert "on purpose" in caplog.text


ROWS = ASKED.plan.nodes[1].signature


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"loads": {0: "BENEFIT"}, "stores": ((unmeasured(1, ROWS), "BENEFIT"),)},
            "nodes [1] are acted on at or below",
        ),
        ({"loads": {0: "BENEFIT", 1: "BENEFIT"}}, "nodes [1] are acted on at or below a load"),
        ({"stores": ((unmeasured(1, ROWS), "BENEFIT"),) * 2}, "nodes [1] are made twice"),
        ({"stores": ((replace(unmeasured(1, ROWS), bytes=2e9), "BENEFIT"),)}, "nodes [1] are larger than the budget"),
        ({"loads": {0: "BENEFIT"}}, "nodes [0] are loaded without an entry or a saving"),
        ({"shares": (CommonSubplan((2, 3), 1.0, "SHARED"), CommonSubplan((1, 3), 1.0, "SHARED"))}, "[2, 3] are shared"),
    ],
)
def test_what_breaks_an_invariant_is_dropped_and_the_pass_is_named(wrong, said):
    def guilty(asked, draft):
        return replace(draft, **wrong)

    draft = optimize(ASKED, [guilty])
    assert draft == Draft(declines=draft.declines)
    (failed,) = draft.declines
    assert failed.detail.startswith("pass guilty: ")
    assert said in failed.detail
    with pytest.raises(AssertionError):
        optimize(ASKED, [guilty], strict=True)


def test_one_of_several_places_of_a_floating_point_aggregate_is_not_kept_alone():
    asked = question({"plan": "0 Join both(a)\n  1 Aggregate totals(a) several\n  2 Aggregate totals(a) several"})

    def guilty(asked, draft):
        return draft.storing([(unmeasured(1, asked.plan.nodes[1].signature), "PLANNED")])

    draft = optimize(asked, [guilty])
    assert draft.stores == ()
    assert "nodes [1] are places of a floating-point aggregate" in draft.declines[0].detail


def test_each_fact_is_computed_once(monkeypatch):
    calls = Counter()

    def counted(module, name, key=lambda *given, **more: ""):
        function = getattr(module, name)

        def call(*given, **more):
            calls[name, key(*given, **more)] += 1
            return function(*given, **more)

        monkeypatch.setattr(module, name, call)

    for name in ("self_seconds", "inclusive_seconds", "total_probabilities"):
        counted(estimate, name)
    counted(price, "recompute_seconds", lambda *given, **more: tuple(sorted(more)))
    counted(match, "served", lambda asked, draft, node, entry: (node.id, entry.id))
    counted(candidates, "measured", lambda asked, draft, unserved, number: number)
    counted(candidates, "unserved_shares")
    asked = question(
        {
            "plan": PLAN,
            "seen": ["Join sales(a, b): 8 s, 2 times"],
            "entries": ["e1 sales(a, b): 1 MB, 5 s", "e2 report(b): 1 MB, 9 s", "e3 report(a): 1 MB, pending"],
            "shared": ["s0 at 1 sales(a, b, c): seen 2, 30 bytes", "s1 at 1 sales(a, b, d): seen 2, 30 bytes"],
            "confs": {"persist_max_bytes": 10**9, "sharing": True},
        }
    )
    optimize(asked, strict=True)
    assert {name for name, _ in calls} == {
        "self_seconds", "inclusive_seconds", "total_probabilities", "recompute_seconds", "served", "measured",
        "unserved_shares",
    }  # fmt: skip
    assert set(calls.values()) == {1}


class Route(msgspec.Struct, frozen=True, tag="route", tag_field="kind"):
    """What another engine's pass would ask of the driver."""

    node: int
    platform: str


def test_a_new_kind_of_alternative_is_one_more_pass(session, monkeypatch):
    """A file with a function and its action, a line in the tuple: nothing else on this side."""

    def route(asked, draft):
        return replace(draft, actions=(*draft.actions, Route(asked.plan.root, "duckdb")))

    monkeypatch.setattr(planner_session, "CHOICES", (*CHOICES, route))
    answer = session.decide(decide(report(), 1))
    assert answer["actions"] == [{"kind": "route", "node": 0, "platform": "duckdb"}]
