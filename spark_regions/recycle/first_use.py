"""DataFrames that are stored while the first query built on them runs.

An unknown result is stored at its second use at the earliest (`ski_rental`): the first two uses both compute it. Where
the program still holds the DataFrame, another use is likely, and the price of being wrong can be bounded: the tee gives
up as soon as writing exceeds a share of the query's own work. Whatever follows, writing costs the query at most that
share more.
"""

from __future__ import annotations

from dataclasses import replace

from spark_regions.dag.plan import Plan, Shared, Signature
from spark_regions.recycle.antichain import Choice, positions
from spark_regions.recycle.points import Point, Situation
from spark_regions.stats.estimate import Estimate

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


def with_held(situation: Situation, choice: Choice) -> Choice:
    """The choice, and the held points on whose way from root to leaf nothing else is done."""
    taken = [*choice.loads, *(point.node for point, _ in choice.stores)]
    place = positions(situation.plan, taken)
    free = [p for p in situation.held if p.node not in taken and p.node not in place]
    if not free:
        return choice
    nodes = {point.node for point in free}
    declines = tuple(d for d in choice.declines if d.node not in nodes)
    return Choice(choice.loads, (*choice.stores, *((point, "HELD") for point in free)), declines)
