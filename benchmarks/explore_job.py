"""Explorations as a user would write them without us, and with `explore` and `choose`.

spark-submit explore_job.py <folder of readings> <folder for the result> <exploration>-<way>

`kde` (Meta-Dataflows, fig. 6): outlier thresholds by bandwidths of a density estimate; `nested16` to `nested100`
(fig. 9): four to ten ways to clean by as many ways to fold; `series16` to `series1024` (fig. 7): so many ways to mask
readings, to mark changes and to find runs of them, where the way to mask is chosen first; `selections` (fig. 8): which
ways to mask, by ours alone; `sweep`: a loop over thresholds, and one over a parameter of a pandas function, that nobody
rewrote.
Ways: `loop`, `threads`, `cached` (the input), `cached_prefix` (also each cleaned one while it is used), `breadth_first`
(all cleaned ones before any of them is used), `ours`.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import groupby, product
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F


def cleaned(readings: DataFrame, threshold: float) -> DataFrame:
    """Without values that are further from their sensor's mean than so many standard deviations."""
    usual = readings.groupBy("sensor").agg(F.avg("v").alias("mean"), F.stddev("v").alias("deviation"))
    far = F.abs(F.col("v") - F.col("mean")) > threshold * F.col("deviation")
    return readings.join(usual, "sensor").where(~far).select("sensor", "at", "v", "mean", "deviation")


def density(found: DataFrame, width: float) -> DataFrame:
    """A histogram of standardized values."""
    bin_ = F.floor((F.col("v") - F.col("mean")) / F.col("deviation") / width).alias("bin")
    return found.groupBy(bin_).agg(F.count("*").alias("n")).withColumn("width", F.lit(width))


def risk(bins: DataFrame) -> float:
    """Estimated risk of a histogram by leaving one out (Rudemo 1982), an integrated squared error up to a constant."""
    found = bins.agg(F.sum("n"), F.sum(F.col("n") * F.col("n")), F.first("width")).first()
    assert found is not None
    n, squares, width = float(found[0]), float(found[1]), float(found[2])
    return (2 - (n + 1) * squares / n**2) / ((n - 1) * width)


def folded(found: DataFrame, days: int) -> DataFrame:
    """Spread of the mean by day of a period."""
    by = found.groupBy("sensor", (F.col("at") % days).alias("day")).agg(F.avg("v").alias("v"))
    return by.groupBy("sensor").agg(F.stddev("v").alias("spread"))


def spread(found: DataFrame) -> float:
    first = found.agg(F.avg("spread")).first()
    assert first is not None
    return float(first[0])


THRESHOLDS = [1.0 + i / 4 for i in range(10)]
PENALTIES = [0.0, 0.01, 0.1, 1.0, 10.0, 100.0]
SCOPES: dict[str, tuple[Mapping[str, Sequence[Any]], Callable[..., DataFrame], Callable[[DataFrame], float]]] = {
    "kde": ({"threshold": [1.5, 2.0, 2.5, 3.0], "width": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0]}, density, risk),
    **{
        f"nested{each**2}": ({"threshold": THRESHOLDS[:each], "days": list(range(2, 2 + each))}, folded, spread)
        for each in (4, 6, 10)
    },
}


def chosen_by_hand(readings: DataFrame, name: str, way: str, output: Path) -> dict[tuple[Any, ...], float]:
    choices, inner, score = SCOPES[name]
    (_, thresholds), (_, others) = choices.items()
    points = [(threshold, other) for threshold in thresholds for other in others]

    def branch(point: tuple[Any, Any], source: DataFrame | None = None) -> float:
        return score(inner(cleaned(readings, point[0]) if source is None else source, point[1]))

    scores: dict[tuple[Any, ...], float] = {}
    if way == "threads":
        with ThreadPoolExecutor(4) as pool:
            scores.update(zip(points, pool.map(branch, points), strict=True))
    elif way == "cached_prefix":
        with kept(readings):
            for threshold, several in groupby(points, key=lambda point: point[0]):
                with kept(cleaned(readings, threshold)) as source:
                    scores.update({point: branch(point, source) for point in several})
    elif way == "breadth_first":
        with kept(readings), ExitStack() as all_at_once:
            sources = {each: all_at_once.enter_context(kept(cleaned(readings, each))) for each in thresholds}
            for source in sources.values():
                source.count()
            scores.update({point: branch(point, sources[point[0]]) for point in points})
    else:
        with kept(readings) if way == "cached" else nullcontext():
            scores.update({point: branch(point) for point in points})
    best = min(scores, key=lambda point: (scores[point], points.index(point)))
    inner(cleaned(readings, best[0]), best[1]).write.parquet(str(output / "best"))
    return scores


