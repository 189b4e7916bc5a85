"""The weights of operators, fitted to the stages that the catalog has of this machine."""

from __future__ import annotations

import time

import sqlalchemy as sa

from spark_regions.costs.learned import EXPRESSIONS, LEAST_STAGES, TASK, fixed, learned, scale, work_of
from spark_regions.store.catalog import Catalog
from spark_regions.store.timed_stages import learned_weights, machine, timed_since, timed_stages, write_weights
from spark_regions.wire.messages import LearnedWeights, TimedStage

REFIT_STAGES = 50
"""So many stages that are new, or ran again, are worth a new fit."""


def refitted(catalog: Catalog) -> LearnedWeights | None:
    """The catalog's weights of this machine, fitted anew where enough stages ran since; None where none are learned."""

    def read(connection: sa.Connection) -> tuple[LearnedWeights | None, list[TimedStage]]:
        known = learned_weights(connection, machine())
        fresh = timed_since(connection, machine(), known.fitted if known else 0.0)
        due = fresh >= (REFIT_STAGES if known else LEAST_STAGES)
        return known, timed_stages(connection, machine()) if due else []

    known, stages = catalog.read(read)
    return fit(catalog, stages) if stages else known


def fit(catalog: Catalog, stages: list[TimedStage]) -> LearnedWeights:
    """Weights of these stages, kept in the catalog."""
    works = [work_of(stage) for stage in stages]
    found = learned(works)
    # As the driver has them: the fixed weight of an expression is already in what it counts.
    micros = {kind: 1e6 * each for kind, each in found.items() if kind not in (TASK, EXPRESSIONS)}
    expressions = found.get(EXPRESSIONS, fixed(EXPRESSIONS)) / fixed(EXPRESSIONS)
    told = LearnedWeights(round(time.time(), 3), micros, expressions, scale(works))
    catalog.write(lambda connection: write_weights(connection, machine(), told))
    return told
