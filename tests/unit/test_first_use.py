from __future__ import annotations

from dataclasses import replace

import pytest
from builders import chain, decided, entry, plan, signature, variant, view_of
from msgspec.structs import replace as with_conf
from wire_client import PatientSession, decide, executed, frame, node, report

from spark_regions.dag.plan import CandidateDataFrame
from spark_regions.decision.question import Confs
from spark_regions.learn import events as module
from spark_regions.planner.session import Counters
from spark_regions.store.admin import list_entries
from spark_regions.store.operator_graph import OperatorGraph

CONFS = Confs(max_bytes=10**9, first_use_overhead=0.1)


def over_join(row_bytes=30.0, seen=1, held=True):
    """An aggregate over a join, and in the join's place a wider DataFrame that the program holds."""
    shared = CandidateDataFrame("s0", 1, seen, signature("join", ["a", "b", "c"]), row_bytes, held)
    return replace(chain("agg", "join", "scan"), shared=(shared,))


def chosen(tree, view=None, entries=(), confs=CONFS):
    draft = decided(tree, view or view_of(), entries, confs, 2)
    return [(each.ref, each.node, reason) for each, reason in draft.stores], dict(draft.loads)


@pytest.mark.parametrize("strategy", ["markov", "maxbenefit"])
def test_a_held_frame_is_stored_at_its_first_use(strategy):
    assert chosen(over_join(), confs=with_conf(CONFS, strategy=strategy))[0] == [("s0", 1, "HELD")]


@pytest.mark.parametrize("strategy", ["latest", "off"])
def test_not_by_a_strategy_that_means_something_else(strategy):
    assert chosen(over_join(), confs=with_conf(CONFS, strategy=strategy))[0] == []


@pytest.mark.parametrize(
    ("tree", "confs"),
    [
        (over_join(held=False), CONFS),
        (over_join(row_bytes=41.0), CONFS),  # the query needs 10 bytes a row
        (over_join(), with_conf(CONFS, first_use_overhead=0.0)),
        (over_join(), with_conf(CONFS, recycle=False)),
    ],
)
def test_not_stored(tree, confs):
    assert chosen(tree, confs=confs)[0] == []


def test_at_its_second_use_writing_may_take_more():
    (stored, _), *_ = decided(over_join(seen=2, held=False), view_of(), (), CONFS, 2).stores
    assert (stored.ref, stored.max_overhead(0.1)) == ("s0", 0.6)
    unseen = variant(signature("join"), seconds=None, total=None)
    assert chosen(over_join(seen=2, held=False), view_of(unseen))[0][0] == ("s0", 1, "HELD")


def test_for_a_second_use_no_more_python_is_called():
    tree = over_join(seen=2, held=False)
    for more in ({"more_python": True}, {"weaker": True}):
        other = replace(tree, shared=tuple(replace(each, **more) for each in tree.shared))
        assert chosen(other)[0] == []


def test_what_was_measured_is_judged_by_its_numbers():
    cheap = variant(signature("join"), seconds=0.001, total=0.001)
    assert chosen(over_join(), view_of(cheap))[0] == []


def test_nothing_beside_a_load_on_the_way():
    stored = entry("e1", signature("agg"), recompute=9.0)
    stores, loads = chosen(over_join(), entries=[stored])
    assert (stores, loads) == ([], {0: "BENEFIT"})


def test_two_branches_are_apart():
    tree = plan(
        {
            0: ("Join", signature("both"), (1, 3)),
            1: ("Agg", signature("left"), (2,)),
            2: ("Scan", signature("scan1"), ()),
            3: ("Agg", signature("right"), (4,)),
            4: ("Scan", signature("scan2"), ()),
        },
        shared=(CandidateDataFrame("s0", 3, 1, signature("right"), 10.0, True),),
    )
    stores, loads = chosen(tree, entries=[entry("e1", signature("left"), recompute=9.0)])
    assert (stores, loads) == ([("s0", 3, "HELD"), (None, 0, "SMALL_RESULT")], {1: "BENEFIT"})


def first_use(session):
    """The answer to a query over a held frame in the place of its topmost operator."""
    shared = [frame(report()[0], ref="s0", node=0, seen=1, held=True) | {"rowBytes": 1}]
    confs = {"maxBytes": 10**9, "firstUseOverhead": 0.1}
    (action,) = session.decide(decide(report(), 1, confs=confs, shared=shared))["actions"]
    assert (action["reason"], action["ref"], action["maxOverhead"]) == ("HELD", "s0", 0.1)
    return action["entry"]


