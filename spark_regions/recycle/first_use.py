"""What is stored while the first query that computes it runs.

An unknown result is stored at its second use at the earliest (`ski_rental`): the first two uses both compute it. Where
the program still holds the DataFrame, another use is likely, and where an aggregate comes out of much work, its rows
are few. The price of being wrong can be bounded: the tee gives up as soon as writing exceeds a share of the query's own
work, or the few bytes. Whatever follows, writing costs the query at most that share more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from spark_regions.costs.guess import guessed
from spark_regions.dag.plan import Node, Plan, Shared, Signature
from spark_regions.recycle.antichain import Choice, positions
from spark_regions.recycle.points import Point, Situation
from spark_regions.stats.estimate import Estimate

SMALL_BYTES = 1 << 20
"""What a result of an aggregate is expected to take at most; it is given up where it grows beyond its reservation."""
LONG_SECONDS = 3.0
"""A query that takes less, by a guess, has nothing to spare for writing."""
MAX_WIDENING = 4.0
"""The most bytes a row may take, as a multiple of what this query needs of it."""


def unmeasured(node: int, signature: Signature, write_seconds: float = 0.0, ref: str | None = None) -> Point:
    """A point of which nothing is known but its identifier."""
    return Point(
        node=node,
        signature=signature,
        recompute=Estimate(0.0, 0.0),
        read_seconds=0.0,
        write_seconds=write_seconds,
        bytes=0.0,
        past=0.0,
        expected=0.0,
        session=0.0,
        probability=0.0,
        ref=ref,
    )


def held_point(plan: Plan, shared: Shared) -> Point | None:
    """The point of a DataFrame that is held and whose node may be stored.

    Columns that this query does not need are carried through its shuffles for later ones; many of them are no small
    part of its work, and the tee cannot bound that.
    """
    node = plan.nodes[shared.node]
    if not shared.held or node.signature is None or node.session or not node.storable or not node.children:
        return None
    if shared.row_bytes > MAX_WIDENING * max(node.row_bytes, 1.0):
        return None
    return replace(unmeasured(shared.node, shared.signature, ref=shared.ref), held=True)


def small_result(plan: Plan, eligible: Collection[int], known: Collection[str], parallelism: int) -> Point | None:
    """The point of a query's topmost result, if it is new, comes from an aggregate and, by its sources, from much work.

    :param eligible: nodes that may be stored
    :param known: lineages that were measured before
    """
    number = _first(plan, plan.root, lambda node: node.id in eligible)
    if number is None or _first(plan, number, lambda node: node.operator.startswith("Aggregate")) is None:
        return None
    top = plan.nodes[number].signature
    if top is None or top.lineage in known:
        return None
    seconds = guessed(plan).task_seconds
    if sum(seconds[below] for below in plan.below(number)) / max(parallelism, 1) < LONG_SECONDS:
        return None
    return replace(unmeasured(number, top), held=True, bytes=SMALL_BYTES)


def _first(plan: Plan, number: int, wanted: Callable[[Node], bool]) -> int | None:
    """The first such node on the way down, as far as there is one way."""
    while not wanted(plan.nodes[number]):
        if len(plan.nodes[number].children) != 1:
            return None
        (number,) = plan.nodes[number].children
    return number


def with_first_uses(situation: Situation, choice: Choice) -> Choice:
    """The choice, and the first uses on whose way from root to leaf nothing else is done."""
    stores = list(choice.stores)
    taken = [*choice.loads, *(point.node for point, _ in stores)]
    for point in situation.first_uses:
        if point.node not in taken and point.node not in positions(situation.plan, taken):
            stores.append((point, "SMALL_RESULT" if point.ref is None else "HELD"))
            taken.append(point.node)
    nodes = {point.node for point, _ in stores[len(choice.stores) :]}
    return Choice(choice.loads, tuple(stores), tuple(d for d in choice.declines if d.node not in nodes))
