from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from report_logs import action, decided, entry, lines, node, ran, reused, start, state, write

from spark_regions.cli.commands import commands
from spark_regions.reports.page import fragment, page
from spark_regions.reports.summary import Prices, Report, read_report
from spark_regions.reports.text import text


def report(folder: Path, events: list[dict], prices: Prices = Prices()) -> Report:  # noqa: B008
    return read_report(write(folder / "log", events), prices)


def test_a_read_is_estimated_by_what_the_log_has_seen(tmp_path: Path) -> None:
    found = report(tmp_path, reused())
    assert (found.queries, dict(found.outcomes)) == (2, {"ok": 2})
    assert found.actions == {"load": 1, "store": 1}
    assert found.predicted_seconds == pytest.approx(2.6)  # the store's own saving is that of a later read
    assert (found.measured.choices, found.measured.estimated, found.measured.unknown) == (0, 1, 0)
    assert found.measured.estimated_seconds == pytest.approx((4 + 2 - 0.5) / 2)
    assert found.measured_seconds is None
    assert found.saved_seconds == pytest.approx((5.5 - 0.4) / 2)
    assert "2.5 s as estimated (1 reads estimated)" in text(found)
    assert "Measured    " in text(found) and "nothing: no plain run" in text(found)
    assert found.query_points == ((3.0, 3.6),)
    assert found.declines == {"SOURCE": 1, "TOO_CHEAP": 1}
    assert (found.application.cores, found.application.name) == (2, "<orders>")
    assert "spark.secret" not in found.application.confs


def test_a_read_of_an_earlier_runs_result_is_estimated_as_the_shim_says(tmp_path: Path) -> None:
    events = reused()
    del events[4:7]  # The application begins with the query that reads.
    assert report(tmp_path, events).saved_seconds is None
    events[-2]["loads"][0] |= {"predicted": 2.6, "estimated": 2.0}
    found = report(tmp_path, events)
    assert (found.measured.choices, found.measured.estimated) == (0, 1)
    assert found.saved_seconds == pytest.approx(2.0)


def test_what_is_measured_against_a_plain_run_is_not_estimated_as_well(tmp_path: Path) -> None:
    events = reused()
    (read,) = [each for each in events if each["Event"].endswith("Ran") and each["loads"]]
    choices = [
        {"query": read["query"], "node": 0, "kind": "load", "predicted": 2.6, "saved": 2.0},
        {"query": read["query"], "node": 1, "kind": "share", "predicted": 0.5, "saved": -0.1},
    ]
    read["saving"] = {"state": "warm", "plain": 5.5, "runs": 3, "saved": 1.9, "choices": choices}
    read["loads"][0] |= {"estimated": 2.75}
    found = report(tmp_path, events)
    assert (found.measured.choices, found.measured.reads, found.measured.lost) == (2, 1, 1)
    assert (found.measured.estimated, found.measured.unknown) == (0, 0)
    assert found.measured.saved == pytest.approx(1.9)
    assert found.measured.points == [(2.6, 2.0), (0.5, -0.1)]
    assert found.measured.error == pytest.approx((0.3 + 6.0) / 2)
    assert found.measured_seconds == pytest.approx(1.9 - 0.2)
    shown = text(found)
    assert "1.7 s as measured (2 of its actions are measured)" in shown
    assert "1 of 2 choices, 50%" in shown
    assert found.document()["saved"]["relative_error"] == found.measured.error


def test_queries_that_ran_both_ways_are_told_and_others_rows_come_first(tmp_path: Path) -> None:
    def note(kind: str, **more: object) -> dict:
        return decided(2, [], [action(kind, -1, "", -1.0, **more)], session="")

    events = [*reused(), note("verified", pair={"plain": 3.0, "saved": 2.25}), note("verified", pair=None)]
    found = report(tmp_path, events)
    assert (found.verified.same, found.verified.timed, found.verified.saved) == (2, 1, 2.25)
    assert "2 queries, all with equal rows; 1 of them timed: 3.0 s as plain Spark, 2.2 s saved" in text(found)
    wrong = text(report(tmp_path, [*events, note("differs")]))
    assert wrong.startswith("1 queries had OTHER ROWS than plain Spark when they ran both ways.")
    assert "3 queries, 1 WITH OTHER ROWS than plain Spark" in wrong


