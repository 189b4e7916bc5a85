"""What the global operator graph and the recycling cache hold, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_regions.dag.plan import Signature
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.wire.messages import Grouping, Predicate

StatisticsKey = tuple[str, str, str]
NOTHING = RunningStatistics()


@dataclass(frozen=True, slots=True)
class OperatorStatistics:
    """Statistics of one operator: a lineage, the operator's kind, and the columns that it had to produce.

    The lineage names rows only; a Project with a Python function and one without it share it, and cost very
    differently.

    :param seconds: task-seconds of the operator alone
    :param total: task-seconds of the operator and everything below it, of runs that loaded nothing
    :param demands: queries that asked for it, executed or loaded
    :param executions: queries that executed it
    """

    lineage: str
    kind: str
    shape: str
    core: str
    conjuncts: frozenset[str]
    columns: tuple[str, ...]
    rows: RunningStatistics = NOTHING
    bytes: RunningStatistics = NOTHING
    seconds: RunningStatistics = NOTHING
    total: RunningStatistics = NOTHING
    demands: int = 0
    executions: int = 0
    last: float = 0.0

    @property
    def key(self) -> StatisticsKey:
        return (self.lineage, self.kind, self.shape)

    def has_columns(self, signed: Signature) -> bool:
        """Whether it produced exactly these columns."""
        return self.columns == signed.columns or self.shape == signed.shape

    def merge(self, later: OperatorStatistics) -> OperatorStatistics:
        return OperatorStatistics(
            self.lineage, self.kind, self.shape, self.core, self.conjuncts, self.columns,
            self.rows.merge(later.rows),
            self.bytes.merge(later.bytes),
            self.seconds.merge(later.seconds),
            self.total.merge(later.total),
            self.demands + later.demands,
            self.executions + later.executions,
            max(self.last, later.last),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored result, or a reservation of one.

    :param bytes: of the files; of a pending entry, the reserved bytes
    :param recent_uses: the making and each use, halved for every half-life until `used`
    :param net_benefit: for the workload, beside the other entries, when that was last worked out
    :param pinned: stays, whatever else would be worth more
    :param recompute_seconds: estimate at the time of the store
    :param measured_seconds: what the `measured_uses` saved against plain runs of their queries
    :param estimated_seconds: what the other uses saved, as their operators were measured in other runs
    :param contradictions: loads in a row that saved much less than predicted
    :param persisted: kept by this application's block manager, and in no catalog
    :param predicates: what its simple filters say
    :param grouping: of an aggregate's rows
    """

    id: str
    lineage: str
    core: str
    conjuncts: frozenset[str]
    columns: tuple[str, ...]
    location: str
    state: str
    rows: int
    bytes: int
    created: float
    used: float
    uses: int = 0
    recent_uses: float = 1.0
    net_benefit: float | None = None
    pinned: bool = False
    recompute_seconds: float = 0.0
    predicted_seconds: float = 0.0
    measured_seconds: float = 0.0
    measured_uses: int = 0
    estimated_seconds: float = 0.0
    contradictions: int = 0
    application: str = ""
    query: int = 0
    operator: str = ""
    reason: str = ""
    owner_host: str = ""
    owner_pid: int = 0
    persisted: bool = False
    predicates: tuple[Predicate, ...] = ()
    grouping: Grouping | None = None


@dataclass(frozen=True, slots=True)
class EdgeUse:
    """How often one operator followed another within the window.

    :param runs: earlier runs of the window in which it did
    :param occurrences: times that it did, over all of them
    """

    runs: int
    occurrences: int


@dataclass(slots=True)
class GraphView:
    """What the global operator graph knows about one plan.

    :param variants: by lineage
    :param by_core: by core, for the cores of shared DataFrames
    :param edges: child lineage to parent lineage ("" above a root) to its use in earlier runs
    :param served: lineages that a committed entry already serves, among the parents in `edges`
    :param session: demands of this application: child lineage to parent lineage to times
    :param runs: earlier runs within the window
    :param off: lineages that are switched off, each with why
    """

    variants: Mapping[str, list[OperatorStatistics]] = field(default_factory=dict)
    by_core: Mapping[str, list[OperatorStatistics]] = field(default_factory=dict)
    edges: Mapping[str, Mapping[str, EdgeUse]] = field(default_factory=dict)
    served: frozenset[str] = frozenset()
    session: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    runs: int = 0
    off: Mapping[str, str] = field(default_factory=dict)
