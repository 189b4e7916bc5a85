"""A region plan as SVG: a column for each rank, a coloured box a region, materialized edges dashed, with sizes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from spark_regions.dag.region_plan import RegionPlan, levels, strong_components

_NODE_WIDTH, _NODE_HEIGHT = 86.0, 26.0
_GAP_X, _GAP_Y, _PAD = 44.0, 12.0, 14.0
_COLUMN_GAP, _REGION_GAP = 110.0, 18.0
_TITLE = 16.0
_MOST_LABELS = 400
_STYLE = (
    "text{font:11px sans-serif;fill:#222}.n{fill:#fff;stroke:#444}.p{stroke:#555;fill:none}"
    ".m{stroke:#c00;fill:none;stroke-dasharray:5 3;stroke-width:1.4}.b{stroke-width:2.4}"
    ".s{font-size:10px;fill:#900;paint-order:stroke;stroke:#fff;stroke-width:3px}.t{font-size:10px;fill:#555}"
)


@dataclass(slots=True)
class _Box:
    """A region laid out for itself: where its operators are, from its upper left corner."""

    width: float
    height: float
    places: dict[int, tuple[float, float]]


def draw(found: RegionPlan) -> str:
    """The SVG text. Regions that wait stand right of those they wait for; blocking edges are thick."""
    plan = found.plan
    ranks = _columns(found)
    boxes = [_box(found, region) for region in range(len(found.regions))]
    corners, width, height = _arranged(found, ranks, boxes)
    place: dict[int, tuple[float, float]] = {}
    parts = []
    for region, box in enumerate(boxes):
        left, top = corners[region]
        hue = region * 137.508 % 360
        parts.append(
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="9" '
            f'fill="hsl({hue:.0f},65%,91%)" stroke="hsl({hue:.0f},45%,55%)"/>'
            f'<text class="t" x="{left + 8:.0f}" y="{top + 13:.0f}">R{region + 1}</text>'
        )
        place |= {operator: (left + x, top + y) for operator, (x, y) in box.places.items()}
    labels = []
    for edge, facts in enumerate(plan.edges):
        (x1, y1), (x2, y2) = place[plan.tails[edge]], place[plan.heads[edge]]
        x1, y1, y2 = x1 + _NODE_WIDTH, y1 + _NODE_HEIGHT / 2, y2 + _NODE_HEIGHT / 2
        bend = max(30.0, abs(x2 - x1) / 2)
        kind = "p" if edge not in found.materialized else "m b" if facts.blocking else "m"
        parts.append(
            f'<path class="{kind}" marker-end="url(#a)" '
            f'd="M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}">'
            f"<title>{escape(facts.id)}: {facts.bytes:,.0f} bytes</title></path>"
        )
        if edge in found.materialized:
            # Off the middle, so that labels of edges that cross do not meet.
            x, y = x1 + 0.6 * (x2 - x1), y1 + 0.648 * (y2 - y1)
            labels.append(f'<text class="s" x="{x:.0f}" y="{y - 3:.0f}">{_size(facts.bytes)}</text>')
    if len(labels) <= _MOST_LABELS:
        parts += labels
    for operator, (x, y) in place.items():
        name = plan.operators[operator].id
        shown = name if len(name) <= 13 else f"{name[:12]}…"
        parts.append(
            f'<g><rect class="n" x="{x:.0f}" y="{y:.0f}" width="{_NODE_WIDTH:.0f}" height="{_NODE_HEIGHT:.0f}" rx="4"/>'
            f'<text x="{x + _NODE_WIDTH / 2:.0f}" y="{y + 17:.0f}" text-anchor="middle">{escape(shown)}</text>'
            f"<title>{escape(name)}: {plan.operators[operator].seconds:g} s</title></g>"
        )
    if found.schedulable:
        for rank in sorted(set(ranks)):
            left = min(corners[region][0] for region in range(len(boxes)) if ranks[region] == rank)
            parts.append(f'<text x="{left:.0f}" y="16">rank {rank}</text>')
    else:
        parts.append('<text x="20" y="16">unschedulable: the region graph has a cycle</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}"><style>{_STYLE}</style><defs><marker id="a" viewBox="0 0 8 8" '
        'refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0L8 4L0 8z"/></marker></defs>{"".join(parts)}</svg>\n'
    )


def _columns(found: RegionPlan) -> tuple[int, ...]:
    """The rank of each region; where there is no order, regions on one cycle share a column."""
    if found.schedulable:
        return found.ranks
    pairs = [(before, after) for before, after, _ in found.region_edges]
    knot = strong_components(len(found.regions), pairs)
    between = [(knot[before], knot[after]) for before, after in pairs if knot[before] != knot[after]]
    level = levels(max(knot, default=-1) + 1, between)
    return tuple(level[group] for group in knot)


def _box(found: RegionPlan, region: int) -> _Box:
    plan, members = found.plan, found.regions[region]
    number = {operator: place for place, operator in enumerate(members)}
    pairs = [
        (number[operator], number[plan.heads[edge]])
        for operator in members
        for edge in plan.out_edges[operator]
        if edge not in found.materialized
    ]
    depth = levels(len(members), pairs)
    before: list[list[int]] = [[] for _ in members]
    for tail, head in pairs:
        before[head].append(tail)
    column: dict[int, list[int]] = {}
    for place in range(len(members)):
        column.setdefault(depth[place], []).append(place)
    height = dict.fromkeys(range(len(members)), 0.0)
    tallest = max(map(len, column.values()))
    for level in sorted(column):
        # Beside what feeds it, where there is room.
        column[level].sort(key=lambda place: _mean([height[tail] for tail in before[place]], height[place]))
        offset = (tallest - len(column[level])) / 2
        height |= {place: offset + row for row, place in enumerate(column[level])}
    step_x, step_y = _NODE_WIDTH + _GAP_X, _NODE_HEIGHT + _GAP_Y
    places = {
        members[place]: (_PAD + (depth[place] - 1) * step_x, _PAD + _TITLE / 2 + height[place] * step_y)
        for place in range(len(members))
    }
    wide, high = len(column) * step_x - _GAP_X + 2 * _PAD, tallest * step_y - _GAP_Y + 2 * _PAD + _TITLE / 2
    return _Box(wide, high, places)


def _arranged(
    found: RegionPlan, ranks: tuple[int, ...], boxes: list[_Box]
) -> tuple[dict[int, tuple[float, float]], float, float]:
    """Upper left corners of the boxes, and the size of the whole."""
    neighbours: list[list[int]] = [[] for _ in boxes]
    for before, after, _ in found.region_edges:
        neighbours[before].append(after)
        neighbours[after].append(before)
    columns: dict[int, list[int]] = {}
    for region, rank in enumerate(ranks):
        columns.setdefault(rank, []).append(region)
    heights = {rank: sum(boxes[region].height + _REGION_GAP for region in group) for rank, group in columns.items()}
    tallest = max(heights.values(), default=0.0)
    middle = dict.fromkeys(range(len(boxes)), 0.0)
    for sweep in range(4):
        for rank in sorted(columns, reverse=bool(sweep % 2)):
            seen = [other for region in columns[rank] for other in neighbours[region] if ranks[other] != rank]
            if seen:
                columns[rank].sort(
                    key=lambda region: _mean([middle[other] for other in neighbours[region]], middle[region])
                )
            top = (tallest - heights[rank]) / 2
            for region in columns[rank]:
                middle[region] = top + boxes[region].height / 2
                top += boxes[region].height + _REGION_GAP
    corners: dict[int, tuple[float, float]] = {}
    left = 20.0
    for rank in sorted(columns):
        for region in columns[rank]:
            corners[region] = (left, 28 + middle[region] - boxes[region].height / 2)
        left += max(boxes[region].width for region in columns[rank]) + _COLUMN_GAP
    return corners, left - _COLUMN_GAP + 20, tallest + 40


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"
