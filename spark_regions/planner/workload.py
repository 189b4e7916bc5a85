"""The workload of a namespace: what recorded runs of all applications ask for, and what stored results would save."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from spark_regions.costs.calibrate import rates_of
from spark_regions.costs.money import Prices
from spark_regions.costs.rates import MIN_BENEFIT_SECONDS, Rates
from spark_regions.dag.plan import Node
from spark_regions.dag.records import Entry, GraphView, OperatorStatistics
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.effects.apply import Effects
from spark_regions.errors import InvalidRequest
from spark_regions.matching.subsumes import Match
from spark_regions.optimizer.candidates import eligible_nodes
from spark_regions.optimizer.estimate import estimate, load_seconds
from spark_regions.optimizer.match import readable, served, unusable
from spark_regions.optimizer.optimizer import optimize
from spark_regions.optimizer.price import price, seconds_of
from spark_regions.optimizer.withdraw import READS, stopped
from spark_regions.runs.best_set import best_set, ranked
from spark_regions.runs.net_benefit import Place, Query, Result, Workload
from spark_regions.runs.recorded_query import RecordedQuery, decode
from spark_regions.stats.cardinality import rows
from spark_regions.stats.frequency import fading
from spark_regions.stats.operators import bytes_of
from spark_regions.store import entries as records
from spark_regions.store.graph import calibration, variants_of
from spark_regions.store.steps import RecordedRun, recorded_runs, run_starts
from spark_regions.store.store import Store
from spark_regions.store.switched_off import off_lineages
from spark_regions.wire.messages import Confs

log = logging.getLogger("spark_regions.planner")

MOST_QUERIES = 1500
"""Recorded queries that are looked at, those of the last runs."""
RECENT_DAYS = 7.0
"""In which runs are counted for how many a day has."""
DAY_SECONDS = 86_400.0
SHARE_OF_A_CORE = 0.05
"""That working out what is worth keeping may take, beside the queries."""


@dataclass(slots=True)
class AskedQuery:
    """A query of an application, as often as its recorded runs have it.

    :param job: name of the application
    :param position: of it in the last of those runs
    :param weight: uses to be expected, see `stats.frequency.fading`
    :param times: in all recorded runs of the application, `of_runs`
    :param runs_per_day: of the application, of late
    :param seconds: that it takes without anything stored
    """

    job: str
    position: int
    recorded: RecordedQuery
    of_runs: int
    runs_per_day: float
    weight: float = 0.0
    times: int = 0
    seconds: float = 0.0

    @property
    def per_run(self) -> float:
        return self.times / self.of_runs

    @property
    def per_day(self) -> float:
        return self.per_run * self.runs_per_day


@dataclass(frozen=True, slots=True)
class ObservedWorkload:
    """
    :param workload: gains and costs in seconds, or in money where there are prices
    :param entries: what each result of the workload is; one that is not stored has no id
    :param asked: the first queries of the workload; those after them are reads of entries that no recorded query shows
    :param cores: the most that a recorded query ran on
    """

    workload: Workload
    entries: tuple[Entry, ...]
    asked: tuple[AskedQuery, ...]
    cores: int

    def stored(self) -> Workload:
        """The same, of what is stored alone."""
        there = {number for number, entry in enumerate(self.entries) if entry.id}
        queries = (
            Query(query.weight, tuple(Place(p.above, {n: g for n, g in p.gains.items() if n in there}) for p in places))
            for query in self.workload.queries
            for places in [query.places]
        )
        return Workload(self.workload.results, tuple(queries))

    def worths(self) -> dict[str, float]:
        """What each stored entry is worth beside the others, by id."""
        worths = ranked(self.stored())
        return {entry.id: worths[number] for number, entry in enumerate(self.entries) if entry.id}


def observed_workload(store: Store, confs: Confs, prices: Prices) -> ObservedWorkload:
    """From the catalog: the queries of the last runs, what is stored, and what the passes would find to be stored.

    Seconds are those that the decision itself would go by (`estimate`, `price`, `match`).
    """
    now = store.clock()

    def read(
        connection: sa.Connection,
    ) -> tuple[list[RecordedRun], dict[str, list[float]], list[Entry], Rates, dict[str, str]]:
        return (
            recorded_runs(connection, MOST_QUERIES),
            run_starts(connection),
            records.entries_in(connection, ["committed"]),
            rates_of(calibration(connection, store.where.data[:512])),
            dict(off_lineages(connection)),
        )

    runs, starts, entries, rates, off = store.catalog.read(read)
    asked = _merged(runs, starts, now)
    lineages = {n.signature.lineage for each in asked for n in each.recorded.plan.nodes.values() if n.signature}
    variants = store.catalog.read(lambda connection: variants_of(connection, lineages))
    seen = [_Seen.of(each, variants, off, rates, confs, now) for each in asked]
    known = [*entries, *_candidates(seen, entries, rates)]
    return _built(seen, known, prices, rates, now)


class Worths:
    """What stored results are worth to the workload, and what others would be: by that, room is made for new ones."""

    def __init__(self, effects: Effects, prices: Prices) -> None:
        self._effects = effects
        self._prices = prices
        self._commits = -1
        self._not_before = 0.0

    def work_out(self, confs: Confs, commits: int) -> None:
        """Anew, if the store is half full and more was stored since the last time; not before a query told the budget.

        :param commits: how much this application has stored
        """
        store = self._effects.store
        start = time.monotonic()
        if commits == self._commits or start < self._not_before or confs.max_bytes <= 0:
            return
        if 2 * store.catalog.read(records.used_bytes) <= confs.max_bytes:
            return
        self._commits = commits
        self._effects.worths = revalue(store, confs, self._prices)
        end = time.monotonic()
        self._not_before = end + (end - start) / SHARE_OF_A_CORE


def revalue(store: Store, confs: Confs, prices: Prices) -> dict[str, float]:
    """Write what each entry is worth; returns what results that are not stored would be, by lineage: 0 for those that
    are not of the best set. In seconds: where there are prices, those of all cores that cost as much.
    """
    found = observed_workload(store, confs, prices)
    unit = prices.seconds(1.0, found.cores) if prices.given else 1.0
    store.worth({name: worth * unit for name, worth in found.worths().items()})
    pinned = sum(entry.bytes for entry in found.entries if entry.pinned)
    chosen = best_set(found.workload, max(confs.max_bytes, pinned)).gains
    return {entry.lineage: chosen.get(number, 0.0) * unit for number, entry in enumerate(found.entries) if not entry.id}


def _merged(runs: Sequence[RecordedRun], starts: Mapping[str, list[float]], now: float) -> list[AskedQuery]:
    """Queries by what they ask for, each as often as it was asked.

    What a run asked for counts by its age; all recorded runs of an application together as much as all of its runs.
    Worked example: a job ran every half-life, four times, and the last three runs are kept: 1 + 1/2 + 1/4 + 1/8 = 1.875
    runs count, shared among three as 1 : 1/2 : 1/4.
    """
    names = Counter(run.name for run in runs)
    faded: dict[str, float] = {}
    for run in runs:
        faded[run.name] = faded.get(run.name, 0.0) + fading(now - run.started)
    found: dict[object, AskedQuery] = {}
    for run in runs:
        began = starts.get(run.name, [run.started])
        weight = fading(now - run.started) * sum(fading(now - each) for each in began) / faded[run.name]
        for position, body in enumerate(run.bodies):
            try:
                query = decode(body)
            except InvalidRequest as error:
                log.warning("query %d of %s does not count: %s", position, run.application, error)
                continue
            key = (run.name, *((n.operator, n.signature, n.children) for n in query.plan.nodes.values()))
            each = found.setdefault(
                key, AskedQuery(run.name, position, query, names[run.name], _runs_per_day(began, now))
            )
            each.weight += weight
            each.times += 1
    return list(found.values())


def _runs_per_day(starts: Iterable[float], now: float) -> float:
    """Over the last week, or since the first run if that is less; one day at the least.

    >>> _runs_per_day([0.0, 86_400.0, 2 * 86_400.0], 3 * 86_400.0)
    1.0
    >>> _runs_per_day([0.0, 60.0], 120.0)
    2.0
    """
    ages = [age for each in starts if (age := max(0.0, now - each) / DAY_SECONDS) <= RECENT_DAYS]
    return len(ages) / max(max(ages, default=1.0), 1.0)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A query as the passes see it, before anything is chosen."""

    asked: AskedQuery
    question: Question
    draft: Draft

    @classmethod
    def of(
        cls,
        asked: AskedQuery,
        variants: Mapping[str, list[OperatorStatistics]],
        off: Mapping[str, str],
        rates: Rates,
        confs: Confs,
        now: float,
    ) -> _Seen:
        plan, cores = asked.recorded.plan, asked.recorded.cores
        own = {n.signature.lineage for n in plan.nodes.values() if n.signature}
        view = GraphView({lineage: variants.get(lineage, []) for lineage in own}, off=off)
        question = Question(plan, view, (), rates, confs, cores, now)
        draft = optimize(question, (estimate, price))
        asked.seconds = seconds_of(draft.least_seconds, plan.root)
        return cls(asked, question, draft)

    def seconds(self) -> dict[int, float]:
        """To compute each node; copies of a subplan take their part, since Spark might compute it once."""
        nodes = self.question.plan.nodes
        copies = Counter(node.copy for node in nodes.values())
        return {
            number: min(found.value, seconds_of(self.draft.least_seconds, number) / copies[nodes[number].copy])
            for number, found in self.draft.uncached_seconds.items()
        }

    def open_nodes(self) -> Iterator[Node]:
        """In pre-order, those that something stored may be read in place of."""
        plan, view = self.question.plan, self.question.view
        for number in plan.below(plan.root):
            node = plan.nodes[number]
            if (
                node.signature
                and readable(node)
                and not node.session
                and not stopped(view, node.signature.lineage, READS)
            ):
                yield node


