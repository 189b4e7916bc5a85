"""The incremental choose of Meta-Dataflows §3.1, as a state machine that a scheduler drives.

`next` names a branch to run; any number may run at a time; `scored`, `failed` or `stopped` tells what became of one and
answers with what follows from it: data that can go, branches that need not run, or not run on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_regions.errors import ExploreError
from spark_regions.exploration.bounds import Bounds, Shapes
from spark_regions.exploration.order import Predict
from spark_regions.exploration.order import order as order_of
from spark_regions.exploration.prune import NONE, losers, superfluous
from spark_regions.exploration.select import Selection, number
from spark_regions.exploration.space import Space

OPEN, RUNNING, KEPT, DISCARDED = "waiting", "running", "kept", "discarded"
PRUNED, STOPPED, FAILED = "pruned", "stopped", "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What follows, by numbers of branches.

    :param discard: scored ones whose data can go
    :param pruned: open ones that will never run
    :param cancel: running ones that cannot be chosen any more; each is still to be told scored, failed or stopped
    :param revived: pruned or stopped ones that are open again, since the shape was wrong
    :param contradiction: how the scores contradict the shape, which is ignored from now on; "" if they do not
    """

    discard: frozenset[int] = NONE
    pruned: frozenset[int] = NONE
    cancel: frozenset[int] = NONE
    revived: frozenset[int] = NONE
    contradiction: str = ""


