"""What the passes of a decision hand to each other, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_regions.costs.rates import SECOND_ITERATION, SECOND_ITERATION_OVERHEAD, SECOND_USE_OVERHEAD
from spark_regions.dag.plan import Plan, Signature
from spark_regions.matching.subsumes import Match
from spark_regions.runs.run_view import Key
from spark_regions.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Decline:
    """What is not done at a node, and why: a code of `reasons`, with what it was judged by."""

    node: int
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class MaterializationCandidate:
    """The result of a node, or of a wider DataFrame in its place, with its numbers (Piglet §4.1).

    :param recompute: seconds to compute it with what is loadable now
    :param bytes: expected size of the files
    :param past: executions that an entry would have served, and that no stored result above would have spared
    :param expected: uses expected from earlier runs; 0 where there are none
    :param session: uses expected from this session's own repeats
    :param probability: eq. 6
    :param ref: of the DataFrame
    :param read_seconds, extra_seconds: with what reading and holding it cost in money, see `charge`
    :param extra_seconds: what computing it now costs beyond the node that it replaces
    :param first_use: nothing is known of it: stored if that adds little to the query
    :param in_memory: and only what tasks can hold in memory
    :param iteration: of a sweep that no earlier run knew; 0 where it is none
    """

    node: int
    signature: Signature
    recompute: Estimate
    read_seconds: float
    write_seconds: float
    bytes: float
    past: float
    expected: float
    session: float
    probability: float
    ref: str | None = None
    extra_seconds: float = 0.0
    first_use: bool = False
    in_memory: bool = False
    iteration: int = 0

    @property
    def benefit(self) -> float:
        """Eq. 1: t_total - t_read, for one use."""
        return self.recompute.value - self.read_seconds

    @property
    def least_benefit(self) -> float:
        """The same of the lower end of what computing it takes."""
        return self.recompute.low - self.read_seconds

    @property
    def price(self) -> float:
        """Seconds that keeping it costs now."""
        return self.write_seconds + self.extra_seconds

    @property
    def detail(self) -> str:
        """Beside the reason."""
        return f"iteration {self.iteration}" if self.iteration else ""

    def max_overhead(self, first_use: float) -> float | None:
        """Share of the query's own work that writing may take: of unknown ones that of a `first_use`, and a part of
        what was spent on each of them before.
        """
        if self.first_use:
            return first_use + SECOND_USE_OVERHEAD * min(self.past, 1.0)
        return SECOND_ITERATION_OVERHEAD if self.iteration == SECOND_ITERATION else None

    @property
    def uses(self) -> float:
        return max(self.expected, self.session)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A plan that runs again with other values in it.

    :param iteration: which one this is, the first that can be told is the second
    :param before: the plan of the last one: the same nodes, those above a changed value with other identifiers
    """

    iteration: int
    before: Plan


def unmeasured(
    node: int, signature: Signature, write_seconds: float = 0.0, ref: str | None = None
) -> MaterializationCandidate:
    """A candidate of which nothing is known but its identifier."""
    return MaterializationCandidate(
        node=node,
        signature=signature,
        recompute=Estimate(0.0, 0.0),
        read_seconds=0.0,
        write_seconds=write_seconds,
        bytes=0.0,
        past=0.0,
        expected=0.0,
        session=0.0,
        probability=0.0,
        ref=ref,
    )


@dataclass(frozen=True, slots=True)
class StrategyInput:
    """All that a strategy may look at.

    :param matches: the best entry of every node that one serves
    :param gains: what loading it saves now, in seconds
    :param candidates: what could be stored
    :param eligible: nodes that may be stored, measured or not
    :param least_gains: what loading it saves at the lower end, where that matters
    """

    plan: Plan
    matches: Mapping[int, Match]
    gains: Mapping[int, float]
    candidates: tuple[MaterializationCandidate, ...]
    eligible: frozenset[int]
    least_gains: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Appraisal:
    """:param gain: net seconds that the store is worth, over its expected uses"""

    gain: float
    reason: str


Store = tuple[MaterializationCandidate, str]
"""What is stored, and the reason code."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a strategy chose. No load is below another, no store below another or below a load.

    :param loads: nodes with the reason code
    :param first_uses: whether what nobody has used before may be stored as well, where it costs little
    """

    loads: Mapping[int, str]
    stores: tuple[Store, ...]
    declines: tuple[Decline, ...]
    first_uses: bool = False


@dataclass(frozen=True, slots=True)
class PlannedMaterialization:
    """A result to keep while this query computes it, since later ones of the run read it; in this run's identifiers.

    :param key: of the result in the recorded run
    :param level: one of `runs.program.LEVELS`
    :param recompute: seconds to compute it
    :param saving: seconds that reading it saves the queries ahead
    :param reads: how often they read it
    """

    key: Key
    node: int
    ref: str | None
    signature: Signature
    level: str
    rows: float
    bytes: float
    recompute: float
    saving: float
    reads: int


@dataclass(frozen=True, slots=True)
class RunDecision:
    """What the plan of the whole run says of this query.

    :param step: which recorded query it is, of `steps`
    :param wanted: results to keep
    :param finished: keys of kept results that no later query reads
    :param chosen_seconds: predicted of this query as planned
    :param plain_seconds: the same of Spark's own plan
    :param paired: DataFrames of this run, each with the recorded one that it is
    """

    step: int
    steps: int
    wanted: tuple[PlannedMaterialization, ...]
    finished: frozenset[Key]
    chosen_seconds: float
    plain_seconds: float
    paired: tuple[tuple[Signature, Signature], ...] = ()


@dataclass(frozen=True, slots=True)
class CommonSubplan:
    """One computation, with the columns and rows of all, for several nodes.

    :param saving: seconds
    :param detail: of what it was judged by
    """

    nodes: tuple[int, ...]
    saving: float
    reason: str
    detail: str = ""
