"""Loops of an application that run one plan with other values in each iteration."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from spark_regions.dag.plan import Plan
from spark_regions.decision.values import Sweep
from spark_regions.wire.actions import Action, Store, Unpersist
from spark_regions.wire.messages import QueryShape

MOST_SHAPES = 200
MOST_VALUES = 10_000
FREE = 5
"""Iterations in a row that may be decided on in vain before not all are."""
SHARE = 0.025
"""What deciding in vain may take of a loop from then on."""
BESIDE = 1.0
"""As much as deciding takes what follows on the same cores: few rows are stored, and what ran is learned from."""


@dataclass(slots=True)
class _Loop:
    """
    :param values: of all iterations, the last one at the end
    :param plan: of the last one, after that `before`
    :param vain: iterations since the last one that had anything of its decision
    :param deciding: seconds, of the last one that ran
    """

    values: dict[str, None]
    plan: Plan
    before: Plan | None = None
    vain: int = 0
    deciding: float = 0.0


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
            loop.vain += 1
            if len(loop.values) < MOST_VALUES:
                loop.values[asked.values] = None
        elif asked.values != next(reversed(loop.values)):
            return None
        if loop.before is None or loop.before.nodes.keys() != plan.nodes.keys():
            return None
        return Sweep(len(loop.values), loop.before)

    def decided(self, asked: QueryShape | None, actions: Iterable[Action]) -> float:
        """Seconds for which the driver need not ask about the loop's next iterations.

        0, but where nothing was spared or kept for others in the last ones. Rows that are stored since they are few
        serve the same query later, and no other iteration.
        """
        loop = self._loops.get(asked.shape) if asked else None
        if loop is None:
            return 0.0
        if not all(isinstance(each, Unpersist) or _few_rows(each) for each in actions):
            loop.vain = 0
        return (1 + BESIDE) * loop.deciding / SHARE if loop.vain >= FREE else 0.0

    def ran(self, asked: QueryShape | None, deciding: float) -> None:
        """An iteration ran, on which was decided for so many seconds."""
        loop = self._loops.get(asked.shape) if asked else None
        if loop is not None:
            loop.deciding = deciding


def _few_rows(action: Action) -> bool:
    return isinstance(action, Store) and action.reason == "SMALL_RESULT"
