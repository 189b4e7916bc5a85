"""One decision's input: all that was read for it, once, before the first pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_regions.costs.engines import EngineRates
from spark_regions.costs.money import NO_PRICES, Prices
from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import Plan
from spark_regions.dag.records import Entry, GraphView
from spark_regions.decision.values import Sweep
from spark_regions.platforms.typed import TypedPlan
from spark_regions.runs.run_view import RunView
from spark_regions.stats.first_uses import HELD, family
from spark_regions.wire.messages import Confs, QueryTop, Why


@dataclass(frozen=True, slots=True)
class Engine:
    """Another engine that can be asked for parts of the query.

    :param started: whether its process runs
    :param refused: lineages that it gave up in this application, with why
    """

    plan: TypedPlan
    rates: EngineRates
    started: bool = False
    refused: Mapping[str, Why] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """
    :param entries: stored and persisted results on the cores of the plan
    :param now: seconds of the store's clock
    :param run: where this run is in the recorded one, if that is followed
    :param subquery: the plan is a part of a query, which is decided on after it
    :param plain_seconds: what plain execution of the query took in this state of the machine; None where not seen
    :param unordered: nodes, each with an entry, a DataFrame or an engine whose rows would come in another order than
        plain Spark's
    :param engine: None where none is to be asked
    :param sweep: None where no earlier query of this application was this one with other values
    :param application: its name
    """

    plan: Plan
    view: GraphView
    entries: tuple[Entry, ...]
    rates: Rates
    confs: Confs
    cores: int
    now: float
    run: RunView | None = None
    unordered: frozenset[tuple[int, str]] = frozenset()
    subquery: bool = False
    top: QueryTop | None = None
    plain_seconds: float | None = None
    prices: Prices = NO_PRICES
    engine: Engine | None = None
    sweep: Sweep | None = None
    application: str = ""

    def family(self, node: int, reason: str = HELD) -> str:
        """The name under which is kept what storing such results at their first use brought; "" for other reasons."""
        return family(self.application, self.plan, node, reason)

    @property
    def planned(self) -> bool:
        """Whether the run ahead is planned: what it will use again is known, and nothing is stored on suspicion."""
        return self.run is not None and self.run.predicted is not None
