"""Global breakpoints: the principal's protocol of Amber §5.3, as a state machine of messages.

Workers are attempts of tasks. Each holds its first row until it has a `Target`, and stands again when that is used up:
*before* a row that would bring it above the amount, unless the target is the `last`, and *after* one that brings it to
the amount. It answers each target by one `Reported`: when it stands, when it is asked, or when its rows end.

Never more than the target. What is not yet reported is below what is dealt: the amounts of running workers sum up to at
most `target - reached`. A deal makes it so, since it happens when none runs, and its amounts sum up to at most what
remains; a report of p out of an amount a lowers the right side by p <= a and the left by a; a lost worker's rows raise
the right side. So all rows together, reported or not, never exceed the target: COUNT overshoots by 0. Of SUM, only a
`last` target lets a row cross, and then no other worker runs: the sum was below the target before that row, so it
overshoots by less than this row's value. Values may be negative, too, unless a worker whose sum is negative is lost.

It is hit if the total is reached. As long as something remains and a worker has rows, one of them runs: a deal gives
something to at least one, a report of the last running worker leads to a deal, and a report while others run leads to
none only if what remains is theirs.
"""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec

from spark_regions.control.conditions import Count, Number, Sum
from spark_regions.control.rows import Attempt
from spark_regions.errors import ControlError

TAU_SECONDS = 0.005
"""How long to wait for the others once one stands; "a few milliseconds" were best (§7.6)."""


class Target(msgspec.Struct, frozen=True, tag="target"):
    """Give rows that come to so much, then stand.

    :param amount: rows, or the column's unit; may have a fraction where the column has none
    :param last: the row that reaches or crosses it passes
    """

    worker: Attempt
    round: int
    amount: Number
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

    total: Number


Order = Target | Ask | Wait | Hit
Orders = tuple[Order, ...]


class Reported(msgspec.Struct, frozen=True):
    """A worker stands, or has no more rows.

    :param produced: since its target of this round
    :param held: SUM: the value of the row that it stands at, which is not in `produced`; 0 if there is none
    """

    worker: Attempt
    round: int
    produced: Number
    held: Number = 0
    finished: bool = False


