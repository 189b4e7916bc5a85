from __future__ import annotations

from dataclasses import replace
from functools import reduce

import msgspec
import pytest
from builders import plan, signature, variant, view_of
from hypothesis import given
from hypothesis import strategies as st

from spark_regions.costs.rates import Rates
from spark_regions.costs.sharing import SharingCosts, computed, guessed, together
from spark_regions.costs.sharing import measured as measured_costs
from spark_regions.dag.plan import RepeatedSubplan, parse_plan
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Confs, Question
from spark_regions.decision.values import PlannedMaterialization, unmeasured
from spark_regions.errors import InvalidRequest
from spark_regions.optimizer.share import _pays, share
from spark_regions.stats.estimate import Estimate
from spark_regions.stats.shared_runs import run_of
from spark_regions.wire.messages import SignedQuery

SECONDS = {2: Estimate(6.0, 1.0), 5: Estimate(6.0, 1.0)}
OWN = {2: Estimate(4.0, 1.0), 3: Estimate(8.0, 1.0), 5: Estimate(4.0, 1.0), 6: Estimate(8.0, 1.0)}


def group(*nodes, copies=None, conjuncts=(), exact=True, row_bytes=100.0, exchange=True):
    signed = signature("join", "ab", conjuncts)
    return RepeatedSubplan(nodes, copies or nodes, signed, exact, row_bytes, exchange)


def twice(left=("a",), right=("b",), conjuncts=((), ()), row_bytes=100.0, repeated=None, source_bytes=None):
    """One join in both branches of a union, with other columns or filters in each."""
    tree = plan(
        {
            0: ("Union", signature("union"), (1, 4)),
            1: ("Aggregate", signature("agg1"), (2,)),
            2: ("Join", signature("join", left, conjuncts[0]), (3,)),
            3: ("Scan", signature("scan", left), ()),
            4: ("Aggregate", signature("agg2"), (5,)),
            5: ("Join", signature("join", right, conjuncts[1]), (6,)),
            6: ("Scan", signature("scan", right), ()),
        },
        row_bytes=row_bytes,
    )
    nodes = {
        n: replace(node, source_bytes=source_bytes if not node.children else None) for n, node in tree.nodes.items()
    }
    return replace(tree, nodes=nodes, repeated=(group(2, 5) if repeated is None else repeated,))


def measured(columns, times=1, executions=1, size=1000, conjuncts=()):
    """`times`: how often it was computed, in `executions` queries."""
    seconds = RunningStatistics()
    for _ in range(times):
        seconds = seconds.merge(RunningStatistics.of(6.0))
    signed = signature("join", columns, conjuncts)
    return replace(variant(signed, "Join", size=size, executions=executions), seconds=seconds)


def decided(tree, view, loaded=(), wider=(), stored=(), kept=(), always=False, seconds=SECONDS, own=OWN):
    """What is shared beside nodes that are loaded, replaced by a wider DataFrame, stored, or kept for the run."""
    confs = Confs(strategy="always" if always else "markov", max_bytes=10**9, sharing=True)
    question = Question(tree, view, (), Rates(), confs, 2, 0.0)
    draft = Draft(
        seconds=seconds,
        self_seconds=own,
        loads=dict.fromkeys(loaded, "BENEFIT"),
        stores=tuple((candidate(tree, number), "BENEFIT") for number in stored)
        + tuple((replace(candidate(tree, number), ref="s0"), "BENEFIT") for number in wider),
        keeps=tuple(planned(tree, number) for number in kept),
    )
    after = share(question, draft)
    return [(found.nodes, found.reason) for found in after.shares], [decline.code for decline in after.declines]


def candidate(tree, number):
    return unmeasured(number, tree.nodes[number].signature)


def planned(tree, number):
    signed = tree.nodes[number].signature
    return PlannedMaterialization((signed.lineage, frozenset()), number, None, signed, "persist", 1.0, 1.0, 1.0, 1.0, 1)


