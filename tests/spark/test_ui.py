"""The Regions tab of a running application and in the History Server, its JSON, and the metrics."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from spark_regions.reports.page import page as report_page
from spark_regions.reports.summary import Prices, Report, read_report
from spark_regions.spark.jar import jar_path
from tests.harness.browser import Reader
from tests.harness.ui import Application, Served, history_server, texts
from tests.spark.ui_job import SECRET

pytestmark = pytest.mark.spark

PAGES = (
    "/regions/",
    "/regions/cache/",
    "/regions/graph/",
    "/regions/explorations/",
    "/regions/running/",
    "/regions/lost/",
)


@pytest.fixture(scope="module")
def decisions(application: Application) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = application.ask("decisions")
    return found


@pytest.fixture(scope="module")
def overview(application: Application) -> dict[str, Any]:
    def settled(facts: Any) -> bool:
        ended = [q for q in facts["queries"] if q["outcome"] == "ok"]
        return len(ended) >= 4 and facts["saved"]["loadsEstimated"] >= 1 and facts["held"]["entries"] >= 1

    facts: dict[str, Any] = application.ui.until("/regions/json", settled)
    return facts


def loaded(overview: dict[str, Any]) -> dict[str, Any]:
    return next(query for query in overview["queries"] if "load" in query["applied"])


def figures(decisions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Of plans that ran."""
    return [decision for decision in decisions if decision["kind"] == kind and decision["execution"] is not None]


def test_the_overview_has_the_figures_of_the_decisions(
    overview: dict[str, Any], decisions: list[dict[str, Any]]
) -> None:
    assert overview["planner"]["healthy"] and overview["mode"] == "apply" and overview["strategy"] == "always"
    for kind in ("load", "store", "committed"):
        assert overview["actions"].get(kind, 0) == len(figures(decisions, kind))
    assert len(figures(decisions, "load")) >= 1
    predicted = sum(decision["predicted_seconds"] for decision in figures(decisions, "load"))
    assert overview["saved"]["predicted"] == pytest.approx(predicted, abs=1e-6)
    assert sum(overview["declines"].values()) == len(figures(decisions, "decline"))
    assert overview["confs"]["spark.regions.recycle.strategy"] == "always"


@pytest.mark.browser
def test_a_query_s_page_shows_its_regions_and_what_was_read(
    application: Application, overview: dict[str, Any], decisions: list[dict[str, Any]], reader: Reader
) -> None:
    query = loaded(overview)
    facts = application.ui.json(f"/regions/execution/json?id={query['executionId']}")
    shown = facts["queries"][0]
    main = next(d for d in shown["decisions"] if d["session"] and not d["topic"])
    load = next(a for a in main["actions"] if a["kind"] == "load")
    listed = next(d for d in figures(decisions, "load") if d["query"] == query["query"])
    assert (load["entry"], load["savingSeconds"]) == (listed["entry"], listed["predicted_seconds"])
    assert main["regions"]["regions"] and shown["loads"][0]["entry"] == load["entry"]
    page = reader.drawn(application.ui.get(f"/regions/execution/?id={query['executionId']}"))
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


@pytest.mark.browser
def test_a_decline_is_shown_with_its_reason(application: Application, overview: dict[str, Any], reader: Reader) -> None:
    assert overview["declines"]["NONDETERMINISTIC"] >= 1
    said = texts(reader.drawn(application.ui.get("/regions/")))
    times = overview["declines"]["NONDETERMINISTIC"]
    assert f"The expression may give another value in another run {times} NONDETERMINISTIC" in said


def test_cache_and_graph(application: Application, overview: dict[str, Any]) -> None:
    entries = application.ui.until("/regions/cache/json", lambda facts: any(e.get("uses") for e in facts["entries"]))[
        "entries"
    ]
    used = next(entry for entry in entries if entry.get("uses"))
    assert used["state"] == "committed" and used["name"] == "ui job" and used["here"] and used["benefit"] >= 0
    graph = application.ui.until(
        "/regions/graph/json", lambda facts: facts["edges"] and any(node["uses"] >= 2 for node in facts["nodes"])
    )
    uses = [node["uses"] for node in graph["nodes"]]
    assert uses == sorted(uses, reverse=True) and max(uses) >= 2
    lineages = {node["lineage"] for node in graph["nodes"]}
    assert {end for edge in graph["edges"] for end in edge} <= lineages
    assert any(node["operator"].startswith("Scan parquet ") for node in graph["nodes"])


