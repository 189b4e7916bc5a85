"""What the passes of a decision read, and what each of them adds to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from spark_regions.skew.aqe import AdaptiveConf
from spark_regions.skew.reduce_stage import Costs, Stage
from spark_regions.skew.spec import Decline, PartitionSlice, SkewSpec, Split


@dataclass(frozen=True, slots=True)
class StageQuestion:
    """
    :param expired: whether the time to decide is over; the best repair so far then stands. 1,000 partitions on 480
        cores take about 0.1 s, 10,000 about 2 s
    """

    stage: Stage
    costs: Costs = field(default_factory=Costs)
    adaptive: AdaptiveConf = field(default_factory=AdaptiveConf)
    expired: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    :param splits: the partitions that are cut
    :param target: seconds of a slice, which packed partitions may fill as well; None: nothing is cut
    :param declines: why others are not
    """

    splits: tuple[Split, ...] = ()
    target: float | None = None
    declines: tuple[Decline, ...] = ()


@dataclass(frozen=True, slots=True)
class Appraisal:
    """:param seconds: of each slice of the candidate"""

    candidate: Candidate
    seconds: Mapping[PartitionSlice, float]


@dataclass(frozen=True, slots=True)
class StageDraft:
    """
    :param plain: seconds of the stage as Spark's adaptive execution would run it; :param longest: of its longest task
    :param skewed: whether some partition is longer than any order of the tasks can hide
    :param candidates: drawn one by one, in ever smaller tasks; :param appraisals: of the candidates, as they are drawn
    :param spec: the decision, once it is made
    """

    plain: float = 0.0
    longest: float = 0.0
    skewed: bool = False
    candidates: Iterable[Candidate] = ()
    appraisals: Iterable[Appraisal] = ()
    spec: SkewSpec | None = None
