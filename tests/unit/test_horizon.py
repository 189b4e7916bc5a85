from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from builders import plan, signature
from horizon_cases import RATES, step
from wire_client import PatientSession, decide, executed, frame, node

from spark_regions.costs.guess import guessed
from spark_regions.dag.plan import CandidateDataFrame, Plan
from spark_regions.errors import InvalidRequest
from spark_regions.planner.service import Service
from spark_regions.planner.session import Counters
from spark_regions.runs import run_planner, solution
from spark_regions.runs.expected import Seen, expected
from spark_regions.runs.program import Budget
from spark_regions.runs.recorded_query import Measured, RecordedQuery, completed, decode, encode, recurring_signature
from spark_regions.runs.results import results
from spark_regions.runs.run_matcher import RunMatcher, columns_of
from spark_regions.runs.solution import key_of, with_kept
from spark_regions.runs.solve import solve
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.wire.messages import Hello
from tests.harness.wire import handled, read, written

SECONDS = {"A": 3.0, "B": 2.0, "source": 0.1}
MB60 = 6e6  # rows of 10 bytes


def chain(*cores):
    return step(*cores, seconds=SECONDS, rows=MB60)


def schedule(steps, megabytes, store=0.0):
    found = results(steps, range(len(steps)))
    return found, solve(steps, range(len(steps)), found, Budget(megabytes * 1e6, store * 1e6), RATES, 2, 10.0)


def kept(found, solved):
    return sorted((k, found[m.result].signature.core, m.last) for k, makes in solved.makes.items() for m in makes)


def test_what_is_used_last_is_kept_last_and_makes_room_when_it_is_over():
    """The example of program.py: 100 MB, two results of 60 MB, one after the other."""
    steps = [
        chain("r1", "A", "source"),
        chain("r2", "A", "source"),
        chain("r3", "B", "source"),
        chain("r4", "B", "source"),
    ]
    found, solved = schedule(steps, 100)
    assert solved.proven
    assert kept(found, solved) == [(0, "A", 1), (2, "B", 3)]
    assert {found[r].signature.core for r in solved.releases[1]} == {"A"}
    assert {found[r].signature.core for r in solved.releases[3]} == {"B"}
    assert solved.chosen_seconds < solved.plain_seconds - 4


def test_of_two_that_do_not_fit_at_once_the_dearer_one_is_kept():
    steps = [
        chain("r1", "A", "source"),
        chain("r2", "B", "source"),
        chain("r3", "A", "source"),
        chain("r4", "B", "source"),
    ]
    found, solved = schedule(steps, 100)
    assert kept(found, solved) == [(0, "A", 2)]
    found, solved = schedule(steps, 130)
    assert kept(found, solved) == [(0, "A", 2), (1, "B", 3)]


def test_without_memory_the_store_is_used_and_without_either_nothing_is_kept():
    steps = [chain("r1", "A", "source")] + [chain(f"r{n}", "A", "source") for n in range(2, 6)]
    _, solved = schedule(steps, 0, store=100)
    (make,) = solved.makes[0]
    assert make.level == "store"
    _, nothing = schedule(steps, 0)
    assert nothing.makes == {}
    assert nothing.chosen_seconds == pytest.approx(nothing.plain_seconds, abs=0.01)


def test_where_memory_comes_first_only_what_does_not_fit_is_stored():
    steps = [chain(f"r{n}", "A", "source") for n in range(5)]
    found = results(steps, range(5))
    slow = replace(RATES, persist_write_bytes_per_second=5e6)
    for megabytes, first, level in ((100, False, "store"), (100, True, "persist"), (50, True, "store")):
        budget = Budget(megabytes * 1e6, 1e9, memory_first=first)
        solved = solve(steps, range(5), found, budget, slow, 2, 10.0)
        assert [make.level for makes in solved.makes.values() for make in makes] == [level]


def test_what_is_cheaper_to_compute_than_to_read_is_computed():
    steps = [step(f"r{n}", "A", "source", seconds={"A": 0.06}, rows=5e7) for n in range(4)]
    _, solved = schedule(steps, 1e6)
    assert solved.makes == {}


