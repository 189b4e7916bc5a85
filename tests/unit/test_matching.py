from __future__ import annotations

import pytest
from builders import entry, plan, signature, view_of

from spark_regions.costs.rates import Rates
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Confs, Question
from spark_regions.matching.subsumes import ColumnMapping, MatchFailure, column_mapping, subsumes
from spark_regions.optimizer import match as module
from spark_regions.stats.estimate import Estimate

RULES = {"sum": ("a", "b"), "twice": ("sum",), "self": ("self",), "one": ()}


def match(tree, entries, own=None):
    """What serves which node, and the codes of what does not."""
    question = Question(tree, view_of(), tuple(entries), Rates(), Confs(max_bytes=10**9), 2, 0.0)
    draft = module.match(question, Draft(self_seconds=own or {}))
    return draft.matches, {decline.node: decline.code for decline in draft.declines}


@pytest.mark.parametrize(
    ("wanted", "stored", "missing", "computed"),
    [
        (["a"], ["a", "b"], [], []),
        (["sum"], ["sum"], [], []),
        (["sum"], ["a", "b"], [], ["sum"]),
        (["twice"], ["a", "b"], [], ["sum", "twice"]),
        (["twice"], ["sum"], [], ["twice"]),
        (["sum", "a"], ["a"], ["sum"], []),
        (["self"], ["a"], ["self"], []),
        (["one"], [], [], ["one"]),  # a literal has no inputs
        (["unknown"], ["a"], ["unknown"], []),
    ],
)
def test_cover(wanted, stored, missing, computed):
    found = column_mapping(wanted, stored, RULES)
    assert found.missing == frozenset(missing)
    assert found.computed == frozenset(computed)
    assert found.reads <= frozenset(stored)


def node_plan(columns=("a",), conjuncts=(), conjunct_columns=None, core="c"):
    return plan(
        {0: ("Project", signature(core, columns, conjuncts), (1,)), 1: ("Scan", signature("s"), ())},
        expressions=RULES,
        conjunct_columns=conjunct_columns or {},
    )


@pytest.mark.parametrize(
    ("stored", "wanted", "filters", "served"),
    [
        (("a",), ("b",), ("ab",), True),
        (("a",), ("b", "c"), ("ab", "bc"), True),  # through b, which is not stored either
        (("a",), ("e",), ("ab", "bc"), True),  # e is computed from c
        (("d",), ("c",), ("ab", "bc"), False),
        (("c",), ("a",), ("ab",), False),
    ],
)
def test_one_key_of_a_join_stands_in_for_the_other(stored, wanted, filters, served):
    tree = plan(
        {0: ("Project", signature("c", wanted, filters), (1,)), 1: ("Scan", signature("s"), ())},
        expressions={"e": ("c",)},
        equal={"ab": ("a", "b"), "bc": ("c", "b")},
    )
    signed = tree.nodes[0].signature
    assert signed is not None
    found = subsumes(tree, signed, signature("c", stored, filters))
    assert isinstance(found, ColumnMapping) == served
    if isinstance(found, ColumnMapping):
        assert found.reads == frozenset(stored)
        assert found.computed <= {"e"}


@pytest.mark.parametrize(
    ("stored", "tree", "outcome"),
    [
        (signature("c", ("a", "b")), node_plan(), None),
        (signature("c", ("b",)), node_plan(), "NOT_COVERED"),
        (signature("c", ("a",), ("f",)), node_plan(), "CONJUNCTS_DIFFER"),
        (signature("c", ("a",), ("f",)), node_plan(conjuncts=("f", "g"), conjunct_columns={"g": ("a",)}), None),
        (signature("c", ("a",)), node_plan(conjuncts=("g",), conjunct_columns={"g": ("b",)}), "NOT_COVERED"),
        (signature("c", ("a", "b")), node_plan(conjuncts=("g",), conjunct_columns={"g": ("sum",)}), None),
        (signature("c", ("a", "b")), node_plan(conjuncts=("g",)), "NOT_COVERED"),  # columns of g unknown
    ],
)
def test_serves(stored, tree, outcome):
    signed = tree.nodes[0].signature
    assert signed is not None
    found = subsumes(tree, signed, stored)
    if outcome is None:
        assert isinstance(found, ColumnMapping)
    else:
        assert isinstance(found, MatchFailure)
        assert found.code == outcome


def test_the_cheapest_entry_is_chosen_and_a_filtered_one_reads_less():
    tree = node_plan(conjuncts=("g",), conjunct_columns={"g": ("a",)})
    whole = entry("whole", signature("c", ("a", "b")), size=200_000_000, rows=1_000_000)
    exact = entry("exact", signature("c", ("a",), ("g",)), size=1_000_000, rows=1000)
    found, missed = match(tree, [whole, exact])
    assert found[0].entry.id == "exact"
    assert found[0].residual == frozenset()
    assert missed == {}
    found, _ = match(tree, [whole])
    assert found[0].residual == {"g"}


def test_computing_a_column_again_costs_what_it_was_measured_at():
    tree = node_plan(columns=("sum",))
    inputs = entry("inputs", signature("c", ("a", "b")))
    cheap = match(tree, [inputs])[0][0].seconds
    dear = match(tree, [inputs], {0: Estimate(8.0, 1.0)})[0][0].seconds
    assert dear == pytest.approx(cheap + 4.0)


def test_another_core_a_source_and_a_session_node_do_not_match():
    other = entry("other", signature("d", ("a",)))
    assert match(node_plan(), [other]) == ({}, {})
    scan = entry("scan", signature("s", ("a",)))
    assert 1 not in match(node_plan(), [scan])[0]
    private = plan({0: ("P", signature("c"), (1,)), 1: ("S", signature("s"), ())}, session=frozenset({0}))
    assert match(private, [entry("e", signature("c"))]) == ({}, {})
