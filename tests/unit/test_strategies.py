from __future__ import annotations

from dataclasses import replace

import pytest
from builders import chain, decided, entry, lineage, plan, signature, variant, view_of

from spark_regions.dag.plan import CandidateDataFrame, Signature
from spark_regions.decision.question import Confs
from spark_regions.decision.values import Appraisal, Decline, MaterializationCandidate, StrategyInput
from spark_regions.errors import StrategyUnknown
from spark_regions.optimizer.strategies import OURS, markov, strategy
from spark_regions.optimizer.strategies.markov import pareto_front
from spark_regions.optimizer.strategies.ski_rental import ski_rental
from spark_regions.stats.estimate import Estimate
from spark_regions.stats.frequency import (
    edge_probability,
    expected_uses,
    total_probabilities,
    unserved_shares,
)


def point(
    benefit=4.0, probability=0.5, past=1.0, write=1.0, read=0.5, expected=0.0, node=0
) -> MaterializationCandidate:
    return MaterializationCandidate(
        node,
        Signature("l", "c", frozenset(), ()),
        Estimate(benefit + read, 1.0),
        read,
        write,
        1e6,
        past,
        expected,
        past,
        probability,
    )


@pytest.mark.parametrize(
    ("past", "recompute", "code"),
    [
        (0, 9.0, "NO_HISTORY"),
        (1, 1.4, "NOT_WORTH_WRITING"),  # paid 0.9 more than a read, an entry costs 1
        (1, 1.6, None),
        (2, 0.9, "NOT_WORTH_WRITING"),
        (2, 1.1, None),  # paid 1.2
        (9, 0.6, "NOT_WORTH_WRITING"),  # paid 0.9
        (99, 0.4, "NOT_WORTH_WRITING"),  # a read takes longer
    ],
)
def test_ski_rental_stores_when_the_price_is_paid(past, recompute, code):
    found = ski_rental(point(benefit=recompute - 0.5, past=past))
    if code is None:
        assert isinstance(found, Appraisal)
        assert found.reason == "SKI_RENTAL"
    else:
        assert isinstance(found, Decline)
        assert found.code == code


@pytest.mark.parametrize(("confidence", "stored"), [(1.0, True), (0.5, True), (0.1, False)])
def test_a_store_pays_at_the_lower_end_of_what_it_saves(confidence, stored):
    """Two uses of 4.5 s, read in 0.5 s and written in 5 s: at a tenth's confidence they are 2.475 s each."""
    unsure = replace(point(expected=2.0, write=5.0, past=0.0), recompute=Estimate(4.5, confidence))
    tree = plan({0: ("Aggregate", unsure.signature, ())})
    found = markov.choose(StrategyInput(tree, {}, {}, (unsure,), frozenset({0})))
    assert [candidate.node for candidate, _ in found.stores] == ([0] if stored else [])
    if not stored:
        assert [(d.code, d.detail) for d in found.declines] == [
            ("NOT_WORTH_WRITING", "2.0 uses of 1.98 s at least, write 5.00 s")
        ]


def test_eq_7():
    view = view_of(edges={("s", "j"): (3, 6), ("s", "x"): (1, 2)}, runs=4)
    assert edge_probability("s", "j", view) == 0.75
    assert edge_probability("s", "x", view) == 0.25
    assert edge_probability("s", "none", view) == 0.0
    assert edge_probability("s", "j", view_of()) == 0.0


def test_eq_6_takes_the_smallest_probability_of_the_path():
    tree = chain("agg", "join", "scan")
    join, scan, agg = lineage("join"), lineage("scan"), lineage("agg")
    view = view_of(edges={(scan, join): (9, 9), (join, agg): (4, 4)}, runs=10)
    found = total_probabilities(tree, view)
    assert found[join] == 0.9
    assert found[agg] == 0.4


def test_expected_uses_are_as_many_as_the_window_had():
    view = view_of(edges={("j", "a"): (2, 6), ("j", ""): (2, 2)}, runs=2)
    assert expected_uses("j", 1.0, view) == 8.0
    assert expected_uses("j", 0.5, view) == 4.0
    assert expected_uses("other", 1.0, view) == 0.0