def test_kept_and_stored_results_are_read_without_being_made_again():
    steps = [chain("r1", "A", "source"), chain("r2", "A", "source")]
    found = results(steps, range(2))
    number = next(n for n, r in enumerate(found) if r.signature.core == "A")
    for there in ({"kept": [number]}, {"stored": [number]}):
        solved = solve(steps, range(2), found, Budget(1e9, 0), RATES, 2, 10.0, **there)
        assert solved.makes == {}
        assert solved.chosen_seconds < 1.5


def test_a_dataframe_wider_than_its_queries_is_kept_with_the_columns_that_they_read():
    wide = signature("A", ("a", "b", "c", "d"))
    tree = {
        0: ("Aggregate", signature("r1"), (1,)),
        1: ("Project", signature("A", ("a",)), (2,)),
        2: ("Join", signature("j"), ()),
    }
    first = plan(tree)
    tree = {
        0: ("Aggregate", signature("r2"), (1,)),
        1: ("Project", signature("A", ("b",)), (2,)),
        2: ("Join", signature("j"), ()),
    }
    second = plan(tree, shared=(CandidateDataFrame("s0", 1, 2, wide, 40.0),))
    steps = [RecordedQuery(each, Measured({1: 3.0, 2: 0.0}, {1: 1e6}, {})) for each in (first, second)]
    found, solved = schedule(steps, 100)
    ((make,),) = solved.makes.values()
    assert found[make.result].wide == wide
    assert found[make.result].signature.columns == ("a", "b")
    assert found[make.result].bytes == pytest.approx(20e6)
    assert make.node == 1


def test_a_join_is_kept_below_projections_of_which_each_query_has_its_own():
    def query(column):
        tree = {
            0: ("Aggregate", signature(f"by {column}"), (1,)),
            1: ("Project", signature("A", (f"half {column}",)), (2,)),
            2: ("Join", signature("A", ("a", "b")), (3,)),
            3: ("Scan", signature("source"), ()),
        }
        whole = plan(tree, expressions={f"half {column}": (column,)})
        return RecordedQuery(whole, Measured({1: 0.1, 2: 3.0}, {2: 1e6}, {}))

    found, solved = schedule([query("a"), query("b")], 100)
    ((make,),) = solved.makes.values()
    assert found[make.result].wide is None
    assert (make.node, [place.node for place in found[make.result].places]) == (2, [2, 2])


def test_steps_survive_their_encoding_and_damage_is_told():
    message = decide([node(0, "Aggregate", (1,), core="agg"), node(1, "Relation", core="t")], 1)
    body = encode(read(message).plan, Measured({0: 1.5}, {0: 10.0}, {0: 100.0}))
    back = decode(body)
    assert back.plan.nodes[0].signature.columns
    assert (back.measured.seconds, back.measured.rows, back.measured.bytes) == ({0: 1.5}, {0: 10.0}, {0: 100.0})
    with pytest.raises(InvalidRequest, match="recorded step"):
        decode(body[:-4])


def test_nodes_that_did_not_run_take_what_another_step_saw():
    seen = chain("r1", "A", "source")
    blind = RecordedQuery(chain("r2", "A", "source").plan, Measured({0: 0.2}, {}, {}))
    _, second = completed([seen, blind])
    assert second.measured.seconds == {0: 0.2, 1: 3.0, 2: 0.1}
    assert second.measured.rows[1] == MB60


def joined(columns: tuple[str, ...], row_bytes: float) -> Plan:
    tree = {
        0: ("Project", signature("A", columns), (1,)),
        1: ("Join", signature("A", columns[:1]), (2,)),
        2: ("Relation", signature("t"), ()),
    }
    return plan(tree, row_bytes=row_bytes)


def test_a_projection_is_not_as_dear_as_one_of_other_columns_and_a_join_goes_with_the_width():
    wide = RecordedQuery(joined(("a", "words"), 80.0), Measured({0: 6.0, 1: 4.0, 2: 1.0}, {}, {}))
    narrow = RecordedQuery(joined(("a", "b"), 40.0), Measured({0: 0.5, 2: 1.0}, {}, {}))
    blind = RecordedQuery(joined(("a", "c"), 40.0), Measured())
    again = RecordedQuery(joined(("a", "words"), 80.0), Measured())
    found = completed([wide, narrow, blind, again])
    assert [step.measured.seconds[0] for step in found] == [6.0, 0.5, 0.5, 6.0]
    assert [step.measured.seconds[2] for step in found] == [1.0] * 4
    other = replace(blind.plan.nodes[1], signature=signature("A", ("z",)))
    wider = RecordedQuery(replace(blind.plan, nodes={**blind.plan.nodes, 1: other}), Measured())
    assert completed([wide, wider])[1].measured.seconds[1] == 2.0


