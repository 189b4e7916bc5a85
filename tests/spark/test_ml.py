"""Cross-validation with what settings share done once: pyspark.ml's metrics and models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.ml import Pipeline, PipelineModel, tuning
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import MinMaxScaler, StringIndexer, VectorAssembler
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions as sr
from spark_regions.errors import ExploreError
from spark_regions.ml import CrossValidator, TrainValidationSplit
from tests.harness.session import sibling
from tests.spark.test_explore import held
from tests.spark.test_same_rows import OFF

pytestmark = pytest.mark.spark


class Tuned:
    """A pipeline whose last stage has three settings, or whose scaler has two as well."""

    def __init__(self) -> None:
        indexer = StringIndexer(inputCol="kind", outputCol="index")
        assembler = VectorAssembler(inputCols=["x", "y", "index"], outputCol="raw")
        scaler = MinMaxScaler(inputCol="raw", outputCol="features")
        self.regression = LogisticRegression(maxIter=2)
        self.prepared = Pipeline(stages=[indexer, assembler, scaler])
        self.pipeline = Pipeline(stages=[indexer, assembler, scaler, self.regression])
        builder = tuning.ParamGridBuilder
        self.last = builder().addGrid(self.regression.regParam, [0.0, 0.1, 2.0]).build()
        self.both = builder().addGrid(scaler.max, [1.0, 3.0]).addGrid(self.regression.regParam, [0.0, 2.0]).build()

    def given(self, **more: Any) -> dict[str, Any]:
        return {
            "estimator": self.pipeline,
            "estimatorParamMaps": self.last,
            "evaluator": BinaryClassificationEvaluator(),
            "seed": 5,
        } | more


@pytest.fixture
def tuned(spark: SparkSession) -> Tuned:
    return Tuned()


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    # In one partition: sums over several have other last digits from run to run, in pyspark.ml, too.
    numbers = sibling(spark, OFF).range(0, 300, 1, 1)
    yield numbers.select(
        F.concat(F.lit("k"), F.col("id") % 3).alias("kind"),
        (F.col("id") * 37 % 101).cast("double").alias("x"),
        (F.col("id") * 53 % 89).cast("double").alias("y"),
        ((F.col("id") * 37 % 101 + F.col("id") * 7 % 31) > 60).cast("double").alias("label"),
        (F.col("id") % 7 % 2).cast("int").alias("fold"),
    )


def weights(model: Any) -> list[float]:
    return [float(each) for each in model.stages[-1].coefficients.toArray()]


def close(values: Any) -> Any:
    return pytest.approx([float(each) for each in values], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("grid", "fold"), [("last", ""), ("both", "fold")])
def test_cross_validation_is_pysparks(spark: SparkSession, rows: DataFrame, tuned: Tuned, grid: str, fold: str) -> None:
    before = held(spark)
    given = tuned.given(estimatorParamMaps=getattr(tuned, grid), numFolds=2, collectSubModels=True, parallelism=2)
    given |= {"foldCol": fold} if fold else {}
    theirs, ours = tuning.CrossValidator(**given), CrossValidator(**given)
    expected, found = theirs.fit(rows), ours.fit(rows)
    assert found.avgMetrics == close(expected.avgMetrics)
    assert found.stdMetrics == close(expected.stdMetrics)
    assert len(set(found.avgMetrics)) > 1, "vacuous: all settings are alike"
    assert weights(found.bestModel) == close(weights(expected.bestModel))
    assert [len(models) for models in found.subModels] == [len(getattr(tuned, grid))] * 2
    for mine, other in zip(found.subModels, expected.subModels, strict=True):
        for model, same in zip(mine, other, strict=True):
            assert isinstance(model, PipelineModel)
            assert weights(model) == close(weights(same))
    predicted = [row.prediction for row in found.transform(rows).select("prediction").collect()]
    assert predicted == [row.prediction for row in expected.transform(rows).select("prediction").collect()]
    assert held(spark) == before


def test_a_split_is_pysparks(spark: SparkSession, rows: DataFrame, tuned: Tuned) -> None:
    before = held(spark)
    given = tuned.given(trainRatio=0.7)
    expected, found = tuning.TrainValidationSplit(**given).fit(rows), TrainValidationSplit(**given).fit(rows)
    assert found.validationMetrics == close(expected.validationMetrics)
    assert weights(found.bestModel) == close(weights(expected.bestModel))
    assert held(spark) == before


def test_an_estimator_that_is_no_pipeline(rows: DataFrame, tuned: Tuned) -> None:
    prepared = tuned.prepared.fit(rows).transform(rows)
    given = tuned.given(estimator=tuned.regression)
    expected = tuning.CrossValidator(**given).fit(prepared)
    assert CrossValidator(**given).fit(prepared).avgMetrics == close(expected.avgMetrics)


@pytest.mark.parametrize("kind", [CrossValidator, TrainValidationSplit])
def test_a_saved_one_is_ours_when_it_is_loaded(rows: DataFrame, tuned: Tuned, tmp_path: Path, kind: Any) -> None:
    made = kind(**tuned.given())
    made.save(str(tmp_path / "tuned"))
    loaded = kind.load(str(tmp_path / "tuned"))
    assert type(loaded) is kind
    assert loaded.uid == made.uid
    assert weights(loaded.fit(rows).bestModel) == close(weights(made.fit(rows).bestModel))


@pytest.mark.parametrize("kind", [CrossValidator, TrainValidationSplit])
def test_without_settings_it_is_refused(rows: DataFrame, tuned: Tuned, kind: Any) -> None:
    with pytest.raises(ExploreError, match="Found no settings, expected at least one"):
        kind(**tuned.given(estimatorParamMaps=[])).fit(rows)


def test_what_settings_share_is_fitted_once_a_fold(
    rows: DataFrame, tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[str] = []
    fit = StringIndexer._fit

    def counted(self: StringIndexer, dataset: DataFrame) -> Any:
        fitted.append(self.uid)
        return fit(self, dataset)

    monkeypatch.setattr(StringIndexer, "_fit", counted)
    CrossValidator(**tuned.given(numFolds=2)).fit(rows)
    # Of each fold, and of the chosen setting.
    assert len(fitted) == 3


def columns_held(rows: DataFrame, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Of what comes of the stages that settings share; the metrics are pyspark.ml's."""
    found: set[str] = set()

    expected = tuning.CrossValidator(**given).fit(rows)
    fit = tuning._parallelFitTasks

    def seen(rest: Any, train: DataFrame, *more: Any) -> Any:
        found.update(train.columns)
        return fit(rest, train, *more)

    monkeypatch.setattr(tuning, "_parallelFitTasks", seen)
    assert CrossValidator(**given).fit(rows).avgMetrics == close(expected.avgMetrics)
    return found