class Choose:
    """A choose over a space; what it chooses is what the selection chooses of all scores, as long as the shape holds.

    A shape that no two of three seen scores contradict is believed: what it rules out is not looked at. If scores
    contradict it, what it ruled out comes back.

    Three branches whose scores fall, then rise; the lowest is wanted. With 3.0 after 1.0, all further ones are at least
    3.0 and need not run:

    >>> from spark_regions.exploration.select import minimum
    >>> from spark_regions.exploration.space import product
    >>> choose = Choose(Space(product({"t": [1, 2, 3, 4]})), minimum, "convex")
    >>> for score in (2.0, 1.0, 3.0):
    ...     outcome = choose.scored(choose.next(), score)
    >>> sorted(outcome.discard), sorted(outcome.pruned), choose.over, choose.chosen()
    ([2], [3], True, (1,))

    :raises ExploreError: no selection; see also `Selection.check`, `Bounds` and `order`
    """

    def __init__(
        self,
        space: Space,
        selection: Selection,
        shape: Shapes | None = None,
        order: str = "given",
        seed: int | None = None,
        predict: Predict | None = None,
    ) -> None:
        _known(selection)
        selection.check(len(space))
        self.space, self.selection = space, selection
        self._bounds = Bounds(space, shape)
        self._pick = order_of(order, space, selection, self._bounds.choices, seed, predict)
        self.foreseen = order != "model"
        """Whether scores change the order only by what they rule out."""
        self._states = [OPEN] * len(space)
        self._open = set(range(len(space)))
        self._running: set[int] = set()
        self._scores: dict[int, float] = {}
        self._kept: dict[int, float] = {}
        """All scores, of an associative selection without the losers', which do not matter to it."""
        self._cancelled: set[int] = set()
        self._settle()

    @property
    def over(self) -> bool:
        """Nothing is to run, and nothing runs."""
        return not self._open and not self._running

    @property
    def lowest(self) -> bool:
        """Whether lower scores are better."""
        return self.selection.lowest

    def state(self, branch: int) -> str:
        """waiting, running, kept, discarded, pruned, stopped or failed.

        Limits that no score can meet prune all branches before the first one runs.
        """
        return self._states[branch]

    def ahead(self, limit: int) -> list[int]:
        """Open branches as they run next; of an order that is not foreseen, as they are numbered."""
        if not self.foreseen:
            return sorted(self._open)[:limit]
        left, found = set(self._open), list[int]()
        while left and len(found) < limit:
            found.append(self._pick(left, self._scores))
            left.remove(found[-1])
        return found

    def next(self) -> int | None:
        """The branch to run now, which counts as running; None if nothing is open."""
        if not self._open:
            return None
        branch = self._pick(self._open, self._scores)
        self._cancelled.discard(branch)
        self._become(RUNNING, branch)
        return branch

    def scored(self, branch: int, score: Any) -> Outcome:
        """:raises ExploreError: the score is no number, or the branch does not run; nothing has changed then"""
        value = number(score, f"the score of {self.space.label(branch)}")
        self._expect(branch, RUNNING)
        self._scores[branch] = self._kept[branch] = value
        self._become(KEPT, branch)
        contradiction = self._bounds.scored(self._scores, branch)
        if not contradiction:
            return self._settle()
        self._bounds = Bounds(self.space)
        states = enumerate(self._states)
        ruled_out = {n for n, state in states if state == PRUNED or (state == STOPPED and n in self._cancelled)}
        revived = ruled_out - self._superfluous(ruled_out)
        self._become(OPEN, *revived)
        return self._settle(frozenset(revived), contradiction)

    def failed(self, branch: int) -> Outcome:
        """It counts as if it had not been given. One that was to be cancelled counts as stopped: this is how it ends.

        :raises ExploreError: the branch does not run
        """
        self._expect(branch, RUNNING)
        if branch in self._cancelled:
            return self.stopped(branch)
        self._become(FAILED, branch)
        return self._settle()

    def stopped(self, branch: int) -> Outcome:
        """A running branch has ended early, or an open one is not to run.

        :raises ExploreError: the branch is neither open nor running
        """
        self._expect(branch, RUNNING, OPEN)
        self._become(STOPPED, branch)
        if branch in self._cancelled and branch not in self._superfluous({branch}):
            # Since it was to be cancelled, the shape turned out wrong.
            self._become(OPEN, branch)
            return self._settle(frozenset({branch}))
        return self._settle()

    def chosen(self) -> tuple[int, ...]:
        """In the order of branches; before it is over, what would be chosen of the scores so far.

        :raises ExploreError: the selection gives a branch that it was not asked about
        """
        found = set(self.selection.chosen(self._kept)) if self._kept else set()
        strange = found - self._kept.keys()
        if strange:
            raise ExploreError(
                f"Found {sorted(strange, key=repr)} chosen, expected some of {sorted(self._kept)}. Hint: a selection "
                "returns keys of the scores that it gets."
            )
        return tuple(sorted(found))

    def _settle(self, revived: frozenset[int] = NONE, contradiction: str = "") -> Outcome:
        waiting = self._open | self._running
        idle = self._superfluous(waiting)
        cancel = idle & self._running - self._cancelled
        pruned = idle & self._open
        self._cancelled |= cancel
        self._become(PRUNED, *pruned)
        discard = frozenset(self._kept.keys() - set(self.chosen())) if self.over else losers(self.selection, self._kept)
        self._become(DISCARDED, *discard)
        if self.selection.associative:
            for branch in discard:
                del self._kept[branch]
        return Outcome(discard, pruned, cancel, revived, contradiction)

    def _superfluous(self, branches: set[int]) -> frozenset[int]:
        return superfluous(self.selection, self._kept, {n: self._bounds.intervals[n] for n in branches})

    def _become(self, state: str, *branches: int) -> None:
        for branch in branches:
            self._states[branch] = state
        for group, its_state in ((self._open, OPEN), (self._running, RUNNING)):
            (group.update if state == its_state else group.difference_update)(branches)

    def _expect(self, branch: int, *states: str) -> None:
        if self._states[branch] not in states:
            raise ExploreError(
                f"Found {self.space.label(branch)} {self._states[branch]}, expected {' or '.join(states)}. Hint: tell "
                "once what became of a branch that `next` named."
            )


def _known(selection: object) -> None:
    if not isinstance(selection, Selection):
        name = getattr(selection, "__name__", repr(selection))
        raise ExploreError(
            f"Found {name} as the selection, expected minimum, maximum, mode, top(k), threshold(at) or "
            "interval(low, high). Hint: of a function of your own, Selection(function)"
        )
