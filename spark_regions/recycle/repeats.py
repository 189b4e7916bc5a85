"""Subplans that stand in several places of one query (DESIGN §8).

Spark inlines every deterministic common table expression, and reuses an exchange only where two places are equal down
to their columns: the others are computed once for each place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import Node, Plan
from spark_regions.dag.records import GraphView
from spark_regions.recycle.points import MIN_BENEFIT_SECONDS, Decline
from spark_regions.stats.estimate import Estimate
from spark_regions.stats.operators import bytes_of

SHUFFLE_BYTES_PER_SECOND = 150e6
"""What one core writes to, or reads from, a shuffle."""


@dataclass(frozen=True, slots=True)
class Share:
    """One computation, with the columns of all, for several nodes.

    :param saving: seconds
    """

    nodes: tuple[int, ...]
    saving: float
    reason: str


def groups(plan: Plan) -> list[tuple[int, ...]]:
    """Places with the same rows, topmost first. Where what is above them is equal too, the places above are shared."""
    by_lineage: dict[str, list[Node]] = {}
    for number in sorted(plan.nodes):
        node = plan.nodes[number]
        if node.signature is not None and node.children and node.storable:
            by_lineage.setdefault(node.signature.lineage, []).append(node)
    found: list[tuple[int, ...]] = []
    for lineage, nodes in by_lineage.items():
        tops = [_under_windows(plan, n.id) for n in nodes if _lineage(plan, plan.parents.get(n.id)) != lineage]
        if len(tops) > 1 and any(_works(plan, number) for number in tops):
            found.append(tuple(tops))
    return sorted(found)


def shares(
    plan: Plan,
    view: GraphView,
    seconds: Mapping[int, Estimate],
    rates: Rates,
    parallelism: int,
    replaced: Collection[int],
    stored: Collection[int],
    always: bool = False,
) -> tuple[list[Share], list[Decline]]:
    """What to compute once.

    Worth it is (times computed - 1) · recompute - shuffle; how often Spark computes it was counted in earlier runs, for
    its own reuse of exchanges may have done the work already. Worked example on two cores: 6 s to compute, twice, and
    300 MB: 6 - (300 MB written + 2 · 300 MB read) / 150 MB/s / 2 = 3 s are saved.

    :param seconds: to compute each node
    :param replaced: nodes that something else stands in for; they and what is below them do not run
    :param stored: nodes that are stored as they are computed
    """
    found: list[Share] = []
    declines: list[Decline] = []
    idle = {below for number in replaced for below in plan.below(number)}
    acted = {*replaced, *stored}
    taken: set[int] = set()
    for nodes in groups(plan):
        inside = {below for node in nodes for below in plan.below(node)}
        if inside & acted or set(nodes) & (taken | idle):
            continue
        if always:
            found.append(Share(nodes, 0.0, "ALWAYS"))
            taken |= inside
            continue
        times = computed(plan, view, nodes)
        size = _bytes(plan, view, nodes)
        once = max((seconds[number].value for number in nodes if number in seconds), default=None)
        if once is None or size is None or times is None:
            declines.append(Decline(nodes[0], "NO_HISTORY"))
            continue
        moved = size * (1 + len(nodes)) / SHUFFLE_BYTES_PER_SECOND / max(parallelism, 1)
        saving = (times - 1) * once - moved - rates.write_overhead_seconds
        if saving < MIN_BENEFIT_SECONDS:
            detail = f"computed {times:.1f} times at {once:.2f} s, shuffle {moved:.2f} s"
            declines.append(Decline(nodes[0], "NOT_WORTH_SHARING", detail))
            continue
        found.append(Share(nodes, saving, "SHARED"))
        taken |= inside
    return found, declines


def _bytes(plan: Plan, view: GraphView, nodes: Collection[int]) -> float | None:
    """Size of the rows with the columns of all nodes, from the widths of theirs."""
    known = [size for number in nodes if (size := bytes_of(plan.nodes[number], view)) is not None]
    if not known:
        return None
    columns: dict[str, float] = {}
    for number in nodes:
        node = plan.nodes[number]
        assert node.signature is not None
        width = node.row_bytes / max(len(node.signature.columns), 1)
        for column in node.signature.columns:
            columns[column] = max(columns.get(column, 0.0), width)
    widest = max(plan.nodes[number].row_bytes for number in nodes)
    return max(each.value for each in known) * max(1.0, sum(columns.values()) / max(widest, 1.0))


def computed(plan: Plan, view: GraphView, nodes: Collection[int]) -> float | None:
    """How often Spark computed the rows in an earlier run of the query; None where nothing was counted.

    An operator that is reused is not executed, and so not timed.
    """
    times = 0.0
    known = False
    seen: set[tuple[str, str]] = set()
    for number in nodes:
        node = plan.nodes[number]
        assert node.signature is not None
        key = (node.operator, node.signature.shape)
        if key in seen:
            continue
        seen.add(key)
        for variant in view.variants.get(node.signature.lineage, ()):
            if variant.kind == node.operator and variant.has_columns(node.signature) and variant.executions:
                times += variant.seconds.count / variant.executions
                known = True
    return times if known else None


def _lineage(plan: Plan, number: int | None) -> str | None:
    signed = plan.nodes[number].signature if number is not None else None
    return signed.lineage if signed else None


def _under_windows(plan: Plan, number: int) -> int:
    """Windows keep the rows, but two places seldom have the same: the lowest place under them."""
    found = current = number
    while len(plan.nodes[current].children) == 1:
        child = plan.nodes[current].children[0]
        if _lineage(plan, child) != _lineage(plan, number):
            break
        if plan.nodes[current].operator == "Window":
            found = child
        current = child
    return found


def _works(plan: Plan, number: int) -> bool:
    """Whether anything below, or the node itself, is more than the filtered columns of one source."""
    node = plan.nodes[number]
    if len(node.children) > 1:
        return True
    if not node.children:
        return False
    child = plan.nodes[node.children[0]]
    changed = node.signature is not None and child.signature is not None and node.signature.core != child.signature.core
    return changed or _works(plan, child.id)
