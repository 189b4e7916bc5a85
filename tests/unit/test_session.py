from __future__ import annotations

import pytest
import sqlalchemy as sa
from wire_client import MEASURED, PatientSession, decide, executed, frame, node, report

from spark_regions.costs.rates import PLANNED_AGAIN_SECONDS_PER_NODE, READ_OVERHEAD_SECONDS
from spark_regions.dag.plan import parse_plan
from spark_regions.effects import open_queries as module
from spark_regions.errors import InvalidRequest
from spark_regions.learn.executed import observation_of
from spark_regions.planner.session import Counters
from spark_regions.store.admin import list_entries
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.store.schema import ENTRY, LEASE
from spark_regions.store.switched_off import lift, listed
from spark_regions.wire.frames import Unreadable
from tests.harness.wire import read


def run(session, query):
    answer = session.decide(decide(report(), query))
    session.observe({"type": "executed", **executed(report(), query)})
    return answer


def test_a_decision_sees_observations_before_and_after_they_are_written(session):
    assert run(session, 1)["actions"] == []
    first = session.decide(decide(report(), 2, mode="observe"))["declines"]
    session.graph.flush()
    assert session.decide(decide(report(), 2, mode="observe"))["declines"] == first
    session.graph._seen = -1  # as if another planner had written
    assert session.decide(decide(report(), 2, mode="observe"))["declines"] == first


def test_what_a_query_reserved_and_never_used_is_given_up(session, monkeypatch):
    run(session, 1)
    assert run(session, 2)["actions"][0]["kind"] == "store"
    assert session.queries.take_unused() == []
    monkeypatch.setattr(module, "UNUSED_SECONDS", 0.0)
    assert session.queries.take_unused() == [1, 2]
    assert session.queries.take_unused() == []
    session.store.give_up(session.run, [1, 2])
    assert list_entries(session.store) == []


def test_explained_queries_are_over_after_a_day_or_when_many_follow(session, monkeypatch):
    run(session, 1)
    assert session.decide(decide(report(), 2))["actions"][0]["kind"] == "store"
    monkeypatch.setattr(module, "UNUSED_SECONDS", 0.0)
    assert session.queries.take_unused() == [1]
    monkeypatch.setattr(module, "NEVER_RAN_SECONDS", -1.0)
    assert session.queries.take_unused() == [2]
    monkeypatch.undo()
    for query in range(10, 10 + module.MAX_OPEN + 1):
        session.decide(decide([{"id": 0, "operator": "x", "children": []}], query))
    assert list(session.queries._over) == [10]


def test_what_a_query_wrote_is_in_the_catalog(session):
    files = {"root": "file:/silver", "rows": ["r"], "contents": {"part-0": "c"}}
    session.observe({"type": "wrote", "listing": "l", "files": files, "query": 1})
    session.settle(10.0)
    (found,) = session.store.written(["l", "other"]).values()
    assert (found.root, found.rows, found.contents) == ("file:/silver", ("r",), {"part-0": "c"})


def test_the_estimated_saving_is_kept_with_the_entry(session):
    run(session, 1)
    (store,) = run(session, 2)["actions"]
    session.observe(
        {"type": "committed", "entry": store["entry"], "query": 2, "rows": 100, "bytes": 3000, "seconds": 1}
    )
    (load,) = session.decide(decide(report(), 3))["actions"]
    loads = [{"entry": load["entry"], "seconds": 0.1, "rows": 100, "bytes": 3000}]
    session.observe({"type": "executed", **executed(report()[:1], 3, loads)})
    (kept,) = list_entries(session.store)
    assert kept.uses == 1
    assert kept.predicted_seconds == pytest.approx(load["saving"], abs=0.01)
    assert kept.estimated_seconds == pytest.approx(5.5 - 0.05 - 0.03, abs=0.01)
    assert (kept.measured_uses, kept.measured_seconds) == (0, 0.0)
    assert kept.contradictions == 0


def stored_once(session):
    """Two runs of the report; the second one stores its rows."""
    run(session, 1)
    (store,) = run(session, 2)["actions"]
    session.observe(
        {"type": "committed", "entry": store["entry"], "query": 2, "rows": 100, "bytes": 3000, "seconds": 1}
    )
    return store["entry"]


def leases(session):
    return session.store.catalog.read(lambda connection: connection.execute(sa.select(LEASE.c.entry)).all())