def test_uses_below_a_stored_point_do_not_count():
    tree = chain("agg", "join", "scan")
    join, agg = lineage("join"), lineage("agg")
    view = view_of(edges={(join, agg): (1, 4), (join, ""): (1, 1)}, runs=1)
    assert unserved_shares(tree, view, ())[join] == 1.0
    assert unserved_shares(tree, view, {agg})[join] == pytest.approx(0.2)
    stored = view_of(edges={(join, agg): (1, 4)}, runs=1, served=[agg])
    assert unserved_shares(tree, stored, ())[join] == 0.0


def test_the_pareto_front_holds_the_largest_product():
    best, likely, loser = point(5.0, 0.4), point(4.0, 0.9), point(3.0, 0.5)
    assert pareto_front([best, likely, loser]) == [best, likely]
    assert max([best, likely, loser], key=lambda each: each.probability * each.benefit) is likely


CONFS = Confs(max_bytes=10**9)


def decide(tree, view, entries=(), name="markov", confs=None):
    chosen = confs or Confs(strategy=name, max_bytes=10**9)
    return decided(tree, view, entries, chosen)


def codes(proposal):
    return {(each.node, each.code) for each in proposal.declines}


TREE = plan(
    {
        0: ("Agg", signature("agg"), (1,)),
        1: ("Join", signature("join"), (2, 3)),
        2: ("Scan", signature("left"), ()),
        3: ("Scan", signature("right"), ()),
    }
)


def measured(executions=1, agg=1.0, join=6.0, **more):
    return view_of(
        variant(signature("agg"), "Agg", agg, executions=executions),
        variant(signature("join"), "Join", join, executions=executions),
        variant(signature("left"), "Scan", 2.0, executions=executions),
        variant(signature("right"), "Scan", 1.0, executions=executions),
        **more,
    )


def test_without_history_nothing_is_stored():
    for name in ("markov", "maxbenefit", "latest"):
        found = decide(TREE, view_of(), name=name)
        assert found.stores == ()
        assert {(0, "NO_HISTORY"), (1, "NO_HISTORY")} <= codes(found)


def test_second_sight_is_stored_by_ski_rental():
    (stored,) = decide(TREE, measured()).stores
    assert (stored[0].node, stored[1]) == (0, "SKI_RENTAL")
    assert stored[0].benefit == pytest.approx(10.0 - 0.03, abs=0.01)


def test_markov_prefers_what_many_runs_share():
    """The join is in all of 4 runs, under this aggregate in one of them: P·benefit is 4 · 9 against 1 · 10."""
    join, agg = lineage("join"), lineage("agg")
    edges = {
        (lineage("left"), join): (4, 4),
        (lineage("right"), join): (4, 4),
        (join, agg): (1, 1),
        (join, "x"): (3, 3),
        (agg, ""): (1, 1),
    }
    (stored,) = decide(TREE, measured(edges=edges, runs=4)).stores
    assert (stored[0].node, stored[1]) == (1, "BENEFIT")
    (stored,) = decide(TREE, measured(edges=edges, runs=4), name="maxbenefit").stores
    assert stored[0].node == 0


def test_latest_takes_the_last_even_if_it_adds_little():
    (stored,) = decide(TREE, measured(agg=0.0), name="latest").stores
    assert (stored[0].node, stored[1]) == (0, "LATEST")


def test_a_cheap_point_is_declined():
    cheap = decide(
        chain("b", "a"), view_of(variant(signature("b"), seconds=0.01), variant(signature("a"), seconds=0.01))
    )
    assert cheap.stores == ()
    assert (0, "TOO_CHEAP") in codes(cheap)


def test_a_result_larger_than_the_budget_is_declined():
    found = decide(TREE, measured(), confs=Confs(max_bytes=5000))
    assert found.stores == ()
    assert {(0, "TOO_LARGE"), (1, "TOO_LARGE")} <= codes(found)


