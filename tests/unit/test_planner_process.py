"""The real process, over the real wire."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest
from wire_client import PlannerProcess, decide, executed, node, report

from spark_regions.platforms.installed import usable_engines
from spark_regions.reasons import REASONS
from spark_regions.store.admin import doctor
from tests.harness.processes import ROOT


@pytest.fixture
def planner(tmp_path):
    with PlannerProcess(tmp_path / "store") as running:
        yield running


def until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("not in time")


def kinds(answer):
    return [(action["kind"], action["node"]) for action in answer["actions"]]


def run_query(wire, query, nodes=None, **more):
    """Decide, and do what a driver would do."""
    nodes = nodes or report()
    answer = wire.ask(decide(nodes, query, **more))
    loads = []
    for action in answer["actions"]:
        if action["kind"] == "store":
            wire.observe("committed", entry=action["entry"], query=query, rows=100, bytes=3000, files=2, seconds=0.1)
        if action["kind"] == "load":
            loads.append({"entry": action["entry"], "seconds": 0.05, "rows": 100, "bytes": 3000})
    ran = [each for each in nodes if each["id"] == 0] if loads else nodes
    wire.observe("executed", **executed(ran, query, loads))
    until(lambda: wire.status()["behind"] == 0)
    return answer


def test_a_detailed_status_lists_entries_and_the_most_used_operators(planner):
    wire = planner.connect()
    assert wire.status()["entryList"] is None
    for query in (1, 2, 3):
        run_query(wire, query)

    def seen_all():
        """The facts once the last query is among them: events are taken in after they are sent."""
        found = wire.ask({"type": "status", "detail": True})
        uses = [each["uses"] for each in found["graph"]["nodes"]]
        return found if not found["stale"] and max(uses, default=0) == 3 else None

    settled = until(seen_all)
    facts = wire.ask({"type": "status", "detail": True, "end": True})
    assert settled["graph"] == facts["graph"]
    (entry,) = facts["entryList"]
    assert (entry["state"], entry["rows"], entry["bytes"], entry["uses"]) == ("committed", 100, 3000, 1)
    assert entry["benefit"] > 0 and entry["location"].endswith(entry["entry"]) and entry["query"] == 2
    nodes, edges = facts["graph"]["nodes"], facts["graph"]["edges"]
    assert [each["uses"] for each in nodes] == sorted((each["uses"] for each in nodes), reverse=True)
    assert max(each["uses"] for each in nodes) == 3 and facts["graphOperators"] >= len(nodes)
    lineages = {each["lineage"] for each in nodes}
    assert edges and {end for edge in edges for end in edge} <= lineages
    assert [each["stored"] for each in nodes if each["lineage"] == entry["lineage"]] == [True]
    assert not facts["truncated"] and facts["evictions"] == 0


def test_store_at_the_second_sight_and_load_at_the_third(planner):
    wire = planner.connect()
    first, second, third = (run_query(wire, query) for query in (1, 2, 3))
    assert first["actions"] == []
    assert {each["code"] for each in first["declines"]} == {"NO_HISTORY"}
    (store,) = second["actions"]
    assert (store["kind"], store["node"], store["reason"], store["ref"]) == ("store", 0, "SKI_RENTAL", None)
    assert store["columns"] == report()[0]["columns"]
    assert store["location"].startswith("file:///")
    assert store["saving"] > 4
    (load,) = third["actions"]
    assert (load["kind"], load["node"], load["entry"], load["location"]) == (
        "load",
        0,
        store["entry"],
        store["location"],
    )
    assert load["columns"] == store["columns"]
    status = wire.status()
    assert (status["entries"], status["bytes"], status["hits"], status["errors"]) == (1, 3000, 1, 0)
    assert status["rssBytes"] < 150e6


def test_another_application_loads_what_the_first_stored(tmp_path):
    with PlannerProcess(tmp_path) as first:
        wire = first.connect("app-1")
        run_query(wire, 1)
        run_query(wire, 2)
        wire.observe("end")
        wire.status()
    with PlannerProcess(tmp_path) as second:
        assert kinds(second.connect("app-2").ask(decide(report(), 1, "app-2"))) == [("load", 0)]


def test_history_of_one_run_is_used_in_the_next_at_once(tmp_path):
    with PlannerProcess(tmp_path) as first:
        wire = first.connect("app-1")
        run_query(wire, 1)
        wire.observe("end")
        wire.status()
    with PlannerProcess(tmp_path) as second:
        (store,) = second.connect("app-2").ask(decide(report(), 1, "app-2"))["actions"]
        assert (store["kind"], store["reason"]) == ("store", "BENEFIT")


def test_two_planners_at_once_share_entries_and_write_one_result_once(tmp_path):
    with PlannerProcess(tmp_path) as one, PlannerProcess(tmp_path) as two:
        a, b = one.connect("app-a"), two.connect("app-b")
        run_query(a, 1)
        looking = decide(report(), 1, "app-b", mode="observe")
        until(lambda: "OBSERVE_ONLY" in {each["code"] for each in b.ask(looking)["declines"]})
        (store,) = a.ask(decide(report(), 2, "app-a"))["actions"]
        answer = b.ask(decide(report(), 2, "app-b"))
        assert store["node"] not in [action["node"] for action in answer["actions"]]
        assert "PENDING_ELSEWHERE" in {each["code"] for each in answer["declines"]}
        for action in answer["actions"]:
            b.observe("abandoned", entry=action["entry"], query=2, code="PARTIAL_CONSUMPTION", detail="")
        a.observe("committed", entry=store["entry"], query=2, rows=100, bytes=3000, files=1, seconds=0.1)
        until(lambda: a.status()["behind"] == 0)
        (load,) = b.ask(decide(report(), 3, "app-b"))["actions"]
        assert (load["kind"], load["entry"]) == ("load", store["entry"])


def test_observe_mode_and_switched_off(planner):
    wire = planner.connect()
    run_query(wire, 1)
    observed = wire.ask(decide(report(), 2, mode="observe"))
    assert observed["actions"] == []
    assert (observed["declines"][0]["node"], observed["declines"][0]["code"]) == (0, "OBSERVE_ONLY")
    off = wire.ask(decide(report(), 3, confs={"recycle": False}))
    assert (off["actions"], off["declines"][0]["code"]) == ([], "RECYCLE_OFF")
    unknown = wire.ask(decide(report(), 4, confs={"strategy": "best"}))
    assert (unknown["actions"], unknown["declines"][0]["code"]) == ([], "UNKNOWN_STRATEGY")


def test_invalid_entries_and_disappointing_ones_are_not_loaded_again(planner):
    wire = planner.connect()
    run_query(wire, 1)
    (store,) = run_query(wire, 2)["actions"]
    for query in (3, 4):
        (load,) = wire.ask(decide(report(), query))["actions"]
        slow = [{"entry": load["entry"], "seconds": 60.0, "rows": 100, "bytes": 3000}]
        wire.observe("executed", **executed(report()[:1], query, slow))
        until(lambda: wire.status()["behind"] == 0)
    shadowed = wire.ask(decide(report(), 5))
    assert ("load", 0) not in kinds(shadowed)
    assert (0, "SHADOWED") in [(each["node"], each["code"]) for each in shadowed["declines"]]
    wire.observe("invalid", entry=store["entry"], code="ENTRY_DAMAGED", detail="x")
    until(lambda: wire.status()["entries"] == 0)


def test_always_stores_and_loads_without_history(planner):
    wire = planner.connect()
    always = {"confs": {"strategy": "always"}}
    assert kinds(run_query(wire, 1, **always)) == [("store", 0)]
    assert kinds(run_query(wire, 2, **always)) == [("load", 0)]
    lone = [node(0, "Relation", (), core="left")]
    assert wire.ask(decide(lone, 3, **always))["actions"] == []


def test_session_nodes_are_persisted_within_the_budget_and_never_written_to_the_catalog(planner, tmp_path):
    wire = planner.connect()
    nodes = [node(0, "Aggregate", (1,), core="agg", session=True), node(1, "RDD", (), core="rdd", session=True)]
    confs = {"confs": {"persistMaxBytes": 10**8}}
    assert run_query(wire, 1, nodes, **confs)["actions"] == []
    (persist,) = run_query(wire, 2, nodes, **confs)["actions"]
    assert (persist["kind"], persist["node"], persist["reason"]) == ("persist", 0, "SKI_RENTAL")
    (recall,) = run_query(wire, 3, nodes, **confs)["actions"]
    assert (recall["kind"], recall["node"], recall["entry"]) == ("recall", 0, persist["entry"])
    wire.observe("persisted", entry=persist["entry"], bytes=99_999_000)
    other = [node(0, "Aggregate", (1,), core="other", session=True), nodes[1]]
    run_query(wire, 4, other, **confs)
    found = [(action["kind"], action["entry"]) for action in run_query(wire, 5, other, **confs)["actions"]]
    assert found[0] == ("unpersist", persist["entry"])
    assert found[1][0] == "persist"


def test_every_reason_of_an_answer_is_in_the_table(planner):
    wire = planner.connect()
    for query in range(1, 6):
        answer = run_query(wire, query)
        for each in (*answer["declines"], *answer["actions"]):
            assert each.get("code", each.get("reason")) in REASONS


def test_garbage_never_ends_the_process(planner):
    wire = planner.connect()
    assert wire.ask({"type": "no such thing"})["code"] == "UNKNOWN_TYPE"
    for broken in (
        decide([], 1),
        decide([{"id": 0, "children": [0]}], 1),
        decide([{"id": 0, "children": [7]}], 1),
        {"type": "again", "query": 7},
    ):
        answer = wire.ask(broken)
        assert answer["type"] == "decision"
        assert answer["actions"] == []
        assert [each["code"] for each in answer["declines"]] == ["PLANNER_PROTOCOL"]
    for unread in (
        {"type": "decide"},
        decide(3, 1),
        decide(report(), 1, confs={"maxBytes": "many"}),
        decide(report(), 1, parallelism="two"),
        decide(report(), 1, colour="red"),
        {"type": "digest_udf", "functions": 3},
    ):
        answer = wire.ask(unread)
        assert (answer["type"], answer["code"]) == ("error", "PLANNER_PROTOCOL")
    for event in ({"type": "committed"}, {"type": "executed", "nodes": [{}]}, {"event": None}, {}):
        wire.say(event)
    assert wire.status()["type"] == "status"
    for bad in (b"[1, 2]", b"not json", b"\xff\xfe", b"{" * 100_000):
        again = planner.connect()
        again.say_bytes(bad)
        assert again.hear() is None
    huge = planner.connect()
    huge.say_bytes(b"x", length=64 * 1024 * 1024 + 1)
    assert huge.hear() is None
    cut = planner.connect()
    cut.say_bytes(b"{}", length=100)
    cut.close()
    assert wire.status()["errors"] >= 0


def test_wrong_token_protocol_and_hello(planner):
    refused = planner.connect(token="guess")
    assert refused.hello["code"] == "BAD_TOKEN"
    assert refused.hear() is None
    wire = planner.connect()
    known = {"type": "hello", "protocol": 1, "version": planner.answer["version"], "seq": 0}
    assert wire.hello == known | {"engines": list(usable_engines())}
    for hello, code in (
        ({"type": "status", "seq": 1}, "BAD_HELLO"),
        ({"type": "hello", "token": "secret-token", "protocol": 2}, "PROTOCOL_MISMATCH"),
        ({"type": "hello", "token": None, "protocol": 1}, "BAD_HELLO"),
        ({"type": "hello", "token": "", "protocol": 1}, "BAD_TOKEN"),
    ):
        wire = type(wire)(planner.answer["port"])
        wire.say(hello)
        assert wire.hear()["code"] == code


def test_end_of_stdin_ends_the_process_and_keeps_what_was_observed(tmp_path):
    planner = PlannerProcess(tmp_path)
    wire = planner.connect()
    wire.observe("executed", **executed(report(), 1))
    wire.status()
    status, seconds, complaints = planner.end()
    assert status == 0
    assert seconds < 1.0  # 100 ms on a machine that does nothing else
    assert complaints == ""
    with PlannerProcess(tmp_path) as again:
        answer = again.connect("app-2").ask(decide(report(), 1, "app-2"))
        assert kinds(answer) == [("store", 0)]


def test_end_of_stdin_while_idle_connections_are_open(tmp_path):
    planner = PlannerProcess(tmp_path)
    wires = [planner.connect() for _ in range(3)]
    assert planner.end()[0] == 0
    assert [wire.hear() for wire in wires] == [None, None, None]


@pytest.mark.parametrize("line", ["", "not json", "[]", "{}", '{"token": 3}', '{"token": "x", "protocol": 99}'])
def test_a_bad_greeting_is_answered(line):
    done = subprocess.run(
        [sys.executable, "-m", "spark_regions.planner"], input=line + "\n", capture_output=True, text=True, cwd=ROOT,
        timeout=20, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"] in ("BAD_GREETING", "PROTOCOL_MISMATCH")


def test_an_unwritable_store_leaves_a_planner_that_declines(tmp_path):
    (tmp_path / "file").write_text("")
    with PlannerProcess(tmp_path / "file" / "below") as planner:
        wire = planner.connect()
        answer = wire.ask(decide(report(), 1))
        assert (answer["actions"], answer["declines"][0]["code"]) == ([], "STORE_UNWRITABLE")
        wire.observe("executed", **executed(report(), 1))
        status = wire.status()
        assert (status["recycle"], status["reasons"][0]["code"]) == ("off", "STORE_UNWRITABLE")


def test_a_corrupt_catalog_is_recreated_and_said(tmp_path):
    home = tmp_path / "v1" / "tests"
    home.mkdir(parents=True)
    (home / "catalog.sqlite").write_bytes(b"garbage" * 1000)
    with PlannerProcess(tmp_path) as planner:
        wire = planner.connect()
        assert [each["code"] for each in wire.status()["reasons"]] == ["CATALOG_RECREATED"]
        run_query(wire, 1)
        assert kinds(run_query(wire, 2)) == [("store", 0)]
    assert len(list(home.glob("catalog.sqlite.corrupt-*"))) == 1
    assert stat.S_IMODE((home / "catalog.sqlite").stat().st_mode) == 0o600


def test_a_catalog_damaged_under_a_running_planner(tmp_path):
    with PlannerProcess(tmp_path) as planner:
        wire = planner.connect()
        run_query(wire, 1)
        file = tmp_path / "v1" / "tests" / "catalog.sqlite"
        for name in (file, *file.parent.glob("catalog.sqlite-*")):
            name.write_bytes(b"garbage" * 2000)
        answers = [wire.ask(decide(report(), query)) for query in (2, 3, 4)]
        assert all(answer["type"] == "decision" for answer in answers)
        assert wire.status()["type"] == "status"


def test_a_killed_planner_leaves_a_usable_store(tmp_path):
    planner = PlannerProcess(tmp_path)
    wire = planner.connect()
    run_query(wire, 1)
    until(lambda: doctor(str(tmp_path), "tests")["operators"])
    (store,) = wire.ask(decide(report(), 2))["actions"]
    os.kill(planner.process.pid, signal.SIGKILL)
    planner.process.wait()
    with PlannerProcess(tmp_path) as again:
        wire = again.connect("app-2")
        # The dead writer's reservation is swept about a second after the start.
        looking = decide(report(), 1, "app-2", mode="observe")
        until(lambda: (0, "OBSERVE_ONLY") in [(d["node"], d["code"]) for d in wire.ask(looking)["declines"]], 15)
        until(lambda: wire.status()["entries"] == 0)
    assert store["entry"]