def test_what_spark_computed_twice_is_shared():
    view = view_of(measured(["a"]), measured(["b"]))
    assert [computed(twice(), view, number) for number in (2, 5)] == [1.0, 1.0]
    assert decided(twice(), view) == ([((2, 5), "SHARED")], [])


def test_what_spark_reused_by_itself_is_not():
    view = view_of(measured(["a"], times=3, executions=3))
    assert [computed(twice(right=("a",)), view, number) for number in (2, 5)] == [1.0, 1.0]
    assert decided(twice(right=("a",)), view) == ([], ["NOT_WORTH_SHARING"])


def grouped(scans):
    """Groups in two places, merged at each; their rows were read in so many."""
    tree = twice(repeated=group(1, 4), right=("a",))
    nodes = {n: replace(node, signature=signature("agg1")) if n in (1, 4) else node for n, node in tree.nodes.items()}
    seen = RunningStatistics.of(6.0).merge(RunningStatistics.of(0.2))
    below = {"Join": ("join", 6.0), "Scan": ("scan", 8.0)}
    counted = [
        replace(variant(signature(name, "a"), kind, seconds), seconds=_times(seconds, scans))
        for kind, (name, seconds) in below.items()
    ]
    return replace(tree, nodes=nodes), view_of(replace(variant(signature("agg1"), "Aggregate"), seconds=seen), *counted)


def _times(seconds, times):
    return reduce(RunningStatistics.merge, [RunningStatistics.of(seconds)] * times)


@pytest.mark.parametrize(("scans", "pays"), [(1, False), (2, True)])
def test_groups_that_are_merged_in_two_places_were_aggregated_once(scans, pays):
    """As Spark does it where both places read one exchange (TPC-DS q57): merging takes 0.2 s, all else is reused."""
    tree, view = grouped(scans)
    own = {1: Estimate(3.1, 1.0), 2: Estimate(6.0, 1.0), 3: Estimate(8.0, 1.0)}
    own |= {4: own[1], 5: own[2], 6: own[3]}
    seconds = {number: Estimate(17.1 / 2, 1.0) for number in (1, 4)}
    assert bool(decided(tree, view, seconds=seconds, own=own)[0]) == pays
    costs = measured_costs(tree, view, tree.repeated[0], seconds, own, 2)
    # Once: all reads and one aggregation; in one place each where nothing below was reused.
    assert costs.apart == pytest.approx((6.2 + scans * 14.0) / 2)
    assert costs.once == pytest.approx((6.2 / scans + 14.0) / 2)
    assert costs.times == pytest.approx(scans)


def test_nor_what_is_dear_to_move():
    # 3 · 600 MB at 300 MB/s are 6 s.
    view = view_of(measured(["a"], size=600e6), measured(["b"], size=600e6))
    assert decided(twice(), view) == ([], ["NOT_WORTH_SHARING"])


def test_narrow_rows_cost_as_much_as_others():
    # Both have 6.4 million rows of 10 bytes: counted as 64, it is 3 · 410 MB at 300 MB/s, 4.1 of 6 s; then 30 million.
    few = view_of(measured(["a"], size=64e6), measured(["b"], size=64e6))
    many = view_of(measured(["a"], size=300e6), measured(["b"], size=300e6))
    tree = twice(row_bytes=10.0, repeated=group(2, 5, row_bytes=10.0))
    assert decided(tree, few)[0]
    assert not decided(tree, many)[0]


def test_an_aggregate_is_not_moved_once_more():
    view = view_of(measured(["a"], size=500e6), measured(["b"], size=500e6))
    assert not decided(twice(), view)[0]
    assert decided(twice(repeated=group(2, 5, exchange=False)), view)[0]


def test_nor_what_was_never_measured():
    assert decided(twice(), view_of()) == ([], ["NO_HISTORY"])


def years(**more):
    return twice(conjuncts=(("2001",), ("2002",)), repeated=group(2, 5, conjuncts=("either",), **more))


