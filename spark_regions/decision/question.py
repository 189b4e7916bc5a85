"""One decision's input: all that was read for it, once, before the first pass."""

from __future__ import annotations

from dataclasses import dataclass

from spark_regions.costs.money import NO_PRICES, Prices
from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import Plan
from spark_regions.dag.records import Entry, GraphView
from spark_regions.runs.run_view import RunView
from spark_regions.wire.messages import Confs, QueryTop


@dataclass(frozen=True, slots=True)
class Question:
    """
    :param entries: stored and persisted results on the cores of the plan
    :param now: seconds of the store's clock
    :param run: where this run is in the recorded one, if that is followed
    :param subquery: the plan is a part of a query, which is decided on after it
    :param plain_seconds: what plain execution of the query took in this state of the machine; None where not seen
    :param unordered: nodes, each with an entry or a DataFrame whose rows would come in another order than plain Spark's
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

    @property
    def planned(self) -> bool:
        """Whether the run ahead is planned: what it will use again is known, and nothing is stored on suspicion."""
        return self.run is not None and self.run.predicted is not None