def test_what_became_of_an_entry_is_no_further_decision(tmp_path: Path) -> None:
    note = decided(1, [], [action("committed", -1, "e1", -1.0)], session="")
    found = report(tmp_path, [*reused(), note])
    assert found.actions == {"load": 1, "store": 1}
    assert "Committed" not in text(found)


def test_a_first_run_has_only_stored(tmp_path: Path) -> None:
    shown = text(report(tmp_path, reused()[:7]))
    assert "Nothing was read yet; what was stored (1) took 0.2 s of writing." in shown


def test_columns_computed_from_a_source_are_a_candidate_and_the_source_is_none(tmp_path: Path) -> None:
    """A projection of a function has the rows of its source, hence its lineage; the scan happens either way."""
    plan = [node(0, "s", 1, operator="Project"), node(1, "s", operator="Relation")]
    times = {0: (4.0, 100), 1: (2.0, 100)}
    (found,) = report(tmp_path, [*start(), decided(1, plan), ran(1, 3.0, times)]).candidates
    assert found.seconds == pytest.approx(4.0)
    alone = [node(0, "s", operator="Relation")]
    assert report(tmp_path, [*start(), decided(1, alone), ran(1, 3.0, {0: (4.0, 100)})]).candidates == ()


def test_what_was_decided_on_a_plan_that_never_ran_counts_nowhere(tmp_path: Path) -> None:
    """Explained only, planned once more, or without an end in the log."""
    again = decided(3, [node(0, "b")], [action("load", 0, "e1", 1.0)], [(0, "TOO_CHEAP", "")])
    assert report(tmp_path, [*reused(), again]).actions == report(tmp_path, reused()).actions
    assert report(tmp_path, [*reused(), again]).declines == report(tmp_path, reused()).declines


def test_a_read_without_seconds_is_not_even_estimated(tmp_path: Path) -> None:
    again = decided(3, [node(0, "b")], [action("load", 0, "e1", 1.0)])
    told = ran(3, 1.0, {})
    told["loads"] = [{"query": 3, "node": 0, "entry": "e1"}]
    found = report(tmp_path, [*reused(), again, told])
    assert (found.measured.estimated, found.measured.unknown) == (1, 1)
    assert "by 1 reads; of 1 more only the prediction is known" in text(found)


def test_a_subquery_counts_with_the_query_that_ran_it_and_once(tmp_path: Path) -> None:
    """Planned as 3 and 4, run as 3 within 5; 5 reads one entry at two places, of which one is a reused exchange."""
    subqueries = [decided(number, [node(0, "b")], [action("load", 0, "e1", 2.0)]) for number in (3, 4)]
    both = [action("load", 1, "e2", 1.0), action("load", 2, "e2", 1.0)]
    whole = decided(5, [node(0, "x", 1, 2), node(1, "y"), node(2, "y")], both)
    told = ran(5, 1.0, {0: (1.0, None)})
    told["queries"] = [5, 3]
    told["loads"] = [
        {"query": 3, "node": 0, "entry": "e1", "seconds": 0.5, "predicted": 2.0, "estimated": 1.5},
        {"query": 5, "node": 1, "entry": "e2", "seconds": 0.5, "predicted": 1.0, "estimated": 0.25},
    ]
    found = report(tmp_path, [*start(), *subqueries, whole, told])
    assert found.actions == {"load": 2}
    assert (found.predicted_seconds, found.measured.estimated_seconds) == (3.0, 1.75)
    assert (found.measured.estimated, found.measured.unknown) == (2, 0)
    assert (found.queries, dict(found.outcomes)) == (3, {"ok": 1})


def test_what_is_not_measured_adds_nothing(tmp_path: Path) -> None:
    shared = decided(3, [node(0, "x")], [action("share", 0, saving=1.5)])
    found = report(tmp_path, [*start(), shared, ran(3, 1.0, {0: (1.0, None)})])
    assert found.predicted_seconds == 1.5
    assert found.measured_seconds is None
    assert "nothing was measured" in text(found)


