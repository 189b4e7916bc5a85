"""Rows that fail: what becomes of each, and when there are too many of them.

An attempt that is retried meets its bad rows again, and so does one that runs again since its output was lost: only the
last committed attempt of each task counts.
"""

from __future__ import annotations

from typing import Literal, get_args

from spark_regions.debugging.rows import Attempt
from spark_regions.errors import ControlError

OnBadRow = Literal["fail", "null", "skip", "quarantine", "pause"]
"""`fail`: as without us. `null`: the failed value. `skip`: no row. `quarantine`: as skip, and kept in a table if its
attempt commits. `pause`: a person says."""


class BadRows:
    """Of a query or application.

    Two may be bad. Attempt 1 meets two and is lost, attempt 2 meets the same and commits; another task has a third one:

    >>> bad = BadRows("skip", most=2)
    >>> lost, kept, other = Attempt(0, 0, 1), Attempt(0, 0, 2), Attempt(0, 1, 3)
    >>> [bad.found(attempt, nth) for attempt in (lost, kept) for nth in (1, 2)], bad.found(other, 1)
    (['skip', 'skip', 'skip', 'skip'], 'skip')
    >>> bad.lost(lost), bad.committed(kept), bad.total
    (None, '', 2)
    >>> print(bad.committed(other))
    Found 3 bad rows, expected at most 2. Hint: spark.regions.control.maxBadRows

    :param most: `control.maxBadRows`; None for any number
    :raises ControlError: another policy, or a negative number
    """

    def __init__(self, policy: OnBadRow, most: int | None = None) -> None:
        if policy not in get_args(OnBadRow):
            raise ControlError(
                f"Found onBadRow={policy!r}, expected one of {', '.join(get_args(OnBadRow))}. Hint: skip"
            )
        if most is not None and most < 0:
            raise ControlError(f"Found maxBadRows={most}, expected a number from 0. Hint: leave it out for any number.")
        self.policy, self.most = policy, most
        self.altered = False
        """Some row is not as it would be without us: the results are not to be stored or shared as complete."""
        self.total = 0
        """In committed attempts."""
        self._found: dict[Attempt, int] = {}
        self._committed: dict[tuple[int, int], tuple[Attempt, int]] = {}

    def found(self, attempt: Attempt, nth: int) -> OnBadRow:
        """What becomes of an attempt's nth bad row; the same answer if it is told again, and no row more.

        It fails if its attempt alone has more than may be: whichever others commit, this one could not.

        :param nth: from 1, as the attempt counts them
        :raises ControlError: nth is below 1
        """
        if nth < 1:
            raise ControlError(f"Found bad row {nth} of {attempt.shown}, expected a number from 1. Hint: count from 1.")
        if self.policy == "fail" or (self.most is not None and nth > self.most):
            return "fail"
        self._found[attempt] = max(nth, self._found.get(attempt, 0))
        self.altered = True
        return self.policy

    def lost(self, attempt: Attempt) -> None:
        """Failed, killed, or overtaken by another; one that committed counts until another of its task does."""
        self._found.pop(attempt, None)

    def committed(self, attempt: Attempt) -> str:
        """Why the job must end after all; "" if it need not. One that commits again counts once."""
        before, rows = self._committed.get(attempt.task, (None, 0))
        if before != attempt:
            now = self._found.pop(attempt, 0)
            self._committed[attempt.task] = (attempt, now)
            self.total += now - rows
        if self.most is None or self.total <= self.most:
            return ""
        return f"Found {self.total:,} bad rows, expected at most {self.most:,}. Hint: spark.regions.control.maxBadRows"

    def counts(self, attempt: Attempt) -> bool:
        """Whether its quarantined rows stay in the table."""
        return self._committed.get(attempt.task, (None, 0))[0] == attempt