@pytest.mark.browser
def test_spark_s_page_and_ours_lead_to_each_other(
    application: Application, overview: dict[str, Any], reader: Reader
) -> None:
    execution = loaded(overview)["executionId"]
    page = application.ui.get(f"/SQL/execution/?id={execution}")
    assert page.startswith("<!DOCTYPE html><html") and "Plan Visualization" in page
    assert re.search(rf'id="regions-link"[^>]*href="[^"]*/regions/execution/\?id={execution}"', page) or re.search(
        rf'href="[^"]*/regions/execution/\?id={execution}"[^>]*id="regions-link"', page
    )
    ours = reader.drawn(application.ui.get(f"/regions/execution/?id={execution}"))
    assert f'/SQL/execution/?id={execution}"' in ours


def test_scripts_are_ours_and_allowed_by_the_content_security_policy(application: Application) -> None:
    for page in PAGES:
        body = application.ui.get(page)
        own = body[body.index("regions-view") :]
        assert not re.search(r"<script(?![^>]*nonce=)[^>]*>[^<]", own), "an inline script without the page's nonce"
        assert not re.search(r"\son[a-z]+=", own), "a handler in an attribute, which the policy forbids"
        assert not re.search(r'(src|href)="https?://(?!127\.0\.0\.1)(?!spark\.apache\.org)', body)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", own)


@pytest.mark.browser
def test_a_wrong_request_is_told(application: Application, reader: Reader) -> None:
    assert application.ui.status("/regions/execution/") == 400
    assert application.ui.status("/regions/execution/?id=x") == 400
    assert "Nothing is known of it" in texts(reader.drawn(application.ui.get("/regions/execution/?id=99999")))


def test_literals_are_redacted(application: Application, overview: dict[str, Any]) -> None:
    bodies = [application.ui.get(f"/regions/execution/json?id={q['executionId']}") for q in overview["queries"]]
    assert any("(redacted)" in body for body in bodies)
    assert not any(SECRET in body for body in bodies)
    ours = [line for line in log_of(application).open() if "SparkListenerRegionsDecided" in line]
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
    assert told["estimatedSavingSeconds_Value"] == pytest.approx(overview["saved"]["estimated"], abs=1e-6)


@pytest.fixture(scope="module")
def logged(application: Application, overview: dict[str, Any]) -> dict[str, Any]:
    """The overview of the running application, which has ended since."""
    last = application.ui.json("/regions/json")
    application.end()
    found: dict[str, Any] = last
    return found


def log_of(application: Application) -> Path:
    """Of one that may still run."""
    (log,) = (application.folder / "logs").glob(f"{application.id}*")
    return log


@pytest.mark.browser
def test_the_history_server_shows_the_same(
    history: Served, application: Application, logged: dict[str, Any], reader: Reader
) -> None:
    past = Served(f"{history.base}/history/{application.id}")
    facts = past.json("/regions/json")
    for name in ("actions", "declines", "saved", "queriesDecided", "lost"):
        assert facts[name] == logged[name]
    ours = {q["query"]: (q["executionId"], q["description"], q["applied"], q["saved"]) for q in facts["queries"]}
    live = {q["query"]: (q["executionId"], q["description"], q["applied"], q["saved"]) for q in logged["queries"]}
    assert ours == live
    assert facts["executions"] == [each | {"sinceStart": ANY} for each in logged["executions"]]
    for page in PAGES:
        assert "could not be made" not in texts(reader.drawn(past.get(page)))
    execution = loaded(facts)["executionId"]
    assert "▼ loaded" in texts(reader.drawn(past.get(f"/regions/execution/?id={execution}")))
    assert 'id="regions-link"' in past.get(f"/SQL/execution/?id={execution}")


def test_without_our_jar_the_log_is_served_as_ever(application: Application, logged: dict[str, Any]) -> None:
    execution = loaded(logged)["executionId"]
    with history_server(application.folder / "logs", application.folder, None) as server:
        past = Served(f"{server.base}/history/{application.id}")
        assert "Plan Visualization" in past.get(f"/SQL/execution/?id={execution}")
        # Spark leads unknown paths to its jobs.
        assert "regions-view" not in past.get("/regions/") and ">Regions</a>" not in past.get("/jobs/")
        executions = server.json(f"/api/v1/applications/{application.id}/sql?length=1000")
        assert max(each["id"] for each in executions) >= execution