def test_what_another_engine_took_beside_what_was_expected(tmp_path: Path) -> None:
    routed = decided(3, [node(0, "x")], [action("route", 0, saving=1.5)])
    run = {"predictedSeconds": 0.5, "measuredSeconds": 0.75, "measuredRows": 1234, "measuredBytes": 2_500_000}
    told = ran(3, 1.0, {0: (1.0, None)}) | {"statements": [{"query": 3, "node": 0, "engine": run}]}
    found = report(tmp_path, [*start(), routed, told])
    assert (found.statements.count, found.statements.predicted_seconds, found.statements.seconds) == (1, 0.5, 0.75)
    assert "Another engine took" in text(found)
    assert "0.8 s, predicted 0.5 s; 1,234 rows, 2.5 MB" in text(found)


def test_money(tmp_path: Path) -> None:
    found = report(tmp_path, reused(), Prices(core_hour=3600.0, gb_month=10.0))
    assert found.money.predicted == pytest.approx(2.6 * 2)
    assert found.money.computing == pytest.approx(5.1)
    assert found.money.holding_month == pytest.approx(0.02)
    assert report(tmp_path, reused()).money.computing is None
    unknown = [event for event in reused() if event["Event"] != "SparkListenerExecutorAdded"]
    without = report(tmp_path, unknown, Prices(core_hour=1.0))
    assert without.money.predicted is None
    assert any("cores is not known" in note for note in without.notes)


def test_prices_are_those_of_the_application_where_none_are_told(tmp_path: Path) -> None:
    given = {"spark.regions.price.coreHour": "3600", "spark.regions.price.gbMonth": "10"}
    log = reused()
    (told,) = [each for each in log if each["Event"] == "SparkListenerEnvironmentUpdate"]
    told["Spark Properties"] |= given
    assert report(tmp_path, log).money.computing == pytest.approx(5.1)
    found = report(tmp_path, log, Prices(core_hour=7200.0))
    assert (found.money.computing, found.money.holding_month) == (pytest.approx(10.2), pytest.approx(0.02))


def test_observe_mode_tells_what_would_have_been_done(tmp_path: Path) -> None:
    from spark_regions.reasons import would_save

    would = [(0, "OBSERVE_ONLY", would_save("load", 2.0)), (1, "OBSERVE_ONLY", would_save("store", 1.5))]
    stage = decided(1, [], declines=[(-1, "OBSERVE_ONLY", "split")], topic="skew")
    found = report(
        tmp_path, [*start(), decided(1, [node(0, "a", 1), node(1, "b")], declines=would), stage, ran(1, 1.0, {})]
    )
    assert found.would == {"load": 1, "skew": 1, "store": 1}
    assert found.would_seconds["store"] == 1.5
    assert "OBSERVE_ONLY" not in found.declines
    assert "2.0 s predicted" in text(found)


def test_what_failed_is_told_with_its_reason(tmp_path: Path) -> None:
    refused = action("load", 0, "e1", 5.0, refusal={"code": "ENTRY_MISSING", "detail": ""})
    nothing = decided(2, [], refusal={"code": "PLANNER_DEADLINE", "detail": ""})
    gone = entry("e2", "abandoned", code="PARTIAL_CONSUMPTION")
    both = [ran(1, 1.0, {}), ran(2, 1.0, {})]
    found = report(tmp_path, [*start(), decided(1, [node(0, "a")], [refused]), nothing, gone, *both])
    assert found.predicted_seconds == 0.0
    assert found.failed == {"ENTRY_MISSING": 1}
    assert found.refusals == {"PLANNER_DEADLINE": 1}
    shown = text(found)
    assert "The planner did not answer in time" in shown
    assert "PARTIAL_CONSUMPTION" in shown


def test_candidates_are_worth_what_those_before_them_leave(tmp_path: Path) -> None:
    """`candidates.best`'s example: A below B and C, on one core."""

    def query(number: int, top: str) -> list[dict]:
        plan = [node(0, top, 1), node(1, "A", 2), node(2, "s", operator="Relation")]
        return [decided(number, plan), ran(number, 5.0, {0: (1.0, 100), 1: (4.0, 100), 2: (0.0, 100)})]

    found = report(tmp_path, [*start(cores=1), *query(1, "B"), *query(2, "C")])
    assert [each.lineage for each in found.candidates] == ["A", "C", "B"]
    saved = [each.saved_seconds for each in found.candidates]
    assert saved == pytest.approx([8.0, 1.0, 1.0], abs=0.1)


