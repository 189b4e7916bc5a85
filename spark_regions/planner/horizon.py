"""The whole run ahead: what the last run of the same application tells about the present one's queries (DESIGN §8)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import ROW_ORDER, Plan, Signature
from spark_regions.errors import InvalidRequest
from spark_regions.recycle.horizon.following import Following, StoredEntry, columns_of
from spark_regions.recycle.horizon.program import PERSIST, Budget, Make, Schedule
from spark_regions.recycle.horizon.results import Result, results
from spark_regions.recycle.horizon.solve import solve
from spark_regions.recycle.horizon.steps import Measured, Step, completed, decode, query_part

log = logging.getLogger("spark_regions.planner")

OFFERS = 8
"""DataFrames of a query that the driver is asked to sign, where there is a run ahead to plan for."""
SOLVE_SECONDS = 2.0
WAIT_SECONDS = 0.1
"""How long a decision waits for the schedule; well below the usual deadline."""
WAIT_SHARE = 0.02
MOST_WAIT_SECONDS = 2.0
"""How long the first query of a run is held up in all, as a share of the run's time, and at most."""
RESIZE_SHARE = 0.25
RESIZE_BYTES = 4 << 20


Key = tuple[str, frozenset[str]]
"""A result of the recorded run: lineage and columns."""
Stored = Callable[[], Iterable[tuple[str, frozenset[str]]]]
"""Lineage and columns of the entries that can be read."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A result to keep while this query computes it, in the identifiers of this run.

    :param saving: seconds that reading it saves the steps ahead
    :param recompute: seconds to compute it
    """

    key: Key
    node: int
    ref: str | None
    signature: Signature
    level: str
    rows: float
    bytes: float
    recompute: float
    saving: float


@dataclass(frozen=True, slots=True)
class Advice:
    """
    :param step: which recorded step the query is, of `steps`
    :param seconds: wall seconds of each node alone, as recorded
    :param over: keys of kept results that no step after this one reads
    :param chosen: predicted seconds of this query; None before there is a schedule
    :param plain: the same of Spark's own plan
    """

    step: int
    steps: int
    seconds: Mapping[int, float]
    wanted: tuple[Wanted, ...] = ()
    over: frozenset[Key] = frozenset()
    chosen: float | None = None
    plain: float | None = None


@dataclass(slots=True)
class _Work:
    """One solution on its way."""

    done: threading.Event = field(default_factory=threading.Event)
    schedule: Schedule | None = None