def test_a_store_stands_above_a_load_where_it_is_worth_it():
    """What can be loaded is loaded first; the store's benefit is what it saves beyond that."""
    base = entry("e", signature("join"), recompute=9.0)
    few = decide(TREE, measured(agg=0.01), [base])
    assert few.loads == {1: "BENEFIT"}
    assert few.stores == ()
    assert codes(few) == {(0, "TOO_CHEAP")}
    edges = {
        (lineage("join"), lineage("agg")): (20, 200),
        (lineage("agg"), ""): (20, 200),
        (lineage("left"), lineage("join")): (20, 200),
        (lineage("right"), lineage("join")): (20, 200),
    }
    many = decide(TREE, measured(agg=0.5, edges=edges, runs=20), [base])
    ((point, reason),) = many.stores
    assert (point.node, reason) == (0, "BENEFIT")
    assert many.loads == {1: "BENEFIT"}


def test_always_and_latest_store_above_a_load():
    base = entry("e", signature("join"), recompute=9.0)
    for name, reason in (("always", "ALWAYS"), ("latest", "BENEFIT")):
        found = decide(TREE, measured(), [base], name=name)
        assert found.loads == {1: reason}
        assert [each[0].node for each in found.stores] == [0]


def test_the_highest_load_wins_and_two_branches_load_two():
    both = decide(TREE, measured(), [entry("j", signature("join")), entry("a", signature("agg"))])
    assert both.loads == {0: "BENEFIT"}
    tree = plan(
        {
            0: ("Join", signature("top"), (1, 2)),
            1: ("Agg", signature("x"), (3,)),
            2: ("Agg", signature("y"), (4,)),
            3: ("Scan", signature("s"), ()),
            4: ("Scan", signature("t"), ()),
        }
    )
    two = decide(tree, view_of(), [entry("ex", signature("x")), entry("ey", signature("y"))])
    assert two.loads == {1: "BENEFIT", 2: "BENEFIT"}


def test_unusable_entries_say_why():
    shadow = entry("e", signature("agg"), contradictions=2)
    assert (0, "SHADOWED") in codes(decide(TREE, view_of(), [shadow]))
    pending = entry("e", signature("agg"), state="pending")
    assert (0, "PENDING_ELSEWHERE") in codes(decide(TREE, view_of(), [pending]))
    confs = Confs(max_bytes=10**9, ttl_seconds=60)
    old = decided(TREE, view_of(), [entry("e", signature("agg"))], confs, now=1000.0)
    assert (0, "EXPIRED") in codes(old)
    assert old.loads == {}
    narrow = decide(TREE, view_of(), [entry("e", signature("agg", ("z",)))])
    assert (0, "NOT_COVERED") in codes(narrow)
    dear = decide(TREE, view_of(), [entry("e", signature("agg"), size=10**10, recompute=0.1)])
    assert (0, "LOAD_NOT_CHEAPER") in codes(dear)


def test_always_needs_no_history_and_does_both():
    assert [(each[0].node, each[1]) for each in decide(TREE, view_of(), name="always").stores] == [(0, "ALWAYS")]
    tree = plan(
        {
            0: ("Join", None, (1, 2)),
            1: ("Agg", signature("x"), (3,)),
            2: ("Agg", signature("y"), (4,)),
            3: ("Scan", signature("s"), ()),
            4: ("Scan", signature("t"), ()),
        }
    )
    found = decide(tree, view_of(), [entry("e", signature("x"), recompute=0.0)], name="always")
    assert found.loads == {1: "ALWAYS"}
    assert [each[0].node for each in found.stores] == [2]


def test_off_and_recycling_switched_off():
    for confs in (Confs(strategy="off", max_bytes=10**9), Confs(recycle=False, max_bytes=10**9)):
        found = decide(TREE, measured(), [entry("e", signature("agg"))], confs=confs)
        assert found.loads == {}
        assert found.stores == ()
        assert (0, "RECYCLE_OFF") in codes(found)


def test_what_may_not_be_stored_is_not():
    source_only = plan({0: ("Project", signature("s"), (1,)), 1: ("Scan", signature("s"), ())})
    view = view_of(variant(signature("s"), "Project", 9.0), variant(signature("s"), "Scan", 9.0))
    assert decide(source_only, view).stores == ()
    refused = plan({0: ("A", signature("agg"), (1,)), 1: ("S", signature("s"), ())}, not_storable=frozenset({0}))
    assert decide(refused, view_of(variant(signature("agg"), "A", 9.0))).stores == ()