def test_a_used_and_stored_candidate_says_so(tmp_path: Path) -> None:
    events = [*reused(), state(entries=[{"entry": "e1", "lineage": "b", "bytes": 2_000_000}])]
    (first, *_) = report(tmp_path, events).candidates
    assert (first.lineage, first.stored, first.uses) == ("b", True, 2.0)


def test_an_application_without_us_is_told_as_such(tmp_path: Path) -> None:
    assert "ran without it" in text(report(tmp_path, start()))


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_regions.reports import event_totals, lineages, savings

    monkeypatch.setattr(event_totals, "PENDING_LIMIT", 3)
    monkeypatch.setattr(lineages, "LINEAGE_LIMIT", 5)
    monkeypatch.setattr(savings, "POINT_LIMIT", 2)
    folded = event_totals.EventTotals()
    for event in start():
        folded.add(event)
    for query in range(20):
        folded.add({**decided(query, [node(0, f"l{query}")]), "Event": event_totals.DECIDED})
    assert len(folded._pending) == 3
    for query in range(20, 40):
        folded.add({**decided(query, [node(0, f"l{query}")], [action("load", 0, "e")]), "Event": event_totals.DECIDED})
        folded.add({**ran(query, 1.0, {}, {"e": 0.1}), "Event": event_totals.RAN})
    assert len(folded.lineages.found) == 5
    assert folded.savings.measured.unknown == 20
    for _ in range(5):
        folded.savings.measure([{"predicted": 1.0, "saved": 1.0}])
    assert len(folded.savings.measured.points) == 2


class Whole(HTMLParser):
    """Everything that is opened is closed; no element but those of the page itself has an address."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text[self.open[-1] if self.open else ""] = data


def test_the_page_is_whole_and_needs_nothing_from_outside(tmp_path: Path) -> None:
    """What its scripts draw is in tests/browser/test_report_page.py."""
    html = page(report(tmp_path, reused(), Prices(1.0, 1.0)))
    assert "&lt;orders&gt;" in html and "<orders>" not in html
    read = Whole()
    read.feed(html)
    assert read.open == []
    assert "default-src 'none'" in html and "url(http" not in html and "@import" not in html
    code = html[html.rindex("<script>") + 8 : html.rindex("</script>")]
    assert f"script-src 'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" in html
    # Where no script runs.
    assert '<td style="text-align:left">2.6 s' in html


def test_a_notebook_needs_no_plots(tmp_path: Path) -> None:
    shown = fragment(report(tmp_path, reused()))
    assert "<svg" not in shown and "<script" not in shown
    assert "Best candidates" in shown


def cli(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(commands, ["report", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def test_the_command(tmp_path: Path) -> None:
    log = write(tmp_path / "log", reused())
    code, shown, errors = cli(str(log), "--core-hour-price", "0.05")
    assert (code, errors) == (0, "")
    assert "2.6 s saved as predicted, 2.5 s as estimated" in shown
    assert "0.05 a core-hour" in shown
    code, shown, _ = cli(str(log), "--json")
    document = json.loads(shown)
    assert document["saved"]["saved_seconds"] == pytest.approx(2.55)
    assert document["candidates"][0]["lineage"] == "b"
    code, shown, _ = cli(str(log), "--html", str(tmp_path / "page.html"))
    assert code == 0
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("content", [b"", b"hello\nworld\n", b'{"a": 1}\n', b"\x00\x01\x02", b"PK\x03\x04zip"])
def test_what_is_no_event_log_ends_with_2(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    code, shown, errors = cli(str(tmp_path / "log"))
    assert (code, shown) == (2, "")
    assert "expected an event log of Spark" in errors


def test_a_missing_log_ends_with_2(tmp_path: Path) -> None:
    code, _, errors = cli(str(tmp_path / "none"))
    assert code == 2
    assert "Nothing found at" in errors


def test_no_bar_in_a_pipe(tmp_path: Path) -> None:
    log = write(tmp_path / "log", reused())
    assert cli(str(log))[2] == ""
    assert "reading" in cli(str(log), "--progress")[2]
    assert lines(start()).count(b"\n") == 4
