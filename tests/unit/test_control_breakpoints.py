"""Global breakpoints by chance: workers of any speed come late, end, are lost; messages come late or twice."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from spark_regions.control.breakpoints import Ask, Hit, Order, Principal, Reported, Target, Wait, most_rounds
from spark_regions.control.conditions import Count, Local, Number, Sum, condition
from spark_regions.control.rows import Attempt
from spark_regions.errors import ControlError
from tests.harness import chance

CASES = 10_000
KINDS = ("count", "whole", "quarters", "doubles", "signed")
A, B, C = (Attempt(1, partition, partition) for partition in range(3))


class Worker:
    """What an executor does for an attempt: it stands before a row that would be too much, after one that is enough."""

    def __init__(self, attempt: Attempt, rows: list[Number], speed: int, draw: random.Random) -> None:
        self.attempt, self.rows, self.speed, self.draw = attempt, rows, speed, draw
        self.inbox: deque[Target | Ask] = deque()
        self.outbox: deque[Reported] = deque()
        self.target: Target | None = None
        self.at = 0
        self.produced: Number = 0
        self.before: Any = Fraction(0) if any(isinstance(row, float) for row in rows) else 0
        self.ended = False

    @property
    def given(self) -> Any:
        """All rows so far, reported or not; doubles as fractions."""
        return self.before + (self.produced if isinstance(self.before, int) else Fraction(self.produced))

    @property
    def next(self) -> Number | None:
        return self.rows[self.at] if self.at < len(self.rows) else None

    @property
    def busy(self) -> bool:
        return bool(self.inbox or self.outbox) or (not self.ended and (self.target is not None or not self.rows))

    def report(self, held: Number = 0) -> None:
        self.ended = self.next is None and not held and self.draw.random() < 0.9
        message = Reported(self.attempt, self.target.round if self.target else 0, self.produced, held, self.ended)
        self.outbox.extend([message] * self.draw.choice((1, 1, 1, 2)))
        self.before, self.produced, self.target = self.given, 0, None

    def receive(self) -> None:
        order = self.inbox.popleft()
        if isinstance(order, Target):
            assert self.target is None, "a target for one that runs"
            self.target = None if self.ended else order
        elif self.target and self.target.round == order.round:
            self.report(self.next or 0)

    def step(self) -> Number | None:
        """The row that it gives, if it gives one."""
        value, target = self.next, self.target
        if value is None or target is None:
            self.target = target or Target(self.attempt, 0, 0)
            self.ended = True
            self.outbox.append(Reported(self.attempt, self.target.round, self.produced, finished=True))
            self.before, self.produced, self.target = self.given, 0, None
            return None
        if not target.last and self.produced + value > target.amount:
            self.report(value)
            return None
        self.at, self.produced = self.at + 1, self.produced + value
        if self.produced >= target.amount:
            self.report()
        return value


class World:
    def __init__(self, draw: random.Random, kind: str) -> None:
        self.draw, self.kind = draw, kind
        tasks = [self.values(draw.choice((0, 1, 5, 12))) for _ in range(draw.randint(1, 6))]
        self.all = sum(Fraction(value) for rows in tasks for value in rows)
        enough = max(1, int(self.all * Fraction(draw.choice((0.3, 0.8, 1.0, 1.2)))))
        self.condition: Count | Sum = Count(enough)
        if kind != "count":
            self.condition = Sum("x", enough if kind == "whole" else enough + draw.choice((0.0, 0.25)))
        self.step = draw.choice((None, None, 1, 7))
        self.principal = Principal(self.condition, draw.choice((0, 0.005)), self.step)
        self.to_come = [self.worker(Attempt(1, number, number), rows) for number, rows in enumerate(tasks)]
        self.known: list[Worker] = []
        self.losses = 0 if kind == "signed" else draw.choice((0, 0, 1, 3))
        self.changes = self.most = 0
        self.waits: list[int] = []
        self.told: set[Attempt] = set()

    def values(self, count: int) -> list[Number]:
        draw, large = self.draw, self.draw.random() < 0.3
        if self.kind == "count":
            return [1] * count
        if self.kind == "doubles":
            return [draw.random() * draw.choice((1, 1, 1000)) for _ in range(count)]
        most = 400 if large else 20
        whole = [draw.randint(-most // 4 if self.kind == "signed" else 0, most) for _ in range(count)]
        return [each / 4 for each in whole] if self.kind == "quarters" else list(whole)

    def worker(self, attempt: Attempt, rows: list[Number]) -> Worker:
        return Worker(attempt, rows, self.draw.choice((1, 1, 4, 40)), self.draw)

    def send(self, orders: tuple[Order, ...]) -> None:
        for order in orders:
            if isinstance(order, Target | Ask):
                (worker,) = (each for each in self.known if each.attempt == order.worker)
                worker.inbox.append(order)
            elif isinstance(order, Wait):
                self.waits.append(order.round)
            else:
                assert order == Hit(self.principal.total)

    def join(self) -> None:
        many = self.draw.randint(1, len(self.to_come))
        coming, self.to_come = self.to_come[:many], self.to_come[many:]
        self.known += coming
        self.changes += many
        self.most = max(self.most, len(self.known))
        self.send(self.principal.joined(*(each.attempt for each in coming)))

    def lose(self) -> None:
        """Another attempt has the same rows, perhaps in another order; what was on its way may still come."""
        worker = self.draw.choice(self.known)
        self.losses, self.changes = self.losses - 1, self.changes + 1
        self.known.remove(worker)
        self.send(self.principal.lost(worker.attempt))
        for late in worker.outbox:
            assert self.principal.reported(late) == ()
        number = worker.attempt.number + 100
        rows = self.draw.sample(worker.rows, len(worker.rows)) if self.draw.random() < 0.5 else worker.rows
        self.to_come.append(self.worker(Attempt(1, worker.attempt.partition, number), rows))

    def act(self, worker: Worker) -> None:
        if worker.inbox and self.draw.random() < 0.5:
            worker.receive()
        elif worker.outbox and (worker.target is None or self.draw.random() < 0.5):
            message = worker.outbox.popleft()
            if message.finished and worker.attempt not in self.told:
                self.told.add(worker.attempt)
                self.changes += 1
            self.send(self.principal.reported(message))
        elif not worker.ended and (worker.target or not worker.rows):
            for _ in range(worker.speed):
                total = sum(each.given for each in self.known)
                value = worker.step()
                if value is None:
                    break
                assert total < self.condition.target, "a row after the hit, or beyond the target"
                if isinstance(self.condition, Count):
                    assert total + 1 <= self.condition.target
                if worker.target is None:
                    break

    def run(self) -> None:
        while not self.principal.hit:
            busy = [each for each in self.known if each.busy]
            chance_of = self.draw.random()
            if self.to_come and (not busy or chance_of < 0.1):
                self.join()
            elif self.losses and self.known and chance_of < 0.13:
                self.lose()
            elif self.waits and (not busy or chance_of < 0.3):
                self.send(self.principal.waited(self.waits.pop(0)))
            elif busy:
                self.act(self.draw.choice(busy))
            else:
                break

    def check(self) -> None:
        hit, target = self.principal.hit, self.condition.target
        total = sum(each.given for each in self.known)
        if hit:
            assert total >= target and all(each.target is None for each in self.known)
        else:
            rounded = 1e-9 if self.kind == "doubles" else 0
            assert not self.to_come and abs(total - self.all) <= rounded and self.all < target + rounded
            assert all(each.next is None for each in self.known), "one stands that could go on"
        if self.kind == "count":
            assert hit == (self.all >= target) and (not hit or total == target)
        if self.kind != "signed":
            assert self.principal.round <= most_rounds(self.condition, self.most, self.changes, self.step)


def test_never_too_much_and_always_hit() -> None:
    hits = cases = 0
    for seed in chance.seeds("control_breakpoints", CASES, 0):
        with chance.trying("control_breakpoints", seed):
            world = World(random.Random(seed), KINDS[seed % len(KINDS)])
            world.run()
            world.check()
            hits, cases = hits + world.principal.hit, cases + 1
    assert 0.4 * cases < hits < 0.9 * cases


@pytest.mark.parametrize(("workers", "speeds"), [(3, (1, 1, 1)), (3, (9, 1, 1)), (8, (50, 1, 1, 1, 1, 1, 1, 0))])
def test_rounds_of_workers_that_do_not_change(workers: int, speeds: tuple[int, ...]) -> None:
    """The bound without changes, and how far below it a run is."""
    attempts = [Attempt(1, number, number) for number in range(workers)]
    principal = Principal(Count(100_000), tau_seconds=0)
    orders = principal.joined(*attempts)
    while not principal.hit:
        targets = [order for order in orders if isinstance(order, Target)]
        seconds = min(order.amount / (speeds[order.worker.partition] or 1e-9) for order in targets)
        messages = []
        for order in targets:
            produced = min(int(order.amount), round(seconds * speeds[order.worker.partition]))
            messages.append(Reported(order.worker, principal.round, produced))
        for message in sorted(messages, key=lambda each: each.produced, reverse=True):
            orders = principal.reported(message) or orders
    assert principal.total == 100_000
    assert principal.round <= most_rounds(Count(100_000), workers, 0)


def test_figure_6() -> None:
    """The paper's run of "KeywordSearch producing 15 tuples", message by message."""
    principal = Principal(Count(15), tau_seconds=0.1)
    assert [order.amount for order in principal.joined(A, B, C) if isinstance(order, Target)] == [5, 5, 5]
    assert principal.reported(Reported(B, 1, 5)) == (Wait(1, 0.1),)
    assert principal.waited(1) == (Ask(A, 1), Ask(C, 1)) and principal.waited(1) == ()
    assert principal.reported(Reported(A, 1, 3)) == ()
    assert principal.reported(Reported(C, 1, 1)) == (Target(B, 2, 2), Target(A, 2, 2), Target(C, 2, 2))
    principal.reported(Reported(C, 2, 2))
    assert principal.waited(1) == () != principal.waited(2)
    principal.reported(Reported(A, 2, 1))
    assert principal.reported(Reported(B, 2, 1)) == (Target(C, 3, 1), Target(A, 3, 1))
    assert principal.reported(Reported(A, 3, 1)) == (), "t9: nobody is asked"
    assert principal.reported(Reported(C, 3, 1)) == (Hit(15),)