def test_a_run_over_other_data_is_followed_by_form_and_by_consistent_identifiers():
    recorded = [chain("r1", "A", "source"), chain("r2", "B", "source"), chain("r3", "A", "source")]
    following = RunMatcher(recorded)
    today = [chain("R1", "AA", "Source").plan, chain("R2", "BB", "Source").plan, chain("R3", "AA", "Source").plan]
    for place, each in enumerate(today):
        assert recurring_signature(each) == recurring_signature(recorded[place].plan)
        assert following.find(each) == place
        following.learn(each, place)
        following.take(place)
    assert following.recorded(today[0].nodes[1].signature.lineage) == recorded[0].plan.nodes[1].signature.lineage
    assert following.ahead() == []


def test_equal_identifiers_beat_the_order_and_contradictions_are_no_match():
    recorded = [chain("r1", "A", "source"), chain("r2", "B", "source")]
    following = RunMatcher(recorded)
    assert following.find(recorded[1].plan) == 1
    following.learn(recorded[1].plan, 1)
    following.take(1)
    # "r2" is taken, and "B" would have to stand for "A" as well.
    assert following.find(chain("x", "B", "source").plan) is None
    assert following.find(chain("x", "A", "source").plan) == 0


def test_columns_of_a_dataframe_are_found_by_place():
    assert columns_of(signature("x", ("p", "q")), signature("y", ("a", "b"))) == {"a": "p", "b": "q"}
    assert columns_of(signature("x", ("a", "q", "r")), signature("y", ("a", "b"))) == {"a": "a"}


# The planner, over the wire's messages.


def queries(prefix=""):
    """Three reports over one join; the join takes two seconds of two cores."""
    return [
        [
            node(0, "Aggregate", (1,), core=f"{prefix}{name}", columns=("k", "sum")),
            node(1, "Join", (2, 3), core=f"{prefix}join", columns=("a", "b")),
            node(2, "Relation", (), core=f"{prefix}left", columns=("a", "x")),
            node(3, "Relation", (), core=f"{prefix}right", columns=("b", "x")),
        ]
        for name in ("one", "two", "three")
    ]


CONFS = {"confs": {"workflow": True, "persistMaxBytes": 10**9, "maxBytes": 0}, "offered": 8}


def session_of(store, run):
    return PatientSession(store, OperatorGraph(store.catalog, run, store.where.data), run, Counters())


def again(session, application):
    """The next application of the same name, on the same catalog."""
    session.observe({"type": "end"})
    run = session.store.begin(application, session.run.name)
    return PatientSession(
        session.store, OperatorGraph(session.store.catalog, run, session.store.where.data), run, Counters()
    )


def run_all(session, nodes, **more):
    answers = []
    for query, each in enumerate(nodes, 1):
        answers.append(session.decide(decide(each, query, **(CONFS | more))))
        session.observe({"type": "executed", **executed(each, query)})
    return answers


def kinds(answers):
    return [[(a["kind"], a.get("node"), a.get("release", False)) for a in answer["actions"]] for answer in answers]


def test_the_second_run_keeps_what_later_queries_use_and_lets_go_after_the_last(session):
    assert kinds(run_all(session, queries())) == [[], [], []]
    later = again(session, "app-2")
    assert kinds(run_all(later, queries())) == [[("persist", 1, False)], [("recall", 1, False)], [("recall", 1, True)]]


def test_other_data_does_not_matter_since_the_run_has_the_same_form(session):
    run_all(session, queries())
    answers = run_all(again(session, "app-2"), queries("new "))
    assert kinds(answers) == [[("persist", 1, False)], [("recall", 1, False)], [("recall", 1, True)]]
    assert answers[0]["actions"][0]["reason"] == "PLANNED"
    assert answers[1]["regions"]["step"] == 2
    assert answers[1]["regions"]["steps"] == 3
    assert answers[1]["regions"]["chosenSeconds"] < answers[1]["regions"]["plainSeconds"]
    third = run_all(again(session, "app-3"), queries("newer "))
    assert kinds(third) == kinds(answers)