def test_the_last_state_is_in_the_log(application: Application, logged: dict[str, Any]) -> None:
    lines = [json.loads(line) for line in log_of(application).open()]
    last = [line for line in lines if line["Event"].endswith("RegionsState")][-1]
    assert last["graph"]["nodes"] and sum(e["state"] == "committed" for e in last["entries"]) >= 1
    ended = next(line["Timestamp"] for line in lines if line["Event"] == "SparkListenerApplicationEnd")
    assert last["time"] >= ended - 1000


HEAVY = (
    "SELECT id AS n, IF(id % 10 < 9, 1, id % 97) AS k, sha2(cast(id AS string), 512) AS h FROM range(0, 20000, 1, 6)"
)
LIGHT = "SELECT id AS m, id % 97 AS k, sha2(cast(id AS string), 256) AS g FROM range(0, 200, 1, 2)"
SKEWED = (
    f"SELECT max(o.h), max(o.g), count(*) FROM (SELECT l.h, r.g, l.n FROM ({HEAVY}) l FULL JOIN ({LIGHT}) r"
    " ON l.k = r.k) o WHERE length(o.h || o.g) > 3 OR o.n IS NULL"
)
SKEW = {
    "spark.regions.skew.enabled": "true",
    "spark.regions.skew.strategy": "always",
    "spark.regions.recycle.rowOrder": "any",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "12",
}
MALFORMED = {
    "Event": "org.apache.spark.sql.regions.ui.events.SparkListenerRegionsDecided",
    "query": 4711,
    "executionId": 4711,
    "time": 1,
    "decision": {"query": 4711, "session": "s", "topic": ""},
    "nodes": [1],
    "truncated": False,
}


def subqueries(table: Path, without: int) -> str:
    """Three places of one scalar subquery, which Spark plans three times and runs once.

    :param without: another one makes another query around the same subquery
    """
    rows = f"parquet.`{table}`"
    others = f"{rows} WHERE id <> {without}"
    above = "> (SELECT least FROM bound)"
    return (
        f"WITH bound AS (SELECT min(c) AS least FROM (SELECT k, count(*) AS c FROM {rows} WHERE id > 3 GROUP BY k))"
        f" SELECT k, count(*) AS c FROM {others} GROUP BY k HAVING count(*) {above}"
        f" UNION ALL SELECT id % 7, count(*) FROM {others} GROUP BY id % 7 HAVING count(*) {above}"
        f" UNION ALL SELECT id % 9, max(id) FROM {others} GROUP BY id % 9 HAVING max(id) {above}"
    )


def storing(executions: list[dict[str, Any]]) -> bool:
    """Whether any result is still being stored."""
    counts = [Counter(row["done"]) for row in executions]
    return any(each["store"] > each["committed"] + each["abandoned"] for each in counts)


@dataclass(frozen=True)
class Past:
    """What an application showed when it ran, and what is shown of it since: by the History Server, and in its log."""

    live: dict[str, Any]
    decisions: list[dict[str, Any]]
    pages: dict[str, tuple[str, str]]
    facts: dict[str, tuple[Any, Any]]
    report: Report
    report_page: str
    driver: str


@dataclass(frozen=True)
class Live:
    """What an application showed while it ran."""

    application: Application
    facts: dict[str, Any]
    decisions: list[dict[str, Any]]
    pages: dict[str, str]
    documents: dict[str, Any]


@pytest.fixture(scope="module")
def skewed(application: Application, tmp_path_factory: pytest.TempPathFactory) -> Live:
    """A skewed join, the same scalar subqueries twice, and an event that no page can be made of."""
    folder = tmp_path_factory.mktemp("skewed")
    logs = (application.folder / "logs").as_uri()
    started = Application(folder, SKEW | {"spark.eventLog.dir": logs})
    try:
        started.ask(f"sql {SKEWED}")
        for without in range(2):
            started.ask(f"sql {subqueries(folder / 'table', without)}")
        started.ask(f"post {json.dumps(MALFORMED)}")
        # The application goes on, and so does the tab.
        assert started.ask("sql SELECT count(*) FROM range(10)") == 1
        ended = started.ui.until(
            "/regions/json", lambda facts: facts["saved"]["loadsEstimated"] >= 1 and not storing(facts["executions"])
        )
        decisions = started.ask("decisions")
        executions = sorted({query["executionId"] for query in ended["queries"]})
        paths = [*PAGES, *(f"/regions/execution/?id={execution}" for execution in executions)]
        paths.append("/SQL/execution/?id=1")
        documents = [f"/regions/execution/json?id={execution}" for execution in executions]
        pages = {path: started.ui.get(path) for path in paths}
        facts = {path: started.ui.json(path) for path in documents}
        live = started.ui.json("/regions/json")
    finally:
        started.end()
    return Live(started, live, decisions, pages, facts)


