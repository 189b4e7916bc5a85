"""One decision's input: all that was read for it, once, before the first pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import Plan
from spark_regions.dag.records import Entry, GraphView
from spark_regions.errors import InvalidRequest
from spark_regions.runs.run_view import RunView


@dataclass(frozen=True, slots=True)
class Confs:
    """The confs of one query; `firstUseOverhead` is a share of its own work, `ttlSeconds` seconds, others bytes."""

    strategy: str = "markov"
    max_bytes: int = 0
    ttl_seconds: float = 0.0
    recycle: bool = True
    persist: bool = True
    persist_max_bytes: int = 0
    window: int = 20
    first_use_overhead: float = 0.0
    sharing: bool = False
    workflow: bool = False

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Confs:
        """
        :raises InvalidRequest: a value has another type
        """
        try:
            return cls(
                strategy=str(raw.get("strategy") or "markov"),
                max_bytes=int(raw.get("maxBytes") or 0),
                ttl_seconds=float(raw.get("ttlSeconds") or 0),
                recycle=_flag(raw.get("recycle", True)),
                persist=_flag(raw.get("persist", True)),
                persist_max_bytes=int(raw.get("persistMaxBytes") or 0),
                window=int(raw.get("window") or 20),
                sharing=_flag(raw.get("sharing", False)),
                workflow=_flag(raw.get("workflow", False)),
                first_use_overhead=float(raw.get("firstUseOverhead") or 0.0),
            )
        except (TypeError, ValueError) as error:
            raise InvalidRequest(f"confs: {error}") from error

    @property
    def recycling(self) -> bool:
        """Whether stored results are read and made."""
        return self.recycle and self.strategy != "off"


@dataclass(frozen=True, slots=True)
class Question:
    """
    :param entries: stored and persisted results on the cores of the plan
    :param now: seconds of the store's clock
    :param run: where this run is in the recorded one, if that is followed
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

    @property
    def planned(self) -> bool:
        """Whether the run ahead is planned: what it will use again is known, and nothing is stored on suspicion."""
        return self.run is not None and self.run.predicted is not None


def _flag(value: Any) -> bool:
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)