def test_what_was_stored_of_other_files_is_not_counted_on(session):
    confs = CONFS["confs"] | {"maxBytes": 10**9}
    stores = [a for answer in run_all(session, queries(), confs=confs) for a in answer["actions"]]
    assert [(store["kind"], store["node"]) for store in stores] == [("store", 1)]
    written = {"rows": 9, "bytes": 999, "seconds": 1}
    session.observe({"type": "committed", "entry": stores[0]["entry"], "query": 2, **written})
    assert kinds(run_all(again(session, "app-1b"), queries()))[0] == [("load", 1, False)]
    assert kinds(run_all(again(session, "app-2"), queries("new ")))[0] == [("persist", 1, False)]


def test_what_this_run_has_stored_of_other_files_is_counted_on_when_the_rest_is_planned_again(session):
    run_all(session, queries())
    later = again(session, "app-2")
    confs = CONFS | {"confs": CONFS["confs"] | {"persistMaxBytes": 0, "maxBytes": 10**9}}
    first, *others = queries("new ")
    (store,) = later.decide(decide(first, 1, **confs))["actions"]
    assert (store["kind"], store["reason"]) == ("store", "PLANNED")
    later.observe({"type": "committed", "entry": store["entry"], "query": 1, "rows": 9, "bytes": 999, "seconds": 1})
    later.observe({"type": "executed", **executed(first, 1)})
    for query, each in enumerate(others, 2):
        later.follower.planner.failed()
        planned_again(later, each, confs)
        answer = later.decide(decide(each, query, **confs))
        assert kinds([answer]) == [[("load", 1, False)]]
        assert later.follower.planner._schedule.makes == {}, "nothing is to be made a second time"
        later.observe({"type": "executed", **executed(each, query)})


def test_the_rest_is_planned_again_when_a_planned_entry_was_not_written(session):
    run_all(session, queries())
    later = again(session, "app-2")
    confs = CONFS | {"confs": CONFS["confs"] | {"persistMaxBytes": 0, "maxBytes": 10**9}}
    first, second, _ = queries("new ")
    (store,) = later.decide(decide(first, 1, **confs))["actions"]
    later.observe({"type": "abandoned", "entry": store["entry"], "query": 1, "code": "WRITE_FAILED"})
    later.observe({"type": "executed", **executed(first, 1)})
    planned_again(later, second, confs)
    assert kinds([later.decide(decide(second, 2, **confs))]) == [[("store", 1, False)]]


def planned_again(session, nodes, confs):
    """A query that only looks starts the new plan; wait for it."""
    session.decide(decide(nodes, 99, mode="observe", **confs))
    work = session.follower.planner._solution
    assert work is None or work.done.wait(30)


def test_switched_off_or_under_another_name_nothing_is_planned(session):
    run_all(session, queries())
    off = CONFS["confs"] | {"workflow": False}
    assert kinds(run_all(again(session, "app-2"), queries("new "), confs=off)) == [[], [], []]
    run = session.store.begin("app-3", "another job")
    other = session_of(session.store, run)
    assert kinds(run_all(other, queries("other "))) == [[], [], []]


def test_a_dropped_result_is_made_again_while_it_is_still_read(session):
    run_all(session, queries())
    later = again(session, "app-2")
    first, second, _ = queries("new ")
    (persist,) = later.decide(decide(first, 1, **CONFS))["actions"]
    later.observe({"type": "executed", **executed(first, 1)})
    later.observe({"type": "dropped", "entry": persist["entry"], "query": 1, "code": "ENTRY_MISSING"})
    planned_again(later, second, CONFS)
    assert [a["kind"] for a in later.decide(decide(second, 3, **CONFS))["actions"]] == ["persist"]


def test_dataframes_are_asked_for_where_one_may_have_to_be_kept(session):
    first, second, third = queries()
    second[1] = node(1, "Join", (2, 3), core="join", columns=("b", "c"))
    wide = frame(node(0, "", core="join", columns=("a", "b", "c")), ref="s0", node=1, seen=2)
    run_all(session, [first])
    for query, each in enumerate((second, third), 2):
        session.decide(decide(each, query, shared=[wide], **CONFS))
        session.observe({"type": "executed", **executed(each, query)})
    later = again(session, "app-2")
    assert later.decide(decide(first, 1, confs=CONFS["confs"], offered=0))["offer"] == 8
    answer = later.decide({"type": "again", "query": 1, "shared": [wide], "offered": 8})
    assert [(a["kind"], a["node"], a["ref"]) for a in answer["actions"]] == [("persist", 1, "s0")]
    assert answer["actions"][0]["columns"] == wide["columns"]
    assert [a["kind"] for a in later.decide(decide(second, 2, shared=[wide], **CONFS))["actions"]] == ["recall"]