@pytest.fixture(scope="module")
def history(application: Application, logged: object, skewed: Live) -> Iterator[Served]:
    """One History Server for the logs of both applications, which have ended."""
    with history_server(application.folder / "logs", application.folder, jar_path()) as server:
        yield server


@pytest.fixture(scope="module")
def past(application: Application, skewed: Live, history: Served, reader: Reader) -> Past:
    base = Served(f"{history.base}/history/{skewed.application.id}")
    (log,) = (application.folder / "logs").glob(f"{skewed.application.id}*")
    report = read_report(log, Prices())

    def drawn(path: str, page: str) -> str:
        return reader.drawn(page) if path.startswith("/regions/") else page

    return Past(
        skewed.facts,
        skewed.decisions,
        {path: (drawn(path, page), drawn(path, base.get(path))) for path, page in skewed.pages.items()},
        {path: (told, base.json(path)) for path, told in skewed.documents.items()},
        report,
        reader.drawn(report_page(report)),
        skewed.application.log.read_text(),
    )


def of_execution(past: Past, kind: str) -> int:
    """The last execution in which something of the kind was done."""
    return max(each["execution"] for each in figures(past.decisions, kind))


@pytest.mark.browser
def test_a_skewed_stage_is_shown_with_shares_and_seconds(past: Past) -> None:
    (decided,) = figures(past.decisions, "split_by_records")
    measured = [each for each in figures(past.decisions, "measured") if each["execution"] == decided["execution"]]
    seconds = re.fullmatch(
        r"predicted ([0-9.]+) s, plain ([0-9.]+) s, balanced ([0-9.]+) s; 12 partitions in ([0-9]+) tasks;.*",
        decided["detail"],
    )
    assert seconds is not None and measured
    execution = decided["execution"]
    for told, page in zip(
        past.facts[f"/regions/execution/json?id={execution}"],
        past.pages[f"/regions/execution/?id={execution}"],
        strict=True,
    ):
        actions = [a for d in told["queries"][0]["decisions"] if d["topic"] == "skew" for a in d["actions"]]
        split = next(action for action in actions if action["kind"] == "split_by_records")
        predicted = [split["makespan"][name] for name in ("predicted", "plain", "balanced")]
        assert predicted == pytest.approx([float(each) for each in seconds.groups()[:3]], abs=0.006)
        assert split["makespan"]["tasks"] == int(seconds[4])
        heavy = split["splits"][0]
        assert 0.85 < heavy["share"] < 0.95 and heavy["tasks"] > 1
        assert f"partition {heavy['partition']} ({100 * heavy['share']:.0f} % of the left input)" in decided["detail"]
        runs = [action["stageRun"] for action in actions if action["kind"] == "measured"]
        said = [re.match(r"stage (\d+) took ([0-9.]+) s in (\d+) tasks(?:;|$)", each["detail"]) for each in measured]
        ran = {int(each[1]): (float(each[2]), int(each[3])) for each in said if each}
        assert all(said) and ran.keys() == {run["sparkStage"] for run in runs}
        for run in runs:
            took, tasks = ran[run["sparkStage"]]
            assert tasks == run["tasks"]
            assert took == pytest.approx((run["ended"] - run["began"]) / 1000, abs=0.006)
        key = max((key for run in runs for key in run["keys"]), key=lambda key: float(key["share"]))
        assert abs(key["share"] - heavy["share"]) < key["error"] + 0.05 and "k = " in key["key"]
        assert any(key["key"] in each["detail"] for each in measured)
        said = texts(page)
        assert f"{key['key']} {100 * key['share']:.1f} % of the rows" in said
        assert f"{100 * heavy['share']:.0f} % of the left input (partition {heavy['partition']}) to" in said
        for name in ("predicted", "plain"):
            assert shown(split["makespan"][name]) in said
        took = (max(run["ended"] for run in runs) - min(run["began"] for run in runs)) / 1000
        assert shown(took) in said and f"stage {runs[0]['sparkStage']}" in said
        assert "NO_HEAVY_KEYS: No key of the partition was known to be heavy when this was decided" in said
    assert past.report.actions["skew"] == len(
        [d for d in past.decisions if d["code"] in ("SPLIT_BY_RECORDS", "LONGEST_FIRST")]
    )