def test_the_others_in_time_save_the_question() -> None:
    principal = Principal(Count(15))
    principal.joined(A, B, C)
    assert principal.reported(Reported(B, 1, 5)) == (Wait(1, 0.005),)
    assert principal.reported(Reported(A, 1, 5)) == ()
    assert principal.reported(Reported(C, 1, 5)) == (Hit(15),)
    assert principal.waited(1) == () and principal.lost(A) == () and principal.joined(Attempt(1, 0, 9)) == ()


def test_what_a_lost_worker_reported_does_not_count() -> None:
    principal = Principal(Count(4), tau_seconds=0)
    principal.joined(A, B)
    principal.reported(Reported(A, 1, 2, finished=True))
    assert principal.total == 2 and principal.lost(A) == () and principal.total == 0
    assert principal.joined(again := Attempt(1, 0, 7)) == (Ask(B, 1),)
    assert principal.joined(A) == () and principal.reported(Reported(A, 1, 2)) == ()
    assert principal.reported(Reported(B, 1, 2)) == (Target(again, 2, 1), Target(B, 2, 1))


def test_a_large_row_goes_alone_and_small_ones_together() -> None:
    """100 are wanted; rows of 70 and 20 fit at once, 70 and 50 do not: then the smaller one goes."""
    for other, expected in ((20, [("a", 75), ("b", 25)]), (50, [("b", 100)])):
        principal = Principal(Sum("x", 100), tau_seconds=0)
        principal.joined(A, B)
        principal.reported(Reported(A, 1, 0, held=70))
        orders = principal.reported(Reported(B, 1, 0, held=other))
        assert [("ab"[o.worker.partition], o.amount) for o in orders if isinstance(o, Target)] == expected