def test_regions_are_numbered_by_rank_with_what_they_read(session):
    run_all(session, queries())
    note = session.decide(decide(queries()[0], 9, **CONFS))["regions"]
    by_id = {region["id"]: region for region in note["regions"]}
    assert [region["rank"] for region in note["regions"]] == sorted(region["rank"] for region in note["regions"])
    top = next(region for region in note["regions"] if 0 in region["nodes"])
    assert [i["label"] for i in top["inputs"]] == ["shuffle"]
    assert 1 in by_id[top["inputs"][0]["region"]]["nodes"]
    assert sum(region["seconds"] for region in note["regions"]) == pytest.approx(note["plainSeconds"], rel=0.01)


def announced(session, queries, at_once=0):
    return written(session.follower.announce(read({"type": "announce", "queries": queries, "atOnce": at_once})))


def batch(size, prefix="", **confs):
    """Three queries over a join of two sources of `size` bytes, none of which ever ran."""
    asked = [decide(nodes, 0, **(CONFS | {"confs": CONFS["confs"] | confs})) for nodes in queries(prefix)]
    for each in asked:
        for raw in each["plan"]["nodes"][2:]:
            raw["sourceBytes"] = size
    return asked


def test_a_batch_is_ranked_before_anything_ran_and_gone_when_it_is_over(session):
    told = announced(session, batch(500_000_000))
    assert told["ranks"] == [[0], [1, 2]]
    assert told["kept"] == 1
    assert told["chosenSeconds"] < told["plainSeconds"]
    written = [node(0, "InsertIntoHadoopFsRelationCommand", (1,), core="x") | {"lineage": None, "core": None}]
    written += [raw | {"id": raw["id"] + 1, "children": [c + 1 for c in raw["children"]]} for raw in queries()[0]]
    asked = (written, queries()[2], queries()[1])
    answers = [session.decide(decide(each, query, **CONFS)) for query, each in enumerate(asked, 1)]
    assert kinds(answers)[0] == [("persist", 2, False)]
    assert [kind for answer in kinds(answers)[1:] for kind, *_ in answer] == ["recall", "recall"]
    over = announced(session, [])
    assert over["release"] == [answers[0]["actions"][0]["entry"]]
    assert list(session.effects.persisted.kept) == []


@pytest.mark.parametrize("at_once", [1, 0])
def test_of_queries_in_order_what_is_kept_need_not_fit_at_once(session, at_once):
    """Two joins of which one fits, for three branches each; the first one's last branch is left out."""
    confs = {"persistMaxBytes": 200_000_000}
    branches = batch(500_000_000, "a ", **confs) + batch(500_000_000, "b ", **confs)
    assert announced(session, branches, at_once)["kept"] == (2 if at_once else 1)
    asked = [*queries("a ")[:2], *queries("b ")]
    answers = kinds(run_all(session, asked, confs=CONFS["confs"] | confs))
    made = [[kind for kind, *_ in answer] for answer in answers]
    if at_once:
        assert made == [["persist"], ["recall"], ["unpersist", "persist"], ["recall"], ["recall"]]
        assert answers[-1][0][2], "it is let go by its last reader"
    else:
        assert made.count(["persist"]) == 1


def test_branches_are_expected_to_take_what_the_first_of_them_took():
    """Plans of one form, of which one was seen, and one of another."""
    plans = [chain("r1", "A", "source").plan, chain("r2", "B", "source").plan, chain("r3", "source").plan]
    unknown = Seen(None, None)
    ran = [Seen(0.2, 5.0), Seen(8.0, 40.0), unknown]
    first, like, other = expected(plans, [ran, [unknown] * 3, [unknown] * 2], 2)
    for query in (first, like):
        assert [query.measured.seconds[n] for n in (0, 1)] == [0.1, 4.0]
        assert [query.measured.rows[n] for n in (0, 1)] == [5.0, 40.0]
    guess = guessed(plans[2])
    assert other.measured.rows[0] == guess.rows[0]
    assert other.measured.seconds[0] == guess.task_seconds[0] / 2
    grouped = plan(
        {0: ("Aggregate", signature("g"), (1,)), 1: ("Window", signature("w"), (2,)), 2: ("Scan", signature("s"), ())}
    )
    (only,) = expected([grouped], [[unknown] * 3], 2)
    assert only.measured.seconds[0] < only.measured.seconds[1], "it moves its groups alone"


