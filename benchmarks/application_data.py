"""Inputs of the applications of `benchmarks.applications`: made of a fixed seed, once, and kept."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy
import pyarrow
from pyarrow import parquet

from examples.data import finished

SYLLABLES = (
    "an",
    "bel",
    "cor",
    "da",
    "el",
    "fi",
    "gra",
    "ho",
    "in",
    "jo",
    "ka",
    "lu",
    "ma",
    "ne",
    "or",
    "pe",
    "ro",
    "sa",
)
CITIES = tuple(f"city {number}" for number in range(60))


def people(root: Path, scale: float) -> Path:
    """30,000 · scale people, of whom every second stands there once more with errors."""
    return finished(root / f"people-{scale:g}", lambda folder: _write(folder / "people.parquet", _people(scale)))


def accounts(root: Path, scale: float) -> Path:
    """400,000 · scale accounts as of two days: most are the same, some differ, some are on one day only."""

    def write(folder: Path) -> None:
        yesterday, today = _accounts(scale)
        _write(folder / "yesterday.parquet", yesterday)
        _write(folder / "today.parquet", today)

    return finished(root / f"accounts-{scale:g}", write)


def _write(file: Path, columns: dict[str, Any]) -> None:
    parquet.write_table(pyarrow.table(columns), file, row_group_size=50_000)


def _people(scale: float) -> dict[str, Any]:
    random = numpy.random.default_rng(1)
    count = int(30_000 * scale)
    names = [a + b for a in SYLLABLES for b in SYLLABLES]
    families = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES[:6]]

    def chosen(values: list[str]) -> list[str]:
        """A few of them are frequent."""
        return [values[int(i)] for i in len(values) * random.random(count) ** 2]

    born = [str(date(1940, 1, 1) + timedelta(days=int(day))) for day in random.integers(0, 25_000, count)]
    cities = random.integers(0, len(CITIES), count)
    rows = list(zip(chosen(names), chosen(families), born, [CITIES[i] for i in cities], strict=True))
    rows += [_misspelt(row, random) for row in rows[::2]]
    order = random.permutation(len(rows))
    first, family, births, city = zip(*(rows[i] for i in order), strict=True)
    return {
        "unique_id": list(range(len(rows))),
        "first_name": list(first),
        "surname": list(family),
        "dob": list(births),
        "city": list(city),
        "email": [f"{a}.{b}@example.org" for a, b in zip(first, family, strict=True)],
    }


def _misspelt(row: tuple[str, ...], random: numpy.random.Generator) -> tuple[str, ...]:
    first, family, born, city = row
    kind = int(random.integers(0, 4))
    place = int(random.integers(0, len(first) - 1))
    if kind == 0:
        first = first[:place] + first[place + 1] + first[place] + first[place + 2 :]
    elif kind == 1:
        family = family[:-1]
    elif kind == 2:
        born = f"{born[:8]}{int(random.integers(1, 29)):02d}"
    else:
        city = CITIES[int(random.integers(0, len(CITIES)))]
    return first, family, born, city


def _accounts(scale: float) -> tuple[dict[str, Any], dict[str, Any]]:
    random = numpy.random.default_rng(2)
    count = int(400_000 * scale)
    number = numpy.arange(count)
    before = {
        "account": number,
        "holder": numpy.char.add("holder ", (number // 3).astype(str)),
        "branch": random.integers(0, 300, count),
        "opened": random.integers(0, 9000, count),
        **{f"balance_{i}": numpy.round(random.normal(1000, 300, count), 2) for i in range(6)},
        **{f"state_{i}": numpy.char.add("state ", random.integers(0, 9, count).astype(str)) for i in range(4)},
    }
    after = {name: values.copy() for name, values in before.items()}
    for i in range(6):
        changed = random.random(count) < 0.01 * (i + 1)
        after[f"balance_{i}"][changed] += 1.25
    for i in range(4):
        after[f"state_{i}"][random.random(count) < 0.005] = "closed"
    keep_before, keep_after = random.random(count) < 0.99, random.random(count) < 0.98
    return (
        {name: values[keep_before] for name, values in before.items()},
        {name: values[keep_after] for name, values in after.items()},
    )