def test_of_prepared_rows_the_columns_are_held_that_are_named(
    rows: DataFrame, tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert columns_held(rows, tuned.given(numFolds=2), monkeypatch) == {"features", "label"}


def test_a_stage_of_the_users_own_sees_all_columns(
    rows: DataFrame, tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tuned.given(numFolds=2, evaluator=Own())
    assert {"kind", "x", "label", "raw", "features"} < columns_held(rows, given, monkeypatch)


class Own(BinaryClassificationEvaluator):
    """Looks at a column that no parameter names."""

    def _evaluate(self, dataset: DataFrame) -> float:
        assert "kind" in dataset.columns
        return super()._evaluate(dataset)


def test_the_worst_settings_are_given_up(rows: DataFrame, tuned: Tuned) -> None:
    given = tuned.given(numFolds=3, collectSubModels=True)
    whole = CrossValidator(**given).fit(rows)
    found = CrossValidator(**given).setStop(sr.halving(3)).fit(rows)
    assert [len(models) for models in found.subModels] == [3, 1, 1]
    # One setting had all folds.
    assert len(set(found.avgMetrics) & set(whole.avgMetrics)) == 1
    assert found.bestModel.stages[-1].getRegParam() == max(zip(found.stdMetrics, (0.0, 0.1, 2.0), strict=True))[1]


def test_it_is_reachable_from_the_module() -> None:
    assert sr.ml.CrossValidator is CrossValidator  # type: ignore[attr-defined]
