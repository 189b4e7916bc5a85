"""Global breakpoints by chance: workers of any speed come late, end, are lost; messages come late or twice."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from spark_regions.debugging.breakpoints import Ask, Hit, Order, Principal, Reported, Target, Wait
from spark_regions.debugging.conditions import Condition, condition
from spark_regions.debugging.rows import Attempt
from spark_regions.errors import ControlError
from tests.harness import chance

CASES = 10_000
TAU = 0.005
A, B, C = (Attempt(1, partition, partition) for partition in range(3))


def most_rounds(target: int, workers: int, changes: int) -> int:
    """How many deals there can be, with so many workers at most, and joins, ends and losses together.

    Between two changes: one stands for having used up its share, so a deal of R rows leaves at most R - floor(R/k), and
    R - (k-1) falls by 1/k at least: below 1 after k ln T deals, and then all that remains runs.
    """
    return (changes + 1) * (math.floor(workers * math.log(target)) + 3)


class Worker:
    """What an executor does for an attempt: it stands before a row that would be too much."""

    def __init__(self, attempt: Attempt, values: list[int], speed: int, draw: random.Random) -> None:
        self.attempt, self.values, self.speed, self.draw = attempt, values, speed, draw
        self.inbox: deque[Target | Ask] = deque()
        self.outbox: deque[Reported] = deque()
        self.target: Target | None = None
        self.rows = self.given = self.produced = 0
        """That have passed; what they come to, and what of it is not reported."""
        self.ended = False

    @property
    def left(self) -> int:
        return len(self.values) - self.rows

    @property
    def busy(self) -> bool:
        return bool(self.inbox or self.outbox) or (not self.ended and (self.target is not None or not self.values))

    def report(self) -> None:
        self.ended = not self.left and self.draw.random() < 0.9
        message = Reported(self.attempt, self.target.round if self.target else 0, self.produced, self.ended)
        self.outbox.extend([message] * self.draw.choice((1, 1, 1, 2)))
        self.produced, self.target = 0, None

    def receive(self) -> None:
        order = self.inbox.popleft()
        if isinstance(order, Target):
            assert self.target is None, "a target for one that runs"
            self.target = None if self.ended else order
        elif self.target and self.target.round == order.round:
            self.report()

    def step(self) -> bool:
        """Whether it gives a row."""
        if not self.left or self.target is None:
            self.ended = True
            round_ = self.target.round if self.target else 0
            self.outbox.append(Reported(self.attempt, round_, self.produced, finished=True))
            self.produced, self.target = 0, None
            return False
        value = self.values[self.rows]
        if not self.target.last and self.produced + value > self.target.amount:
            self.report()
            return False
        self.rows, self.given, self.produced = self.rows + 1, self.given + value, self.produced + value
        if self.produced == self.target.amount or (self.target.last and self.produced > self.target.amount):
            self.report()
        return True


class World:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.summed = draw.random() < 0.5
        values = (0, 1, 2, 9, 40) if self.summed else (1,)
        tasks = [draw.choices(values, k=draw.choice((0, 1, 5, 12))) for _ in range(draw.randint(1, 6))]
        self.all = sum(map(sum, tasks))
        self.target = max(1, int(self.all * draw.choice((0.3, 0.8, 1.0, 1.2))))
        self.principal = Principal(self.target, draw.choice((0, TAU)), self.summed)
        self.to_come = [self.worker(Attempt(1, number, number), values) for number, values in enumerate(tasks)]
        self.known: list[Worker] = []
        self.losses = draw.choice((0, 0, 1, 3))
        self.changes = self.most = 0
        self.waits: list[int] = []
        self.told: set[Attempt] = set()

    def worker(self, attempt: Attempt, values: list[int]) -> Worker:
        return Worker(attempt, values, self.draw.choice((1, 1, 4, 40)), self.draw)

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
        """Another attempt has the same rows; what was on its way may still come."""
        worker = self.draw.choice(self.known)
        self.losses, self.changes = self.losses - 1, self.changes + 1
        self.known.remove(worker)
        self.send(self.principal.lost(worker.attempt))
        for late in worker.outbox:
            assert self.principal.reported(late) == ()
        number = worker.attempt.number + 100
        self.to_come.append(self.worker(Attempt(1, worker.attempt.partition, number), worker.values))

    def act(self, worker: Worker) -> None:
        if worker.inbox and self.draw.random() < 0.5:
            worker.receive()
        elif worker.outbox and (worker.target is None or self.draw.random() < 0.5):
            message = worker.outbox.popleft()
            if message.finished and worker.attempt not in self.told:
                self.told.add(worker.attempt)
                self.changes += 1
            self.send(self.principal.reported(message))
        elif not worker.ended and (worker.target or not worker.values):
            for _ in range(worker.speed):
                total = sum(each.given for each in self.known)
                if not worker.step():
                    break
                assert total < self.target, "a row beyond the target"
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
        hit, target = self.principal.hit, self.target
        total = sum(each.given for each in self.known)
        beyond = max(value for each in self.known for value in each.values) if hit and self.summed else 1
        assert hit == (self.all >= target) and (not hit or target <= total < target + beyond)
        if hit:
            assert all(each.target is None for each in self.known)
        else:
            assert not self.to_come and not any(each.left for each in self.known), "one stands that could go on"
        assert self.summed or self.principal.round <= most_rounds(self.target, self.most, self.changes)


def test_never_too_much_and_always_hit() -> None:
    hits = cases = 0
    for seed in chance.seeds("control_breakpoints", CASES, 0):
        with chance.trying("control_breakpoints", seed):
            world = World(random.Random(seed))
            world.run()
            world.check()
            hits, cases = hits + world.principal.hit, cases + 1
    assert 0.4 * cases < hits < 0.9 * cases


@pytest.mark.parametrize(("workers", "speeds"), [(3, (1, 1, 1)), (3, (9, 1, 1)), (8, (50, 1, 1, 1, 1, 1, 1, 0))])
def test_rounds_of_workers_that_do_not_change(workers: int, speeds: tuple[int, ...]) -> None:
    """The bound without changes, and how far below it a run is."""
    attempts = [Attempt(1, number, number) for number in range(workers)]
    principal = Principal(100_000, tau_seconds=0)
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
    assert principal.round <= most_rounds(100_000, workers, 0)


def test_figure_6() -> None:
    """The paper's run of "KeywordSearch producing 15 tuples", message by message."""
    principal = Principal(15, tau_seconds=0.1)
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


