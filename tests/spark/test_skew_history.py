"""What a stage took is its load when it runs again."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.harness.session import decisions, sibling
from tests.spark.test_skew import ALWAYS, PLAIN, SHUFFLED, kinds, repairs, seen
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

STAGE_LEAST = 0.2
"""Seconds; of a stage that took less nothing is told (`Policy.stageLeastMillis`)."""

COST = SHUFFLED | {
    "spark.regions.recycle.strategy": "off",
    "spark.regions.skew.enabled": "true",
    "spark.regions.skew.strategy": "cost",
    "spark.regions.recycle.rowOrder": "any",
}


@pytest.fixture(scope="module")
def plain(spark: SparkSession) -> SparkSession:
    return sibling(spark, PLAIN)


def slow(group: Any) -> Any:
    time.sleep(0.3 if group["k"].iloc[0] == 5 else 0.04)
    return group.assign(n=group["n"] * 2)


def pause(group: Any) -> Any:
    time.sleep(0.04)
    return group


def scored(session: SparkSession, function: Any = slow, first: int = 0) -> DataFrame:
    """Some kilobytes in 24 groups: adaptive execution makes one task of them."""
    rows = session.range(first, first + 480).selectExpr("id % 24 AS k", "id AS n")
    return rows.groupBy("k").applyInPandas(function, "k long, n long")


def test_a_slow_function_gets_more_tasks_the_second_time(spark: SparkSession, plain: SparkSession) -> None:
    session = sibling(spark, COST)
    expected = outcome(scored(plain))
    before = repairs(spark)
    assert difference(expected, outcome(scored(session))) is None
    assert repairs(spark) == before, "bytes tell nothing"
    start = seen(spark)
    assert difference(expected, outcome(scored(session))) is None
    assert repairs(spark) == before + 1
    assert kinds(spark, start) == {("FlatMapGroupsInPandas", "order"): 1}
    (told,) = {str(each["detail"]) for each in decisions(spark) if each["query"] > start and each["kind"] == "order"}
    assert "as it ran before" in told


def test_other_rows_are_predicted_by_what_these_took(spark: SparkSession, plain: SparkSession) -> None:
    """As tomorrow's are. Another function is not."""
    session = sibling(spark, COST)
    outcome(scored(session, pause))
    before = repairs(spark)
    assert difference(outcome(scored(plain, pause, 1000)), outcome(scored(session, pause, 1000))) is None
    assert repairs(spark) == before + 1

    def other(group: Any) -> Any:
        return pause(group)

    outcome(scored(session, other))
    assert repairs(spark) == before + 1


def test_what_took_no_time_is_left_alone(spark: SparkSession, plain: SparkSession) -> None:
    session = sibling(spark, COST)

    def quick(group: Any) -> Any:
        return group

    before = repairs(spark)
    spark.sparkContext.setJobGroup("quick", "what takes no time")
    try:
        for _ in range(3):
            assert difference(outcome(scored(plain, quick)), outcome(scored(session, quick))) is None
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    took = longest(spark, "quick")
    assert repairs(spark) == before or took >= STAGE_LEAST, "on a busy machine it takes some"


def longest(spark: SparkSession, group: str) -> float:
    """Seconds that the tasks of the longest stage took together, of the jobs of a group."""
    store = spark.sparkContext._jsc.sc().statusStore()
    tracker = spark.sparkContext.statusTracker()
    stages = {
        stage
        for number in tracker.getJobIdsForGroup(group)
        if (job := tracker.getJobInfo(number)) is not None
        for stage in job.stageIds
    }
    return max(float(store.lastStageAttempt(each).executorRunTime()) / 1000 for each in stages)


def test_where_it_is_only_observed_the_plan_stays(spark: SparkSession, plain: SparkSession) -> None:
    def watched(group: Any) -> Any:
        return pause(group)

    session = sibling(spark, COST | {"spark.regions.mode": "observe"})
    before = repairs(spark)
    for _ in range(2):
        assert difference(outcome(scored(plain, watched)), outcome(scored(session, watched))) is None
    assert repairs(spark) == before
    session.conf.set("spark.regions.mode", "apply")
    outcome(scored(session, watched))
    assert repairs(spark) == before + 1, "and what was observed is known"


def test_sizes_alone_decide_where_that_is_asked_for(spark: SparkSession, plain: SparkSession) -> None:
    def sized(group: Any) -> Any:
        return pause(group)

    session = sibling(spark, COST)
    outcome(scored(session, sized))
    always = sibling(spark, ALWAYS)
    assert difference(outcome(scored(plain, sized)), outcome(scored(always, sized))) is None
