"""Which stored results stay: net benefit, ageing, pins; and what people are told of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from builders import entry, signature
from click.testing import CliRunner, Result
from wire_client import PatientSession, decide, executed, node, report

from spark_regions.cli.commands import commands
from spark_regions.costs.money import NO_PRICES, Prices
from spark_regions.dag.digests import digest
from spark_regions.errors import StoreError
from spark_regions.planner.session import Counters
from spark_regions.planner.workload import observed_workload, revalue
from spark_regions.runs.best_set import best_set, ranked
from spark_regions.runs.net_benefit import Place, Query, Workload
from spark_regions.runs.net_benefit import Result as Kept
from spark_regions.stats.frequency import HALF_LIFE_SECONDS
from spark_regions.store.admin import list_entries
from spark_regions.store.admission import density, expired, make_room, next_to_go, supersedes
from spark_regions.store.files import local_path
from spark_regions.store.graph import Batch, write_batch
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.store.store import Store
from spark_regions.wire.messages import Confs

GB = 10**9
CONFS = Confs(max_bytes=GB)


def call(*words: str) -> Result:
    return CliRunner().invoke(commands, words)


def asks(session: PatientSession, query: int, nodes, mode="observe", run=True):
    """A query that is decided on and runs."""
    answer = session.decide(decide(nodes, query, mode=mode))
    if run:
        session.observe({"type": "executed", **executed(nodes, query)})
    return answer


def another_run(
    session: PatientSession, application: str, name: str = "job", prices: Prices = NO_PRICES
) -> PatientSession:
    """Another application on the same store."""
    session.graph.flush()
    store = Store(session.store.catalog, session.store.where)
    run = store.begin(application, name)
    return PatientSession(store, OperatorGraph(store.catalog, run, store.where.data), run, Counters(), prices)


def committed(store: Store, name: str, seconds: float = 5.0, size: int = 100, application: str = "app-1"):
    made = store.new_entry(entry("", signature(name), size, recompute=seconds, application=application, query=3))
    assert store.admit([], [(made, lambda known, leased: [])], GB, 5.0)[1] == {}
    local_path(made.location).mkdir()
    assert store.commit(made.id, 5, size, 0.1, supersedes) == ""
    return made


def at(folder) -> tuple[str, ...]:
    return ("--dir", str(folder), "--namespace", "anna")


def test_what_was_used_long_ago_counts_less():
    used = entry("a", signature("a"), 100, recompute=6.0, recent_uses=4.0)
    assert density(used, 0.0) == pytest.approx(0.24)
    assert density(used, HALF_LIFE_SECONDS) == pytest.approx(0.12)
    assert density(replace(used, net_benefit=3.0), HALF_LIFE_SECONDS) == pytest.approx(0.03)
    assert density(replace(used, net_benefit=3.0, contradictions=2), 0.0) == 0.0


def test_each_use_counts_and_older_ones_fade(session, monkeypatch):
    made = committed(session.store, "a")
    now = session.store.clock()
    session.store.clock = lambda: now + HALF_LIFE_SECONDS
    session.store.used(made.id, session.run, 7, 4.0, 3.0, True, False)
    (kept,) = list_entries(session.store)
    assert kept.recent_uses == pytest.approx(1.5, abs=0.01)
    assert kept.uses == 1


def test_a_pinned_entry_makes_no_room():
    poor, rich = (entry(name, signature(name), 50, recompute=gain) for name, gain in (("poor", 1.0), ("rich", 9.0)))
    assert make_room([poor, rich], 50, 1.0, 100, 0.0, frozenset()).evict == ("poor",)
    pinned = replace(poor, pinned=True)
    assert make_room([pinned, rich], 50, 0.1, 100, 0.0, frozenset()).evict is None
    assert make_room([pinned, rich], 50, 1.0, 100, 0.0, frozenset()).evict == ("rich",)
    assert [each.id for each in next_to_go([pinned, rich], 0.0)] == ["rich"]
    assert (expired(poor, 5.0, 10.0), expired(pinned, 5.0, 10.0)) == (True, False)


def test_pins_stay_within_the_budget(session):
    first, second = committed(session.store, "a"), committed(session.store, "b")
    session.store.pin(first.id, 150)
    session.store.pin(first.id, 150)
    with pytest.raises(StoreError, match=r"Found 100 bytes pinned and 100 to pin, expected at most 150.*Hint: unpin"):
        session.store.pin(second.id, 150)
    session.store.unpin(first.id)
    session.store.pin(second.id, 150)
    assert [each.pinned for each in list_entries(session.store)] == [False, True]


def test_what_is_not_complete_is_not_pinned(session):
    made = session.store.new_entry(entry("", signature("a"), 100))
    session.store.admit([], [(made, lambda known, leased: [])], GB, 5.0)
    with pytest.raises(StoreError, match="one that is pending"):
        session.store.pin(made.id, GB)
    with pytest.raises(StoreError, match="Found none for e0, expected a complete entry"):
        session.store.pin("e0", GB)


def test_a_wider_entry_takes_the_pin_over(session):
    store = session.store
    narrow = committed(store, "a")
    store.pin(narrow.id, GB)
    wide = store.new_entry(entry("", signature("a", ("a", "b")), 200))
    store.admit([], [(wide, lambda known, leased: [])], GB, 5.0)
    local_path(wide.location).mkdir()
    assert store.commit(wide.id, 5, 200, 0.1, supersedes) == ""
    assert [(each.id, each.pinned) for each in list_entries(store)] == [(wide.id, True)]


@pytest.mark.parametrize(("asked", "kept"), [("a", True), ("other", False), (None, True)])
def test_a_pinned_entry_expires_only_after_its_job_read_other_inputs(session, asked, kept):
    """`asked`: what a later run of the job asks for, if there is one."""
    store = session.store
    pinned, other = committed(store, "a"), committed(store, "b")
    store.pin(pinned.id, GB)
    start = store.clock()
    store.clock = lambda: start + 100
    if asked is not None:
        later = store.begin("app-2", "job")
        batch = Batch(queries=1)
        batch.add_edge(signature(asked).lineage, "")
        store.catalog.write(lambda connection: write_batch(connection, batch, later.id))
        assert store.sweep_dead(50.0) == [other.id], "the run is not over, so that it may still ask"
        store.end(later)
    removed = store.sweep_dead(50.0)
    assert (pinned.id in removed) == (not kept)


def test_the_set_by_bytes_or_by_benefit_whichever_is_better():
    """The example of `best_set`."""
    workload = Workload(
        (Kept("A", 60), Kept("B", 50)), (Query(1, (Place(-1, {0: 9.0}),)), Query(1, (Place(-1, {1: 8.0}),)))
    )
    found = best_set(workload, 100)
    assert (list(found.gains), found.net, found.bytes) == ([0], 9.0, 60)
    assert found.bound == pytest.approx(15.5)


def test_what_a_result_above_spares_is_no_benefit_of_one_below():
    """A (4 s) is below B (5 s) in one query, and alone in others: only those count for it."""
    both = Query(1.0, (Place(-1, {1: 5.0}), Place(0, {0: 4.0})))
    workload = Workload((Kept("A", 100), Kept("B", 10)), (both,))
    assert ranked(workload) == {0: 0.0, 1: 5.0}
    assert ranked(Workload(workload.results, (both, Query(2.0, (Place(-1, {0: 4.0}),))))) == {0: 8.0, 1: 5.0}


def test_nothing_is_chosen_that_costs_more_than_it_saves():
    once = Workload((Kept("A", 1, cost=5.0),), (Query(1.0, (Place(-1, {0: 4.0}),)),))
    assert best_set(once, 10).gains == {}
    assert best_set(Workload(once.results, (Query(2.0, once.queries[0].places),)), 10).gains == {0: 3.0}


def test_two_jobs_of_a_namespace_make_one_workload(session):
    """The join is below two aggregates, of two applications that were only observed."""
    asks(session, 1, report())
    other = another_run(session, "app-2", "other job")
    asks(other, 1, report("another"))
    other.graph.flush()
    found = observed_workload(session.store, CONFS, Prices())
    assert [(each.job, each.per_run, each.of_runs) for each in found.asked] == [("other job", 1.0, 1), ("job", 1.0, 1)]
    # On two cores: 4 s of scans and 6 s of the join, and a second for each aggregate.
    assert [each.seconds for each in found.asked] == pytest.approx([5.5, 5.5])
    best = best_set(found.workload, GB)
    by_operator = {found.entries[number].operator: gain for number, gain in best.gains.items()}
    assert by_operator.keys() == {"Aggregate"}, "both, as they are small"
    small = set(best.gains)
    (join,) = [number for number, each in enumerate(found.entries) if each.operator == "Join"]
    assert found.workload.saved(small | {join}) == pytest.approx(found.workload.saved(small))
    assert found.workload.saved({join}) == pytest.approx(2 * 4.95, abs=0.1)


def test_what_runs_share_counts_once_a_run(session):
    for number in (2, 3):
        asks(session, 1, report())
        session = another_run(session, f"app-{number}")
    found = observed_workload(session.store, CONFS, Prices())
    (asked,) = found.asked
    assert (asked.times, asked.of_runs, asked.per_run) == (2, 2, 1.0)
    assert asked.weight == pytest.approx(2.0, abs=0.01)
    assert asked.per_day == pytest.approx(2.0)


def test_reads_that_no_recorded_query_shows_count(session):
    made = committed(session.store, "a", seconds=4.0)
    for query in range(3):
        session.store.used(made.id, session.run, query, 4.0, 3.0, False, False)
    found = observed_workload(session.store, CONFS, Prices())
    assert found.asked == ()
    assert ranked(found.stored())[0] == pytest.approx(4 * (4.0 - 0.03), abs=0.01)


def test_entries_are_worth_what_the_workload_loses_with_them(session):
    for query in (1, 2):
        asks(session, query, report())
    answer = asks(session, 3, report(), mode="apply")
    (store,) = answer["actions"]
    session.observe(
        {"type": "committed", "entry": store["entry"], "query": 3, "rows": 100, "bytes": 3000, "seconds": 0.1}
    )
    idle = committed(session.store, "idle", seconds=0.01)
    session.graph.flush()
    others = revalue(session.store, CONFS, Prices())
    worths = {each.id: each.net_benefit for each in list_entries(session.store)}
    assert worths[store["entry"]] == pytest.approx(3 * 5.47, abs=0.2)
    assert worths[idle.id] == 0.0
    assert next_to_go(list_entries(session.store), session.store.clock())[0].id == idle.id
    join = next(each for each in report() if each["operator"] == "Join")
    assert others == {join["lineage"]: 0.0}, "the aggregate above spares it"


def test_it_is_worked_out_where_room_may_be_needed_and_something_changed(session):
    asks(session, 1, report())
    committed(session.store, "a", size=600)
    session.graph.flush()
    session.worths.work_out(Confs(), 0)
    assert session.effects.worths == {}, "no query has told the budget"
    session.confs = Confs(max_bytes=2000)
    session.worths.work_out(session.confs, 0)
    assert session.effects.worths == {}, "the store is not half full"
    session.confs = Confs(max_bytes=1000)
    session.worths.work_out(session.confs, 0)
    assert len(session.effects.worths) == 2
    session.effects.worths = {}
    session.worths.work_out(session.confs, 0)
    assert session.effects.worths == {}, "nothing new was stored"


def test_prices_make_reading_and_holding_cost(session):
    asks(session, 1, report())
    asks(session, 2, report())
    session.graph.flush()
    free = observed_workload(session.store, CONFS, Prices(core_hour=3600.0))
    seconds = observed_workload(session.store, CONFS, Prices())
    everything = set(range(len(free.entries)))
    assert free.workload.saved(everything) == pytest.approx(2 * seconds.workload.saved(everything)), "on two cores"
    dear = observed_workload(session.store, CONFS, Prices(core_hour=1e-6, gb_month=1e6))
    assert best_set(dear.workload, GB).gains == {}
    read = observed_workload(session.store, CONFS, Prices(core_hour=1e-6, gb_read=1e6))
    assert read.workload.saved(everything) == 0.0


def test_a_result_is_stored_or_read_only_if_that_saves_money(session):
    """The aggregate takes 5.5 s: it is stored, and read, unless that costs more than the cores would."""
    asks(session, 1, report(), mode="apply")

    def actions(name: str, prices: Prices) -> list[str]:
        later = another_run(session, name, "another job", prices)
        return [each["kind"] for each in asks(later, 1, report(), mode="apply", run=False)["actions"]]

    cheap = Prices(core_hour=0.05)
    assert actions("app-2", Prices(core_hour=1e-9, gb_month=1e9)) == []
    assert actions("app-3", cheap) == ["store"]
    (pending,) = list_entries(session.store)
    local_path(pending.location).mkdir()
    assert session.store.commit(pending.id, 100, 2400, 0.1, supersedes) == ""
    assert actions("app-4", Prices(core_hour=1e-9, gb_read=1e9)) == []
    assert actions("app-5", cheap) == ["load"]


def test_pin_why_and_unpin_on_the_command_line(session, tmp_path):
    made = committed(session.store, "a", seconds=5.0)
    session.store.used(made.id, session.run, 9, 4.0, 3.0, True, False)
    assert call("cache", "pin", made.id[:8], *at(tmp_path)).stdout == f"Pinned {made.id}.\n"
    told = call("cache", "why", made.id, *at(tmp_path)).stdout
    assert "made by    job (app-1), query 3" in told
    assert "job, query 9" in told and "3.00 s measured" in told
    assert "stays      whatever room is needed for, since it is pinned" in told
    assert f"{made.id[:13]}*" in call("cache", "ls", *at(tmp_path)).stdout
    assert call("cache", "unpin", made.id, *at(tmp_path)).stdout == f"Unpinned {made.id}.\n"
    assert call("cache", "unpin", made.id, *at(tmp_path)).stdout == f"{made.id} was not pinned.\n"
    assert "number 1 of 1 to go when room is needed; goes in 6 d" in call("cache", "why", made.id, *at(tmp_path)).stdout
    facts = json.loads(call("cache", "why", made.id, "--json", *at(tmp_path)).stdout)
    assert [(use["job"], use["query"], use["saved"], use["measured"]) for use in facts["used_by"]] == [
        ("job", 9, 3.0, True)
    ]
    assert facts["worth"] == pytest.approx(2 * (5 - 0.03), abs=0.05)


def test_pins_beyond_the_budget_are_an_error(session, tmp_path, monkeypatch):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.regions.recycle.maxBytes 50b\n", encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    made = committed(session.store, "a")
    result = call("cache", "pin", made.id, *at(tmp_path))
    assert "Found 0 bytes pinned and 100 to pin, expected at most 50 in all. Hint: " in str(result.exception)
    unknown = call("cache", "pin", "nothing", *at(tmp_path))
    assert "No single entry starts with nothing. Hint: " in str(unknown.exception)


def test_ls_sorts(session, tmp_path):
    small = committed(session.store, "small", seconds=9.0, size=10)
    large = committed(session.store, "large", seconds=1.0, size=1000)
    session.store.used(small.id, session.run, 1, 9.0, 8.0, True, False)
    session.store.used(large.id, session.run, 2, 1.0, 0.5, True, False)

    def ids(sort: str) -> list[str]:
        return [each["id"] for each in json.loads(call("cache", "ls", "--sort", sort, "--json", *at(tmp_path)).stdout)]

    assert ids("used") == ids("bytes") == [large.id, small.id]
    assert ids("saved") == ids("net") == [small.id, large.id]
    assert "17.9 s" in call("cache", "ls", "--sort", "net", *at(tmp_path)).stdout
    assert "Invalid value for '--sort'" in call("cache", "ls", "--sort", "age", *at(tmp_path)).output


def test_advise_says_what_to_store_and_what_that_saves(session, tmp_path):
    for query, name in ((1, "agg"), (2, "agg"), (3, "another")):
        asks(session, query, report(name))
    session.graph.flush()
    facts = json.loads(call("advise", "--json", "--exact", *at(tmp_path)).stdout)
    assert facts["queries"] == 2
    assert [(each["operator"], each["entry"]) for each in facts["results"]] == [("Aggregate", None)] * 2
    assert facts["results"][0]["read_by"] == {"job": [0]}
    (job,) = facts["jobs"]
    assert job["seconds_per_run"] == pytest.approx(16.5)
    assert job["saved_per_run"] == pytest.approx(16.4, abs=0.2)
    assert facts["saved_per_day"] == pytest.approx(job["saved_per_run"])
    assert facts["net_benefit"] == pytest.approx(facts["exact_net_benefit"], rel=0.01)
    assert facts["net_benefit"] <= facts["bound"] + 1e-9
    told = call("advise", *at(tmp_path)).stdout
    assert "to store" in told
    assert "2 results" in told
    assert "job: saves 16.4 s of a run of 16.5 s, 1.0 runs a day (1 recorded)" in told


def test_advise_keeps_within_a_budget(session, tmp_path):
    asks(session, 1, report())
    asks(session, 2, report())
    session.graph.flush()
    facts = json.loads(call("advise", "--json", "--max-bytes", "1k", *at(tmp_path)).stdout)
    assert (facts["results"], facts["bytes"]) == ([], 0)
    assert "found '1x'" in call("advise", "--max-bytes", "1x", *at(tmp_path)).output


def test_advise_says_where_nothing_was_observed(session, tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        result = call("advise", *at(folder))
        assert result.exit_code == 0
        assert result.stdout.startswith("Nothing was observed in ")
        assert json.loads(call("advise", "--json", *at(folder)).stdout)["results"] == []
    assert not (tmp_path / "none").exists()


def test_advise_in_money(session, tmp_path, monkeypatch):
    (tmp_path / "conf").mkdir()
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.write_text("spark.regions.price.coreHour 3600\n", encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    asks(session, 1, report())
    asks(session, 2, report())
    session.graph.flush()
    facts = json.loads(call("advise", "--json", *at(tmp_path)).stdout)
    assert facts["unit"] == "money"
    assert facts["jobs"][0]["saved_per_run"] == pytest.approx(2 * 2 * 5.47, abs=0.2)
    defaults.write_text("spark.regions.price.coreHour much\n", encoding="utf-8")
    assert "found 'much', expected a number such as 0.05" in str(call("advise", *at(tmp_path)).exception)


def test_a_query_that_is_not_to_be_read_is_no_place(session):
    private = [node(0, "Aggregate", (1,), core="p", columns=("k",), session=True, storable=False)]
    private.append(node(1, "Relation", (), core="left"))
    asks(session, 1, private)
    session.graph.flush()
    found = observed_workload(session.store, CONFS, Prices())
    assert [query.places for query in found.workload.queries] == [()]
    assert digest(["p"]) not in {each.core for each in found.entries}
