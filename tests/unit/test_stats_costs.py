from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from builders import chain, decided, entry, plan, signature, variant, view_of

from spark_regions.costs.calibrate import observed_rate, probe_disk, rates_of
from spark_regions.costs.rates import Rates
from spark_regions.costs.recompute import recompute_seconds
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.stats.cardinality import guessed_rows, rows, unfiltered_rows
from spark_regions.stats.estimate import Estimate, estimate
from spark_regions.stats.operators import OTHER_COLUMNS, bytes_of, self_seconds
from spark_regions.wire.messages import Comparison, Predicate


@pytest.mark.parametrize("split", [0, 1, 3, 5])
def test_moments_merge_as_if_seen_together(split):
    values = [1.0, 4.0, 4.0, 8.0, 3.0]
    one, two = RunningStatistics(), RunningStatistics()
    for value in values[:split]:
        one = one.merge(RunningStatistics.of(value))
    for value in values[split:]:
        two = two.merge(RunningStatistics.of(value))
    merged = one.merge(two)
    assert merged.count == 5
    assert merged.mean == pytest.approx(statistics.mean(values))
    assert merged.variance == pytest.approx(statistics.variance(values))
    assert merged.last == 3.0


def test_confidence_grows_with_count_and_falls_with_spread():
    once = estimate(RunningStatistics.of(2.0))
    steady = estimate(RunningStatistics.of(2.0).merge(RunningStatistics.of(2.0)))
    spread = estimate(RunningStatistics.of(1.0).merge(RunningStatistics.of(3.0)))
    assert once and steady and spread
    assert steady.confidence > once.confidence
    assert spread.confidence < steady.confidence
    assert spread.value == 2.0


def test_before_a_run_a_test_for_null_keeps_its_rows():
    tree = plan(
        {
            0: ("Aggregate", signature("g"), (1,)),
            1: ("Filter", signature("t", conjuncts=("v > 3", "v is there")), (2,)),
            2: ("Filter", signature("t", conjuncts=("v is there",)), (3,)),
            3: ("Scan", signature("t"), ()),
        }
    )
    there = Predicate("v is there", "v", "double", ((),))
    more = Predicate("v > 3", "v", "double", ((Comparison(">", "3.0"),),))
    counted = replace(tree.nodes[3], source_rows=3e6, source_bytes=1.0)
    said = {each.conjunct: each for each in (there, more)}
    tree = replace(tree, nodes={**tree.nodes, 3: counted}, predicates=said)
    assert guessed_rows(tree) == pytest.approx({3: 3e6, 2: 3e6, 1: 1e6, 0: 1e5})
    assert guessed_rows(replace(tree, predicates={}))[2] == 1e6, "what a filter does is not known"


def test_rows_before_a_run_come_from_the_sources():
    tree = plan(
        {
            0: ("Aggregate", signature("g"), (1,)),
            1: ("Filter", signature("f"), (2,)),
            2: ("Join", signature("j"), (3, 4)),
            3: ("Scan", signature("a"), ()),
            4: ("Scan", signature("b"), ()),
        },
        row_bytes=10,
    )
    large = replace(tree.nodes[3], source_bytes=6e8)
    tree = replace(tree, nodes={**tree.nodes, 3: large})
    assert guessed_rows(tree) == pytest.approx({4: 1e6, 3: 6e7, 2: 6e7, 1: 2e7, 0: 2e6})
    assert guessed_rows(tree, reduced=False, unknown_bytes=0.0) == {4: 0.0, 3: 6e7, 2: 6e7, 1: 6e7, 0: 6e7}
    assert guessed_rows(tree, [4, 3, 2], known={2: 5.0}, least_row_bytes=20.0) == {4: 5e5, 3: 3e7, 2: 5.0}


def test_rows_under_fewer_filters_are_three_times_as_many_for_each():
    seen = [(frozenset("abc"), Estimate(10.0, 1.0)), (frozenset("ab"), Estimate(20.0, 0.5)), (frozenset(), None)]
    assert unfiltered_rows(frozenset("a"), seen) == Estimate(60.0, 0.15)
    assert unfiltered_rows(frozenset(), seen) == Estimate(180.0, 0.15)
    assert unfiltered_rows(frozenset("ab"), seen[:1]) == Estimate(30.0, 0.3)
    assert unfiltered_rows(frozenset("a"), []) is None


JOIN = {
    0: ("Filter", signature("f"), (1,)),
    1: ("Join", signature("j"), (2, 3)),
    2: ("Scan", signature("a"), ()),
    3: ("Scan", signature("b"), ()),
}
OWN = {0: Estimate(1.0, 1.0), 1: Estimate(6.0, 1.0), 2: Estimate(4.0, 1.0), 3: Estimate(2.0, 1.0)}


@pytest.mark.parametrize(
    ("cores", "cut_points", "expected"),
    [
        (1, None, 13.0),  # 4 + 2 + 6 + 1
        (2, None, 6.5),
        (2, {2: 0.5}, 5.0),  # A is read: 0.5 + 1 + 3 + 0.5
        (2, {2: 9.0}, 6.5),  # reading A is dearer than computing it
        (2, {1: 0.25}, 0.75),  # 0.25 + 0.5
    ],
)
def test_recompute_seconds_of_a_join(cores, cut_points, expected):
    found = recompute_seconds(plan(JOIN), OWN, cores, cut_points)
    assert found[0].value == pytest.approx(expected)