def test_the_last_step_of_a_sum_is_of_one() -> None:
    principal = Principal(100, tau_seconds=0, summed=True)
    assert principal.joined(A, B) == (Target(A, 1, 50), Target(B, 1, 50))
    principal.reported(Reported(A, 1, 40))
    assert principal.reported(Reported(B, 1, 0)) == (Target(A, 2, 30), Target(B, 2, 30)), "their next values are above"
    for round_ in (2, 3):
        principal.reported(Reported(A, round_, 0))
        orders = principal.reported(Reported(B, round_, 0))
    assert orders == (Target(A, 4, 60, last=True),)
    assert principal.joined(C) == (), "nobody runs beside it"
    assert principal.reported(Reported(A, 4, 75)) == (Hit(115),)


def test_the_others_in_time_save_the_question() -> None:
    principal = Principal(15, TAU)
    principal.joined(A, B, C)
    assert principal.reported(Reported(B, 1, 5)) == (Wait(1, 0.005),)
    assert principal.reported(Reported(A, 1, 5)) == ()
    assert principal.reported(Reported(C, 1, 5)) == (Hit(15),)
    assert principal.waited(1) == () and principal.lost(A) == () and principal.joined(Attempt(1, 0, 9)) == ()


def test_what_a_lost_worker_reported_does_not_count() -> None:
    principal = Principal(4, tau_seconds=0)
    principal.joined(A, B)
    principal.reported(Reported(A, 1, 2, finished=True))
    assert principal.total == 2 and principal.lost(A) == () and principal.total == 0
    assert principal.joined(again := Attempt(1, 0, 7)) == (Ask(B, 1),)
    assert principal.joined(A) == () and principal.reported(Reported(A, 1, 2)) == ()
    assert principal.reported(Reported(B, 1, 2)) == (Target(again, 2, 1), Target(B, 2, 1))


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: condition(" "), "Found no condition"),
        (
            lambda: condition("count(*) < 5"),
            r"Found the condition 'count\(\*\) < 5', expected of all rows a count or sum",
        ),
        (lambda: condition("count(*) = 0"), "above 0"),
        (lambda: condition("count(*) = 1.5"), "count"),
        (lambda: condition("count(*) = 1__0"), "count"),
        (lambda: condition("sum(x) > 5"), r"count\(\*\) = 100000"),
        (lambda: condition("avg(x) > 5"), "expected of all rows a count"),
        (lambda: condition("count(*) = 1" + "0" * 5000), "above 0"),
        (lambda: Principal(5, TAU).reported(Reported(A, 1, 1)), "expected one that joined"),
    ],
)
def test_what_is_refused(make: Callable[[], Any], found: str) -> None:
    with pytest.raises(ControlError, match=found) as raised:
        make()
    assert "Hint: " in str(raised.value)


@pytest.mark.parametrize("produced", [6, -1])
def test_a_report_that_cannot_be_changes_nothing(produced: int) -> None:
    principal = Principal(5, TAU)
    principal.joined(A)
    with pytest.raises(ControlError, match=r"expected at most its target of 5. Hint: a worker stands before"):
        principal.reported(Reported(A, 1, produced))
    assert principal.total == 0
    assert principal.reported(Reported(A, 1, 5)) == (Hit(5),)


def test_conditions() -> None:
    assert condition("count(*) = 1_000") == condition(" Count( 1 ) >= 1000") == Condition(target=1000)
    assert condition("SUM( a * (b + 1)) >= 10") == Condition("a * (b + 1)", 10)
    assert condition("counted > 5") == Condition(sql="counted > 5")