class Horizon:
    """Follows the recorded run, and plans what is ahead. Called under the session's lock; solving is done beside it."""

    def __init__(self, steps: Sequence[Step], together: bool = False) -> None:
        """
        :param together: the queries run side by side, so that all that is kept is kept at once
        """
        self.steps = steps
        self.together = together
        self.following = Following(self.steps)
        self._schedule: Schedule | None = None
        self._work: _Work | None = None
        self._stale = True
        self._waited = 0.0
        self._places: dict[int, tuple[int, Mapping[int, int]]] = {}
        self._expected: dict[Key, float] = {}
        self._known: dict[Key, Result] = {}
        if self.steps:
            threading.Thread(target=_import_solver, name="horizon", daemon=True).start()

    def __bool__(self) -> bool:
        return bool(self.steps)

    def advise(
        self,
        query: int,
        plan: Plan,
        budget: Budget,
        rates: Rates,
        parallelism: int,
        kept: Mapping[Key, float],
        stored: Stored,
    ) -> Advice | None:
        """What to do for a query; None where the last run had none like it.

        :param kept: results that are persisted now, with their bytes
        :param stored: asked for the entries that can be read now
        """
        part = query_part(plan)
        place = self.following.find(part)
        if place is None:
            return None
        self._learn(part, place)
        recorded = self.steps[place]
        now = dict(zip(recorded.plan.below(recorded.plan.root), part.below(part.root), strict=True))
        self._places[query] = place, now
        seconds = {now[number]: spent for number, spent in recorded.measured.seconds.items() if number in now}
        self.prepare(budget, rates, parallelism, kept, stored, WAIT_SECONDS)
        schedule = self._schedule
        if schedule is None:
            return Advice(place, len(self.steps), seconds)
        ahead = set(self.following.ahead()) - {place}
        past = (make for step, makes in schedule.makes.items() if step not in ahead and step != place for make in makes)
        if any(_was_missed(schedule.results[make.result], make, kept, ahead) for make in past):
            self._stale = True
        still = {key_of(r) for r in schedule.results if any(p.step in ahead for p in r.places)}
        # Queries of a batch run side by side: another one may still read it.
        released = frozenset[int]() if self.together else schedule.releases.get(place, frozenset())
        over = {key for key in kept if key not in still} | {key_of(schedule.results[n]) for n in released}
        wanted = tuple(
            found
            for make in schedule.makes.get(place, ())
            if key_of(schedule.results[make.result]) not in kept
            and (found := self._wanted(make, schedule, place, plan, now, ahead))
        )
        chosen, plain = schedule.seconds.get(place, (None, None))
        return Advice(
            place, len(self.steps), seconds, wanted, frozenset(over), chosen, plain
        )  # fmt: skip

    def look(self, plan: Plan) -> int | None:
        """The step that a query is; its identifiers are taken note of, before anything is planned."""
        part = query_part(plan)
        place = self.following.find(part)
        if place is not None:
            self._learn(part, place)
        return place

    def _learn(self, part: Plan, place: int) -> None:
        before = self.following.changed
        self.following.learn(part, place)
        if self.following.changed != before:
            # What was stored of it cannot be read any more.
            self._stale = True

    def wants_more(self, place: int | None) -> bool:
        """Whether a DataFrame could have to be kept in this step."""
        if place is None or self._schedule is None:
            return place is not None
        return any(self._schedule.results[make.result].wide for make in self._schedule.makes.get(place, ()))

    def is_worth_waiting_for(self, plan: Plan) -> bool:
        """Whether the first schedule is on its way, and the run long enough to wait a little for it; waits."""
        work = self._work
        if work is None or self._schedule is not None or self.following.find(query_part(plan)) is None:
            return False
        whole = sum(step.prefix_seconds[step.plan.root] for step in self.steps)
        if self._waited >= min(WAIT_SHARE * whole, MOST_WAIT_SECONDS):
            return False
        began = time.monotonic()
        ready = work.done.wait(WAIT_SECONDS)
        self._waited += time.monotonic() - began
        return not ready

    def order(self) -> dict[str, Any]:
        """The queries of a batch by rank: each after those that make what it reads; and the predicted seconds.

        Queries of one rank do not wait for each other. Without a schedule all are of one rank.
        """
        schedule = self._schedule
        if schedule is None:
            return {"ranks": [list(range(len(self.steps)))]}
        made = {make.result: step for step, makes in schedule.makes.items() for make in makes}
        ranks: dict[int, int] = {}
        for step in range(len(self.steps)):
            first = [made[n] for n, r in enumerate(schedule.results) if n in made and _reads(r, step, made[n])]
            ranks[step] = 1 + max((ranks[maker] for maker in first), default=-1)
        return {
            "ranks": [
                [step for step, own in ranks.items() if own == rank]
                for rank in range(max(ranks.values(), default=-1) + 1)
            ],
            "chosenSeconds": round(schedule.chosen_seconds, 3),
            "plainSeconds": round(schedule.plain_seconds, 3),
            "kept": len(made),
        }

    def columns_read(self, present: Signature) -> frozenset[str] | None:
        """The columns of a DataFrame that the queries of the last run read; None where it is not known."""
        for result in self._schedule.results if self._schedule else ():
            if result.wide is not None and self._is(present, result.wide):
                now = columns_of(present, result.wide)
                if all(column in now for column in result.signature.columns):
                    return frozenset(now[column] for column in result.signature.columns)
        return None

    def carried(self, query: int) -> Measured | None:
        """What the recorded run knows of a query's nodes."""
        if query not in self._places:
            return None
        place, now = self._places[query]
        known = self.steps[place].measured
        seconds, rows, sizes = (
            {now[n]: v for n, v in values.items() if n in now} for values in (known.seconds, known.rows, known.bytes)
        )
        return Measured(seconds, rows, sizes)

    def ran(self, query: int) -> None:
        """A query has ended well."""
        if query in self._places:
            self.following.take(self._places.pop(query)[0])

    def resized(self, key: Key, size: float) -> None:
        """A kept result takes other room than was planned for it."""
        expected = self._expected.get(key)
        if expected is None or abs(size - expected) > max(RESIZE_SHARE * expected, RESIZE_BYTES):
            self._expected[key] = size
            self._stale = True

    def failed(self) -> None:
        """Something planned was not done."""
        self._stale = True

    def prepare(
        self,
        budget: Budget,
        rates: Rates,
        parallelism: int,
        kept: Mapping[Key, float],
        stored: Stored,
        wait_seconds: float = 0.0,
    ) -> None:
        """Start a solution where one is due, and take in the one that is ready; the first one is waited for."""
        if self._stale and self._work is None:
            self._stale = False
            ahead = self.following.ahead()
            entries = [self.following.entry(lineage, columns) for lineage, columns in stored()]
            self._work = work = _Work()
            arguments = (
                work,
                self.steps,
                ahead,
                budget,
                rates,
                parallelism,
                dict(kept),
                entries,
                self.following.changed,
                dict(self._known),
            )
            threading.Thread(target=_plan, args=(*arguments, self.together), name="horizon", daemon=True).start()
        work_now = self._work
        if work_now is not None and work_now.done.wait(wait_seconds if self._schedule is None else 0.0):
            self._work = None
            if work_now.schedule is not None:
                self._schedule = work_now.schedule
                sizes = {key_of(r): rates.level_bytes(r.bytes, True) for r in work_now.schedule.results}
                self._expected |= sizes
                self._known |= {key_of(r): r for r in work_now.schedule.results}

    def _wanted(
        self, make: Make, schedule: Schedule, place: int, plan: Plan, now: Mapping[int, int], ahead: set[int]
    ) -> Wanted | None:
        """A planned result with the identifiers of this run; None where the driver does not offer the DataFrame."""
        result = schedule.results[make.result]
        node = plan.nodes[now[make.node]]
        recorded = self.steps[place].plan.nodes[make.node]
        if node.signature is None or recorded.signature is None or node.refusal == ROW_ORDER:
            return None
        ref = None
        if result.wide is None:
            there = columns_of(node.signature, recorded.signature)
            signature = node.signature
        else:
            shared = next((s for s in plan.shared if s.node == node.id and self._is(s.signature, result.wide)), None)
            if shared is None:
                return None
            ref, signature = shared.ref, shared.signature
            there = columns_of(shared.signature, result.wide)
            self.following.pair(shared.signature, result.wide)
        if not all(column in there for column in result.signature.columns):
            return None
        columns = tuple(there[column] for column in result.signature.columns)
        later = sorted(self.steps[p.step].prefix_seconds[p.node] for p in result.places if p.step in ahead)
        here = self.steps[place].prefix_seconds[make.node]
        return Wanted(
            key_of(result), node.id, ref,
            Signature(signature.lineage, signature.core, signature.conjuncts, columns),
            make.level, result.rows, result.bytes, here, sum(later),
        )  # fmt: skip

    def _is(self, present: Signature, recorded: Signature) -> bool:
        return self.following.recorded(present.lineage) == recorded.lineage