def shown(seconds: float) -> str:
    """As the pages round it."""
    if seconds >= 100:
        return f"{seconds:.0f} s"
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{seconds * 1000:.0f} ms"


@pytest.mark.browser
def test_a_subquery_counts_once_however_often_it_is_planned(past: Past) -> None:
    loads = [each for each in past.decisions if each["kind"] == "load"]
    often = Counter(each["entry"] for each in loads)
    entry, places = often.most_common(1)[0]
    assert places == 3, "vacuous: the subquery was not planned several times"
    ran = [each for each in figures(past.decisions, "load") if each["entry"] == entry]
    assert len(ran) == 1
    predicted = sum(max(each["predicted_seconds"] or 0.0, 0.0) for each in figures(past.decisions, "load"))
    skew = sum(
        each["predicted_seconds"] or 0
        for each in past.decisions
        if each["code"] in ("SPLIT_BY_RECORDS", "LONGEST_FIRST")
    )
    assert past.live["saved"]["predicted"] == pytest.approx(predicted + skew, abs=1e-6)
    assert past.report.predicted_seconds == pytest.approx(predicted + skew, abs=1e-6)
    assert past.live["saved"]["measured"] == pytest.approx(past.report.measured.saved, abs=1e-6)
    found = past.report.measured
    assert found.choices == past.live["saved"]["choicesMeasured"]
    assert found.estimated == past.live["saved"]["loadsEstimated"]
    # Those in the subquery are told of too.
    assert found.reads + found.estimated == len(figures(past.decisions, "load"))
    assert past.report.actions["load"] == past.live["actions"]["load"] == len(figures(past.decisions, "load"))
    execution = of_execution(past, "load")
    for told in past.facts[f"/regions/execution/json?id={execution}"]:
        own = [each for each in figures(past.decisions, "load") if each["execution"] == execution]
        assert told["predicted"] == pytest.approx(sum(each["predicted_seconds"] or 0 for each in own), abs=1e-6)
        acted = {each["query"] for each in [*own, *figures(past.decisions, "store")] if each["execution"] == execution}
        assert [query["partOf"] >= 0 for query in told["queries"]].count(True) == len(acted) == 2
    assert "planned once more and not run" in texts(past.pages[f"/regions/execution/?id={execution}"][0])


@pytest.mark.browser
def test_an_execution_is_one_row_with_the_sums_of_its_queries(past: Past) -> None:
    rows = past.live["executions"]
    identified = [row["executionId"] for row in rows if row["executionId"] >= 0]
    assert len(identified) == len(set(identified)) and past.live["executionsKept"] == len(rows)
    done: Counter[str] = Counter()
    for row in rows:
        if row["counted"]:
            done.update(row["done"])
    assert done == past.live["actions"]
    for name in ("predicted", "measured", "estimated"):
        figure = {"measured": "saved"}.get(name, name)
        assert sum(row[figure] or 0 for row in rows) == pytest.approx(past.live["saved"][name], abs=1e-6)
    left = sum(row["declined"] for row in rows if row["counted"])
    assert left == sum(past.live["declines"].values()) == len(figures(past.decisions, "decline"))
    execution = of_execution(past, "load")
    row = next(row for row in rows if row["executionId"] == execution)
    assert row["subqueries"] >= 1 and row["notRun"] >= 1 and row["status"] == "ok"
    assert row["done"]["load"] == len([d for d in figures(past.decisions, "load") if d["execution"] == execution])
    for told in past.facts[f"/regions/execution/json?id={execution}"]:
        for name in row.keys() - {"sinceStart"}:
            # Sums of milliseconds may be added in another order.
            expected = pytest.approx(row[name]) if isinstance(row[name], float) else row[name]
            assert told[name] == expected, name
        ran = [query for query in told["queries"] if query["partOf"] >= 0]
        assert told["planningMillis"] == pytest.approx(sum(query["planningMillis"] for query in ran))
        assert told["wall"]["beforeJobs"] + told["wall"]["inJobs"] + told["wall"]["rest"] == pytest.approx(
            told["seconds"], abs=0.5
        )
    for page in past.pages[f"/regions/execution/?id={execution}"]:
        said = texts(page)
        assert f"{row['declined']} operators left alone" in said and "not ended" not in said
        assert said.count("▼ read") >= 1 and "and counted there" in said
    for page in past.pages["/regions/"]:
        assert page.count(f"/regions/execution/?id={execution}") == 1


