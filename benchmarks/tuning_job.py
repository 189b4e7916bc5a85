"""Models tuned with pyspark.ml as a user would without us, and with us.

spark-submit tuning_job.py <folder of readings> <folder for the result> <what>-<way>

`weights16`, `weights128` (Meta-Dataflows, fig. 5): a network from four or eight sets of initial weights by four or
sixteen settings, one after the other (`loop`), by `explore` and `choose` (`exhaustive`), or the weights first
(`early`); `folds`: `CrossValidator` of pyspark.ml (`plain`) and of ours (`ours`), twelve settings of a regression
behind three stages that no setting changes.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.ml import Pipeline, tuning
from pyspark.ml.classification import LogisticRegression, MultilayerPerceptronClassifier
from pyspark.ml.evaluation import BinaryClassificationEvaluator, MulticlassClassificationEvaluator
from pyspark.ml.feature import StandardScaler, StringIndexer, VectorAssembler
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

RATES, BLOCKS = [0.01, 0.03, 0.1, 0.3], [16, 64, 128, 256]
MANY = {"weights16": (4, 2, 2), "weights128": (8, 4, 4)}
"""How many initial weights, rates and sizes of blocks."""
LAYERS = [4, 5, 2]
FEATURES = ["v", "before", "usual", "spread"]


def prepared(readings: DataFrame) -> DataFrame:
    """What a reading is beside those before it, and whether the next one is higher."""
    order = Window.partitionBy("sensor").orderBy("at", "v")
    found = readings.select(
        "sensor",
        "v",
        F.lag("v", default=0.0).over(order).alias("before"),
        F.avg("v").over(order.rowsBetween(-50, 0)).alias("usual"),
        F.coalesce(F.stddev("v").over(order.rowsBetween(-50, 0)), F.lit(0.0)).alias("spread"),
        (F.lead("v", default=0.0).over(order) > F.col("v")).cast("double").alias("label"),
    )
    return found.withColumn("kind", F.concat(F.lit("kind "), F.col("sensor") % 20))


def trained(rows: DataFrame, weights: int, rate: float, block: int) -> float:
    """Accuracy of a network that begins with these weights."""
    size = sum((a + 1) * b for a, b in zip(LAYERS, LAYERS[1:], strict=False))
    start = Vectors.dense(np.random.default_rng(weights).normal(0, 0.5, size))
    network = MultilayerPerceptronClassifier(
        layers=LAYERS, solver="gd", maxIter=3, stepSize=rate, blockSize=block, initialWeights=start
    )
    model = network.fit(rows)
    return float(MulticlassClassificationEvaluator(metricName="accuracy").evaluate(model.transform(rows)))


def as_vectors(rows: DataFrame) -> DataFrame:
    return VectorAssembler(inputCols=FEATURES, outputCol="features").transform(rows).select("features", "label")


def weights(readings: DataFrame, name: str, way: str) -> dict[tuple[Any, ...], float]:
    """Accuracies by weights, rate and block; `early` knows the settings of its best weights alone."""
    import spark_regions as sr

    rows = as_vectors(prepared(readings))
    starts, rates, blocks = MANY[name]
    settings: dict[str, list[Any]] = {"rate": RATES[:rates], "block": BLOCKS[:blocks]}
    if way == "loop":
        return {point: trained(rows, *point) for point in product(range(starts), *settings.values())}
    if way == "exhaustive":
        every = sr.explore(start=range(starts), **settings)(
            lambda start, rate, block: trained(rows, start, rate, block)
        ).choose(float, sr.maximum)
        return scores(every)
    first = sr.explore(start=range(starts))(lambda start: trained(rows, start, RATES[0], BLOCKS[0]))
    best = first.choose(float, sr.maximum)
    start = best.parameters["start"]
    second = sr.explore(**settings)(lambda rate, block: trained(rows, start, rate, block)).choose(float, sr.maximum)
    found = {(*point, RATES[0], BLOCKS[0]): score for point, score in scores(best).items()}
    return found | {(start, *point): score for point, score in scores(second).items()}


def scores(chosen: Any) -> dict[tuple[Any, ...], float]:
    return {tuple(each.parameters.values()): each.score for each in chosen.branches}


def folds(readings: DataFrame, way: str) -> dict[tuple[Any, ...], float]:
    """Mean metrics of the settings, and the regression's weights of the chosen model."""
    import spark_regions.ml

    regression = LogisticRegression(maxIter=5)
    stages: list[Any] = [
        StringIndexer(inputCol="kind", outputCol="index"),
        VectorAssembler(inputCols=[*FEATURES, "index"], outputCol="raw"),
        StandardScaler(inputCol="raw", outputCol="features", withMean=True),
        regression,
    ]
    grid = tuning.ParamGridBuilder().addGrid(regression.regParam, [0.0, 0.01, 0.1, 1.0])
    grid.addGrid(regression.elasticNetParam, [0.0, 0.5, 1.0])
    kind = spark_regions.ml.CrossValidator if way == "ours" else tuning.CrossValidator
    validator = kind(
        estimator=Pipeline(stages=stages),
        estimatorParamMaps=grid.build(),
        # Of the curve's bins, which are made by RDD's numbers, each run of pyspark.ml has its own.
        evaluator=BinaryClassificationEvaluator(numBins=0),
        numFolds=3,
        seed=5,
    )
    model: Any = validator.fit(prepared(readings))
    found: dict[tuple[Any, ...], float] = {("metric", n): each for n, each in enumerate(model.avgMetrics)}
    chosen = model.bestModel.stages[-1].coefficients.toArray()
    return found | {("weight", n): float(each) for n, each in enumerate(chosen)}


def main() -> None:
    readings_folder, output = sys.argv[1], Path(sys.argv[2])
    name, way = sys.argv[3].split("-")
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName("tuning job").getOrCreate()
    readings = spark.read.parquet(readings_folder)
    start = time.perf_counter()
    found = folds(readings, way) if name == "folds" else weights(readings, name, way)
    (output / "seconds.json").write_text(json.dumps({name: time.perf_counter() - start}))
    if name in MANY:
        # What all ways know: the weights at the first setting.
        found = {point: each for point, each in found.items() if point[1:] == (RATES[0], BLOCKS[0])}
    with (output / "scores.csv").open("w", newline="") as file:
        csv.writer(file).writerows([*point, f"{each:.7f}"] for point, each in sorted(found.items()))
    spark.stop()


if __name__ == "__main__":
    main()
