"""The whole run ahead: what the last run of the same application tells about the present one's queries (DESIGN §8)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import Plan, Signature
from spark_regions.runs.program import PERSIST, Budget, Make, Schedule
from spark_regions.runs.recorded_query import Measured, RecordedQuery, query_part
from spark_regions.runs.results import Result
from spark_regions.runs.run_matcher import KEPT_BEHIND, RunMatcher
from spark_regions.runs.run_view import Key, RunView
from spark_regions.runs.solution import Solution, Task, key_of
from spark_regions.wire.messages import BatchPlan

WAIT_SECONDS = 0.1
"""How long a decision waits for the schedule; well below the usual deadline."""
WAIT_SHARE = 0.02
MOST_WAIT_SECONDS = 2.0
"""How long the first query of a run is held up in all, as a share of the run's time, and at most."""
RESIZE_SHARE = 0.25
RESIZE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something to wait for, for so long at the most; not under the session's lock."""

    done: threading.Event
    seconds: float


Stored = Callable[[], Iterable[tuple[str, frozenset[str]]]]
"""Lineage and columns of the entries that can be read."""


class RunPlanner:
    """Follows the recorded run, and plans what is ahead. Called under the session's lock; solving is done beside it."""

    def __init__(self, queries: Sequence[RecordedQuery], together: bool = False, late: int = KEPT_BEHIND) -> None:
        """
        :param together: the queries run side by side, so that all that is kept is kept at once
        :param late: how many places a query may be late before it counts as left out
        """
        self.queries = queries
        self.together = together
        self.matcher = RunMatcher(self.queries, late)
        self._schedule: Schedule | None = None
        self._solution: Solution | None = None
        self._stale = True
        self._waited = 0.0
        self._places: dict[int, tuple[int, Mapping[int, int]]] = {}
        self._expected: dict[Key, float] = {}
        self._known: dict[Key, Result] = {}
        self.ended = 0
        if self.queries:
            threading.Thread(target=_import_solver, name="solver", daemon=True).start()

    def __bool__(self) -> bool:
        return bool(self.queries)

    def view(self, query: int, plan: Plan, step: int, kept: Collection[Key]) -> RunView:
        """Where a query stands that is `step`, as `look` found it.

        :param kept: results that are persisted now
        """
        part, recorded = query_part(plan), self.queries[step].plan
        numbers = dict(zip(recorded.below(recorded.root), part.below(part.root), strict=True))
        self._places[query] = step, numbers
        schedule = self._schedule
        ahead = frozenset(self.matcher.ahead(step)) - {step}
        if schedule is not None:
            past = (m for at, makes in schedule.makes.items() if at not in ahead and at != step for m in makes)
            self._stale |= any(_was_missed(schedule.results[m.result], m, kept, ahead) for m in past)
        lineages = MappingProxyType(self.matcher.lineages)
        return RunView(self.queries, step, numbers, schedule, ahead, frozenset(kept), self.together, lineages)

    def look(self, plan: Plan) -> int | None:
        """The step that a query is; its identifiers are taken note of, before anything is planned."""
        part = query_part(plan)
        step = self.matcher.find(part)
        if step is not None:
            self._learn(part, step)
        return step

    def _learn(self, part: Plan, step: int) -> None:
        before = self.matcher.changed
        self.matcher.learn(part, step)
        if self.matcher.changed != before:
            # What was stored of it cannot be read any more.
            self._stale = True

    def wants_more(self, step: int | None) -> bool:
        """Whether a DataFrame could have to be kept in this step."""
        if step is None:
            return False
        if self._schedule is None:
            return any(query.plan.shared for query in self.queries)
        return any(self._schedule.results[make.result].wide for make in self._schedule.makes.get(step, ()))

    def waiting(self, step: int | None) -> Waiting | None:
        """What a query waits for: the first schedule, if that is on its way and the run long enough to wait for it."""
        solution = self._solution
        if step is None or solution is None or self._schedule is not None or solution.done.is_set():
            return None
        whole = sum(query.prefix_seconds[query.plan.root] for query in self.queries)
        if self._waited >= max(WAIT_SECONDS, min(WAIT_SHARE * whole, MOST_WAIT_SECONDS)):
            return None
        return Waiting(solution.done, WAIT_SECONDS)

    def waited(self, seconds: float) -> None:
        """So long was a query held up."""
        self._waited += seconds

    def order(self) -> BatchPlan:
        """The queries of a batch by rank: each after those that make what it reads; and the predicted seconds.

        Queries of one rank do not wait for each other. Without a schedule all are of one rank.
        """
        schedule = self._schedule
        if schedule is None:
            return BatchPlan((tuple(range(len(self.queries))),))
        made = {make.result: step for step, makes in schedule.makes.items() for make in makes}
        ranks: dict[int, int] = {}
        for step in range(len(self.queries)):
            first = [made[n] for n, r in enumerate(schedule.results) if n in made and _reads(r, step, made[n])]
            ranks[step] = 1 + max((ranks[maker] for maker in first), default=-1)
        return BatchPlan(
            tuple(
                tuple(step for step, own in ranks.items() if own == rank)
                for rank in range(max(ranks.values(), default=-1) + 1)
            ),
            chosen_seconds=round(schedule.chosen_seconds, 3),
            plain_seconds=round(schedule.plain_seconds, 3),
            kept=len(made),
        )

    def carried(self, query: int) -> Measured | None:
        """What the recorded run knows of a query's nodes."""
        if query not in self._places:
            return None
        step, now = self._places[query]
        known = self.queries[step].measured
        seconds, rows, sizes = (
            {now[n]: v for n, v in values.items() if n in now} for values in (known.seconds, known.rows, known.bytes)
        )
        return Measured(seconds, rows, sizes)

    def decided(self, paired: Iterable[tuple[Signature, Signature]]) -> None:
        """DataFrames of this run were found to be those of the recorded run."""
        for present, recorded in paired:
            self.matcher.pair(present, recorded)

    def ran(self, query: int) -> None:
        """A query has ended well."""
        if query in self._places:
            self.ended += 1
            self.matcher.take(self._places.pop(query)[0])

    def known(self, queries: Sequence[RecordedQuery]) -> None:
        """The same queries, with what is known of them by now: what is ahead is planned again."""
        self.queries = queries
        self._stale = True

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
        cores: int,
        kept: Mapping[Key, float],
        stored: Stored,
        wait_seconds: float = 0.0,
    ) -> None:
        """Start a solution where one is due, and take in the one that is ready.

        :param kept: results that are persisted now, with their bytes
        :param stored: asked for the entries that can be read now
        :param wait_seconds: how long the first one is waited for
        """
        if self._stale and self._solution is None:
            self._stale = False
            entries = tuple(self.matcher.entry(lineage, columns) for lineage, columns in stored())
            ahead = tuple(self.matcher.ahead())
            changed, known = self.matcher.changed, dict(self._known)
            self._solution = Solution(
                Task(self.queries, ahead, budget, rates, cores, dict(kept), entries, changed, known, self.together)
            )
        solution = self._solution
        if solution is not None and solution.done.wait(wait_seconds if self._schedule is None else 0.0):
            self._solution = None
            if solution.schedule is not None:
                self._schedule = solution.schedule
                results = {key_of(result): result for result in solution.schedule.results}
                self._expected |= {key: rates.level_bytes(result.bytes, True) for key, result in results.items()}
                self._known |= results


def _reads(result: Result, step: int, maker: int) -> bool:
    return maker < step and any(place.step == step for place in result.places)


def _was_missed(result: Result, make: Make, kept: Collection[Key], ahead: frozenset[int]) -> bool:
    """Whether a result that should be persisted by now is not, and would still be read twice."""
    gone = make.level == PERSIST and key_of(result) not in kept
    return gone and sum(place.step in ahead for place in result.places) > 1


def _import_solver() -> None:
    """It takes half a second, and the first query should not wait for that."""
    import scipy.optimize
    import scipy.sparse  # noqa: F401
