"""Global breakpoints: the principal's protocol of Amber §5.3, as a state machine of messages.

Workers are attempts of tasks. Each holds its first row until it has a `Target`, and stands again when that is used up,
*before* a row that would bring it above the amount. It answers each target by one `Reported`: when it stands, when it
is asked, or when its rows end.

Never more than the target. What is not yet reported is below what is dealt: the amounts of running workers sum up to at
most `target - reached`. A deal makes it so, since it happens when none runs, and its amounts sum up to what remains; a
report of p out of an amount a lowers the right side by p <= a and the left by a; a lost worker's rows raise the right
side. So all rows together, reported or not, never exceed the target: the overshoot is 0.

A sum (G2) goes by the same rules, with two more. A worker whose next value is above what is left of its amount stands
at it, so that all may stand and something remains: the last step is of one of them alone, which has all that remains
and passes the row that comes to it. What is above the target is therefore less than that row's value. The last step is
taken once two rounds have brought nothing: of one, a worker may have been asked before its first row.

It is hit if the total is reached. As long as something remains and a worker has rows, one of them runs: a deal gives
something to at least one, a report of the last running worker leads to a deal, and a report while others run leads to
none only if what remains is theirs.
"""

from __future__ import annotations

import math

import msgspec

from spark_regions.debugging.rows import Attempt
from spark_regions.errors import ControlError

MOST_IDLE = 2


class Target(msgspec.Struct, frozen=True, tag="target"):
    """Give so many rows, then stand.

    :param last: of a sum, for one that runs alone: also the row that comes to the amount or beyond
    """

    worker: Attempt
    round: int
    amount: float
    last: bool = False


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """Stand and report; not if it has reported in this round."""

    worker: Attempt
    round: int


class Wait(msgspec.Struct, frozen=True, tag="wait"):
    """Tell `waited(round)` after so long."""

    round: int
    seconds: float


class Hit(msgspec.Struct, frozen=True, tag="hit"):
    """Pause the job: all workers stand already."""

    total: float


Order = Target | Ask | Wait | Hit
Orders = tuple[Order, ...]


class Reported(msgspec.Struct, frozen=True):
    """A worker stands, or has no more rows.

    :param produced: rows, or the sum of their values, since its target of this round
    """

    worker: Attempt
    round: int
    produced: float
    finished: bool = False


class Principal:
    """Three workers and 15 rows, as in figure 6 but with a late one:

    >>> a, b, c = (Attempt(1, partition, partition) for partition in range(3))
    >>> principal = Principal(15, tau_seconds=0)
    >>> [(order.worker.partition, order.amount) for order in principal.joined(a, b)]
    [(0, 8), (1, 7)]
    >>> principal.reported(Reported(b, 1, 7)) == (Ask(a, 1),)
    True
    >>> principal.joined(c)
    ()
    >>> [(order.worker.partition, order.amount) for order in principal.reported(Reported(a, 1, 3))]
    [(1, 2), (2, 2), (0, 1)]
    >>> for worker, produced in ((a, 1), (c, 2)):
    ...     orders = principal.reported(Reported(worker, 2, produced))
    >>> orders, principal.reported(Reported(b, 2, 2))
    ((), (Hit(total=15),))

    What remains is given to who stands, most of it to who stood first. Nobody is asked if no more workers than now
    could run.

    :param tau_seconds: τ, how long to wait for the others once one stands; "a few milliseconds" were best (§7.6)
    """

    def __init__(self, target: int, tau_seconds: float, summed: bool = False) -> None:
        self.tau_seconds = tau_seconds
        self.round, self.hit = 0, False
        self._target, self._summed = target, summed
        self._reached: float = 0
        self._dealt_at, self._idle = -math.inf, 0
        """What was reached at the last deal; how many rounds since have brought nothing."""
        self._last = False
        self._reported: dict[Attempt, float] = {}
        self._running: dict[Attempt, float] = {}
        self._standing: dict[Attempt, None] = {}
        """Who stood first comes first."""
        self._lost: set[Attempt] = set()
        self._waits = self._asked = False

    @property
    def total(self) -> float:
        """Reported by workers that are not lost."""
        return self._reached

    def joined(self, *workers: Attempt) -> Orders:
        """They stand at their first row. One that is known counts once."""
        for worker in workers:
            if worker not in self._reported and worker not in self._lost:
                self._reported[worker] = 0
                self._standing[worker] = None
        return self._settle()

    def reported(self, message: Reported) -> Orders:
        """A message that comes again, of an earlier round, or of a lost worker changes nothing.

        :raises ControlError: a worker that never joined, or more than its target; nothing has changed then
        """
        worker = message.worker
        if worker in self._lost:
            return ()
        if worker not in self._reported:
            raise ControlError(f"Found a report of {worker.shown}, expected one that joined. Hint: join first.")
        if worker in self._running and message.round == self.round:
            amount = self._running[worker]
            least = -math.inf if self._summed else 0
            if not least <= message.produced <= (math.inf if self._last else amount):
                raise ControlError(
                    f"Found {message.produced} reported by {worker.shown}, expected at most its target of {amount}. "
                    "Hint: a worker stands before a row that would bring it above its target."
                )
            del self._running[worker]
            self._reported[worker] += message.produced
            self._reached += message.produced
            if not message.finished:
                self._standing[worker] = None
        elif message.finished:
            # It had no row, and its target may be on the way.
            self._standing.pop(worker, None)
            self._running.pop(worker, None)
        else:
            return ()
        return self._settle()

    def lost(self, worker: Attempt) -> Orders:
        """Its rows are given again by another attempt: what it reported does not count, even if it had finished."""
        self._lost.add(worker)
        self._reached -= self._reported.pop(worker, 0)
        self._running.pop(worker, None)
        self._standing.pop(worker, None)
        return self._settle()

    def waited(self, round: int) -> Orders:  # noqa: A002
        """τ is over: asks those that still run, if it is still of interest."""
        if self.hit or round != self.round or not self._waits or self._asked:
            return ()
        self._asked = True
        return tuple(Ask(worker, self.round) for worker in self._running)

    def _settle(self) -> Orders:
        if self.hit:
            return ()
        if self._reached >= self._target:
            self.hit = True
            return (Hit(self.total),)
        if not self._standing:
            return ()
        if not self._running:
            return self._deal()
        # Else those that run go on, as at t9 of figure 6: no more of them could run after a deal.
        if self._waits or self._last or (not self._summed and self._target - self._reached <= len(self._running)):
            return ()
        self._waits = True
        return (Wait(self.round, self.tau_seconds),) if self.tau_seconds else self.waited(self.round)

    def _deal(self) -> Orders:
        self.round += 1
        self._waits = self._asked = False
        remains = self._target - self._reached
        self._idle = self._idle + 1 if self._reached == self._dealt_at else 0
        self._dealt_at = self._reached
        self._last = self._summed and self._idle >= MOST_IDLE
        if self._last:
            self._running = {next(iter(self._standing)): remains}
        elif self._summed:
            self._running = dict.fromkeys(self._standing, remains / len(self._standing))
        else:
            share, more = divmod(remains, len(self._standing))
            amounts = {worker: share + (n < more) for n, worker in enumerate(self._standing)}
            self._running = {worker: amount for worker, amount in amounts.items() if amount}
        for worker in self._running:
            del self._standing[worker]
        return tuple(Target(worker, self.round, amount, self._last) for worker, amount in self._running.items())