def test_copies_of_a_subplan_count_once_where_they_are_reused():
    """A loop of three rounds, each joining its last result with itself: 1 scan and 3 joins, not 8 and 7."""
    tree = {}

    def grow(level):
        number = len(tree)
        tree[number] = None
        children = () if level == 0 else (grow(level - 1), grow(level - 1))
        tree[number] = ("Scan" if level == 0 else "Join", signature(f"level {level}"), children)
        return number

    grow(3)
    doubled = plan(tree)
    own = {number: Estimate(2.0, 1.0) for number in doubled.nodes}
    assert recompute_seconds(doubled, own, 2)[0].value == pytest.approx(15.0)
    assert recompute_seconds(doubled, own, 2, reused=True)[0].value == pytest.approx(4.0)
    # One of the two branches is read: the other one's scan and joins are left.
    branch = doubled.nodes[0].children[0]
    assert recompute_seconds(doubled, own, 2, cut_points={branch: 0.5}, reused=True)[0].value == pytest.approx(4.5)
    assert recompute_seconds(plan(JOIN), OWN, 2, reused=True)[0].value == pytest.approx(6.5)


def test_recompute_without_a_branch_is_the_sum_of_the_prefix():
    """Eq. 2."""
    found = recompute_seconds(chain("c", "b", "a"), {0: Estimate(1, 1), 1: Estimate(2, 1), 2: Estimate(3, 1)}, 1)
    assert [found[number].value for number in (2, 1, 0)] == [3, 5, 6]


def test_an_unmeasured_operator_lowers_the_confidence_and_the_whole_prefix_stands_in():
    own = {0: Estimate(1.0, 1.0)}
    partial = recompute_seconds(chain("b", "a"), own, 1)
    assert partial[0].value == 1.0
    assert partial[0].confidence == pytest.approx(0.5)
    assert 1 not in partial
    whole = recompute_seconds(chain("b", "a"), own, 1, inclusive_seconds={0: Estimate(7.0, 0.5)})
    assert whole[0].value == 7.0


def test_seconds_of_other_columns_count_half():
    wide, narrow = signature("p", ("a", "udf")), signature("p", ("a",))
    tree = plan({0: ("Op", narrow, (1,)), 1: ("Scan", signature("s"), ())})
    assert self_seconds(tree, view_of(variant(narrow, seconds=3.0)))[0] == Estimate(3.0, 0.5)
    assert self_seconds(tree, view_of(variant(wide, seconds=3.0)))[0] == Estimate(3.0, 0.5 * OTHER_COLUMNS)
    assert self_seconds(tree, view_of(variant(narrow, kind="Other"))) == {}


def test_a_projection_of_other_columns_is_not_taken_to_cost_what_theirs_do():
    dear, cheap = signature("A", ("a", "words")), signature("A", ("a", "b"))
    seen = view_of(variant(dear, "Project", 8.0), variant(cheap, "Project", 0.5))
    assert self_seconds(plan({0: ("Project", signature("A"), ())}), seen)[0] == Estimate(0.5, 0.5 * OTHER_COLUMNS)
    assert self_seconds(plan({0: ("Project", dear, ())}), seen)[0] == Estimate(8.0, 0.5)
    joins = view_of(variant(dear, "Join", 8.0), variant(cheap, "Join", 0.5))
    assert self_seconds(plan({0: ("Join", signature("A"), ())}), joins)[0].value == 4.25


def test_rows_are_those_of_the_lineage_and_bytes_fall_back_to_rows_times_width():
    signed = signature("p", ("a", "b"))
    tree = plan({0: ("Op", signed, (1,)), 1: ("Scan", signature("s"), ())}, row_bytes=20)
    view = view_of(variant(signature("p", ("z",)), kind="Join", rows=500))
    found = rows(signed.lineage, view)
    assert found and found.value == 500
    size = bytes_of(tree.nodes[0], view)
    assert size and size.value == 10_000


def test_read_time_is_eq_4_with_an_overhead():
    rates = Rates(read_bytes_per_second=100e6, write_bytes_per_second=50e6)
    assert rates.read_seconds(200e6, 2) == pytest.approx(1.03)
    assert rates.write_seconds(200e6, 2) == pytest.approx(2.05)
    assert rates.read_seconds(0, 1) == pytest.approx(0.03)


def test_a_slow_disk_lowers_the_rates_and_observations_replace_them(tmp_path):
    assert rates_of({"probe_read": 1e6}).read_bytes_per_second == 1e6
    assert rates_of({"probe_read": 1e12}) == Rates()
    assert rates_of({"probe_read": 1e6, "read": 2e6}).read_bytes_per_second == 2e6
    probed = probe_disk(tmp_path)
    assert probed and min(probed) > 0
    assert list(tmp_path.iterdir()) == []
    assert probe_disk(tmp_path / "missing") is None
    assert observed_rate(50e6, 0.53, 0.03) == pytest.approx(100e6)


@pytest.mark.parametrize(("source", "least"), [("Scan parquet x", 1.6), ("Scan csv x", 0.0)])
def test_a_copy_of_files_is_read_no_faster_than_they_were(source, least):
    rows, files = signature("rows", conjuncts=["c"]), signature("rows")
    tree = plan({0: ("Aggregate", signature("top"), (1,)), 1: ("Filter", rows, (2,)), 2: (source, files, ())})
    tree.nodes[2] = replace(tree.nodes[2], source_bytes=1e6)
    view = view_of(variant(rows, "Filter", 0.5, size=800_000), variant(files, source, 4.0))
    (found,) = (each for each in decided(tree, view, cores=2).candidates if each.node == 1)
    assert found.recompute.value == pytest.approx(2.25)
    assert found.read_seconds == pytest.approx(max(least, 0.03), abs=0.01)
    stored = [entry("e1", rows, size=400_000)]
    assert decided(tree, view, stored, cores=2).matches[1].seconds == pytest.approx(max(least / 2, 0.03), abs=0.01)
