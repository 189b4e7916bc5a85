"""Which queries of an application are iterations of a loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import chain, plan, signature

from spark_regions.decision.values import Appraisal, Decline, StrategyInput, unmeasured
from spark_regions.optimizer.strategies import markov
from spark_regions.optimizer.strategies.ski_rental import lindy
from spark_regions.optimizer.sweep import Last
from spark_regions.planner import sweeps
from spark_regions.planner.sweeps import Sweeps
from spark_regions.stats.estimate import Estimate
from spark_regions.wire.actions import Load, Store
from spark_regions.wire.messages import QueryShape


def iterations(*asked):
    """Iteration and root of the plan before, of plans that are each told by shape and value."""
    known = Sweeps()
    found = [known.look(QueryShape(*each), chain(each[1], "sales", "orders")) for each in asked]
    return [(each.iteration, each.before.nodes[0].signature.core) if each else None for each in found]


def test_other_values_in_a_plan_of_one_shape():
    assert iterations(("s", "1"), ("s", "2"), ("t", "3"), ("s", "4")) == [None, (2, "1"), None, (3, "2")]


def test_a_query_that_is_asked_about_again_is_the_same_iteration():
    assert iterations(("s", "1"), ("s", "2"), ("s", "2"), ("s", "3")) == [None, (2, "1"), (2, "1"), (3, "2")]


def test_one_that_came_before_is_none():
    assert iterations(("s", "1"), ("s", "2"), ("s", "1"), ("s", "1"), ("s", "3")) == [
        None, (2, "1"), None, None, (3, "2"),
    ]  # fmt: skip


def test_without_a_shape_nothing_is_known():
    assert Sweeps().look(None, chain("report", "sales")) is None


def test_shapes_asked_longest_ago_are_forgotten(monkeypatch):
    monkeypatch.setattr(sweeps, "MOST_SHAPES", 2)
    assert iterations(("s", "1"), ("t", "1"), ("s", "2"), ("u", "1"), ("s", "3"), ("t", "2")) == [
        None, None, (2, "1"), None, (3, "2"), None,
    ]  # fmt: skip


def stored(reason):
    return Store(0, None, "e", "file:///e", ("c",), 10, None, 1.0, reason)


FEW = stored("SMALL_RESULT")


def rests(known, values, actions=(FEW,)):
    """What the driver is told after each iteration; each takes 0.02 s of deciding."""
    told = []
    for value in values:
        shape = QueryShape("s", str(value))
        known.look(shape, chain(str(value), "sales", "orders"))
        told.append(known.decided(shape, actions))
        known.ran(shape, 0.02)
    return told


def test_after_some_iterations_that_had_nothing_of_it_not_all_are_decided_on():
    seconds = (1 + sweeps.BESIDE) * 0.02 / sweeps.SHARE
    assert rests(Sweeps(), range(7)) == [0.0] * (sweeps.FREE - 1) + [seconds] * (8 - sweeps.FREE)


def test_one_that_is_asked_about_again_counts_once():
    assert rests(Sweeps(), [1] * 20) == [0.0] * 20


@pytest.mark.parametrize("spares", [Load(1, "e", "file:///e", ("c",), (), 1.0, 2.0, "MARKOV"), stored("SWEEP")])
def test_what_is_read_or_kept_for_others_ends_it(spares):
    known = Sweeps()
    assert rests(known, range(9))[-1] > 0
    assert rests(known, [9], (FEW, spares)) == [0.0]
    assert rests(known, range(10, 17)) == [0.0] * (sweeps.FREE - 1) + rests(known, range(17, 20))


def test_a_loop_that_is_not_known_is_decided_on():
    known = Sweeps()
    assert known.decided(None, ()) == known.decided(QueryShape("s", "1"), ()) == 0.0
    known.ran(None, 1.0)


def candidate(iteration, seconds, write):
    found = unmeasured(0, chain("sales").nodes[0].signature, write)
    return replace(found, recompute=Estimate(seconds, 1.0), read_seconds=0.5, iteration=iteration)


def test_as_many_more_iterations_are_expected_as_there_were():
    assert lindy(candidate(2, 3.0, 4.0)) == Appraisal(1.0, "SWEEP")
    refused = lindy(candidate(2, 3.0, 5.0))
    assert isinstance(refused, Decline)
    assert refused.code == "NOT_WORTH_WRITING"
    assert isinstance(lindy(candidate(3, 3.0, 5.0)), Appraisal)
    assert isinstance(lindy(candidate(9, 0.4, 0.1)), Decline)


def test_what_is_written_in_the_second_iteration_is_given_up_sooner():
    assert [candidate(n, 3.0, 1.0).max_overhead(0.3) for n in (0, 2, 3)] == [None, 0.1, None]


def test_the_same_rows_with_other_values_are_no_use_to_the_last_iteration():
    before = plan({0: ("Aggregate", signature("sales", ["k", "max(a)"]), (1,)), 1: ("Scan", signature("rows"), ())})
    last = Last(chain("sales"), before)
    assert last.had(signature("sales", ["k", "max(a)", "max(b)"]))
    assert last.had(signature("rows"))
    assert not last.had(signature("sales", ["k", "max(b)"]))
    assert not last.had(signature("others", ["k", "max(a)"]))


@pytest.mark.parametrize(("gain", "stored"), [(-0.1, []), (None, [1])])
def test_a_sweep_whose_stored_result_does_not_pay_stores_no_other(gain, stored):
    tree = chain("sales", "orders")
    found = replace(candidate(5, 3.0, 1.0), node=1, signature=tree.nodes[1].signature)
    gains = {} if gain is None else {0: gain}
    chosen = markov.choose(StrategyInput(tree, {}, gains, (found,), frozenset(tree.nodes)))
    assert [each.node for each, _ in chosen.stores] == stored
    assert ("NOT_WORTH_WRITING" in {each.code for each in chosen.declines}) is (gain is not None)
