"""`CrossValidator` and `TrainValidationSplit` of pyspark.ml with the work that all settings share done once (§3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np
from pyspark import StorageLevel
from pyspark.ml import Estimator, Model, Pipeline, PipelineModel, Transformer, tuning
from pyspark.ml.feature import RFormula, SQLTransformer
from pyspark.ml.param import Params
from pyspark.ml.tuning import CrossValidatorModel, TrainValidationSplitModel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.util import inheritable_thread_target

from spark_regions.errors import ExploreError
from spark_regions.exploration.halving import Halving

__all__ = ["CrossValidator", "TrainValidationSplit"]

Metrics = dict[int, float]
Models = dict[int, Model]


class _Saved:
    @classmethod
    def load(cls, path: str) -> Any:
        """What is saved is pyspark.ml's, and can be loaded as that, too."""
        saved: Params = super().load(path)  # type: ignore[misc]
        into: Any = cls()
        into._resetUid(saved.uid)
        return saved._copyValues(into)


class CrossValidator(_Saved, tuning.CrossValidator):
    """Takes the place of `pyspark.ml.tuning.CrossValidator`: same parameters, same metrics, same chosen model.

    The input is computed once, and what a pipeline does before the first stage that a setting changes is fitted and
    computed once a fold.
    """

    _stop: Halving | None = None

    def setStop(self, value: Halving | None) -> CrossValidator:  # noqa: N802 - beside setFoldCol and its kin
        """`halving(eta)`: after each fold the worst settings are not tried on the others; the metric of such a setting
        is the mean of the folds that it had. Without it, every setting has every fold, as in pyspark.ml."""
        self._stop = value
        return self

    def _fit(self, dataset: DataFrame) -> CrossValidatorModel:
        search = _Search(self)
        folds: list[tuple[Metrics, Models]] = []
        live = list(range(len(search.settings)))
        with ExitStack() as stack:
            numbered = dataset
            if not self.getOrDefault(self.foldCol):
                # The folds of plain pyspark.ml depend on the order of rows in partitions: the column comes first here,
                # too, and is kept with the rows.
                column = F.rand(self.getOrDefault(self.seed)).alias(f"{self.uid}_rand")
                numbered = dataset.select("*", column)
            # Of folds no copies are held beside it: memory would be short of what is read over and over.
            stack.enter_context(_held(numbered))
            for train, validation in self._kFold(numbered):
                folds.append(search.fold(train, validation, live, self.getParallelism()))
                if self._stop is not None and len(folds) < self.getNumFolds():
                    means = {j: float(np.mean([metrics[j] for metrics, _ in folds])) for j in live}
                    live = sorted(self._stop.going(means, not search.evaluator.isLargerBetter()))
            if len(live) == len(search.settings):
                # Of all at once, as in pyspark.ml: rounding depends on the order in which numbers are added.
                table = [[found[j] for j in live] for found, _ in folds]
                metrics, deviations = self._gen_avg_and_std_metrics(table)
            else:
                several = [[found[j] for found, _ in folds if j in found] for j in range(len(search.settings))]
                metrics = [float(np.mean(found)) for found in several]
                deviations = [float(np.std(found)) for found in several]
            best = _best([metrics[j] for j in live], search.evaluator.isLargerBetter())
            model = search.estimator.fit(numbered.drop(f"{self.uid}_rand"), search.settings[live[best]])
        kept = [[found[j] for j in sorted(found)] for _, found in folds] if self.getCollectSubModels() else None
        return self._copyValues(CrossValidatorModel(model, metrics, kept, deviations))

    def _kFold(self, dataset: DataFrame) -> list[tuple[DataFrame, DataFrame]]:  # noqa: N802 - of pyspark.ml
        if self.getOrDefault(self.foldCol):
            return super()._kFold(dataset)
        column, count = F.col(f"{self.uid}_rand"), self.getNumFolds()
        # To the letter of pyspark.ml, whose bounds are these products.
        bounds = [(i * (1.0 / count), (i + 1) * (1.0 / count)) for i in range(count)]
        inside = [(column >= low) & (column < high) for low, high in bounds]
        return [(dataset.filter(~each), dataset.filter(each)) for each in inside]