def test_amounts_of_doubles_never_come_to_more() -> None:
    for target in (0.3, 1e-320, 5e-324, 1e300, 90.1, 2**60 + 1):
        workers = [Attempt(0, number, number) for number in range(7)]
        orders = Principal(Sum("x", target), step=5e-324).joined(*workers)
        amounts = [Fraction(order.amount) for order in orders if isinstance(order, Target)]
        assert amounts and 0 < sum(amounts) <= Fraction(target)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: condition(" "), "Found no condition"),
        (
            lambda: condition("count(*) < 5"),
            r"Found the condition 'count\(\*\) < 5', expected of all rows a count or a sum",
        ),
        (lambda: condition("count(*) = 0"), "above 0"),
        (lambda: condition("count(*) = 1.5"), "count"),
        (lambda: condition("count(*) = 1__0"), "count"),
        (lambda: condition("sum(x) > 5"), r"sum\(followers\) >= 90"),
        (lambda: condition("sum(x) >= 1e999"), "finite"),
        (lambda: condition("sum(x) >= 1" + "0" * 400), "finite"),
        (lambda: condition("avg(x) > 5"), "expected of all rows a count or a sum"),
        (lambda: Principal(Count(5), tau_seconds=-1), "Found tau_seconds=-1, expected a number from 0"),
        (lambda: Principal(Count(5), tau_seconds=math.nan), "Found tau_seconds=nan"),
        (lambda: Principal(Sum("x", 5), step=0), "Found step=0, expected a number above 0"),
        (lambda: Principal(Count(5)).reported(Reported(A, 1, 1)), "expected one that joined"),
    ],
)
def test_what_is_refused(make: Callable[[], Any], found: str) -> None:
    with pytest.raises(ControlError, match=found) as raised:
        make()
    assert "Hint: " in str(raised.value)


