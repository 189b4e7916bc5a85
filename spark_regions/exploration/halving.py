"""Successive halving: iterative branches are compared early, and the worst stop (Meta-Dataflows §3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from spark_regions.errors import ExploreError
from spark_regions.exploration.select import Scores, Top, number


@dataclass(frozen=True, slots=True)
class Halving:
    """
    :param eta: one of so many goes on
    :param first: rounds until the first comparison; until the next ones it is eta times as many each
    """

    eta: int
    first: int

    def after(self, rounds: int) -> int:
        """Rounds in all at the next comparison: first · eta^i.

        >>> rule = halving(3)
        >>> rule.first, rule.after(1), rule.after(3)
        (1, 3, 9)
        """
        return rounds * self.eta

    def going(self, scores: Scores, lowest: bool = False, least: int = 1) -> frozenset[int]:
        """The branches that go on: the best ceil(n / eta) of n; of equal scores the lower number.

        >>> sorted(halving(3).going({0: 0.5, 1: 0.9, 2: 0.7, 3: 0.9}))
        [1, 3]

        :param scores: of all branches that have run so many rounds and are not at their end
        :param lowest: whether lower scores are better
        :param least: so many go on in any case: as many as are to be chosen in the end
        :raises ExploreError: a score is no number
        """
        known = {branch: number(score, f"the score of branch {branch}") for branch, score in scores.items()}
        return frozenset(Top(max(-(-len(known) // self.eta), least), lowest).chosen(known))


def halving(eta: int = 3, first: int = 1) -> Halving:
    """:raises ExploreError: `eta` below 2, `first` below 1, or no whole numbers"""
    for name, value, least in (("eta", eta, 2), ("first", first, 1)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ExploreError(f"Found {name}={value!r}, expected a whole number from {least}. Hint: {name}={least}")
    return Halving(eta, first)
