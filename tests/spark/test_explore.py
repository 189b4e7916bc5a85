"""Explorations on real Spark: what is chosen, what runs, what is held, and what is dropped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions as sr
from spark_regions.errors import ExploreError
from tests.harness.session import decisions, settle, sibling
from tests.spark.test_same_rows import OFF

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explore") / "t"
    rows = sibling(spark, OFF).range(0, 20_000, 1, 2)
    rows.selectExpr("id", "id % 97 AS k", "cast((id * 7919) % 1000 AS double) AS v").write.parquet(str(folder))
    return folder


@pytest.fixture
def frame(spark: SparkSession, source: Path) -> DataFrame:
    return sibling(spark, OFF).read.parquet(str(source))


@pytest.fixture(autouse=True)
def nothing_left(spark: SparkSession) -> Iterator[None]:
    before = held(spark)
    yield
    assert held(spark) <= before, "an exploration left something persisted"


def held(spark: SparkSession) -> int:
    """Persisted DataFrames."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def states(chosen: Any) -> list[str]:
    return [each.state for each in chosen.branches]


def count(frame: DataFrame) -> float:
    return float(frame.count())


def test_the_winner_is_read_from_what_its_branch_kept(spark: SparkSession, frame: DataFrame) -> None:
    before = held(spark)
    runs = sr.explore(low=[100, 500, 900])(lambda low: frame.where(F.col("v") >= low))
    assert held(spark) == before
    with runs.choose(count, sr.top(1, lowest=True)) as best:
        assert states(best) == ["discarded", "discarded", "kept"]
        assert best.parameters == {"low": 900}
        assert held(spark) == before + 1
        assert "InMemoryTableScan" in best.frame._jdf.queryExecution().executedPlan().toString()
        assert sorted(best.frame.collect()) == sorted(frame.where("v >= 900").collect())
    assert held(spark) == before
    assert best.frame.count() == frame.where("v >= 900").count()


def test_a_column_is_a_score(frame: DataFrame) -> None:
    runs = sr.explore(sr.points([{"low": 0}, {"low": 990}]))(lambda low: frame.where(F.col("v") >= low))
    with runs.choose(F.avg("v"), sr.maximum) as best:
        assert best.parameters == {"low": 990}
        assert best.branches[1].score == frame.where("v >= 990").agg(F.avg("v")).first()[0]  # type: ignore[index]


def test_what_cannot_win_does_not_run(frame: DataFrame) -> None:
    ran: list[int] = []

    def branch(low: int) -> DataFrame:
        ran.append(low)
        return frame.where(F.col("v") >= low)

    lows = list(range(0, 1000, 50))
    runs = sr.explore(low=lows)(branch)
    with runs.choose(count, sr.top(1), shape="monotone", order="binary", parallel=1) as best:
        assert best.parameters == {"low": 0}
        assert states(best).count("pruned") == len(lows) - 2
    exhaustive = [low for low in lows if frame.where(F.col("v") >= low).count() >= 10_000]
    with runs.choose(count, sr.threshold(10_000), shape="monotone", order="binary", parallel=1) as kept:
        assert [each.parameters["low"] for each in kept.branches if each.state == "kept"] == exhaustive
        assert states(kept).count("pruned") >= 4
        assert len(kept.frames) == len(exhaustive)


def test_scores_that_contradict_their_shape_are_told(frame: DataFrame, caplog: pytest.LogCaptureFixture) -> None:
    scores = {1: 5.0, 2: 1.0, 3: 9.0, 4: 2.0, 5: 7.0}
    runs = sr.explore(x=list(scores))(lambda x: x)
    best = runs.choose(lambda x: scores[x], sr.minimum, shape="monotone")
    assert best.value == 2
    assert "pruned" not in states(best)
    assert "monotone" in caplog.text


def test_scopes_follow_each_other(frame: DataFrame) -> None:
    def cut(low: int) -> DataFrame:
        return frame.where(F.col("v") >= low)

    with sr.explore(low=[100, 300, 800])(cut).choose(count, sr.threshold(10_000), shape="monotone") as kept:
        inner = kept.explore(m=[3, 5])(lambda found, m: found.where(F.col("k") % m == 0))
        assert len(inner) == 4
        with inner.choose(count, sr.minimum) as best:
            assert dict(best.parameters) == {"low": 300, "m": 5}
            assert best.frame.count() == frame.where("v >= 300 AND k % 5 = 0").count()
        with pytest.raises(ExploreError, match="'low' again"):
            kept.explore(low=[1])


