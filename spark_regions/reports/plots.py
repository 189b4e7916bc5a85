"""Predicted against measured, as inline SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from spark_regions.errors import ReportError

Points = Sequence[tuple[float, float]]


def scatter(points: Points, title: str, axes: tuple[str, str], name: str) -> str:
    """An SVG of points around the diagonal, with a text for those who cannot see it.

    :param name: makes its identifiers unique in a page that has several

    :raises ReportError: matplotlib is not installed
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ReportError("Plots need matplotlib. Hint: pip install 'spark-regions[report]'") from None

    # Paths in place of fonts; the salt makes the same report the same bytes.
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": name, "font.size": 9}):
        figure = Figure(figsize=(5, 4), layout="constrained")
        plot = figure.add_subplot()
        _draw(plot, points)
        plot.set_xlabel(axes[0])
        plot.set_ylabel(axes[1])
        plot.set_title(title)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(written.getvalue(), f"{title}: {_told(points)}", name)


def _draw(plot: Any, points: Points) -> None:
    low = min(0.0, *(value for point in points for value in point))
    high = max(0.1, *(value for point in points for value in point)) * 1.05
    plot.plot([low, high], [low, high], color="0.6", linewidth=1, linestyle="--")
    plot.scatter(*zip(*points, strict=True), s=22, alpha=0.7, color="#1b6ca8", edgecolors="none")
    plot.set_xlim(low, high)
    plot.set_ylim(low, high)
    plot.set_aspect("equal")
    plot.grid(color="0.9")
    plot.spines[["top", "right"]].set_visible(False)


def _told(points: Points) -> str:
    predicted, measured = (sum(values) for values in zip(*points, strict=True))
    return f"{len(points)} points, {predicted:.1f} s predicted, {measured:.1f} s measured in all"


def _inline(svg: str, told: str, name: str) -> str:
    """Only the element, without namespaces that name outside addresses for nothing, and with ids of its own."""
    from html import escape

    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", element)
    attributes = f'role="img" aria-label="{escape(told)}" '
    return element.replace("<svg ", f"<svg {attributes}", 1).strip()
