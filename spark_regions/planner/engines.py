"""Which other engine a query can have parts of it computed by."""

from __future__ import annotations

from collections.abc import Mapping

from spark_regions.costs.engines import engine_rates
from spark_regions.decision.question import Engine
from spark_regions.learn.engine_runs import EngineRuns
from spark_regions.platforms.installed import usable_engines
from spark_regions.platforms.typed import decode
from spark_regions.wire.messages import Decide

DUCKDB = "duckdb"


def engine_of(asked: Decide, calibration: Mapping[str, float], runs: EngineRuns) -> Engine | None:
    """None where the driver does not tell the plan for one, or `auto` finds none.

    :raises InvalidRequest: the plan that it tells is none
    """
    if asked.typed is None or (asked.confs.platforms == "auto" and not usable_engines()):
        return None
    return Engine(decode(asked.typed), engine_rates(calibration, DUCKDB), asked.engine_up, dict(runs.refused))