def both_years(size=1000):
    return view_of(measured(["a"], conjuncts=["2001"], size=size), measured(["b"], conjuncts=["2002"], size=size))


def test_places_with_other_filters_share_what_they_read():
    """The scan (8) and the join that reads it (4) work once."""
    assert together(years(), [2, 5], {n: e.value for n, e in OWN.items()}) == 12.0
    assert decided(years(), both_years()) == ([((2, 5), "SHARED")], [])


def test_what_reads_other_rows_works_as_often():
    tree = years()
    nodes = dict(tree.nodes)
    for number, name in ((3, "2001"), (6, "2002")):
        nodes[number] = replace(nodes[number], signature=signature("scan", "a", [name]))
    tree = replace(tree, nodes=nodes)
    assert together(tree, [2, 5], {n: e.value for n, e in OWN.items()}) == 24.0
    assert decided(tree, both_years()) == ([], ["NOT_WORTH_SHARING"])


def test_rows_of_no_place_are_counted_as_moved():
    # 2 · 100 MB for both years, moved thrice, are 2 of the 6 s that are saved; with needless rows it may be 4.
    assert decided(years(), both_years(100e6))[0]
    assert decided(years(exact=False), both_years(150e6))[0] == []
    assert decided(years(), both_years(150e6))[0]


def test_one_place_unmeasured():
    view = view_of(measured(["a"], conjuncts=["2001"]))
    assert decided(years(), view) == ([], ["NO_HISTORY"])


@pytest.mark.parametrize(
    ("source_bytes", "copies", "shared"),
    [(2e9, (2, 5), True), (2e9, (2, 2), False), (2e6, (2, 5), False), (None, (2, 5), False)],
)
def test_the_first_run(source_bytes, copies, shared):
    """From large sources, where Spark would not reuse an exchange by itself."""
    repeated = group(2, 5, copies=copies, exchange=False, row_bytes=50.0)
    tree = twice(repeated=repeated, source_bytes=source_bytes)
    aggregates = {n: replace(tree.nodes[n], operator="Aggregate") for n in (2, 5)}
    tree = replace(tree, nodes={**tree.nodes, **aggregates})
    found, declines = decided(tree, view_of())
    assert found == ([((2, 5), "SHARED_UNSEEN")] if shared else [])
    assert declines == ([] if shared else ["NO_HISTORY" if source_bytes is None else "NOT_WORTH_SHARING"])


@given(st.floats(1e3, 1e12), st.floats(1, 4096), st.integers(1, 64))
def test_a_guess_is_no_better_than_all_copies_but_one_for_nothing(source_bytes, row_bytes, parallelism):
    tree = twice(repeated=group(2, 5, row_bytes=row_bytes), source_bytes=source_bytes)
    costs = guessed(tree, tree.repeated[0], parallelism)
    assert costs is not None
    assert costs.saving < costs.apart / 2
    assert costs.once == pytest.approx(costs.apart / 2)


@given(st.lists(st.floats(0, 100), min_size=4, max_size=4), st.booleans())
def test_together_is_between_the_dearest_place_and_all(values, same_rows):
    tree = twice() if same_rows else years()
    own = dict(zip((2, 3, 5, 6), values, strict=True))
    work = together(tree, [2, 5], own)
    assert max(own[2] + own[3], own[5] + own[6]) <= work * (1 + 1e-9)
    assert work <= sum(values) * (1 + 1e-9)


def runs(*seconds):
    """`seconds`: those of each run, in order; negative where the subplan was shared."""
    found = {}
    for value in seconds:
        run = run_of(years(), value < 0, abs(value), 0.0)
        found[run.kind] = found[run.kind].merge(run) if run.kind in found else run
    return view_of(*[v for kept in both_years().variants.values() for v in kept], *found.values())