def _candidates(seen: Iterable[_Seen], entries: Iterable[Entry], rates: Rates) -> list[Entry]:
    """What could be stored beside what is: rows of some node, with all columns that any query asks of them."""
    there: dict[str, set[str]] = {}
    for entry in entries:
        there.setdefault(entry.lineage, set()).update(entry.columns)
    places: dict[str, list[tuple[_Seen, Node]]] = {}
    for each in seen:
        for number in eligible_nodes(each.question.plan, {}):
            node = each.question.plan.nodes[number]
            assert node.signature is not None
            places.setdefault(node.signature.lineage, []).append((each, node))
    found = []
    for lineage, nodes in places.items():
        columns = tuple(sorted({column for _, node in nodes if node.signature for column in node.signature.columns}))
        if set(columns) <= there.get(lineage, set()):
            continue
        first, widest = max(nodes, key=lambda place: len(place[1].signature.columns) if place[1].signature else 0)
        assert widest.signature is not None
        width = widest.row_bytes * len(columns) / max(len(set(widest.signature.columns)), 1)
        signed = replace(widest.signature, columns=columns)
        view = first.question.view
        size, count = bytes_of(replace(widest, signature=signed, row_bytes=width), view), rows(lineage, view)
        if size is None:
            continue
        stored = max(int(size.value * rates.stored_ratio), 1)
        entry = Entry(
            "", lineage, signed.core, signed.conjuncts, columns, "", "committed", int(count.value) if count else 0,
            stored, 0.0, first.question.now, operator=widest.operator,
        )  # fmt: skip
        found.append(entry)
    return found