class Runs:
    """Runs of applications on one store, each of one query over a held DataFrame of some files."""

    def __init__(self, store):
        self.store, self.number = store, 0

    def __call__(self, files, name="job", given_up=False, top="Aggregate", above="query"):
        """What was done about the DataFrame, with its reason."""
        self.number += 1
        application = f"run-{self.number}"
        run = self.store.begin(application, name)
        session = PatientSession(
            self.store, OperatorGraph(self.store.catalog, run, self.store.where.data), run, Counters()
        )
        nodes = [
            node(0, "Aggregate", (1,), core=f"{above} of {files}", columns=("k",)),
            node(1, top, (2,), core=f"frame of {files}", columns=("k", "sum")),
            node(2, "Filter", (3,), core=f"filtered {files}", columns=("a", "b")),
            node(3, f"Relation {files}", (), core=files, columns=("a", "b")),
        ]
        shared = [frame(nodes[1], ref="s0", node=1, seen=1, held=True) | {"rowBytes": 1}]
        confs = {"maxBytes": 10**9, "firstUseOverhead": 0.1}
        answer = session.decide(decide(nodes, 1, application, confs=confs, shared=shared))
        loads = []
        for action in answer["actions"]:
            about = {"entry": action["entry"], "query": 1}
            if action["kind"] == "load":
                loads.append({"entry": action["entry"], "seconds": 0.1, "bytes": 9})
            elif given_up:
                session.observe({"type": "abandoned", "code": "NOT_WORTH_WRITING", "seconds": 0.5} | about)
            else:
                session.observe({"type": "committed", "rows": 1, "bytes": 9, "seconds": 0.5} | about)
        session.observe({"type": "executed", **executed(nodes, 1, loads)})
        session.settle(10.0)
        session.observe({"type": "end"})
        lost = [("decline", each["code"]) for each in answer["declines"] if each["node"] == 1]
        return [(action["kind"], action["reason"]) for action in answer["actions"] if action["node"] == 1] or lost


@pytest.fixture
def runs(session):
    return Runs(session.store)


def test_what_nobody_read_is_not_tried_again_over_other_files(runs):
    assert runs("monday") == [("store", "HELD")]
    assert runs("tuesday") == [("decline", "LOST")]
    assert runs("wednesday", name="other job") == [("store", "HELD")]
    assert runs("thursday", top="Window") == [("store", "HELD")]


def test_what_was_given_up_is_not_tried_again_either(runs):
    assert runs("monday", given_up=True) == [("store", "HELD")]
    assert runs("tuesday") == [("decline", "LOST")]


def test_what_was_read_is(runs):
    assert runs("monday") == [("store", "HELD")]
    assert runs("monday", above="other query") == [("load", "BENEFIT")]
    assert runs("tuesday") == [("store", "HELD")]


def price(session):
    return list_entries(session.store)[0].recompute_seconds


def test_the_price_is_known_once_the_query_was_measured(session):
    name = first_use(session)
    assert price(session) == 0.0
    session.observe({"type": "executed", **executed(report(), 1)})
    measured = price(session)
    assert measured > 0
    session.observe({"type": "committed", "entry": name, "query": 1, "rows": 1, "bytes": 9, "seconds": 0.1})
    assert price(session) == measured


def test_until_then_the_wall_clock_tells(session, monkeypatch):
    name = first_use(session)
    later = module.time.monotonic() + 8.0
    monkeypatch.setattr(module.time, "monotonic", lambda: later)
    session.observe({"type": "committed", "entry": name, "query": 1, "rows": 1, "bytes": 9, "seconds": 0.5})
    assert price(session) == pytest.approx(8.0, abs=0.6)


def test_what_a_small_result_may_take_does_not_teach_how_well_rows_compress(session):
    asked = decide(report(), 1, confs={"maxBytes": 10**9, "firstUseOverhead": 0.1})
    (action,) = session.decide(asked)["actions"]
    assert action["reason"] == "SMALL_RESULT"
    session.observe({"type": "committed", "entry": action["entry"], "query": 1, "rows": 5, "bytes": 90, "seconds": 0.1})
    session.settle(10.0)
    assert "ratio" not in session.graph.calibration


def large(top="Aggregate", source_bytes=2e9):
    """A sort over an aggregate over a join: minutes of work by its sources."""
    tree = plan(
        {
            0: ("Sort", None, (1,)),
            1: (top, signature("agg"), (2,)),
            2: ("Join", signature("join"), (3, 4)),
            3: ("Scan", signature("left"), ()),
            4: ("Scan", signature("right"), ()),
        }
    )
    nodes = dict(tree.nodes) | {3: replace(tree.nodes[3], source_bytes=source_bytes)}
    return replace(tree, nodes=nodes)


@pytest.mark.parametrize(
    ("tree", "in_memory"),
    [
        (large(), False),
        (large(top="Project"), True),  # as many rows as the join
        (large(source_bytes=1e6), True),
    ],
)
def test_the_top_is_stored_when_first_seen_and_out_of_much_work_even_if_memory_does_not_hold_it(tree, in_memory):
    ((found, reason),) = decided(tree, view_of(), (), CONFS, 2).stores
    assert (found.node, found.in_memory, reason) == (1, in_memory, "SMALL_RESULT")


@pytest.mark.parametrize(
    ("tree", "view", "confs"),
    [
        (large(), view_of(variant(signature("agg"), total=0.01)), CONFS),
        (large(), view_of(), with_conf(CONFS, first_use_overhead=0.0)),
        (large(), view_of(), with_conf(CONFS, strategy="latest")),
    ],
)
def test_other_results_wait_for_their_second_use(tree, view, confs):
    assert chosen(tree, view, confs=confs)[0] == []


def test_above_a_held_frame_the_frame_is_stored_and_of_the_top_what_memory_holds():
    shared = CandidateDataFrame("s0", 2, 1, signature("join", ["a", "b"]), 30.0, True)
    stores = decided(replace(large(), shared=(shared,)), view_of(), (), CONFS, 2).stores
    assert [(c.node, c.in_memory, why) for c, why in stores] == [(2, False, "HELD"), (1, True, "SMALL_RESULT")]