def test_an_answer_that_changes_the_order_of_rows_is_taken_back(session):
    first = stored_once(session)
    (load,) = session.decide(decide(report(), 3))["actions"]
    assert (load["kind"], load["entry"]) == ("load", first)
    assert leases(session) == [(first,)]
    before = vars_of(session)
    answer = session.decide(decide(report(), 3, unordered=[[0, first]]))
    (store,) = answer["actions"]
    # Its own rows may be stored beside those that are of no use here.
    assert (store["kind"], store["node"]) == ("store", 0)
    assert leases(session) == []
    assert vars_of(session) == {**before, "hits": before["hits"] - 1, "stores": before["stores"] + 1}
    # Nor could those be read: nothing is stored there, and what was reserved is free again.
    answer = session.decide(decide(report(), 3, unordered=[[0, first], [0, ""]]))
    assert [action["kind"] for action in answer["actions"] if action["node"] == 0] == []
    assert store["entry"] not in {entry.id for entry in list_entries(session.store)}
    assert session.queries._open[3].position == 2


def test_the_later_entry_takes_the_place_of_the_one_that_did_not_fit(session):
    first = stored_once(session)
    (store,) = session.decide(decide(report(), 3, unordered=[[0, first]]))["actions"]
    session.observe({"type": "executed", **executed(report(), 3)})
    session.observe(
        {"type": "committed", "entry": store["entry"], "query": 3, "rows": 100, "bytes": 3000, "seconds": 1}
    )
    assert [entry.id for entry in list_entries(session.store)] == [store["entry"]]
    (load,) = session.decide(decide(report(), 4))["actions"]
    assert (load["kind"], load["entry"]) == ("load", store["entry"])


def test_a_dataframe_that_does_not_fit_is_not_asked_for_again(session):
    shared = [frame(report()[0], ref="s0", node=0, seen=1, held=True)]
    message = decide(report(), 1, confs={"firstUseOverhead": 0.1}, shared=shared)
    assert [action["ref"] for action in session.decide(message)["actions"]] == ["s0"]
    answer = session.decide({"type": "again", "query": 1, "shared": shared, "unordered": [[0, "s0"]]})
    assert [(action["ref"], action["inMemory"]) for action in answer["actions"]] == [(None, True)]
    assert list_entries(session.store) == []


@pytest.mark.parametrize("unordered", [[[0]], [["x", "e"]], 7])
def test_what_is_told_of_orders_is_checked(session, unordered):
    with pytest.raises(Unreadable, match="unordered"):
        session.decide(decide(report(), 1, unordered=unordered))


def test_of_a_query_whose_plan_was_not_sent_nothing_is_decided(session):
    with pytest.raises(InvalidRequest, match="query 7 is not known"):
        session.decide({"type": "again", "query": 7})


def vars_of(session):
    counters = session.counters
    return {name: getattr(counters, name) for name in counters.__slots__}


def test_copies_that_are_loaded_share_one_saving(session):
    """A join of two copies of the same rows: Spark would have reused the exchange of the first."""

    def joined():
        left, right = report(), report()
        for number, each in enumerate(right):
            each["id"] = len(left) + number + 1
            each["children"] = [len(left) + child + 1 for child in each["children"]]
        for each in left:
            each["id"], each["children"] = each["id"] + 1, [child + 1 for child in each["children"]]
        return [node(0, "Join", (1, len(left) + 1), "joined"), *left, *right]

    run(session, 1)
    (store,) = run(session, 2)["actions"]
    session.observe(
        {"type": "committed", "entry": store["entry"], "query": 2, "rows": 100, "bytes": 3000, "seconds": 1}
    )
    (alone,) = session.decide(decide(report(), 3))["actions"]
    one, other = session.decide(decide(joined(), 4))["actions"]
    assert one["entry"] == other["entry"] == alone["entry"]
    assert one["saving"] == other["saving"]
    # Two reads, in the middle of a plan, where one was on top.
    more = READ_OVERHEAD_SECONDS + 2 * len(joined()) * PLANNED_AGAIN_SECONDS_PER_NODE
    assert one["saving"] + other["saving"] == pytest.approx(alone["saving"] - more, abs=0.01)
    loads = [{"entry": alone["entry"], "seconds": 0.2, "rows": 100, "bytes": 3000}]
    session.observe({"type": "executed", **executed(joined()[:1], 4, loads)})
    (kept,) = list_entries(session.store)
    assert kept.predicted_seconds == pytest.approx(one["saving"] + other["saving"], abs=0.01)
    assert kept.estimated_seconds == pytest.approx(5.5 - 0.1 - 2 * 0.03, abs=0.01)
    assert kept.contradictions == 0