def test_a_regression_over_scores_says_which_is_next(frame: DataFrame) -> None:
    lows = list(range(0, 1000, 25))
    runs = sr.explore(low=lows)(lambda low: frame.where(F.col("v") >= low))
    # From 4,800 to 5,200 rows have one threshold alone, which is the 31st as given.
    with runs.choose(count, sr.interval(4_800, 5_200, k=1), order="model", seed=1) as best:
        assert best.parameters == {"low": 750}
        assert sum(each.score is not None for each in best.branches) < 15


def test_scopes_inside_of_branches_are_depth_first(spark: SparkSession) -> None:
    """The order of `tests/unit/test_explore_order.py`, and what it shows (theorem 4.3), is the one that runs."""
    ran: list[str] = []

    def said(name: str, value: float = 1.0) -> float:
        ran.append(name)
        return value

    def outer(name: str) -> float:
        said(name)
        inner = sr.explore(n=[1, 2])(lambda n: said(f"{name}{n}", n)).choose(float)
        return said(f"{name} chosen", inner.value)

    sr.explore(name=["a", "b"])(outer).choose(lambda found: said("chosen", found))
    assert ran == ["a", "a1", "a2", "a chosen", "chosen", "b", "b1", "b2", "b chosen", "chosen"]


@pytest.mark.parametrize("parallel", [1, 2])
def test_explorations_nest_in_functions(frame: DataFrame, parallel: int) -> None:
    def outer(m: int) -> DataFrame:
        part = frame.where(F.col("k") % m == 0)
        inner = sr.explore(low=[0, 500])(lambda low: part.where(F.col("v") >= low)).choose(count, sr.minimum)
        found = inner.frame
        inner.release()
        return found

    with sr.explore(m=[2, 3])(outer).choose(count, sr.maximum, parallel=parallel) as best:
        assert best.frame.count() == frame.where("k % 2 = 0 AND v >= 500").count()


def test_a_branch_that_fails_does_not_end_the_others(frame: DataFrame) -> None:
    def branch(x: int) -> DataFrame:
        if x == 1:
            raise ValueError("not this one")
        return frame.where(F.expr(f"assert_true(v < {1000 if x == 3 else 1}) IS NULL"))

    with sr.explore(x=[1, 2, 3])(branch).choose(count, sr.maximum) as best:
        assert states(best) == ["failed", "failed", "kept"]
        assert isinstance(best.branches[0].error, ValueError)
        assert "not this one" in best.branches[0].why
    with pytest.raises(ExploreError, match="all 2 branches failed; the first, x=1: ValueError") as raised:
        sr.explore(x=[1, 2])(branch).choose(count, sr.maximum)
    assert isinstance(raised.value.__cause__, ValueError)


@pytest.mark.parametrize("score", [float("nan"), None, "high", True])
def test_a_score_that_is_none_fails_its_branch(spark: SparkSession, score: Any) -> None:
    runs = sr.explore(x=[1, 2])(lambda x: x)
    best = runs.choose(lambda x: 1.0 if x == 2 else score, sr.maximum)
    assert states(best) == ["failed", "kept"]
    assert "ExploreError" in best.branches[0].why


def test_a_function_has_to_return_something(spark: SparkSession) -> None:
    with pytest.raises(ExploreError, match="returns None"):
        sr.explore(x=[1])(lambda x: None).choose(lambda x: 1.0)
    with pytest.raises(ExploreError, match="yields nothing"):
        sr.explore(x=[1])(_yields_nothing).choose()
    with pytest.raises(ExploreError, match="yields nothing"):
        sr.explore(x=[1])(_yields_nothing).choose(lambda frame: frame.count())
    with pytest.raises(ExploreError, match="no score"):
        sr.explore(x=[1])(lambda x: x).choose()
    with pytest.raises(ExploreError, match="expected a function"):
        sr.explore(x=[1])(3)  # type: ignore[arg-type]
    with pytest.raises(ExploreError, match="expected one"):
        sr.explore(x=[1, 2])(lambda x: x).choose(float, sr.top(2)).value  # noqa: B018
    with pytest.raises(ExploreError, match="DataFrames"):
        sr.explore(x=[1, 2])(lambda x: x).choose(float).frame  # noqa: B018


def _yields_nothing(x: int) -> Iterator[tuple[int, float]]:
    yield from ()