def key_of(result: Result) -> Key:
    return result.signature.lineage, frozenset(result.signature.columns)


def _reads(result: Result, step: int, maker: int) -> bool:
    return maker < step and any(place.step == step for place in result.places)


def with_kept(
    found: Sequence[Result],
    kept: Mapping[Key, float],
    known: Mapping[Key, Result],
    ahead: Sequence[int],
    rates: Rates,
    stored: Collection[Key] = (),
) -> list[Result]:
    """The results, and those that are there: one reader is enough for these, and their columns are what they are.

    :param kept: bytes of those that are persisted, as they are
    :param known: results of earlier schedules
    :param stored: those of them that an entry serves
    """
    sizes: dict[Key, float | None] = dict.fromkeys(stored) | {
        key: size / rates.persisted_ratio for key, size in kept.items()
    }
    held = []
    for key, size in sizes.items():
        places = tuple(place for place in known[key].places if place.step in ahead) if key in known else ()
        if places:
            held.append(replace(known[key], places=places, bytes=known[key].bytes if size is None else size))
    keys = {key_of(result) for result in held}
    return held + [result for result in found if key_of(result) not in keys]


def _sources(steps: Sequence[Step], result: Result) -> set[str]:
    """Recorded lineages of what a result is computed from."""
    place = result.places[0]
    nodes = [steps[place.step].plan.nodes[number] for number in steps[place.step].plan.below(place.node)]
    return {node.signature.lineage for node in nodes if node.signature and not node.children}