def test_a_batch_of_small_sources_keeps_nothing_and_runs_side_by_side(session):
    assert announced(session, batch(1000))["ranks"] == [[0, 1, 2]]


def test_what_was_seen_of_a_widened_node_counts_only_where_nothing_else_is_known():
    first, second, third = (chain("r", "A", "source") for _ in range(3))
    wide = Measured({0: 1.0, 1: 9.0, 2: 5.0}, {0: 3.0, 1: 400.0, 2: 7.0}, {}, frozenset({1, 2}))
    plain = Measured({0: 1.0, 1: 3.0}, {0: 3.0, 1: 40.0}, {})
    found = completed(
        [RecordedQuery(first.plan, wide), RecordedQuery(second.plan, plain), RecordedQuery(third.plan, Measured())]
    )
    assert [step.measured.seconds[1] for step in found] == [3.0, 3.0, 3.0]
    assert [step.measured.rows[1] for step in found] == [40.0, 40.0, 40.0]
    assert [step.measured.seconds[2] for step in found] == [5.0, 5.0, 5.0], "the source was only seen widened"
    message = decide([node(0, "Op", (1,), "r"), node(1, "Op", (2,), "A"), node(2, "Op", (), "source")], 1)
    assert decode(encode(read(message).plan, wide)).measured == wide


def test_a_kept_result_stays_in_the_plan_while_one_query_still_reads_it():
    steps = [chain("r1", "A", "source"), chain("r2", "A", "source"), chain("r3", "A", "source")]
    (result,) = [r for r in results(steps, range(3)) if r.signature.core == "A"]
    known = {key_of(result): result}
    assert [r for r in results(steps, [2]) if r.signature.core == "A"] == [], "on its own it would not be worth making"
    (held,) = with_kept([], {key_of(result): 12.0}, known, [2], RATES)
    assert [place.step for place in held.places] == [2]
    assert held.bytes == 12.0, "its real size"
    assert with_kept([], {key_of(result): 12.0}, known, [], RATES) == []
    assert with_kept([result], {key_of(result): 12.0}, known, [1, 2], RATES)[0].places == result.places[1:]


def test_a_plan_over_another_day_s_files_has_the_same_form():
    def over(source: str) -> str:
        return recurring_signature(
            plan({0: ("Aggregate", signature("sums"), (1,)), 1: (source, signature("rows"), ())})
        )

    assert over("Scan parquet monday") == over("Scan parquet tuesday and 3 more")
    assert over("Scan parquet monday") != over("LocalRelation")


def test_other_queries_do_not_wait_for_the_plan_of_the_run(tmp_path, monkeypatch):
    def serving(application):
        service = Service({"recycle.dir": str(tmp_path), "recycle.namespace": "tests"})
        service.hello(Hello("", 1, application, "job", "anna"))
        return service

    first = serving("app-1")
    for query, each in enumerate(queries(), 1):
        while callable(answer := handled(first, decide(each, query, **CONFS))):
            answer()
        handled(first, {"type": "executed", **executed(each, query)})
    handled(first, {"type": "end"})
    go_on = threading.Event()

    def slow(*given):
        go_on.wait(60.0)
        return solve(*given)

    monkeypatch.setattr(solution, "solve", slow)
    monkeypatch.setattr(run_planner, "WAIT_SECONDS", 60.0)
    later = serving("app-2")
    waits = handled(later, decide(queries()[0], 1, **CONFS))
    assert callable(waits)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(waits()))
    waiting.start()
    other = handled(later, decide([node(0, "Aggregate", (), core="other", columns=("k",))], 2, **CONFS))
    assert other["actions"] == []
    assert answers == [], "the first query still waits"
    go_on.set()
    waiting.join(60.0)
    assert [action["kind"] for action in answers[0]["actions"]] == ["persist"]