def test_iterative_branches_are_halved(spark: SparkSession) -> None:
    steps: dict[int, int] = {}

    def train(rate: int) -> Iterator[tuple[int, float]]:
        for number in range(1, 28):
            steps[rate] = number
            yield number, abs(rate - 4) / number
        return f"model {rate}"

    best = sr.explore(rate=range(1, 10))(train).choose(select=sr.minimum, stop=sr.halving(3))
    assert best.value == "model 4"
    assert steps[4] == 27
    assert sum(steps.values()) < 9 * 27 / 3
    assert states(best).count("stopped") == 8
    assert "after round" in best.branches[0].why


def test_a_rule_of_the_users_ends_a_branch(frame: DataFrame) -> None:
    def train(x: int) -> Iterator[DataFrame]:
        for number in range(1, 6):
            yield frame.where(F.col("k") < x * number)

    def falls(rounds: Any) -> bool:
        return bool(rounds[-1][1] < 1000)

    with sr.explore(x=[1, 20])(train).choose(count, sr.maximum, stop=falls) as best:
        assert states(best) == ["stopped", "kept"]
        assert best.frame.count() == frame.where("k < 100").count()


def test_a_running_loser_is_cancelled(frame: DataFrame) -> None:
    def branch(x: int) -> DataFrame:
        if x == 1:
            return frame.limit(10)
        wait = F.udf(lambda v: time.sleep(20) or v, "double")
        return frame.limit(2).repartition(1).withColumn("v", wait("v"))

    began = time.monotonic()
    with sr.explore(x=[1, 2])(branch).choose(count, sr.threshold(1, k=1), parallel=2) as best:
        assert states(best) == ["kept", "stopped"]
        assert "cancelled" in best.branches[1].why
    assert time.monotonic() - began < 15


def test_what_the_user_persisted_stays(spark: SparkSession, frame: DataFrame) -> None:
    mine = frame.where("v >= 900").persist()
    try:
        mine.count()
        before = held(spark)
        with sr.explore(low=[100, 900])(lambda low: frame.where(f"v >= {low}")).choose(count, sr.maximum) as best:
            assert best.parameters == {"low": 100}
        assert held(spark) == before
        assert mine.storageLevel.useMemory
    finally:
        mine.unpersist(blocking=True)


def test_what_a_function_fits_models_to_is_held_meanwhile(spark: SparkSession, frame: DataFrame) -> None:
    rows = frame.groupBy("k").agg(F.sum("v").alias("v"))
    chance = rows.withColumn("v", F.rand())
    before = held(spark)
    seen: dict[str, list[int]] = {}

    def fitted(source: DataFrame, name: str, x: int) -> float:
        seen.setdefault(name, []).append(held(spark) - before)
        return float(source.where(F.col("v") > x).count())

    sr.explore(x=[1, 2, 3])(lambda x: fitted(rows, "rows", x)).choose(float)
    sr.explore(x=[1, 2, 3])(lambda x: fitted(chance, "by chance", x)).choose(float)
    sr.explore(x=[1, 2, 3])(lambda x: fitted(frame, "as read", x)).choose(float)
    # Its function is called nondeterministic, but is not.
    vectors = VectorAssembler(inputCols=["v"], outputCol="vector").transform(rows)
    sr.explore(x=[1, 2, 3])(lambda x: fitted(vectors, "vectors", x)).choose(float)
    # Persisted after the first branch, there with the second one's job.
    assert seen == {"rows": [0, 0, 1], "by chance": [0, 0, 0], "as read": [0, 0, 0], "vectors": [0, 0, 1]}
    assert held(spark) == before


def test_branches_with_one_plan_share_what_is_held(spark: SparkSession, frame: DataFrame) -> None:
    scores = iter([1.0, 2.0])

    def score(found: DataFrame) -> float:
        found.count()
        return next(scores)

    with sr.explore(unused=[1, 2])(lambda unused: frame.where("v >= 900")).choose(score, sr.minimum) as best:
        assert best.parameters == {"unused": 1}
        assert "InMemoryTableScan" in best.frame._jdf.queryExecution().executedPlan().toString()


