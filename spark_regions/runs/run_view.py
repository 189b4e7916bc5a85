"""Where a query stands in the recorded run of its application, and what is planned for it: a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_regions.dag.plan import Signature
from spark_regions.runs.program import Schedule
from spark_regions.runs.recorded_query import RecordedQuery
from spark_regions.runs.run_matcher import columns_of

Key = tuple[str, frozenset[str]]
"""A result of the recorded run: lineage and columns."""


@dataclass(frozen=True, slots=True)
class RunView:
    """
    :param queries: the recorded run
    :param step: which of them the query is
    :param numbers: nodes of the recorded query to those of the present one
    :param ahead: steps that are still to come, without this one
    :param kept: results that are persisted now
    :param together: the queries run side by side, so that all that is kept is kept at once
    :param lineages: of this run, to the recorded ones that they stand for
    """

    queries: Sequence[RecordedQuery]
    step: int
    numbers: Mapping[int, int]
    schedule: Schedule | None
    ahead: frozenset[int]
    kept: frozenset[Key]
    together: bool
    lineages: Mapping[str, str]

    @property
    def seconds(self) -> dict[int, float]:
        """Wall seconds of each present node alone, as recorded."""
        recorded = self.queries[self.step].measured.seconds
        return {self.numbers[number]: spent for number, spent in recorded.items() if number in self.numbers}

    @property
    def predicted(self) -> tuple[float, float] | None:
        """Seconds of this query as planned, and by Spark's own plan; None before there is a plan."""
        return None if self.schedule is None else self.schedule.seconds.get(self.step)

    def is_recorded(self, present: Signature, recorded: Signature) -> bool:
        """Whether a DataFrame of this run is one of the recorded run."""
        return self.lineages.get(present.lineage, present.lineage) == recorded.lineage

    def columns_read(self, present: Signature) -> frozenset[str] | None:
        """The columns of a DataFrame that the queries of the last run read; None where it is not known."""
        for result in self.schedule.results if self.schedule else ():
            if result.wide is not None and self.is_recorded(present, result.wide):
                now = columns_of(present, result.wide)
                if all(column in now for column in result.signature.columns):
                    return frozenset(now[column] for column in result.signature.columns)
        return None