def test_loaded_operators_teach_demand_but_no_time(session):
    run(session, 1)
    (store,) = run(session, 2)["actions"]
    session.observe(
        {"type": "committed", "entry": store["entry"], "query": 2, "rows": 100, "bytes": 3000, "seconds": 1}
    )
    (load,) = session.decide(decide(report(), 3))["actions"]
    loads = [{"entry": load["entry"], "seconds": 0.1, "rows": 100, "bytes": 3000}]
    session.observe({"type": "executed", **executed(report()[:1], 3, loads)})
    view = session.graph.view(parse_plan(read(decide(report(), 4)).plan), 20)
    for each in report():
        (variant,) = view.variants[each["lineage"]]
        assert (variant.demands, variant.executions, variant.seconds.count) == (3, 2, 2)


def test_where_one_place_reads_what_another_computed_nobody_counts():
    """A third place that runs by itself, beside two that share, is no sign of how often Spark would compute it."""
    raw = [node(0, "Union", (1, 2, 3), "all"), *(node(number, "Join", (), "join") for number in (1, 2, 3))]
    tree = parse_plan(read(decide(raw, 1)).plan)
    event = read({"type": "executed"} | executed(raw, 1))
    (apart,) = [each for each in observation_of(event, tree, set()).variants if each.kind == "Join"]
    assert (apart.executions, apart.seconds.count) == (1, 3)
    (shared,) = [each for each in observation_of(event, tree, {1, 2}).variants if each.kind == "Join"]
    assert (shared.executions, shared.seconds.count) == (0, 0)


def test_what_outgrew_its_reservation_gets_more_room_but_never_more_than_there_is(session):
    run(session, 1)
    (store,) = run(session, 2)["actions"]
    given_up = {"type": "abandoned", "query": 2, "detail": ""}
    session.observe(given_up | {"entry": store["entry"], "code": "OVER_BUDGET"})
    (second,) = run(session, 3)["actions"]
    assert second["maxBytes"] == 4 * 4 * store["maxBytes"]  # four times what it needs, and that in an empty store
    session.observe(given_up | {"entry": second["entry"], "code": "NOT_WORTH_WRITING"})
    tight = session.decide(decide(report(), 4, confs={"maxBytes": 3 * store["maxBytes"]}))
    (third,) = tight["actions"]
    assert third["maxBytes"] == 3 * store["maxBytes"]


def test_what_outgrew_its_reservation_teaches_that_rows_take_more_than_was_expected(session, monkeypatch):
    monkeypatch.setitem(MEASURED, "Aggregate", (100_000, 8_000_000, 1.0))
    session.graph.learn("ratio", 0.05)
    run(session, 1)
    (store,) = run(session, 2)["actions"]
    session.observe({"type": "abandoned", "query": 2, "entry": store["entry"], "code": "OVER_BUDGET", "detail": ""})
    assert session.graph.calibration["ratio"] > 0.05


def test_failed_queries_teach_nothing(session):
    session.decide(decide(report(), 1))
    session.observe({"type": "executed", **executed(report(), 1, outcome="failed")})
    assert {d["code"] for d in session.decide(decide(report(), 2))["declines"]} == {"NO_HISTORY"}


def test_a_column_given_twice_is_stored_once(session):
    """The shim writes it once, and refuses an entry whose manifest names other columns than the answer does."""

    def twice():
        top, *rest = report()
        return [top | {"columns": ["k", "sum", "k", "sum"]}, *rest]

    session.decide(decide(twice(), 1))
    session.observe({"type": "executed", **executed(twice(), 1)})
    (store,) = session.decide(decide(twice(), 2))["actions"]
    assert (store["kind"], len(store["columns"])) == ("store", 2)
    session.observe({"type": "committed", "entry": store["entry"], "query": 2, "rows": 1, "bytes": 1, "seconds": 0.1})
    (load,) = session.decide(decide(twice(), 3))["actions"]
    assert (load["kind"], load["columns"]) == ("load", store["columns"])