class TrainValidationSplit(_Saved, tuning.TrainValidationSplit):
    """Takes the place of `pyspark.ml.tuning.TrainValidationSplit`, as `CrossValidator` does."""

    def _fit(self, dataset: DataFrame) -> TrainValidationSplitModel:
        search = _Search(self)
        column = f"{self.uid}_rand"
        with _held(dataset.select("*", F.rand(self.getOrDefault(self.seed)).alias(column))) as numbered:
            inside = F.col(column) >= self.getTrainRatio()
            every = range(len(search.settings))
            metrics, models = search.fold(
                numbered.filter(~inside), numbered.filter(inside), every, self.getParallelism()
            )
            best = _best([metrics[j] for j in every], search.evaluator.isLargerBetter())
            model = search.estimator.fit(numbered.drop(column), search.settings[best])
        kept = [models[j] for j in every] if self.getCollectSubModels() else None
        return self._copyValues(TrainValidationSplitModel(model, [metrics[j] for j in every], kept))


class _Search:
    """What is tried: `prefix` stages that no setting changes, and the rest."""

    def __init__(self, tuned: CrossValidator | TrainValidationSplit) -> None:
        self.estimator: Estimator[Any] = tuned.getEstimator()
        self.settings: list[Any] = tuned.getEstimatorParamMaps()
        if not self.settings:
            raise ExploreError("Found no settings, expected at least one. Hint: setEstimatorParamMaps([{}])")
        self.evaluator = tuned.getEvaluator()
        self.collects = tuned.getCollectSubModels()
        changed = {param.parent for setting in self.settings for param in setting}
        stages: Sequence[Any] = ()
        if isinstance(self.estimator, Pipeline) and self.estimator.uid not in changed:
            stages = self.estimator.getStages()
        same = 0
        # The last stage is what is tuned, if anything is.
        while same < len(stages) - 1 and _uids(stages[same]).isdisjoint(changed):
            same += 1
        self._prefix = Pipeline(stages=list(stages[:same])) if same else None
        self._rest: Estimator[Any] = Pipeline(stages=list(stages[same:])) if same else self.estimator

    def fold(
        self, train: DataFrame, validation: DataFrame, wanted: Sequence[int], parallelism: int
    ) -> tuple[Metrics, Models]:
        """Metrics, and models if they are collected, of the wanted settings."""
        with ExitStack() as stack:
            shared: list[Transformer] = []
            if self._prefix is not None:
                prepared = self._prefix.fit(train)
                shared = list(prepared.stages)
                train, validation = (
                    stack.enter_context(_held(self._needed(prepared.transform(each)))) for each in (train, validation)
                )
            settings = [self.settings[j] for j in wanted]
            tasks = tuning._parallelFitTasks(self._rest, train, self.evaluator, validation, settings, self.collects)
            threads = map(inheritable_thread_target(train.sparkSession), tasks)
            metrics: Metrics = {}
            models: Models = {}
            with ThreadPool(max(1, min(parallelism, len(settings)))) as pool:
                for place, metric, model in pool.imap_unordered(_run, threads):
                    metrics[wanted[place]] = metric
                    if model is not None:
                        models[wanted[place]] = PipelineModel([*shared, *model.stages]) if shared else model
            return metrics, models

    def _needed(self, frame: DataFrame) -> DataFrame:
        """Without the columns that neither the rest nor the evaluator names, if it is known that they name all."""
        rest = self._rest.getStages() if isinstance(self._rest, Pipeline) else [self._rest]
        values: list[Any] = [value for setting in self.settings for value in setting.values()]
        for each in (*rest, self.evaluator):
            if not type(each).__module__.startswith("pyspark.ml.") or isinstance(each, UNNAMED):
                return frame
            values += [each.getOrDefault(param) for param in each.params if each.isDefined(param)]
        given = [each for value in values for each in (value if isinstance(value, list | tuple) else [value])]
        texts = [each for each in given if isinstance(each, str)]
        unknown = any(isinstance(each, Params) for each in given) or any("." in text for text in texts)
        named = {text.lower() for text in texts}
        columns = [column for column in frame.columns if column.lower() in named]
        if unknown or len({column.lower() for column in columns}) < len(columns):
            return frame
        return frame.select(*(f"`{column.replace('`', '``')}`" for column in columns))


UNNAMED = (SQLTransformer, RFormula)
"""Stages whose columns stand in a text."""


def _run(task: Callable[[], Any]) -> Any:
    return task()


def _uids(stage: Any) -> set[str]:
    """Of a stage and those inside of it."""
    inner = stage.getStages() if isinstance(stage, Pipeline) else []
    nested = stage.getEstimator() if hasattr(stage, "getEstimator") else None
    return {stage.uid}.union(*map(_uids, inner), _uids(nested) if nested is not None else ())


def _best(metrics: Sequence[float], larger: bool) -> int:
    return int(np.argmax(metrics) if larger else np.argmin(metrics))


@contextmanager
def _held(frame: DataFrame) -> Iterator[DataFrame]:
    """Persisted inside; what is persisted already is the user's."""
    if frame.storageLevel != StorageLevel.NONE:
        yield frame
        return
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()
