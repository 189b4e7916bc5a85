"""A regression over the parameters and scores so far, for order "model" (Meta-Dataflows §4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from spark_regions.errors import ExploreError
from spark_regions.exploration.space import Point


def gaussian_process(
    points: Sequence[Point], scores: Sequence[float], candidates: Sequence[Point]
) -> tuple[Sequence[float], Sequence[float]]:
    """Means and standard deviations of the candidates by scikit-learn's Gaussian process, whose kernel's lengths are
    fitted.

    :raises ExploreError: scikit-learn is not installed
    """
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import Matern, WhiteKernel
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise ExploreError(
            "Found order='model' without scikit-learn. Hint: pip install 'spark-regions[explore]'"
        ) from error
    scaler = StandardScaler().fit(_features([*points, *candidates]))
    known, asked = scaler.transform(_features(points, candidates)), scaler.transform(_features(candidates, points))
    kernel = Matern([1.0] * known.shape[1], (0.05, 50.0), nu=2.5) + WhiteKernel(1e-3, (1e-6, 1.0))
    found = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(known, scores)
    means, deviations = found.predict(asked, return_std=True)
    return means.tolist(), deviations.tolist()


def _features(points: Sequence[Point], others: Sequence[Point] = ()) -> list[list[float]]:
    """Numbers as they are; of other values, whether it is each of those that there are.

    >>> _features([{"t": 1.5, "k": "a"}, {"t": 2.0, "k": "b"}])
    [[1.5, 1.0, 0.0], [2.0, 0.0, 1.0]]

    :param others: points whose values count as well
    """
    rows: list[list[float]] = [[] for _ in points]
    for name in points[0]:
        values: list[Any] = [point[name] for point in (*points, *others)]
        if all(isinstance(value, Real) for value in values):
            for row, value in zip(rows, values, strict=False):
                row.append(float(value))
            continue
        texts = [repr(value) for value in values]
        kinds = sorted(set(texts))
        for row, text in zip(rows, texts, strict=False):
            row += [float(text == kind) for kind in kinds]
    return rows
