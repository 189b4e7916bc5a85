"""The Regions tab of a running application and in the History Server, its JSON, and the metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_regions.spark.jar import jar_path
from tests.spark.ui_job import SECRET
from tests.ui import Application, Served, history_server, texts

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAGES = ("/regions/", "/regions/cache/", "/regions/graph/", "/regions/lost/")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ui")


@pytest.fixture(scope="module")
def application(folder: Path) -> Iterator[Application]:
    started = Application(folder)
    try:
        assert started.ask("run") == {"rows": 100, "same": True}
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module")
def decisions(application: Application) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = application.ask("decisions")
    return found


@pytest.fixture(scope="module")
def overview(application: Application) -> dict[str, Any]:
    def settled(facts: Any) -> bool:
        ended = [q for q in facts["queries"] if q["outcome"] == "ok"]
        return len(ended) >= 4 and facts["saved"]["loadsMeasured"] >= 1 and facts["held"]["entries"] >= 1

    facts: dict[str, Any] = application.ui.until("/regions/json", settled)
    return facts


def loaded(overview: dict[str, Any]) -> dict[str, Any]:
    return next(query for query in overview["queries"] if "load" in query["applied"])


def figures(decisions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [decision for decision in decisions if decision["kind"] == kind]


def test_the_overview_has_the_figures_of_the_decisions(
    overview: dict[str, Any], decisions: list[dict[str, Any]]
) -> None:
    assert overview["planner"]["healthy"] and overview["mode"] == "apply" and overview["strategy"] == "always"
    for kind in ("load", "store", "committed"):
        assert overview["actions"].get(kind, 0) == len(figures(decisions, kind))
    assert len(figures(decisions, "load")) >= 1
    predicted = sum(decision["predicted_seconds"] for decision in figures(decisions, "load"))
    assert overview["saved"]["predicted"] == pytest.approx(predicted, abs=1e-6)
    assert sum(overview["declines"].values()) == len([d for d in decisions if d["kind"] == "decline"])
    assert overview["confs"]["spark.regions.recycle.strategy"] == "always"


def test_a_query_s_page_shows_its_regions_and_what_was_read(
    application: Application, overview: dict[str, Any], decisions: list[dict[str, Any]]
) -> None:
    query = loaded(overview)
    facts = application.ui.json(f"/regions/execution/json?id={query['executionId']}")
    shown = facts["queries"][0]
    main = next(d for d in shown["decisions"] if d["session"] and not d["topic"])
    load = next(a for a in main["actions"] if a["kind"] == "load")
    listed = next(d for d in figures(decisions, "load") if d["query"] == query["query"])
    assert (load["entry"], load["savingSeconds"]) == (listed["entry"], listed["predicted_seconds"])
    assert main["regions"]["regions"] and shown["loads"][0]["entry"] == load["entry"]
    page = application.ui.get(f"/regions/execution/?id={query['executionId']}")
    said = texts(page)
    assert f"page of SQL execution {query['executionId']}" in said
    assert f"▼ loaded {load['entry'][:9]}" in said and "not computed" in said
    # What stands below the load was not computed, and is one box.
    children = {node["id"]: node["children"] for node in shown["nodes"]}
    spared, below = set(), list(children[load["node"]])
    while below:
        spared.add(below[-1])
        below += children[below.pop()]
    assert spared and f"{len(spared)} operators not computed" in said
    assert 'role="img"' in page and page.count('class="regions-box') == len(shown["nodes"]) - len(spared) + 1


def test_a_decline_is_shown_with_its_reason(application: Application, overview: dict[str, Any]) -> None:
    assert overview["declines"]["NONDETERMINISTIC"] >= 1
    said = texts(application.ui.get("/regions/"))
    assert "NONDETERMINISTIC The expression may give another value in another run" in said


def test_cache_and_graph(application: Application, overview: dict[str, Any]) -> None:
    entries = application.ui.until("/regions/cache/json", lambda facts: any(e.get("uses") for e in facts["entries"]))[
        "entries"
    ]
    used = next(entry for entry in entries if entry.get("uses"))
    assert used["state"] == "committed" and used["name"] == "ui job" and used["here"] and used["benefit"] >= 0
    graph = application.ui.until("/regions/graph/json", lambda facts: facts["nodes"] and facts["edges"])
    uses = [node["uses"] for node in graph["nodes"]]
    assert uses == sorted(uses, reverse=True) and max(uses) >= 2
    lineages = {node["lineage"] for node in graph["nodes"]}
    assert {end for edge in graph["edges"] for end in edge} <= lineages
    assert 'data-filters="regions-cache"' in application.ui.get("/regions/cache/")


def test_spark_s_page_and_ours_lead_to_each_other(application: Application, overview: dict[str, Any]) -> None:
    execution = loaded(overview)["executionId"]
    page = application.ui.get(f"/SQL/execution/?id={execution}")
    assert page.startswith("<!DOCTYPE html><html") and "Plan Visualization" in page
    assert re.search(rf'id="regions-link"[^>]*href="[^"]*/regions/execution/\?id={execution}"', page) or re.search(
        rf'href="[^"]*/regions/execution/\?id={execution}"[^>]*id="regions-link"', page
    )
    assert f'/SQL/execution/?id={execution}"' in application.ui.get(f"/regions/execution/?id={execution}")


def test_scripts_are_ours_and_allowed_by_the_content_security_policy(application: Application) -> None:
    for page in PAGES:
        body = application.ui.get(page)
        own = body[body.index("regions-picture") :]
        assert not re.search(r"<script(?![^>]*nonce=)[^>]*>[^<]", own), "an inline script without the page's nonce"
        assert not re.search(r"\son[a-z]+=", own), "a handler in an attribute, which the policy forbids"
        assert not re.search(r'(src|href)="https?://(?!127\.0\.0\.1)(?!spark\.apache\.org)', body)


def test_a_wrong_request_is_told(application: Application) -> None:
    assert application.ui.status("/regions/execution/") == 400
    assert application.ui.status("/regions/execution/?id=x") == 400
    assert "Nothing is known of it" in texts(application.ui.get("/regions/execution/?id=99999"))


def test_literals_are_redacted(application: Application, folder: Path, overview: dict[str, Any]) -> None:
    bodies = [application.ui.get(f"/regions/execution/json?id={q['executionId']}") for q in overview["queries"]]
    assert any("(redacted)" in body for body in bodies)
    assert not any(SECRET in body for body in bodies)
    ours = [line for log in (folder / "logs").iterdir() for line in log.open() if "SparkListenerRegionsDecided" in line]
    assert ours and not any(SECRET in line for line in ours)


def test_prometheus_has_our_metrics(application: Application, overview: dict[str, Any]) -> None:
    told: dict[str, float] = {}
    for line in application.ui.get("/metrics/prometheus").splitlines():
        name, _, value = line.partition("{")
        if "spark_regions" in name:
            told[name.rpartition("spark_regions_")[2]] = float(value.rpartition(" ")[2])
    assert told["hits_Value"] == overview["actions"]["load"] >= 1
    assert told["misses_Value"] >= 1 and told["plannerRestarts_Value"] == 0 and told["evictions_Value"] == 0
    assert told["bytesHeld_Value"] > 0 and told["planningTime_Count"] >= 4
    assert told["predictedSavingSeconds_Value"] == pytest.approx(overview["saved"]["predicted"], abs=1e-6)
    assert told["measuredSavingSeconds_Value"] == pytest.approx(overview["saved"]["measured"], abs=1e-6)


@pytest.fixture(scope="module")
def logged(application: Application, overview: dict[str, Any]) -> dict[str, Any]:
    """The overview of the running application, which has ended since."""
    last = application.ui.json("/regions/json")
    application.end()
    found: dict[str, Any] = last
    return found


def test_the_history_server_shows_the_same(folder: Path, application: Application, logged: dict[str, Any]) -> None:
    with history_server(folder / "logs", folder, jar_path()) as server:
        past = Served(f"{server.base}/history/{application.id}")
        facts = past.json("/regions/json")
        for name in ("actions", "declines", "saved", "queriesDecided", "lost"):
            assert facts[name] == logged[name]
        ours = {q["query"]: (q["executionId"], q["description"], q["applied"], q["saved"]) for q in facts["queries"]}
        live = {q["query"]: (q["executionId"], q["description"], q["applied"], q["saved"]) for q in logged["queries"]}
        assert ours == live
        for page in PAGES:
            assert "could not be made" not in past.get(page)
        execution = loaded(facts)["executionId"]
        assert "▼ loaded" in past.get(f"/regions/execution/?id={execution}")
        assert 'id="regions-link"' in past.get(f"/SQL/execution/?id={execution}")


def test_without_our_jar_the_log_is_served_as_ever(
    folder: Path, application: Application, logged: dict[str, Any]
) -> None:
    execution = loaded(logged)["executionId"]
    with history_server(folder / "logs", folder, None) as server:
        past = Served(f"{server.base}/history/{application.id}")
        assert "Plan Visualization" in past.get(f"/SQL/execution/?id={execution}")
        # Spark leads unknown paths to its jobs.
        assert "regions-saved" not in past.get("/regions/") and ">Regions</a>" not in past.get("/jobs/")
        executions = server.json(f"/api/v1/applications/{application.id}/sql?length=1000")
        assert max(each["id"] for each in executions) >= execution


def test_the_last_state_is_in_the_log(folder: Path, logged: dict[str, Any]) -> None:
    lines = [json.loads(line) for log in (folder / "logs").iterdir() for line in log.open()]
    last = [line for line in lines if line["Event"].endswith("RegionsState")][-1]
    assert last["graph"]["nodes"] and sum(e["state"] == "committed" for e in last["entries"]) >= 1
    ended = next(line["Timestamp"] for line in lines if line["Event"] == "SparkListenerApplicationEnd")
    assert last["time"] >= ended - 1000


def test_switched_off_there_is_no_tab_and_no_event(tmp_path: Path) -> None:
    application = Application(tmp_path, {"spark.regions.ui.enabled": "false"})
    try:
        assert application.ask("run") == {"rows": 100, "same": True}
        assert "regions-saved" not in application.ui.get("/regions/")
        assert ">Regions</a>" not in application.ui.get("/SQL/")
    finally:
        application.end()
    assert not any("SparkListenerRegions" in line for log in (tmp_path / "logs").iterdir() for line in log.open())