def test_shared_state_is_told(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[int] = []

    def branch(x: int) -> int:
        seen.append(x)
        return len(seen)

    def default(x: int, also: list[int] = []) -> int:  # noqa: B006
        also.append(x)
        return len(also)

    sr.explore(x=[1, 2])(branch).choose(float)
    assert "'seen'" in caplog.text
    assert caplog.text.count("modifies") == 1
    sr.explore(x=[1, 2])(default).choose(float)
    assert "'also'" in caplog.text
    assert caplog.text.count("modifies") == 2


def test_what_branches_have_in_common_is_computed_once(spark: SparkSession, source: Path) -> None:
    confs = {"spark.regions.recycle.strategy": "markov", "spark.sql.shuffle.partitions": "2"}
    session = sibling(spark, confs)
    rows = session.read.parquet(str(source))
    other = rows.select(F.col("id").alias("o"), F.col("v").alias("w"))
    base = (
        rows.join(other, rows.k * 100 == other.o).groupBy("k", "w").agg(F.max("v").alias("m"), F.count("*").alias("n"))
    )

    def branch(low: int) -> DataFrame:
        return base.where(F.col("m") >= low)

    plain = [branch(low).count() for low in (0, 500, 990)]
    with sr.explore(low=[0, 500, 990])(branch).choose(count, sr.minimum) as best:
        assert [each.score for each in best.branches] == [float(each) for each in plain]
        assert best.frame.count() == plain[2]
    settle(spark)
    assert decisions(session)


def test_the_table_of_branches(spark: SparkSession) -> None:
    best = sr.explore(x=[1, 2])(lambda x: x).choose(float, sr.maximum)
    lines = repr(best).splitlines()
    assert lines[0].split() == ["branch", "parameters", "score", "seconds", "state", "why"]
    assert lines[2].split()[:3] == ["1", "x=2", "2"]
    assert ">kept</td>" in best._repr_html_()


ON_A_TERMINAL = """
import time
import spark_regions as sr
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
slow = F.udf(lambda v: time.sleep(0.7) or v, "long")

def branch(x):
    return spark.range(4, numPartitions=4).select(slow(F.col("id") + x).alias("id"))

for progress in (False, None):
    runs = sr.explore(x=[1, 2])(branch)
    print("begun", progress, flush=True)
    runs.choose(F.max("id"), sr.maximum, parallel=1, progress=progress).release()
    print("ended", progress, flush=True)
spark.stop()
"""


def test_a_terminal_shows_the_best_score_and_no_bar_of_sparks_beside_it() -> None:
    us, them = os.openpty()
    seen = b""
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL], stdout=them, stderr=them, env=os.environ | {"TERM": "xterm"}
    )
    os.close(them)
    with suppress(OSError):  # the other end is closed
        while part := os.read(us, 4096):
            seen += part
    assert process.wait(60) == 0, seen.decode()
    plain, ours = (
        seen.partition(f"begun {progress}".encode())[2].partition(f"ended {progress}".encode())[0]
        for progress in (False, None)
    )
    assert b"[Stage" in plain and b"branches" not in plain
    assert b"best 4" in ours and b"best 5" in ours and b"2/2" in ours
    assert b"[Stage" not in ours


INTERRUPTED = """
import sys, time
import spark_regions as sr
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

def branch(x):
    if x > 1:
        return spark.range(1).select(F.udf(lambda v: time.sleep(60) or v, "long")("id").alias("id"))
    return spark.range(x)

def score(found):
    print("scoring\\n", end="", flush=True)
    return float(found.count())

best = sr.explore(x=[1, 2, 3, 4])(branch).choose(score, sr.maximum)  # at most two at once
print("chosen", best.parameters, best.interrupted, [each.state for each in best.branches], flush=True)
print(best.branches, flush=True)
print("count", best.frame.count(), len(spark.sparkContext.statusTracker().getActiveJobsIds()), flush=True)
best.release()
print("held", spark.sparkContext._jsc.getPersistentRDDs().size(), flush=True)
spark.stop()
try:
    sr.explore(x=[1])(branch).choose(lambda d: 1.0)
except sr.ExploreError as error:
    print(error, flush=True)
"""


def test_ctrl_c_keeps_what_is_chosen_so_far() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    for expected in (1, 2):
        assert process.stdout.readline() == "scoring\n", expected
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert "chosen {'x': 1} True ['kept', 'stopped', 'stopped', 'stopped']" in out, errors
    assert "interrupted before it ran" in out and "branches" not in errors.replace("branches scored so far", "")
    assert "count 1 0" in out
    assert "held 0" in out
    assert "no running Spark session" in out
    assert "interrupted: the choice is among the 1 branches scored so far" in errors