def shared_plan(seen):
    """A filter on a wide DataFrame that earlier queries filtered otherwise."""
    node = signature("base", ("a",), ("f2",))
    shared = CandidateDataFrame("s0", 1, seen, signature("base", ("a", "b", "c")), 40.0)
    return plan(
        {0: ("Agg", signature("agg2"), (1,)), 1: ("Project", node, (2,)), 2: ("Scan", signature("s"), ())},
        conjunct_columns={"f2": ("b",)},
        shared=(shared,),
    )


def test_a_shared_dataframe_is_stored_at_its_second_use():
    earlier = variant(signature("base", ("a",), ("f1",)), "Project", 5.0, rows=10_000, total=8.0)
    (stored,) = decide(shared_plan(2), view_of(earlier)).stores
    assert (stored[0].node, stored[0].ref, stored[1]) == (1, "s0", "SKI_RENTAL")
    assert stored[0].signature.columns == ("a", "b", "c")
    assert decide(shared_plan(1), view_of(earlier)).stores == ()


def wide_plan(row_bytes, inputs=()):
    """A join of 40 columns, of which this query reads one and filters by another."""
    columns = tuple(f"c{n}" for n in range(40))
    node = signature("join", ("c0",), ("f2",))
    shared = CandidateDataFrame("s0", 1, 3, signature("join", columns), row_bytes, inputs=inputs)
    return plan(
        {
            0: ("Agg", signature("agg2"), (1,)),
            1: ("Project", node, (2,)),
            2: ("Join", signature("join", ("c0", "c1")), (3, 4)),
            3: ("Scan", signature("s"), ()),
            4: ("Scan", signature("t"), ()),
        },
        conjunct_columns={"f2": ("c1",)},
        shared=(shared,),
    )


def test_of_a_dataframe_with_many_columns_those_are_stored_that_queries_read():
    earlier = variant(signature("join", ("c2", "c3"), ("f1",)), "Project", 5.0, rows=100_000, total=60.0)
    (stored,) = decide(wide_plan(4000.0), view_of(earlier)).stores
    assert stored[0].ref == "s0"
    assert stored[0].signature.columns == ("c0", "c1", "c2", "c3")
    (cheap,) = decide(wide_plan(60.0), view_of(earlier)).stores
    assert len(cheap[0].signature.columns) == 40


def test_columns_that_a_join_would_shuffle_have_their_price():
    earlier = variant(signature("join", ("c2",), ("f1",)), "Project", 5.0, rows=1_000, total=8.0)
    source = variant(signature("s"), "Scan", 1.0, rows=10_000_000)
    (every,) = decide(wide_plan(60.0), view_of(earlier, source)).stores
    assert len(every[0].signature.columns) == 40
    inputs = ((signature("s").lineage, 100.0),)
    (some,) = decide(wide_plan(60.0, inputs), view_of(earlier, source)).stores
    assert some[0].signature.columns == ("c0", "c1", "c2")


def test_what_an_entry_answers_is_no_use_of_a_wider_one():
    earlier = variant(signature("join", ("c2",), ("f1",)), "Project", 5.0, rows=100_000, total=60.0, demands=3)
    inside = variant(signature("join", ("c2", "k")), "Join", 5.0, rows=100_000, total=60.0, demands=2)
    view = view_of(earlier, inside)
    assert [p.ref for p, _ in decide(wide_plan(4000.0), view).stores] == ["s0"]
    assert decide(wide_plan(4000.0), view, [entry("e", signature("join", ("c2",)))]).stores == ()


def test_a_shared_dataframe_that_does_not_cover_the_node_is_left_alone():
    tree = shared_plan(5)
    lacking = CandidateDataFrame("s0", 1, 5, signature("base", ("b",)), 40.0)
    earlier = variant(signature("base", ("a",), ("f1",)), "Project", 5.0, rows=10_000, total=8.0)
    tree = plan({n: (x.operator, x.signature, x.children) for n, x in tree.nodes.items()}, shared=(lacking,))
    assert decide(tree, view_of(earlier)).stores == ()


def test_strategies_by_name():
    for name in OURS:
        assert callable(strategy(name))
    with pytest.raises(StrategyUnknown, match=r"Found recycle\.strategy='best'"):
        strategy("best")
