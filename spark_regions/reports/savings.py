"""What was saved, as predicted and as measured, kept apart.

*Predicted*: what the planner expected of each action when it decided, in wall seconds; reads are net of reading.

*Measured*, of reads alone: task-seconds that the operators took when they were last computed in full, less the
task-seconds of the read, divided by the cores. The former come from this log, else from the operator graph that the
log's state events hold, which earlier runs have measured. A read for which neither knows a time is counted as not
measured, and adds nothing. Nobody measures what a shared subplan or a rearranged stage would have taken otherwise:
those have a prediction only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

DEFERRED_LIMIT = 10_000
POINT_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Deferred:
    """A read that ran.

    :param predicted: wall seconds saved
    :param read_seconds: task-seconds of the read; None where not counted
    :param fresh_seconds: task-seconds to compute it, as this log has measured; None where it has not
    :param lineages: of all that the read stood for
    """

    kind: str
    predicted: float
    read_seconds: float | None
    fresh_seconds: float | None
    lineage: str
    lineages: tuple[str, ...]


@dataclass(slots=True)
class Measured:
    """Sums over the reads that were measured.

    :param predicted: wall seconds, of those reads alone, to compare with
    :param task_seconds: saved
    :param points: predicted and measured wall seconds of each
    """

    reads: int = 0
    from_log: int = 0
    from_graph: int = 0
    unmeasured: int = 0
    predicted: float = 0.0
    task_seconds: float = 0.0
    points: list[tuple[float, float]] = field(default_factory=list)

    def seconds(self, cores: int) -> float | None:
        """Wall seconds; None where nothing was measured."""
        return self.task_seconds / max(cores, 1) if self.from_log + self.from_graph else None


class Savings:
    def __init__(self) -> None:
        self.predicted: defaultdict[str, float] = defaultdict(float)
        self._reads: list[Deferred] = []
        self._beyond = 0

    def predict(self, kind: str, seconds: float) -> None:
        self.predicted[kind] += max(seconds, 0.0)

    def read(self, deferred: Deferred) -> None:
        if len(self._reads) < DEFERRED_LIMIT:
            self._reads.append(deferred)
        else:
            self._beyond += 1

    def measured(self, graph_seconds: Mapping[str, float], cores: int) -> Measured:
        """Sums of all reads.

        :param graph_seconds: task-seconds of each lineage's own operators, as the operator graph knows them
        """
        found = Measured(reads=len(self._reads) + self._beyond, unmeasured=self._beyond)
        for each in self._reads:
            fresh = each.fresh_seconds
            if fresh is None and each.lineage in graph_seconds:
                fresh = sum(graph_seconds.get(lineage, 0.0) for lineage in each.lineages)
            if fresh is None or each.read_seconds is None:
                found.unmeasured += 1
                continue
            found.from_log += each.fresh_seconds is not None
            found.from_graph += each.fresh_seconds is None
            saved = fresh - each.read_seconds
            found.task_seconds += saved
            found.predicted += each.predicted
            if len(found.points) < POINT_LIMIT:
                found.points.append((each.predicted, saved / max(cores, 1)))
        return found
