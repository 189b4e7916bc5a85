"""Queries that were decided and have not been reported to have run."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from spark_regions.dag.plan import Plan
from spark_regions.wire.actions import Action, NodeAction, Persist, Store, Unpersist
from spark_regions.wire.messages import Baseline, Decide, QueryTop

MAX_OPEN = 256
UNUSED_SECONDS = 60.0
NEVER_RAN_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """An entry that a query reads.

    :param nodes: in whose places
    :param predicted: seconds that reading it saves, of all places together
    :param instead: seconds without the load
    :param family: of what was stored at its first use, see `first_uses`
    """

    nodes: tuple[int, ...] = ()
    predicted: float = 0.0
    instead: float = 0.0
    family: str = ""

    def also(self, node: int, predicted: float, instead: float) -> Loaded:
        return replace(
            self, nodes=(*self.nodes, node), predicted=self.predicted + predicted, instead=self.instead + instead
        )


@dataclass(slots=True)
class OpenQuery:
    """
    :param asked: the request, whose plan is to be kept as a step of this run
    :param position: how many queries were decided before
    :param actions: the answer's, as long as the driver may still find that they change the order of rows
    :param loads: by entry
    :param state: of the machine, see `Baseline`
    :param splits: stages that were rearranged, by their names, each with the predicted saving
    :param verify: whether it is to run both ways
    :param engine_factor: with which another engine's seconds were predicted
    """

    number: int
    plan: Plan
    cores: int
    asked: Decide
    position: int
    actions: tuple[Action, ...] = ()
    loads: dict[str, Loaded] = field(default_factory=dict)
    decided: float = field(default_factory=time.monotonic)
    state: str = ""
    baseline: Baseline | None = None
    splits: dict[str, float] = field(default_factory=dict)
    verify: bool = False
    engine_factor: float = 1.0

    @property
    def top(self) -> QueryTop | None:
        return self.asked.top

    @property
    def plain(self) -> bool:
        """Whether it runs as Spark planned it; the rows that it has anyway may be stored."""
        stores = (
            isinstance(each, Unpersist) or (isinstance(each, Store) and each.ref is None) for each in self.actions
        )
        return not self.splits and all(stores)

    @property
    def choices(self) -> dict[tuple[str, str], float]:
        """What spares the query work, by kind and lineage, with the predicted saving; else what it makes for others."""
        spares: dict[tuple[str, str], float] = {}
        makes: dict[tuple[str, str], float] = {}
        for action in self.actions:
            signed = self.plan.nodes[action.node].signature if isinstance(action, NodeAction) else None
            if signed is not None and isinstance(action, NodeAction):
                found = makes if isinstance(action, Store | Persist) else spares
                key = (str(action.__struct_config__.tag), signed.lineage)
                found[key] = found.get(key, 0.0) + action.saving
        spares |= {("split", name): saving for name, saving in self.splits.items()}
        return spares or dict.fromkeys(makes, 0.0)

    def nodes_of(self, *kinds: type[NodeAction]) -> set[int]:
        """Nodes of the answer's actions of these kinds."""
        return {action.node for action in self.actions if isinstance(action, kinds)}


class OpenQueries:
    """The last ones, by number, and those that are over and still hold leases or reservations."""

    def __init__(self) -> None:
        self._open: OrderedDict[int, OpenQuery] = OrderedDict()
        self._over: dict[int, float] = {}

    def add(self, query: OpenQuery) -> None:
        self._open[query.number] = query
        self._open.move_to_end(query.number)
        while len(self._open) > MAX_OPEN:
            self._over[self._open.popitem(last=False)[0]] = time.monotonic()

    def take(self, number: int) -> OpenQuery | None:
        return self._open.pop(number, None)

    def get(self, number: int) -> OpenQuery | None:
        return self._open.get(number)

    def ended(self, number: int) -> None:
        """What it holds can soon be given up: a commit may be on its way until then."""
        self._over[number] = time.monotonic()

    def take_unused(self) -> list[int]:
        """Queries that are over, so that what they reserved or leased and did not use can be given up.

        Over are those that ended a while ago, and those that were explained only, or decided too late: they are never
        reported to have run.
        """
        now = time.monotonic()
        for number, query in list(self._open.items()):
            if now - query.decided > NEVER_RAN_SECONDS:
                self._over[number] = now - UNUSED_SECONDS
                del self._open[number]
        over = [number for number, since in self._over.items() if now - since >= UNUSED_SECONDS]
        for number in over:
            del self._over[number]
        return over