def shared_run(session, query, seconds):
    """A union of two aggregates over one join, where nothing can be stored; whether the join was shared."""
    nodes = [node(0, "Union", (1, 5), core="union", columns=("k", "sum"))]
    for number, each in ((1, "agg1"), (5, "agg2")):
        nodes += [
            node(number, "Aggregate", (number + 1,), core=each, columns=("k", "sum")),
            node(number + 1, "Join", (number + 2, number + 3), core="join", columns=("a", f"b{number}")),
            node(number + 2, "Relation", (), core="left", columns=("a", "x")),
            node(number + 3, "Relation", (), core="right", columns=("b", "x")),
        ]
    join = nodes[2]
    group = {"nodes": [2, 6], "copies": [2, 6], "exact": True, "exchange": True, "rowBytes": 60}
    group |= {name: join[name] for name in ("lineage", "core", "conjuncts", "columns")}
    confs = {"maxBytes": 0, "sharing": True}
    answer = session.decide(decide(nodes, query, confs=confs, repeated=[group]))
    session.observe({"type": "executed", **executed(nodes, query, seconds=seconds)})
    return [action["node"] for action in answer["actions"] if action["kind"] == "share"], answer["declines"]


def test_sharing_that_disappoints_is_withdrawn_and_the_catalog_knows(session):
    assert shared_run(session, 1, seconds=10.0)[0] == []
    assert shared_run(session, 2, seconds=12.0)[0] == [2, 6]
    session.graph.flush()
    later = PatientSession(
        session.store,
        OperatorGraph(session.store.catalog, session.run, session.graph.location),
        session.run,
        Counters(),
    )
    shared, declines = shared_run(later, 3, seconds=10.0)
    assert shared == []
    assert [d["detail"] for d in declines if d["code"] == "DISAPPOINTED"] == ["12.00 s with it, 10.00 s without"]


def test_sharing_that_helps_goes_on(session):
    shared_run(session, 1, seconds=12.0)
    assert [shared_run(session, query, seconds=8.0)[0] for query in (2, 3, 4)] == [[2, 6]] * 3


TOP = {"key": "report", "core": "c", "lineage": report()[0]["lineage"]}


def ended(session, query, **more):
    event = executed(report(), query) | {"alone": True, "queries": [query]} | more
    session.observe({"type": "executed", **event})


def plain_runs(session, query):
    """Two runs without any action: a cold one, and a warm one."""
    for number, seconds in ((query, 9.0), (query + 1, 4.5)):
        assert session.decide(decide(report(), number, mode="observe", top=TOP))["baseline"] is None
        ended(session, number, seconds=seconds, deciding=0.5, writeSeconds=0.0)


def test_plain_runs_are_kept_by_the_state_of_the_machine(session):
    plain_runs(session, 1)
    session.graph.flush()
    session.graph._seen = -1  # from the catalog
    view = session.graph.seen(TOP["key"])
    assert {each.kind: each.seconds.mean for each in view.variants[TOP["key"]]} == {
        "Query plain cold": 8.5,
        "Query plain warm": 4.0,
    }
    (store,) = session.decide(decide(report(), 4, top=TOP))["actions"]
    assert session.decide(decide(report(), 5, top=TOP))["baseline"] == {"state": "warm", "seconds": 4.0, "runs": 1}
    # A run that only stores is plain, but for what storing took.
    ended(session, 4, seconds=7.5, deciding=0.5, writeSeconds=4.0)
    assert session.decide(decide(report(), 6, top=TOP))["baseline"]["runs"] == 2
    assert session.decide(decide(report(), 7, top=TOP))["baseline"]["seconds"] == pytest.approx((4.0 + 5.0) / 2)
    assert store["kind"] == "store"
    # Beside others, after a failure, or without a name, a run teaches nothing of the whole query.
    session.decide(decide(report(), 8, top=TOP))
    ended(session, 8, seconds=70.0, alone=False)
    session.decide(decide(report(), 9, top=TOP))
    ended(session, 9, seconds=70.0, outcome="failed")
    session.decide(decide(report(), 10))
    ended(session, 10, seconds=70.0)
    assert session.decide(decide(report(), 11, top=TOP))["baseline"]["runs"] == 2


