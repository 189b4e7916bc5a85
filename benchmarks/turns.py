"""Several driver processes that take turns: one works while the others wait, each is warm, none knows of the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from examples.data import tables
from examples.demo import ROOT, plugin_confs
from tests.harness.session import BASE

T = TypeVar("T")


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
            driver = stack.enter_context(_process(name, folder))
            plugin = {} if own is None else plugin_confs(folder / f"recycle-{name}") | dict(own)
            driver.start(BASE | dict(common) | plugin)
            found[name] = driver
        for name, own in confs.items():
            if own is not None and (status := found[name].ask("status"))["active"] != "true":
                raise DriverFailed(f"driver {name!r} runs without the plugin: {status['reason']}")
        yield found


@contextmanager
def _process(name: str, folder: Path) -> Iterator[Driver]:
    log = folder / f"{name}.log"
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.driver"],
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
