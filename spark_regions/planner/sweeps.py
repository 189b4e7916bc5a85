"""Loops of an application that run one plan with other values in each iteration."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from spark_regions.dag.plan import Plan
from spark_regions.decision.values import Sweep
from spark_regions.wire.messages import QueryShape

MOST_SHAPES = 200
MOST_VALUES = 10_000


@dataclass(slots=True)
class _Loop:
    """
    :param values: of all iterations, the last one at the end
    :param plan: of the last one, after that `before`
    """

    values: dict[str, None]
    plan: Plan
    before: Plan | None = None


@dataclass(slots=True)
class Sweeps:
    """Plans by shape, those asked last at the end. A query that came before with its very values is no iteration."""

    _loops: OrderedDict[str, _Loop] = field(default_factory=OrderedDict)

    def look(self, asked: QueryShape | None, plan: Plan) -> Sweep | None:
        """Which iteration a plan is; the same for one that is asked about again, or was only explained before."""
        if asked is None:
            return None
        loop = self._loops.pop(asked.shape, None) or _Loop({}, plan)
        self._loops[asked.shape] = loop
        if len(self._loops) > MOST_SHAPES:
            self._loops.popitem(last=False)
        if asked.values not in loop.values:
            if loop.values:
                loop.before = loop.plan
            loop.plan = plan
            if len(loop.values) < MOST_VALUES:
                loop.values[asked.values] = None
        elif asked.values != next(reversed(loop.values)):
            return None
        if loop.before is None or loop.before.nodes.keys() != plan.nodes.keys():
            return None
        return Sweep(len(loop.values), loop.before)