def loaded(session, query, saved):
    """A run that reads what is stored, and saves so much as measured."""
    answer = session.decide(decide(report(), query, top=TOP))
    for load in answer["actions"]:
        loads = [{"entry": load["entry"], "seconds": 0.1, "rows": 100, "bytes": 3000}]
        event = executed(report()[:1], query, loads) | {"saved": saved, "alone": True, "queries": [query]}
        session.observe({"type": "executed", **event})
    return answer


def test_a_read_that_lost_in_three_measured_runs_is_not_made_again(session):
    stored_once(session)
    for query in (3, 4):
        assert [each["kind"] for each in loaded(session, query, -0.5)["actions"]] == ["load"]
    (entry,) = list_entries(session.store)
    assert (entry.measured_uses, entry.estimated_seconds) == (2, 0.0)
    assert entry.measured_seconds == pytest.approx(-1.0, abs=1e-4)
    # The entry is shadowed by then, since its saving contradicts what was predicted twice: as another one would be.
    session.store.catalog.write(lambda found: found.execute(sa.update(ENTRY).values(contradictions=0)))
    loaded(session, 5, -0.5)
    session.store.catalog.write(lambda found: found.execute(sa.update(ENTRY).values(contradictions=0)))
    answer = loaded(session, 6, -0.5)
    assert not [each for each in answer["actions"] if each["kind"] in ("load", "store")]
    detail = "0.50 s more than plain Spark, in the mean of 3 runs"
    assert {"node": 0, "code": "LOST", "detail": detail} in answer["declines"]


def test_a_difference_switches_a_lineage_off_at_once_and_for_good(session):
    name = stored_once(session)
    message = decide(report(), 3, top=TOP, confs={"verify": 1.0})
    answer = session.decide(message)
    assert (answer["verify"], [each["kind"] for each in answer["actions"]]) == (True, ["load"])
    assert session.decide(decide(report(), 4, top=TOP))["verify"] is False
    ended(session, 3, seconds=1.0)
    session.observe({"type": "verified", "query": 3, "same": False, "detail": "1 of 3 rows"})
    for _ in range(2):
        after = session.decide(decide(report(), 5, top=TOP))
        assert after["actions"] == []
        assert {"node": 0, "code": "DIFFERS", "detail": "1 of 3 rows"} in after["declines"]
        session.settle(5.0)
    assert name not in {entry.id for entry in list_entries(session.store) if entry.state == "committed"}
    off = session.store.catalog.read(listed)
    assert {each.lineage for each in off} >= {TOP["lineage"]}
    assert session.store.catalog.write(lambda found: lift(found, TOP["lineage"])) == [TOP["lineage"]]
    assert session.store.catalog.read(listed) == [each for each in off if each.lineage != TOP["lineage"]]


def test_sorts_with_ties_are_told_to_the_next_application_once(session):
    assert session.decide(decide(report(), 1)).get("tied", []) == []
    for digest in ("a" * 32, "b" * 32, "a" * 32):
        session.observe({"type": "tied", "digest": digest, "query": 1})
    session.settle(5.0)
    run = session.store.begin("app-2", "job")
    following = PatientSession(
        session.store, OperatorGraph(session.store.catalog, run, session.graph.location), run, Counters()
    )
    assert sorted(following.decide(decide(report(), 1))["tied"]) == ["a" * 32, "b" * 32]
    assert following.decide(decide(report(), 2)).get("tied", []) == []


def test_a_pair_is_a_warm_plain_run_and_a_measured_choice(session):
    stored_once(session)
    session.decide(decide(report(), 3, top=TOP, confs={"verify": 1.0}))
    ended(session, 3, seconds=1.0)
    session.observe({"type": "verified", "query": 3, "same": True, "plain": 6.0, "saved": 5.0})
    assert session.decide(decide(report(), 4, top=TOP))["baseline"] == {"state": "warm", "seconds": 6.0, "runs": 1}
    view = session.graph.seen(TOP["lineage"])
    assert [
        (each.kind, each.seconds.mean) for each in view.variants[TOP["lineage"]] if each.kind.startswith("Saved")
    ] == [("Saved by load", 5.0)]


def test_who_runs_both_ways_is_drawn_by_the_share(session):
    stored_once(session)
    drawn = [session.decide(decide(report(), 10 + n, top=TOP, confs={"verify": 0.25}))["verify"] for n in range(200)]
    assert 25 <= sum(drawn) <= 75
    again = [session.decide(decide(report(), 10 + n, top=TOP, confs={"verify": 0.25}))["verify"] for n in range(200)]
    assert again == drawn
