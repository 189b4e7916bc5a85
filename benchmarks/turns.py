"""Several driver processes that take turns: one works while the others wait, each is warm, none knows of the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.measure import paired_ratio
from examples.data import tables
from examples.demo import ROOT, plugin_confs
from tests.harness.session import BASE

T = TypeVar("T")
Answer = dict[str, Any]
Answers = dict[Any, dict[str, list[Answer]]]
"""By item and side, one of each round."""
Request = Callable[[Any, str, int], Answer]
"""Task and arguments, of an item, a side and a round."""


class DriverFailed(RuntimeError):
    """A driver process ended before it answered; the message ends with the last lines of its log."""


class Driver:
    """A Spark application in a process of its own."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log
        self.versions: dict[str, str] = {}

    def start(self, confs: Mapping[str, str]) -> None:
        self.versions = self._answer(json.dumps(dict(confs)))

    def ask(self, task: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a task of `benchmarks.driver`."""
        answer: dict[str, Any] = self._answer(json.dumps({"task": task, **arguments}))
        return answer

    def register(self, folder: Path) -> None:
        """A temporary view for every table of a folder, replacing earlier ones."""
        self.ask("register", tables={name: str(file) for name, file in tables(folder).items()})

    def set(self, confs: Mapping[str, str]) -> None:
        """Settings of its session."""
        for key, value in confs.items():
            self.ask("query", text=f"SET {key}={value}")

    def counter(self, name: str) -> int:
        """A running total of the plugin's."""
        return int(self.ask("status")[f"counter.{name}"])

    def _answer(self, line: str) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        answer = ""
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            pass
        if not answer:
            tail = self._log.read_text(errors="replace")[-4000:]
            raise DriverFailed(f"driver {self.name!r} ended, expected an answer to {line[:200]}\n{tail}")
        return json.loads(answer)


@contextmanager
def drivers(
    folder: Path, confs: Mapping[str, Mapping[str, str] | None], common: Mapping[str, str] = {}
) -> Iterator[dict[str, Driver]]:
    """A started driver for every name: plain Spark without our jar for None, else with the plugin and these confs.

    Every plugin has a fresh store below `folder`.

    :param common: confs of all drivers, the plain ones too
    """
    with ExitStack() as stack:
        found = {}
        for name, own in confs.items():
            driver = stack.enter_context(process(name, folder))
            plugin = {} if own is None else plugin_confs(folder / f"recycle-{name}") | dict(own)
            driver.start(BASE | dict(common) | plugin)
            found[name] = driver
        for name, own in confs.items():
            if own is not None and (status := found[name].ask("status"))["active"] != "true":
                raise DriverFailed(f"driver {name!r} runs without the plugin: {status['reason']}")
        yield found


@contextmanager
def process(
    name: str, folder: Path, module: str = "benchmarks.driver", python: str = sys.executable
) -> Iterator[Driver]:
    """A process that does what it is told in lines, not yet started."""
    log = folder / f"{name}.log"
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with log.open("w") as errors:
        process = subprocess.Popen(
            [python, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=environment,
        )
    try:
        yield Driver(name, process, log)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def in_turn(names: Sequence[T], number: int) -> list[T]:
    """The names, another one first in each round.

    >>> in_turn(["plain", "plugin"], 0), in_turn(["plain", "plugin"], 1)
    (['plain', 'plugin'], ['plugin', 'plain'])
    """
    first = number % len(names)
    return [*names[first:], *names[:first]]


@contextmanager
def sides(
    confs: Mapping[str, Mapping[str, str] | None], folder: Path | None = None, common: Mapping[str, str] = {}
) -> Iterator[dict[str, Driver]]:
    """A started driver for each side, with the tables as views."""
    with (
        tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name,
        drivers(Path(name), confs, common) as found,
    ):
        for driver in found.values() if folder is not None else ():
            driver.register(folder)
        yield found


def asked(
    found: Mapping[str, Driver],
    items: Iterable[Any],
    rounds: int,
    request: Request,
    warm_ups: int = 0,
    before: Callable[[int], None] = lambda number: None,
    after: Callable[[], Answer] = dict,
) -> Answers:
    """What each side answers to each item; another side is first for each item and in each round.

    :param warm_ups: rounds with negative numbers, which are not among the answers
    :param before: called before every round
    :param after: what else is to be known of an item when all sides have answered
    """
    answers: Answers = {item: {side: [] for side in found} for item in items}
    for number in range(-warm_ups, rounds):
        before(number)
        for place, item in enumerate(answers):
            turn = in_turn(list(found), number + place)
            given = {side: found[side].ask(**request(item, side, number)) for side in turn}
            known = after()
            for side, answer in given.items() if number >= 0 else ():
                answers[item][side].append(answer | known)
    return answers


def texts(task: str, queries: Mapping[Any, str], **more: Any) -> Request:
    return lambda item, side, number: {"task": task, "text": queries[item], **more}


def values(answers: Answers, item: Any, side: str, key: str = "seconds") -> list[Any]:
    return [answer[key] for answer in answers[item][side]]


def ratio(answers: Answers, items: Iterable[Any], above: str, below: str, key: str = "seconds") -> float:
    """Of the sums over the items, within each round."""
    chosen = list(items)
    ours, theirs = (
        [sum(row) for row in zip(*(values(answers, item, side, key) for item in chosen), strict=True)]
        for side in (above, below)
    )
    return paired_ratio(ours, theirs)


def ratios(answers: Answers, above: str, below: str, key: str = "seconds") -> dict[Any, float]:
    return {item: ratio(answers, [item], above, below, key) for item in answers}


def differing(answers: Answers, ties: bool = False) -> list[Any]:
    """Items whose rows differ between sides; with `ties` over a LIMIT's edge, not where two plain runs do as well."""

    def differ(each: Mapping[str, list[Answer]]) -> bool:
        digests = [[answer["digest"] for answer in all_] for all_ in each.values()]
        return any(len(set(row)) > 1 for row in zip(*digests, strict=False)) and not (ties and len(set(digests[0])) > 1)

    return [item for item, each in answers.items() if differ(each)]


def all_seconds(answers: Answers) -> dict[Any, dict[str, list[float]]]:
    return {item: {side: values(answers, item, side) for side in each} for item, each in answers.items()}
