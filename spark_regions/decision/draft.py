"""One decision as far as the passes have come."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from spark_regions.decision.values import (
    CommonSubplan,
    Decline,
    MaterializationCandidate,
    PlannedMaterialization,
    RunDecision,
    Store,
)
from spark_regions.matching.subsumes import Match
from spark_regions.stats.estimate import Estimate
from spark_regions.wire.actions import Action, Route
from spark_regions.wire.actions import Store as StoreAction
from spark_regions.wire.messages import NumberedRegions

Seconds = Mapping[int, Estimate]
_NOTHING: Mapping[Any, Any] = MappingProxyType({})


def _nothing() -> Mapping[Any, Any]:
    return _NOTHING


@dataclass(frozen=True, slots=True)
class Draft:
    """A value: a pass gives another one, or the same object where it has nothing to add.

    What is told of savings counts copies of a subplan once, each saving its part: Spark might reuse an exchange.

    :param self_seconds: task-seconds of each node alone
    :param inclusive_seconds: task-seconds of a node with everything below it, where it ran without a load
    :param probabilities: eq. 6 by lineage
    :param matches: the best entry of every node that one serves
    :param uncached_seconds: to compute each node without any load
    :param seconds: to compute each node with what can be loaded
    :param least_seconds: to compute each node without any load, copies of a subplan once
    :param gains: what loading each match saves now, in seconds
    :param least_gains: the same at the lower end, of entries that nobody has read before
    :param eligible: nodes that may be stored, measured or not
    :param candidates: what could be stored, with its numbers
    :param private: what only this application could use again
    :param unknown: eligible nodes without numbers
    :param loads: nodes that are read, with the reason code
    :param saved: what each load saves, in seconds
    :param keeps: planned results to be persisted
    :param persists: others
    :param actions: further ones, of `wire.actions` or of a like kind, which need nothing reserved
    :param regions: of the query as decided, see `number_regions`
    """

    run: RunDecision | None = None
    self_seconds: Seconds = field(default_factory=_nothing)
    inclusive_seconds: Seconds = field(default_factory=_nothing)
    probabilities: Mapping[str, float] = field(default_factory=_nothing)
    matches: Mapping[int, Match] = field(default_factory=_nothing)
    uncached_seconds: Seconds = field(default_factory=_nothing)
    seconds: Seconds = field(default_factory=_nothing)
    least_seconds: Seconds = field(default_factory=_nothing)
    gains: Mapping[int, float] = field(default_factory=_nothing)
    least_gains: Mapping[int, float] = field(default_factory=_nothing)
    eligible: frozenset[int] = frozenset()
    candidates: tuple[MaterializationCandidate, ...] = ()
    private: tuple[MaterializationCandidate, ...] = ()
    unknown: tuple[int, ...] = ()
    loads: Mapping[int, str] = field(default_factory=_nothing)
    saved: Mapping[int, float] = field(default_factory=_nothing)
    stores: tuple[Store, ...] = ()
    first_uses: bool = False
    keeps: tuple[PlannedMaterialization, ...] = ()
    persists: tuple[MaterializationCandidate, ...] = ()
    shares: tuple[CommonSubplan, ...] = ()
    actions: tuple[Action, ...] = ()
    regions: NumberedRegions | None = None
    declines: tuple[Decline, ...] = ()

    def declined(self, *more: Decline) -> Draft:
        """The draft with these declines after its own."""
        return replace(self, declines=(*self.declines, *more)) if more else self

    def storing(self, more: Iterable[Store]) -> Draft:
        """The draft with these stores, and without what was said of their nodes."""
        stores = (*self.stores, *more)
        nodes = {candidate.node for candidate, _ in stores}
        declines = tuple(each for each in self.declines if each.node not in nodes)
        return replace(self, stores=stores, declines=declines)

    def only(self, nodes: Collection[int]) -> Draft:
        """The draft with what is loaded, stored, kept and persisted at these nodes; itself, if that is all."""
        kept = replace(
            self,
            loads={number: reason for number, reason in self.loads.items() if number in nodes},
            stores=tuple(store for store in self.stores if store[0].node in nodes),
            keeps=tuple(each for each in self.keeps if each.node in nodes),
            persists=tuple(each for each in self.persists if each.node in nodes),
        )
        return self if kept == self else kept

    @property
    def routes(self) -> tuple[Route, ...]:
        return tuple(action for action in self.actions if isinstance(action, Route))

    def asked(self, of: Iterable[Action]) -> tuple[Action, ...]:
        """Its actions, without statements for DataFrames that are not among the stores."""
        stored = {each.ref for each in of if isinstance(each, StoreAction)}
        return tuple(each for each in self.actions if not isinstance(each, Route) or each.ref in {None, *stored})

    @property
    def stored(self) -> tuple[int, ...]:
        return tuple(candidate.node for candidate, _ in self.stores)