def chosen_by_us(readings: DataFrame, name: str, output: Path) -> dict[tuple[Any, ...], float]:
    import spark_regions as sr

    choices, inner, score = SCOPES[name]
    (_, other) = choices

    def branch(threshold: float, **parameters: Any) -> DataFrame:
        return inner(cleaned(readings, threshold), parameters[other])

    with sr.explore(**choices)(branch).choose(score, sr.minimum) as best:
        best.frame.write.parquet(str(output / "best"))
        (output / "branches.txt").write_text(repr(best.branches))
        return {tuple(each.parameters.values()): each.score for each in best.branches if each.score is not None}


def masked(readings: DataFrame, window: int, threshold: float) -> DataFrame:
    """Readings close to the mean of those before them."""
    before = Window.partitionBy("sensor").orderBy("at", "v").rowsBetween(-window, 0)
    far = F.abs(F.col("v") - F.avg("v").over(before))
    return readings.withColumn("far", far).where(F.col("far") <= threshold).select("sensor", "at", "v")


def runs(found: DataFrame, length: int, change: float, duration: int) -> float:
    """How many changes follow one within a duration."""
    order = Window.partitionBy("sensor").orderBy("at", "v")
    marked = found.withColumn("change", F.col("v") - F.avg("v").over(order.rowsBetween(-length, -1)))
    events = marked.where(F.abs("change") > change).withColumn("after", F.col("at") - F.lag("at").over(order))
    return float(events.where(F.col("after") <= duration).count())


MASKS: dict[str, list[Any]] = {"window": [2, 3, 5, 8], "threshold": [1.0, 2.0, 3.0, 4.0]}
MARKS: dict[str, list[Any]] = {"length": [2, 4, 6, 8], "change": [0.5, 1.0, 2.0, 3.0], "duration": [1, 2, 4, 8]}
MANY = {"series16": (2, 2, 1), "series64": (2, 2, 4), "series256": (4, 4, 1), "series1024": (4, 4, 4)}
"""Values of each choice: of masks, of lengths and changes, of durations."""


def series(readings: DataFrame, name: str, way: str) -> dict[tuple[Any, ...], float]:
    """Runs found after the mask that keeps most of the readings."""
    import spark_regions as sr

    masks, marks, durations = MANY[name]
    outer = {key: values[:masks] for key, values in MASKS.items()}
    inner = {key: values[: durations if key == "duration" else marks] for key, values in MARKS.items()}
    if way == "ours":
        most = sr.explore(**outer)(lambda window, threshold: masked(readings, window, threshold))
        with most.choose(F.count("*"), sr.maximum) as mask:
            found = mask.explore(**inner)(lambda frame, **marks: runs(frame, **marks)).choose(float, sr.maximum)
        return {tuple(each.parameters.values()): each.score for each in found.branches if each.score is not None}
    scores: dict[tuple[Any, ...], float] = {}
    kept: dict[tuple[Any, ...], int] = {}
    for mask_point in product(*outer.values()):
        for mark_point in product(*inner.values()):
            frame = masked(readings, *mask_point)
            kept[mask_point] = kept.get(mask_point) or frame.count()
            scores[(*mask_point, *mark_point)] = runs(frame, *mark_point)
    best = max(kept, key=lambda point: kept[point])
    return {point: score for point, score in scores.items() if point[:2] == best}


ENOUGH = 0.68
"""Of the readings, a share that half of the masks keep."""