def _was_missed(result: Result, make: Make, kept: Mapping[Key, float], ahead: set[int]) -> bool:
    """Whether a result that should be persisted by now is not, and would still be read twice."""
    gone = make.level == PERSIST and key_of(result) not in kept
    return gone and sum(place.step in ahead for place in result.places) > 1


def with_carried(measured: Measured, carried: Measured | None) -> Measured:
    """What was seen now, and what was known of the nodes that did not run."""
    if carried is None:
        return measured
    certain = {node: spent for node, spent in measured.seconds.items() if node not in measured.widened}
    return Measured(
        {**measured.seconds, **carried.seconds, **certain},
        {**carried.rows, **measured.rows},
        {**carried.bytes, **measured.bytes},
        measured.widened - carried.seconds.keys(),
    )


def measured_of(
    event: Mapping[str, Any], parallelism: int, spared: Iterable[int], widened: Iterable[int] = ()
) -> Measured:
    """The numbers of an `executed` event, without nodes that did not run or that something stood in for."""
    left_out = set(spared)
    values: dict[str, dict[int, float]] = {"seconds": {}, "rows": {}, "bytes": {}}
    for node in event.get("nodes") or ():
        for name, found in values.items():
            value = node.get(name)
            if value is not None and (name != "seconds" or int(node["id"]) not in left_out):
                found[int(node["id"])] = float(value) / (parallelism if name == "seconds" else 1)
    return Measured(values["seconds"], values["rows"], values["bytes"], frozenset(widened) & values["seconds"].keys())


def decoded(bodies: Iterable[bytes]) -> list[Step]:
    """Recorded steps; none where one of them cannot be read."""
    steps: list[Step] = []
    for body in bodies:
        try:
            steps.append(decode(body))
        except InvalidRequest as error:
            log.warning("the last run cannot be followed: %s", error)
            return []
    return completed(steps)


def _import_solver() -> None:
    """It takes half a second, and the first query should not wait for that."""
    import scipy.optimize
    import scipy.sparse  # noqa: F401


def _plan(
    work: _Work,
    steps: Sequence[Step],
    ahead: Sequence[int],
    budget: Budget,
    rates: Rates,
    parallelism: int,
    kept: Mapping[Key, float],
    stored: Sequence[StoredEntry],
    changed: frozenset[str],
    known: Mapping[Key, Result],
    together: bool,
) -> None:
    """Body of the solving thread."""
    try:
        began = time.monotonic()

        def is_stored(result: Result) -> bool:
            lineage, columns = key_of(result)
            serving = [entry for entry in stored if entry.lineage == lineage and columns <= entry.columns]
            # One of other days' files does not serve.
            return any(entry.of_this_run or not changed & _sources(steps, result) for entry in serving)

        there = [key for key, result in known.items() if is_stored(result)]
        found = with_kept(results(steps, ahead), kept, known, ahead, rates, there)
        have = [n for n, result in enumerate(found) if key_of(result) in kept]
        read = [n for n, result in enumerate(found) if is_stored(result)]
        work.schedule = solve(steps, ahead, found, budget, rates, parallelism, SOLVE_SECONDS, have, read, together)
        solved = work.schedule
        if solved is not None:
            log.info(
                "planned %d queries ahead in %.2f s: %d results kept, predicted %.1f s, without %.1f s%s",
                len(ahead), time.monotonic() - began, sum(map(len, solved.makes.values())),
                solved.chosen_seconds, solved.plain_seconds, "" if solved.proven else " (not proven)",
            )  # fmt: skip
    except Exception:
        log.exception("no plan for the run ahead")
    finally:
        work.done.set()