class Principal:
    """Three workers and 15 rows, as in figure 6 but with a late one:

    >>> a, b, c = (Attempt(1, partition, partition) for partition in range(3))
    >>> principal = Principal(Count(15), tau_seconds=0)
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
    could run. Of a sum, the rows at which workers stand say how close it is:

    >>> principal = Principal(Sum("followers", 90))
    >>> [order.amount for order in principal.joined(a, b, c)]
    [30, 30, 30]
    >>> for worker, produced, held in ((a, 24, 15), (b, 28, 14), (c, 28, 13)):
    ...     orders = principal.reported(Reported(worker, 1, produced, held))
    >>> orders == (Target(c, 2, 10, last=True),)
    True
    >>> principal.reported(Reported(c, 2, 13))
    (Hit(total=93),)

    :param step: SUM: what remains beyond the rows that workers stand at, below which one worker gets it all; a
        thousandth of the target if None
    """

    def __init__(self, condition: Count | Sum, tau_seconds: float = TAU_SECONDS, step: Number | None = None) -> None:
        if not 0 <= tau_seconds < math.inf:
            raise ControlError(f"Found tau_seconds={tau_seconds}, expected a number from 0. Hint: leave it out.")
        if step is not None and not 0 < step < math.inf:
            raise ControlError(f"Found step={step}, expected a number above 0. Hint: leave it out.")
        self.condition, self.tau_seconds = condition, tau_seconds
        self.step = _exact(condition.target) / Fraction(1000) if step is None else _exact(step)
        self.round, self.hit = 0, False
        self._target = _exact(condition.target)
        self._reached: Exact = 0
        self._reported: dict[Attempt, Exact] = {}
        self._running: dict[Attempt, Exact] = {}
        self._standing: dict[Attempt, Exact] = {}
        """With the value of the row that each stands at; who stood first comes first."""
        self._lost: set[Attempt] = set()
        self._last = self._waits = self._asked = False

    @property
    def total(self) -> Number:
        """Reported by workers that are not lost."""
        return _down(self._reached)

    def joined(self, *workers: Attempt) -> Orders:
        """They stand at their first row. One that is known counts once."""
        for worker in workers:
            if worker not in self._reported and worker not in self._lost:
                self._reported[worker] = self._standing[worker] = 0
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
            produced = self._checked(message)
            del self._running[worker]
            self._reported[worker] += produced
            self._reached += produced
            if not message.finished:
                self._standing[worker] = max(_exact(message.held), 0)
        elif message.finished:
            # It had no row, and its target may be on the way.
            self._standing.pop(worker, None)
            self._running.pop(worker, None)
        else:
            return ()
        return self._settle()

    def lost(self, worker: Attempt) -> Orders:
        """Its rows are given again by another attempt: what it reported does not count, even if it had finished.

        After the hit nothing follows: the attempt that repeats it stands at the same count, by `replay`.
        """
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
        if self._waits or not self._gains():
            return ()
        self._waits = True
        return (Wait(self.round, self.tau_seconds),) if self.tau_seconds else self.waited(self.round)

    def _gains(self) -> bool:
        """Whether more workers could run after a deal; else those that run go on, as at t9 of figure 6."""
        if isinstance(self.condition, Count):
            return self._target - self._reached > len(self._running)
        return not self._last

    def _deal(self) -> Orders:
        self.round += 1
        self._last = self._waits = self._asked = False
        rest, count = self._target - self._reached, len(self._standing)
        if isinstance(self.condition, Count):
            share, more = divmod(int(rest), count)
            amounts: dict[Attempt, Number] = {w: share + (n < more) for n, w in enumerate(self._standing)}
        else:
            slack = rest - sum(self._standing.values())
            amounts = {w: _down(held + slack / Fraction(count)) for w, held in self._standing.items()}
            self._last = slack < self.step or not all(amounts.values())
            if self._last:
                amounts = {min(self._standing, key=self._standing.__getitem__): _up(rest)}
        self._running = {worker: _exact(amount) for worker, amount in amounts.items() if amount}
        for worker in self._running:
            del self._standing[worker]
        return tuple(Target(worker, self.round, amounts[worker], self._last) for worker in self._running)

    def _checked(self, message: Reported) -> Exact:
        produced, amount = message.produced, self._running[message.worker]
        counts = isinstance(self.condition, Count)
        within = (
            isinstance(produced, int) and produced >= 0 if counts else all(map(math.isfinite, (produced, message.held)))
        )
        if not within or (not self._last and _exact(produced) > amount):
            raise ControlError(
                f"Found {produced} reported by {message.worker.shown}, expected at most its target of {_down(amount)}. "
                "Hint: a worker stands before a row that would bring it above its target."
            )
        return _exact(produced)


def most_rounds(condition: Count | Sum, workers: int, changes: int, step: Number | None = None) -> int:
    """How many deals there can be, with so many workers at most, and joins, ends and losses together.

    COUNT, between two changes: one stands for having used up its share, so a deal of R rows leaves at most
    R - floor(R/k), and R - (k-1) falls by 1/k at least: below 1 after k ln T deals, and then all that remains runs.
    SUM, of values from 0: of the slack S = rest - held rows, that worker has taken its k-th part, in rows or by the row
    that it stands at, and none gives back: below the step after k ln(T/step) deals, and then comes the last one.

    >>> most_rounds(Count(15), 3, 3), most_rounds(Sum("followers", 90), 3, 3)
    (44, 92)
    """
    target = condition.target
    ratio = target if isinstance(condition, Count) else 1000 if step is None else max(target / step, 1)
    return (changes + 1) * (math.floor(workers * math.log(ratio)) + 3)


Exact = int | Fraction
"""Doubles are fractions; sums of them are not rounded."""


def _exact(number: Number) -> Exact:
    return number if isinstance(number, int) else Fraction(number)


def _down(number: Exact) -> Number:
    """The nearest double that is not above; whole numbers as they are."""
    if number == int(number):
        return int(number)
    near = float(number)
    return near if near <= number else math.nextafter(near, -math.inf)


def _up(number: Exact) -> Number:
    """Sums of doubles below it are below `number`, too."""
    return -_down(-number)