def _built(seen: Sequence[_Seen], known: Sequence[Entry], prices: Prices, rates: Rates, now: float) -> ObservedWorkload:
    by_core: dict[str, list[int]] = {}
    for number, entry in enumerate(known):
        by_core.setdefault(entry.core, []).append(number)
    queries = [_query(each, known, by_core, prices) for each in seen]
    cores = max((each.question.cores for each in seen), default=1)
    uses = [0.0] * len(known)
    for query in queries:
        for number in {each for place in query.places for each in place.gains}:
            uses[number] += query.weight
    results = []
    for number, entry in enumerate(known):
        cost = prices.holding(entry.bytes)
        if not entry.id:
            write = rates.write_seconds(entry.bytes, cores, entry.rows, len(entry.columns))
            cost += prices.computing(write, cores)
        results.append(Result(entry.id or entry.lineage, entry.bytes, cost, entry.pinned))
        more = entry.recent_uses * fading(now - entry.used) - uses[number]
        gain = entry.recompute_seconds - load_seconds(entry, len(entry.columns), rates, cores)
        if entry.id and more > 0 and gain >= MIN_BENEFIT_SECONDS:
            worth = prices.computing(gain, cores) - prices.reading(entry.bytes)
            queries.append(Query(more, (Place(-1, {number: worth} if worth > 0 else {}),)))
    workload = Workload(tuple(results), tuple(queries))
    return ObservedWorkload(workload, tuple(known), tuple(each.asked for each in seen), cores)


def _query(seen: _Seen, known: Sequence[Entry], by_core: Mapping[str, list[int]], prices: Prices) -> Query:
    """What each result would save at each node of a query."""
    question, seconds = seen.question, seen.seconds()
    parents = question.plan.parents
    at: dict[int, int] = {}
    places: list[Place] = []
    for node in seen.open_nodes():
        assert node.signature is not None
        gains: dict[int, float] = {}
        for number in by_core.get(node.signature.core, ()):
            entry = known[number]
            if node.id not in seconds or unusable(entry, question) is not None:
                continue
            match = served(question, seen.draft, node, entry)
            if isinstance(match, Match) and seconds[node.id] - match.seconds >= MIN_BENEFIT_SECONDS:
                saved = prices.computing(seconds[node.id] - match.seconds, question.cores)
                gain = saved - prices.reading(match.read_bytes)
                if gain > 0:
                    gains[number] = gain
        if gains:
            above = parents.get(node.id)
            while above is not None and above not in at:
                above = parents.get(above)
            at[node.id] = len(places)
            places.append(Place(-1 if above is None else at[above], gains))
    return Query(seen.asked.weight, tuple(places))
