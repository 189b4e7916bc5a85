from __future__ import annotations

from dataclasses import replace

import pytest
from builders import plan, signature, variant, view_of

from spark_regions.costs.rates import Rates
from spark_regions.dag.moments import Moments
from spark_regions.recycle.repeats import computed, groups, shares
from spark_regions.stats.estimate import Estimate

SECONDS = {2: Estimate(6.0, 1.0), 5: Estimate(6.0, 1.0)}


def twice(left=("a",), right=("b",), row_bytes=10.0):
    """One join in both branches of a union, with other columns in each."""
    return plan(
        {
            0: ("Union", signature("union"), (1, 4)),
            1: ("Aggregate", signature("agg1"), (2,)),
            2: ("Join", signature("join", left), (3,)),
            3: ("Scan", signature("scan", left), ()),
            4: ("Aggregate", signature("agg2"), (5,)),
            5: ("Join", signature("join", right), (6,)),
            6: ("Scan", signature("scan", right), ()),
        },
        row_bytes=row_bytes,
    )


def measured(columns, times=1, executions=1, size=1000):
    """`times`: how often it was computed, in `executions` queries."""
    seconds = Moments()
    for _ in range(times):
        seconds = seconds.merge(Moments.of(6.0))
    return replace(variant(signature("join", columns), "Join", size=size, executions=executions), seconds=seconds)


def decided(tree, view, replaced=(), stored=(), always=False):
    found, declines = shares(tree, view, SECONDS, Rates(), 2, replaced, stored, always)
    return [(share.nodes, share.reason) for share in found], [decline.code for decline in declines]


def test_places_with_the_same_rows():
    assert groups(twice()) == [(2, 5)]


def test_scans_are_read_anew():
    tree = plan(
        {
            0: ("Union", signature("union"), (1, 2)),
            1: ("Scan", signature("scan"), ()),
            2: ("Scan", signature("scan"), ()),
        }
    )
    assert groups(tree) == []


def test_the_place_is_below_the_windows():
    tree = plan(
        {
            0: ("Union", signature("union"), (1, 4)),
            1: ("Window", signature("join", "ab"), (2,)),
            2: ("Join", signature("join", "a"), (3,)),
            3: ("Scan", signature("scan"), ()),
            4: ("Join", signature("join", "a"), (5,)),
            5: ("Scan", signature("scan"), ()),
        }
    )
    assert groups(tree) == [(2, 4)]


def test_what_spark_computed_twice_is_shared():
    view = view_of(measured(["a"]), measured(["b"]))
    assert computed(twice(), view, (2, 5)) == 2.0
    assert decided(twice(), view) == ([((2, 5), "SHARED")], [])


def test_what_spark_reused_by_itself_is_not():
    view = view_of(measured(["a"], times=3, executions=3))
    assert computed(twice(right=("a",)), view, (2, 5)) == 1.0
    assert decided(twice(right=("a",)), view) == ([], ["NOT_WORTH_SHARING"])


def test_nor_what_is_dear_to_move():
    # 3 · 600 MB at 300 MB/s are 6 s.
    view = view_of(measured(["a"], size=600e6), measured(["b"], size=600e6))
    assert decided(twice(), view) == ([], ["NOT_WORTH_SHARING"])


def test_nor_what_was_never_measured():
    assert decided(twice(), view_of()) == ([], ["NO_HISTORY"])


@pytest.mark.parametrize(
    ("replaced", "stored", "shared"),
    [((0,), (), False), ((2,), (), False), ((), (5,), False), ((), (6,), False), ((), (0,), True), ((), (1,), True)],
)
def test_beside_other_actions(replaced, stored, shared):
    """Not below a load, not around a load or a store; a store above takes what it gets."""
    found, _ = decided(twice(), view_of(), replaced, stored, always=True)
    assert found == ([((2, 5), "ALWAYS")] if shared else [])
