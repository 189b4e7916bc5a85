"""Tests by chance, in a box of time: what is drawn depends on the commit; what once failed is tried always."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAILED = ROOT / "tests" / "fixtures" / "seeds.json"


@functools.cache
def commit() -> str:
    """CHANCE_SEED, to draw as another commit did, else the commit that is tested."""
    given = os.environ.get("CHANCE_SEED")
    asked = ["git", "-c", f"safe.directory={ROOT}", "rev-parse", "HEAD"]
    return given or subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def seed_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{commit()} {name}".encode()).digest()[:6])


def one_in(name: str, parts: int) -> bool:
    """Whether this commit draws `name`, as it does with one name of `parts`."""
    return seed_of(name) % parts == 0


def drawn(names: Iterable[str], parts: int) -> list[str]:
    """One in `parts` of the names, at least one, in their order; others for other commits. All with CHANCE_ALL=1."""
    every = list(names)
    if os.environ.get("CHANCE_ALL"):
        return every
    taken = set(sorted(every, key=seed_of)[: -(-len(every) // parts)])
    return [name for name in every if name in taken]


def failed(name: str) -> list[int]:
    found: list[int] = json.loads(FAILED.read_text())[name]
    return found


def seeds(name: str, at_least: int, seconds: float) -> Iterator[int]:
    """The fixtures' seeds, then the commit's: so many, and more while time is left; CHANCE_TIMES=6: six times both."""
    times = float(os.environ.get("CHANCE_TIMES", "1"))
    end = time.monotonic() + seconds * times
    yield from failed(name)
    first = seed_of(name)
    drawn = 0
    while drawn < at_least * times or time.monotonic() < end:
        yield first + drawn
        drawn += 1


@contextmanager
def trying(name: str, seed: int) -> Iterator[None]:
    """What fails is said with its seed."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"commit {commit()}: add {seed} to {name!r} in {FAILED.relative_to(ROOT)}, and fix it")
        raise