@pytest.mark.parametrize("produced", [6, -1, 1.5, math.nan, math.inf])
def test_a_report_that_cannot_be_changes_nothing(produced: Number) -> None:
    for wanted in (Count(5), Sum("x", 5)):
        principal = Principal(wanted)
        principal.joined(A)
        if isinstance(wanted, Sum) and produced in (-1, 1.5):
            continue
        with pytest.raises(ControlError, match=r"expected at most its target of 5. Hint: a worker stands before"):
            principal.reported(Reported(A, 1, produced))
        assert principal.total == 0
        assert principal.reported(Reported(A, 1, 5)) == (Hit(5),)


def test_conditions() -> None:
    assert condition("count(*) = 1_000") == condition(" Count( 1 ) >= 1000") == Count(1000)
    assert condition("sum(if(a, b, 0)) >= 2.5") == Sum("if(a, b, 0)", 2.5)
    assert condition("counted > 5") == Local("counted > 5")


def test_close_to_the_target_one_worker_gets_it_all_and_is_not_asked() -> None:
    principal = Principal(Sum("x", 100), tau_seconds=0, step=101)
    assert principal.joined(A, B) == (Target(A, 1, 100, last=True),)
    assert principal.joined(C) == (), "three parts might overshoot by three rows"
    assert principal.reported(Reported(A, 1, 40, finished=True)) == (Target(B, 2, 60, last=True),)
    assert principal.lost(B) == (Target(C, 3, 60, last=True),)
    assert principal.reported(Reported(C, 3, 71.5)) == (Hit(111.5),)
