"""Draws the pictures of docs/architecture.md: boxes and arrows as plain SVG.

python docs/images/draw.py
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
LINE = 17
COLOURS = {"spark": "#fff3e6", "shim": "#e3eefb", "planner": "#e5f5e8", "store": "#f1ebfa", "user": "#f4f5f6"}


class Box(NamedTuple):
    name: str
    x: int
    y: int
    width: int
    height: int
    colour: str
    title: str
    lines: Sequence[str] = ()


class Arrow(NamedTuple):
    """From a point to a point, with a text beside its middle."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str = ""
    dx: int = 8
    dy: int = -6


class Picture(NamedTuple):
    width: int
    height: int
    told: str
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]


PROCESSES = Picture(
    760,
    400,
    "Processes: in the driver, Spark with the shim; beside it the planner, which alone opens the catalog; executors "
    "and driver read and write the stored files.",
    (
        Box("driver", 20, 20, 420, 190, "user", "driver JVM"),
        Box("spark", 40, 60, 160, 130, "spark", "Spark", ("Catalyst", "adaptive execution", "listeners, UI")),
        Box("shim", 250, 60, 170, 130, "shim", "shim (Scala)", ("signs plans", "applies actions", "measures")),
        Box(
            "planner",
            560,
            60,
            180,
            130,
            "planner",
            "planner (Python)",
            ("matches, weighs", "decides", "may die any time"),
        ),
        Box(
            "executors",
            20,
            270,
            420,
            110,
            "spark",
            "executors",
            ("the shim's operators: read, write in passing,", "read rearranged partitions; no Python of ours"),
        ),
        Box("catalog", 560, 240, 180, 60, "store", "catalog", ("SQLite, PostgreSQL",)),
        Box("files", 560, 320, 180, 60, "store", "stored results", ("Parquet, manifests",)),
    ),
    (
        Arrow((200, 110), (250, 110)),
        Arrow((250, 140), (200, 140)),
        Arrow((420, 100), (560, 100), "plan, what ran", 30),
        Arrow((560, 140), (420, 140), "actions, reasons", 26, 18),
        Arrow((650, 190), (650, 240)),
        Arrow((230, 210), (230, 270), "tasks"),
        Arrow((440, 350), (560, 350), "rows", 40),
    ),
)

ONE_QUERY = Picture(
    900,
    260,
    "A query: optimized by Spark, signed by the shim, decided by the planner, rewritten by the shim, run by Spark; "
    "what ran goes back to the planner.",
    (
        Box("job", 20, 20, 120, 70, "user", "your job", ("unchanged",)),
        Box("optimize", 180, 20, 130, 70, "spark", "optimize", ("Catalyst",)),
        Box("sign", 350, 20, 130, 70, "shim", "sign", ("every node",)),
        Box("rewrite", 520, 20, 150, 70, "shim", "rewrite", ("load, store, persist", "or leave alone")),
        Box("run", 710, 20, 160, 70, "spark", "run", ("rows as ever",)),
        Box(
            "planner",
            350,
            160,
            320,
            80,
            "planner",
            "planner",
            ("equal data? worth it? room?", "at the deadline: as it was"),
        ),
    ),
    (
        Arrow((140, 55), (180, 55)),
        Arrow((310, 55), (350, 55)),
        Arrow((480, 55), (520, 55)),
        Arrow((670, 55), (710, 55)),
        Arrow((415, 90), (415, 160), "plan"),
        Arrow((595, 160), (595, 90), "actions, reasons"),
        Arrow((790, 90), (670, 200), "rows, bytes, seconds", 20, 12),
    ),
)

STORING = Picture(
    900,
    220,
    "Storing: a tee passes rows on while it writes them; files count only after a manifest names them; a later query "
    "reads them under the filters that are left.",
    (
        Box("below", 20, 20, 150, 70, "spark", "operators", ("compute rows",)),
        Box("tee", 220, 20, 150, 70, "shim", "tee", ("passes rows on,", "writes them too")),
        Box("above", 420, 20, 150, 70, "spark", "operators", ("never wait for it",)),
        Box("files", 220, 140, 150, 60, "store", "files", ("count for nothing yet",)),
        Box("manifest", 420, 140, 170, 60, "store", "manifest", ("names files that count",)),
        Box("scan", 640, 140, 110, 60, "shim", "scan", ("checks files",)),
        Box("filters", 780, 140, 100, 60, "spark", "filters", ("that are left",)),
    ),
    (
        Arrow((170, 55), (220, 55)),
        Arrow((370, 55), (420, 55)),
        Arrow((295, 90), (295, 140)),
        Arrow((370, 170), (420, 170)),
        Arrow((590, 170), (640, 170)),
        Arrow((750, 170), (780, 170)),
    ),
)

PICTURES = {"processes": PROCESSES, "one-query": ONE_QUERY, "storing": STORING}


def svg(picture: Picture) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {picture.width} {picture.height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="14">',
        f"<title>{escape(picture.told)}</title>",
        '<defs><marker id="end" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">'
        '<path d="M0,0 L9,4 L0,8 z" fill="#455"/></marker></defs>',
        f'<rect width="{picture.width}" height="{picture.height}" fill="#fff"/>',
        *map(_box, picture.boxes),
        *map(_arrow, picture.arrows),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _box(box: Box) -> str:
    centre = box.x + box.width / 2
    nested = not box.lines
    top = box.y + 22 if nested else box.y + box.height / 2 - LINE * len(box.lines) / 2 + 4
    lines = "".join(
        f'<text x="{centre:g}" y="{top + LINE * (number + 1):g}" text-anchor="middle" fill="#455" font-size="12">'
        f"{escape(line)}</text>"
        for number, line in enumerate(box.lines)
    )
    title = f'<text x="{centre:g}" y="{top:g}" text-anchor="middle" font-weight="600">{escape(box.title)}</text>'
    return (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6" '
        f'fill="{COLOURS[box.colour]}" stroke="#89a"/>{title}{lines}'
    )


def _arrow(arrow: Arrow) -> str:
    (x1, y1), (x2, y2) = arrow.start, arrow.end
    line = f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#455" stroke-width="1.4" marker-end="url(#end)"/>'
    if not arrow.text:
        return line
    x, y = (min(x1, x2) if y1 == y2 else (x1 + x2) / 2) + arrow.dx, (y1 + y2) / 2 + arrow.dy
    y += 0 if y1 == y2 else 10
    return f'{line}<text x="{x:g}" y="{y:g}" fill="#455" font-size="12">{escape(arrow.text)}</text>'


def main() -> None:
    for name, picture in PICTURES.items():
        (HERE / f"{name}.svg").write_text(svg(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
