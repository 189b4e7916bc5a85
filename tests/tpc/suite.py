"""TPC queries with the plugin in one JVM: on with an empty store, and again with the store kept; against plain Spark's
rows, which come from a run beside them or are known by their digest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from examples import data
from tests.harness import chance
from tests.harness.session import Counters, committed, register, routes, sibling
from tests.tpc.golden import Golden, table_digests
from tests.tpc.rows import Outcome, difference, digest, outcome

CONFS = {"spark.sql.planChangeValidation": "true", "spark.sql.shuffle.partitions": "2"}
OFF = {"spark.regions.recycle.strategy": "off", "spark.regions.persist.enabled": "false"}
ROUTED = OFF | {"spark.regions.platforms": "duckdb"}
ON = {"spark.regions.recycle.strategy": "always"}
PLAIN_ONE_IN = 10
"""So many of the queries whose answer is known run plain too, drawn by the commit, so that what is known is checked."""


@dataclass(frozen=True)
class Suite:
    queries: Callable[[], dict[int, str]]
    folder: Callable[[float], Path]


SUITES = {"tpch": Suite(data.tpch_queries, data.tpch), "tpcds": Suite(data.tpcds_queries, data.tpcds)}


@dataclass(frozen=True)
class Run:
    found: Outcome
    seconds: float
    done: Counters


@dataclass(frozen=True)
class Comparison:
    """One query: what the two runs with the plugin did, and how their results differ from plain Spark's.

    :param plain: it ran plain too
    :param outdated: the plain run's answer is not the one that was known
    :param unstable: two plain runs differ as well, so that there is nothing to compare with
    """

    query: int
    rows: int
    error: str | None
    cold: Counters
    warm: Counters
    difference_cold: str | None
    difference_warm: str | None
    plain: bool
    outdated: bool
    unstable: bool
    seconds_off: float
    seconds_cold: float
    seconds_warm: float

    @property
    def verdict(self) -> str:
        if self.difference_cold or self.difference_warm:
            return "unstable" if self.unstable else "DIFFERS"
        if self.outdated:
            return "OUTDATED"
        done = (self.cold.stores, self.cold.loads, self.warm.stores, self.warm.loads)
        return "identical" if any(done) else "vacuous"


@dataclass(frozen=True)
class Application:
    """Sessions inside of a running application; without the plugin all of them are plain."""

    off: SparkSession
    cold: SparkSession
    warm: SparkSession
    plugin: bool

    @classmethod
    def of(cls, application: SparkSession, folder: Path, plugin: bool) -> Application:
        confs = [CONFS | (OFF if plugin else {}), *2 * [CONFS | (ON if plugin else {})]]
        sessions = [sibling(application, each) for each in confs]
        for session in sessions:
            register(session, folder)
        return cls(*sessions, plugin)

    def run(self, session: SparkSession, text: str) -> Run:
        before = self._counters()
        start = time.perf_counter()
        found = outcome(session.sql(text))
        seconds = time.perf_counter() - start
        return Run(found, seconds, self._counters() - before)

    def _counters(self) -> Counters:
        return committed(self.off) if self.plugin else Counters(0, 0)


def compare_suite(
    name: str,
    scale: float,
    application: SparkSession,
    only: Iterable[int] = (),
    plugin: bool = True,
    golden: Golden | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> list[Comparison]:
    """:param golden: known answers; without them every query runs plain too"""
    suite, wanted = SUITES[name], set(only)
    queries = {number: text for number, text in suite.queries().items() if not wanted or number in wanted}
    sessions = Application.of(application, suite.folder(scale), plugin)
    known = {number: golden.queries[number] if golden else None for number in queries}
    plain: dict[int, Run] = {}
    cold: dict[int, Run] = {}
    for number, text in queries.items():
        if known[number] is None or chance.one_in(f"{name} {number}", PLAIN_ONE_IN):
            plain[number] = sessions.run(sessions.off, text)
        cold[number] = sessions.run(sessions.cold, text)
        report(f"{number}: {cold[number].seconds:.2f} s")
    comparisons = []
    for number, text in queries.items():
        warm = sessions.run(sessions.warm, text)
        comparison = _compared(sessions, number, text, known[number], plain.get(number), cold[number], warm)
        report(f"{number}: {comparison.verdict} {comparison.difference_cold or ''} {comparison.difference_warm or ''}")
        comparisons.append(comparison)
    return comparisons


def routed_suite(
    name: str, scale: float, application: SparkSession, golden: Golden, only: Iterable[int]
) -> dict[int, tuple[str | None, int]]:
    """Of each query, what differs where another engine does all that it can, and how many parts it did."""
    suite = SUITES[name]
    texts = suite.queries()
    session, plain = (sibling(application, CONFS | confs) for confs in (ROUTED, OFF))
    for each in (session, plain):
        register(each, suite.folder(scale))
    found = {}
    for number in only:
        before = routes(session)
        rows = outcome(session.sql(texts[number]))
        different = None
        if digest(rows) != golden.queries[number]:
            different = difference(outcome(plain.sql(texts[number])), rows)
        found[number] = different, routes(session) - before
    return found


def _compared(
    sessions: Application, number: int, text: str, known: str | None, plain: Run | None, cold: Run, warm: Run
) -> Comparison:
    if plain is None and {digest(cold.found), digest(warm.found)} != {known}:
        plain = sessions.run(sessions.off, text)  # to say what differs, and whether that is ours
    base = plain or cold
    comparison = Comparison(
        number,
        len(base.found.rows),
        base.found.error,
        cold.done,
        warm.done,
        difference(base.found, cold.found),
        difference(base.found, warm.found),
        plain is not None,
        plain is not None and known is not None and digest(plain.found) != known,
        False,
        plain.seconds if plain else 0.0,
        cold.seconds,
        warm.seconds,
    )
    if comparison.verdict != "DIFFERS":
        return comparison
    again = outcome(sessions.off.sql(text))
    return replace(comparison, unstable=difference(base.found, again) is not None)


def golden_of(name: str, scale: float, application: SparkSession) -> Golden:
    """Answers of plain Spark, null for those that are not the same in three runs."""
    suite = SUITES[name]
    sessions = Application.of(application, suite.folder(scale), plugin=False)
    found = {
        number: {digest(outcome(session.sql(text))) for session in (sessions.off, sessions.cold, sessions.warm)}
        for number, text in suite.queries().items()
    }
    answers = {number: digests.pop() if len(digests) == 1 else None for number, digests in found.items()}
    return Golden(table_digests(suite.folder(scale)), answers)
