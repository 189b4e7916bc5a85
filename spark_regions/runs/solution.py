"""The plan of a run, solved on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_regions.costs.rates import Rates
from spark_regions.runs.program import Budget, Schedule
from spark_regions.runs.recorded_query import RecordedQuery
from spark_regions.runs.results import Result, results
from spark_regions.runs.run_matcher import StoredEntry
from spark_regions.runs.run_view import Key
from spark_regions.runs.solve import solve

log = logging.getLogger("spark_regions.planner")

SOLVE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Task:
    """What there is to plan for.

    :param ahead: steps to come
    :param kept: bytes of the results that are persisted now
    :param changed: recorded lineages of sources that this run has other ones for
    :param known: results of earlier schedules
    """

    queries: Sequence[RecordedQuery]
    ahead: tuple[int, ...]
    budget: Budget
    rates: Rates
    cores: int
    kept: Mapping[Key, float]
    entries: tuple[StoredEntry, ...]
    changed: frozenset[str]
    known: Mapping[Key, Result]
    together: bool

    def is_stored(self, result: Result) -> bool:
        """Whether an entry serves it; one of other days' files does not."""
        lineage, columns = key_of(result)
        serving = [entry for entry in self.entries if entry.lineage == lineage and columns <= entry.columns]
        return any(entry.of_this_run or not self.changed & _sources(self.queries, result) for entry in serving)

    def schedule(self) -> Schedule | None:
        there = [key for key, result in self.known.items() if self.is_stored(result)]
        found = with_kept(results(self.queries, self.ahead), self.kept, self.known, self.ahead, self.rates, there)
        have = [n for n, result in enumerate(found) if key_of(result) in self.kept]
        read = [n for n, result in enumerate(found) if self.is_stored(result)]
        return solve(
            self.queries, self.ahead, found, self.budget, self.rates, self.cores, SOLVE_SECONDS, have, read,
            self.together,
        )  # fmt: skip


class Solution:
    """One on its way; `schedule` stays None where there is none."""

    def __init__(self, task: Task) -> None:
        self.done = threading.Event()
        self.schedule: Schedule | None = None
        threading.Thread(target=self._solve, args=(task,), name="solver", daemon=True).start()

    def _solve(self, task: Task) -> None:
        try:
            began = time.monotonic()
            self.schedule = solved = task.schedule()
            if solved is not None:
                log.info(
                    "planned %d queries ahead in %.2f s: %d results kept, predicted %.1f s, without %.1f s%s",
                    len(task.ahead), time.monotonic() - began, sum(map(len, solved.makes.values())),
                    solved.chosen_seconds, solved.plain_seconds, "" if solved.proven else " (not proven)",
                )  # fmt: skip
        except Exception:
            log.exception("no plan for the run ahead")
        finally:
            self.done.set()


def key_of(result: Result) -> Key:
    return result.signature.lineage, frozenset(result.signature.columns)


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


def _sources(queries: Sequence[RecordedQuery], result: Result) -> set[str]:
    """Recorded lineages of what a result is computed from."""
    place = result.places[0]
    plan = queries[place.step].plan
    nodes = [plan.nodes[number] for number in plan.below(place.node)]
    return {node.signature.lineage for node in nodes if node.signature and not node.children}