@pytest.mark.parametrize(
    ("before", "declined"),
    [
        ((20.0,), None),
        ((20.0, -12.0), None),
        ((20.0, -22.0), "DISAPPOINTED"),
        # Most of the query is not the subplan: one more run without sharing shows what is due to it.
        ((40.0, -30.0, -30.0), "COMPARED"),
        ((40.0, -30.0, -30.0, 31.0), None),
        ((40.0, -30.0, -30.0, 25.0), "DISAPPOINTED"),
        ((40.0, -30.0, -30.0, 25.0, 35.0), None),
        # Most of the query is: no need.
        ((20.0, -12.0, -12.0), None),
    ],
)
def test_what_disappoints_is_withdrawn(before, declined):
    found, declines = decided(years(), runs(*before))
    assert declines == ([declined] if declined else [])
    assert found == ([] if declined else [((2, 5), "SHARED")])


@pytest.mark.parametrize(
    ("actions", "shared"),
    [
        ({"loaded": (0,)}, False),
        ({"loaded": (2,)}, False),
        ({"wider": (0,)}, False),
        ({"stored": (5,)}, False),
        ({"stored": (6,)}, False),
        ({"stored": (0,)}, True),
        ({"stored": (1,)}, True),
        ({"kept": (6,)}, False),
        ({"kept": (1,)}, False),
    ],
)
def test_beside_other_actions(actions, shared):
    """Not below a load, not around a load or a store; a store above takes what it gets. Nor above or below of what is
    kept for later queries.
    """
    found, _ = decided(twice(), view_of(), **actions, always=True)
    assert found == ([((2, 5), "ALWAYS")] if shared else [])


def test_what_is_kept_for_later_queries_leaves_the_smaller_subplan_to_be_shared():
    """The larger one contains it, and what is kept as well: taken first and given up then, nothing would be shared."""
    tree = plan(
        {
            0: ("Union", signature("union"), (1, 4)),
            1: ("Join", signature("join", "a"), (2, 3)),
            2: ("Scan", signature("left", "a"), ()),
            3: ("Scan", signature("right", "a"), ()),
            4: ("Join", signature("join", "b"), (5, 6)),
            5: ("Scan", signature("left", "b"), ()),
            6: ("Scan", signature("right", "b"), ()),
        }
    )
    tree = replace(tree, repeated=(group(1, 4), group(3, 6)))
    assert decided(tree, view_of(), always=True)[0] == [((1, 4), "ALWAYS")]
    assert decided(tree, view_of(), kept=(2,), always=True)[0] == [((3, 6), "ALWAYS")]


def test_groups_that_overlap():
    tree = twice()
    tree = replace(tree, repeated=(*tree.repeated, group(3, 6)))
    assert decided(tree, view_of(), always=True)[0] == [((2, 5), "ALWAYS")]


@pytest.mark.parametrize("change", [{"nodes": [1]}, {"nodes": [1, 9]}, {"copies": [1, 7]}, {"core": None}])
def test_a_group_that_breaks_the_protocol(change):
    signed = {"lineage": "l", "core": "c", "conjuncts": [], "columns": []}
    nodes = [{"id": n, "operator": "Op", "children": [1, 2] if n == 0 else [], **signed} for n in range(3)]
    raw = {"nodes": [1, 2], "copies": [1, 1], "exact": True, "rowBytes": 8, **signed}

    def parsed(group):
        return parse_plan(msgspec.convert({"nodes": nodes, "repeated": [group]}, SignedQuery))

    assert parsed(raw).repeated[0].nodes == (1, 2)
    with pytest.raises((InvalidRequest, msgspec.ValidationError)):
        parsed(raw | change)


def test_sharing_pays_at_the_lower_end_of_what_it_saves():
    """Computed twice in 10 s, once in 5 s, moved in 3.2 s: half trusted, 0.5 s are saved at least, at a fifth none."""
    sure = SharingCosts(2.0, 10.0, 5.0, 3.2)
    assert sure.least_saving == sure.saving == pytest.approx(1.75)
    assert replace(sure, confidence=0.5).least_saving == pytest.approx(0.5)
    assert _pays(replace(sure, confidence=0.5), "SHARED")
    assert not _pays(replace(sure, confidence=0.2), "SHARED")