@pytest.mark.browser
def test_spark_s_page_says_the_sums_of_ours(past: Past) -> None:
    for spark, ours in zip(past.pages["/SQL/execution/?id=1"], past.pages["/regions/execution/?id=1"], strict=True):
        line = re.search(r'id="regions-link"[^>]*>([^<]*)<', spark) or re.search(
            r"Regions: </strong><a[^>]*>([^<]*)<", spark
        )
        assert line is not None
        done, left = line[1].rsplit(", ", 1)
        card = re.search(r'id="regions-done">([^<]*)<', ours)
        assert card is not None and card[1] == {"nothing was done": "nothing"}.get(done, done)
        assert left in texts(ours)


def rows(page: str, table: str) -> list[list[str]]:
    """The cells of a table's body."""
    body = re.search(rf'(?s)id="{table}".*?<tbody>(.*?)</tbody>', page)
    assert body is not None, table
    return [
        [texts(cell).strip() for cell in re.findall(r"(?s)<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"(?s)<tr>(.*?)</tr>", body[1])
    ]


def card(page: str, name: str) -> str:
    """The value of a figure, and the small print below it."""
    found = re.search(rf'(?s)<dd><span id="{name}">(.*?)</dd>', page)
    assert found is not None, name
    return texts(found[1])


@pytest.mark.browser
def test_live_tab_history_server_and_report_tell_the_same(past: Past) -> None:
    live, history = past.pages["/regions/"]
    for page in (history, past.report_page):
        for name in ("regions-saved", "regions-estimated", "regions-predicted"):
            assert card(page, name) == card(live, name)
        assert rows(page, "regions-reasons") == rows(live, "regions-reasons") != []
    assert rows(history, "regions-queries") == rows(live, "regions-queries") != []
    for path, (then, since) in past.pages.items():
        if path.startswith("/regions/execution/") and not path.endswith("4711"):
            told = [texts(page[page.index(">", page.index("regions-to-sql")) :]) for page in (then, since)]
            assert told[0] == told[1] and "Operators" in told[0], path
    # What ran, once more in the report's own words.
    said = texts(past.report_page)
    assert f"Predicted {past.live['saved']['predicted']:.1f} s" in said
    for name, words in (("load", "Stored results read"), ("store", "Stores begun")):
        assert f"{words} {past.live['actions'][name]}" in said


@pytest.mark.browser
def test_a_page_that_cannot_be_made_says_so_and_harms_nothing(past: Past) -> None:
    for page in past.pages["/regions/execution/?id=4711"]:
        assert "This page could not be made: java.lang.ClassCastException" in texts(page)
        assert "Recycling cache" in page
    for told in past.facts["/regions/execution/json?id=4711"]:
        assert list(told) == ["error"]
    for path, both in past.pages.items():
        if not path.endswith("4711"):
            assert not any("could not be made" in texts(page) for page in both), path
    assert past.driver.count("the page execution of the Regions tab") == 1, "one warning, however often it is opened"
    assert "Plan Visualization" in past.pages["/SQL/execution/?id=1"][0]


def test_switched_off_there_is_no_tab_and_no_event(tmp_path: Path) -> None:
    application = Application(tmp_path, {"spark.regions.ui.enabled": "false"})
    try:
        assert application.ask("run") == {"rows": 100, "same": True}
        assert "regions-view" not in application.ui.get("/regions/")
        assert ">Regions</a>" not in application.ui.get("/SQL/")
    finally:
        application.end()
    assert not any("SparkListenerRegions" in line for log in (tmp_path / "logs").iterdir() for line in log.open())
