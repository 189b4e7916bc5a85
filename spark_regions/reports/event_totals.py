"""Adds up the events of an application, one at a time, in bounded memory."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_regions.reasons import read_would_save
from spark_regions.reports.lineages import Lineages
from spark_regions.reports.savings import Savings

DECIDED, RAN = "SparkListenerRegionsDecided", "SparkListenerRegionsRan"
ENTRY, STATE = "SparkListenerRegionsEntry", "SparkListenerRegionsState"
WANTED = frozenset(
    {
        DECIDED,
        RAN,
        ENTRY,
        STATE,
        "SparkListenerLogStart",
        "SparkListenerApplicationStart",
        "SparkListenerApplicationEnd",
        "SparkListenerEnvironmentUpdate",
        "SparkListenerExecutorAdded",
        "SparkListenerExecutorRemoved",
    }
)
PENDING_LIMIT = 1000
"""Decided plans whose end is awaited; beyond, the oldest is taken for one that never ran, as after EXPLAIN."""
POINT_LIMIT = 2000
"""Predicted and measured pairs that are kept for the plots."""
READS = frozenset({"load", "recall"})
BOTH_WAYS = frozenset({"verified", "differs"})
"""What is noted of a query that ran both ways."""


@dataclass(slots=True)
class Application:
    """Times are milliseconds since 1970. `cores`: the most that were registered at once; 0 where unknown."""

    name: str = ""
    id: str = ""
    user: str = ""
    spark: str = ""
    started: int = 0
    ended: int = 0
    cores: int = 0
    confs: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Planning:
    """Seconds that decisions took queries."""

    count: int = 0
    seconds: float = 0.0
    worst: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        self.worst = max(self.worst, seconds)


@dataclass(slots=True)
class Stored:
    """A result that this application wrote. `seconds`: task-seconds of writing."""

    entry: str
    rows: int
    bytes: int
    seconds: float
    time: int
    gone: int = 0


class EventTotals:
    """What the events so far add up to. Unknown events and fields are passed over.

    What was decided on a plan counts when the plan has run, and once: not for one that was only explained, nor for a
    subquery that Spark planned once more.
    """

    def __init__(self) -> None:
        self.application = Application()
        self.lineages = Lineages()
        self.savings = Savings()
        self.queries: set[int] = set()
        self.outcomes: Counter[str] = Counter()
        self.query_seconds = 0.0
        self.task_seconds = 0.0
        self.planning = Planning()
        self.actions: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.would: Counter[str] = Counter()
        self.would_seconds: defaultdict[str, float] = defaultdict(float)
        self.declines: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.abandoned: Counter[str] = Counter()
        self.stored: dict[str, Stored] = {}
        self.state: Mapping[str, Any] = {}
        self.query_points: list[tuple[float, float]] = []
        self._pending: OrderedDict[int, Mapping[str, Any]] = OrderedDict()
        self._executors: dict[str, int] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """One event, as `eventlog.events` gives it."""
        kind = event.get("Event")
        if kind == DECIDED:
            self._decided(int(event.get("query", -1)), event.get("decision") or {}, event.get("nodes"))
        elif kind == RAN:
            self._ran(event)
        elif kind == ENTRY:
            self._entry(event)
        elif kind == STATE:
            self.state = event
        else:
            self._spark(str(kind), event)

    def _spark(self, kind: str, event: Mapping[str, Any]) -> None:
        known = self.application
        if kind == "SparkListenerLogStart":
            known.spark = str(event.get("Spark Version", ""))
        elif kind == "SparkListenerApplicationStart":
            known.name, known.id = str(event.get("App Name", "")), str(event.get("App ID", ""))
            known.user, known.started = str(event.get("User", "")), int(event.get("Timestamp", 0))
        elif kind == "SparkListenerApplicationEnd":
            known.ended = int(event.get("Timestamp", 0))
        elif kind == "SparkListenerEnvironmentUpdate":
            properties = event.get("Spark Properties") or {}
            known.confs = {k: str(v) for k, v in properties.items() if k == "spark.master" or ".regions." in k}
        elif kind == "SparkListenerExecutorAdded":
            info = event.get("Executor Info") or {}
            self._executors[str(event.get("Executor ID"))] = int(info.get("Total Cores", 0))
            known.cores = max(known.cores, sum(self._executors.values()))
        elif kind == "SparkListenerExecutorRemoved":
            self._executors.pop(str(event.get("Executor ID")), None)

    def _decided(self, query: int, decision: Mapping[str, Any], nodes: Any) -> None:
        skew = decision.get("topic") == "skew"
        if not skew and decision.get("session") == "":
            for action in decision.get("actions") or ():
                if action.get("kind") in BOTH_WAYS:
                    self.savings.verified.add(action)
            return  # What became of an entry; its own event says so too.
        self.queries.add(query)
        if skew:
            self.count(decision)
            return
        self.planning.add(float(decision.get("planningMillis") or 0.0) / 1e3)
        self._pending.pop(query, None)
        self._pending[query] = {**decision, "nodes": decision.get("nodes") or nodes or ()}
        if len(self._pending) > PENDING_LIMIT:
            self._pending.popitem(last=False)

    def count(self, decision: Mapping[str, Any], loaded: Container[int] | None = None) -> None:
        """What was decided on a plan that ran, or on a stage of it.

        :param loaded: nodes at which stored results were read; None: not told, all of them
        """
        skew = decision.get("topic") == "skew"
        for action in decision.get("actions") or ():
            if action.get("kind") != "load" or action.get("refusal") or loaded is None or _at(action) in loaded:
                self._action(action, skew)
        for decline in decision.get("declines") or ():
            self._declined(decline, skew)
        if refusal := decision.get("refusal"):
            self.refusals[str(refusal.get("code", ""))] += 1

    def _action(self, action: Mapping[str, Any], skew: bool) -> None:
        kind = str(action.get("kind", ""))
        if kind == "measured":
            return
        if refusal := action.get("refusal"):
            self.failed[str(refusal.get("code", ""))] += 1
            return
        group = "skew" if skew else kind
        self.actions[group] += 1
        self.reasons[str(action.get("reason", ""))] += 1
        if kind in READS:
            self.rules[str(action.get("detail", ""))] += 1
        self.savings.predict(group, float(action.get("savingSeconds") or 0.0))

    def _declined(self, decline: Mapping[str, Any], skew: bool) -> None:
        code = str(decline.get("code", ""))
        if code != "OBSERVE_ONLY":
            self.declines[code] += 1
            return
        found = read_would_save(str(decline.get("detail", "")))
        kind, seconds = ("skew", 0.0) if skew or found is None else found
        self.would[kind] += 1
        self.would_seconds[kind] += seconds

    def _ran(self, event: Mapping[str, Any]) -> None:
        query, seconds = int(event.get("query", -1)), float(event.get("seconds") or 0.0)
        self.queries.add(query)
        self.outcomes[str(event.get("outcome", ""))] += 1
        self.query_seconds += seconds
        self.task_seconds += float(event.get("taskSeconds") or 0.0)
        ended_well = event.get("outcome") == "ok"
        choices = (event.get("saving") or {}).get("choices")
        self.savings.measure(choices or ())
        for each in event.get("statements") or ():
            self.savings.statements.add(each.get("engine") or {})
        for number in dict.fromkeys([query, *map(int, event.get("queries") or ())]):
            decision = self._pending.pop(number, None)
            if decision is None:
                continue
            loads = _loads_of(event, number)
            places = [_at(load) for load in loads if load.get("node") is not None]
            self.count(decision, None if loads and not places else places)
            if ended_well:
                self._learn(decision, event if number == query else {}, loads, measured=choices is not None)
                if number == query:
                    self._compare(decision, seconds)

    def _compare(self, decision: Mapping[str, Any], seconds: float) -> None:
        predicted = (decision.get("regions") or {}).get("chosenSeconds")
        if isinstance(predicted, int | float) and len(self.query_points) < POINT_LIMIT:
            self.query_points.append((float(predicted), seconds))

    def _learn(
        self, decision: Mapping[str, Any], event: Mapping[str, Any], loads: list[Mapping[str, Any]], measured: bool
    ) -> None:
        """:param event: what measured the nodes; empty for a subquery, whose nodes are not measured by themselves"""
        plan = {int(node["id"]): node for node in decision["nodes"]}
        ran = {int(node["id"]): node for node in event.get("nodes") or ()}
        places = {_at(load): load for load in loads if load.get("node") is not None}
        entries = {str(load.get("entry")): load for load in loads}
        spared: set[int] = set()
        for action in decision.get("actions") or ():
            number = _at(action)
            if action.get("kind") not in READS or action.get("refusal") or number not in plan:
                continue
            load = places.get(number) if places else entries.get(str(action.get("entry")))
            if action.get("kind") == "load" and load is None:
                continue
            spared |= _below(plan, number)
            if not measured:
                fresh = self.lineages.total(str(plan[number].get("lineage") or ""))
                self.savings.estimate(load or {}, fresh, self.application.cores)
        if event:
            self.lineages.add(decision["nodes"], ran, spared)
        for decline in decision.get("declines") or ():
            node = plan.get(int(decline.get("node", -1)))
            if node and node.get("lineage"):
                self.lineages.declined(str(node["lineage"]), str(decline.get("code", "")))

    def _entry(self, event: Mapping[str, Any]) -> None:
        entry, state = str(event.get("entry", "")), event.get("state")
        time = int(event.get("time") or 0)
        if state == "committed":
            rows, size = int(event.get("rows") or 0), int(event.get("bytes") or 0)
            self.stored[entry] = Stored(entry, rows, size, float(event.get("seconds") or 0.0), time)
        elif state in ("abandoned", "invalid"):
            self.abandoned[str(event.get("code") or "")] += 1
        if state in ("invalid", "dropped") and entry in self.stored:
            self.stored[entry].gone = time


def _at(item: Mapping[str, Any]) -> int:
    return int(item.get("node", -1))


def _loads_of(event: Mapping[str, Any], query: int) -> list[Mapping[str, Any]]:
    """The reads in one of the plans that ran."""
    return [load for load in event.get("loads") or () if int(load.get("query", event.get("query", -1))) == query]


def _below(plan: Mapping[int, Mapping[str, Any]], number: int) -> set[int]:
    """A node and all under it."""
    found: set[int] = set()
    waiting = [number]
    while waiting:
        here = waiting.pop()
        if here in plan and here not in found:
            found.add(here)
            waiting += [int(child) for child in plan[here].get("children") or ()]
    return found