def selected(readings: DataFrame, way: str) -> dict[tuple[Any, ...], float]:
    """Runs found after the masks that are chosen: after `all`, after the four that keep most (`top`), or after any four
    that keep enough, in a random order (`random` and a seed) or those first that are expected to keep most."""
    import spark_regions as sr

    enough = sr.threshold(ENOUGH * readings.count(), k=4)
    most_first = {"threshold": MASKS["threshold"][::-1], "window": MASKS["window"]}
    masks = sr.explore(**most_first)(lambda threshold, window: masked(readings, window, threshold))
    if way.startswith("random"):
        choice = masks.choose(F.count("*"), enough, order="random", seed=int(way.removeprefix("random")))
    else:
        choice = masks.choose(F.count("*"), {"all": sr.top(16), "top": sr.top(4), "ordered": enough}[way])
    with choice as chosen:
        marks = {key: MARKS[key] for key in ("length", "change")}
        found = chosen.explore(**marks)(lambda frame, **each: runs(frame, duration=1, **each)).choose(float, sr.maximum)
    return {tuple(each.parameters.values()): each.score for each in found.branches if each.score is not None}


def as_plain(readings: DataFrame, scores: Mapping[tuple[Any, ...], float]) -> bool:
    """Whether plain Spark gives the best score, too: not all choose the same masks."""
    best = max(scores, key=lambda point: scores[point])
    threshold, window, length, change = best
    readings.sparkSession.conf.set("spark.regions.mode", "observe")
    return runs(masked(readings, window, threshold), length, change, 1) == scores[best]


def swept(readings: DataFrame, seconds: dict[str, float]) -> dict[tuple[Any, ...], float]:
    """Nobody told anybody that this is a family of queries."""
    found: dict[tuple[Any, ...], float] = {}
    for number, threshold in enumerate(THRESHOLDS):
        start = time.perf_counter()
        rows = cleaned(readings, threshold).groupBy("sensor").agg(F.count("*").alias("n"), F.max("at").alias("last"))
        found[("threshold", threshold)] = float(sum(row.n for row in rows.collect()))
        seconds[f"threshold {number}"] = time.perf_counter() - start
    for number, penalty in enumerate(PENALTIES):
        start = time.perf_counter()
        scores = days(readings).groupBy("sensor").applyInPandas(ridge(penalty), "sensor long, error double")
        found[("penalty", penalty)] = float(scores.agg(F.avg("error")).collect()[0][0])
        seconds[f"penalty {number}"] = time.perf_counter() - start
    return found


def days(readings: DataFrame) -> DataFrame:
    """Features of each sensor and hour of the day."""
    hour = (F.col("at") % 24).alias("hour")
    return readings.groupBy("sensor", hour).agg(
        F.avg("v").alias("mean"), F.stddev("v").alias("deviation"), F.max("v").alias("most")
    )


def ridge(penalty: float) -> Callable[[Any], Any]:
    """Scores a penalty as scikit-learn's `Ridge` would be: fitted on half of a sensor's rows, judged on the others."""

    def error(rows: Any) -> Any:
        import numpy
        import pandas

        rows = rows.sort_values("hour")
        given, wanted = rows[["mean", "deviation"]].to_numpy(), rows["most"].to_numpy()
        squares = given[::2].T @ given[::2] + penalty * numpy.eye(2)
        weights = numpy.linalg.solve(squares, given[::2].T @ wanted[::2])
        missed = ((given[1::2] @ weights - wanted[1::2]) ** 2).mean()
        return pandas.DataFrame({"sensor": rows["sensor"].iloc[:1], "error": [missed]})

    return error


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def main() -> None:
    readings_folder, output = sys.argv[1], Path(sys.argv[2])
    name, way = sys.argv[3].split("-")
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName("explore job").getOrCreate()
    readings = spark.read.parquet(readings_folder)
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    if name == "sweep":
        scores = swept(readings, seconds)
    elif name == "selections":
        scores = selected(readings, way)
    elif name in MANY:
        scores = series(readings, name, way)
    else:
        scores = chosen_by_us(readings, name, output) if way == "ours" else chosen_by_hand(readings, name, way, output)
    if name != "sweep":
        seconds["exploration"] = time.perf_counter() - start
    best = min(scores, key=lambda point: scores[point])
    row = ["as plain", as_plain(readings, scores)] if name == "selections" else [*best, f"{scores[best]:.9e}"]
    with (output / "scores.csv").open("w", newline="") as file:
        csv.writer(file).writerows([row])
    (output / "seconds.json").write_text(json.dumps(seconds))
    spark.stop()


if __name__ == "__main__":
    main()
