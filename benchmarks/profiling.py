"""What profiling costs, as in figure 6 of Piglet's paper: weather, taxi trips and events, three scripts each.

Sides take turns, each in a process of its own: plain Spark, the plugin that only records what ran (mode `observe`), the
plugin as it is by default, and plain Spark once more, which tells how far two processes with the same work are apart.
Between rounds the files get a new modification time, so that each round is a first run: nothing is there to be read.

The data are generated with a fixed seed where they are missing. At scale 1: 10 million readings of 5,000 stations, 8
million taxi trips between 38,000 blocks, 12 million events of 200 actors.

python -m benchmarks.profiling [--scale 1] [--rounds 3] [--parts weather taxi events]
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main
from benchmarks.turns import Answers, all_seconds, asked, differing, ratio, ratios, sides, texts, values
from examples import data

SEED = 6
SIDES: dict[str, dict[str, str] | None] = {
    "plain": None,
    "profile": {"spark.regions.mode": "observe"},
    "default": {},
    "again": None,
}
DONE = ("stores", "loads")
"""Nothing of it where only profiled."""
MEASURES = ("temperature", "pressure", "humidity", "wind", "rain", "visibility")
STATIONS, BLOCKS, CODES, ACTORS, DAYS = 5_000, 38_000, 300, 200, 30
START = 1_124_755_200
"""Of the readings, in seconds of the epoch: August 23, 2005, when the hurricane formed."""

SCRIPTS = {
    "weather": {
        "W1": """
            SELECT state, kind, CAST(at / 3600 AS int) AS hour, count(*) AS n, avg(value) AS mean, max(value) AS most
            FROM readings JOIN stations USING (station)
            WHERE kind IN ('wind', 'pressure', 'rain', 'visibility') AND value > 20
            GROUP BY state, kind, CAST(at / 3600 AS int)""",
        "W2": """
            WITH daily AS (
                SELECT floor(lon) AS x, floor(lat) AS y, CAST(at / 86400 AS int) AS day, kind, avg(value) AS mean,
                    max(value) AS most
                FROM readings JOIN stations USING (station) GROUP BY ALL)
            SELECT w.x, w.y, w.day, w.most, p.mean FROM daily w JOIN daily p USING (x, y, day)
            WHERE w.kind = 'wind' AND p.kind = 'pressure' AND w.most > p.mean""",
        "W3": """
            WITH usual AS (
                SELECT station, kind, avg(value) AS mean, stddev(value) AS spread
                FROM readings WHERE kind IN ('temperature', 'humidity', 'wind') GROUP BY station, kind)
            SELECT state, kind, count(*) AS n, max(abs(value - mean)) AS furthest
            FROM readings JOIN usual USING (station, kind) JOIN stations USING (station)
            WHERE abs(value - mean) > 2 * spread GROUP BY state, kind""",
    },
    "taxi": {
        "T1": """
            SELECT dayofweek(picked_up) AS weekday, hour(picked_up) AS hour, passengers, count(*) AS trips,
                avg(tip / fare) AS tip, sum(distance) AS miles, stddev(fare) AS spread
            FROM trips WHERE fare > 3 AND distance > 0.2 GROUP BY ALL""",
        "T2": """
            SELECT a.borough, b.borough AS into, count(*) AS trips, avg(fare / distance) AS per_mile, max(tip) AS tip
            FROM trips
            JOIN blocks a ON floor(from_x * 200) = a.x AND floor(from_y * 200) = a.y
            JOIN blocks b ON floor(to_x * 200) = b.x AND floor(to_y * 200) = b.y
            WHERE distance > 0.2 GROUP BY ALL""",
        "T3": """
            SELECT floor(from_x * 40) AS x, floor(from_y * 40) AS y, floor(to_x * 40) AS into_x,
                floor(to_y * 40) AS into_y, count(*) AS trips, avg(fare) AS fare
            FROM trips WHERE hour(picked_up) BETWEEN 6 AND 20 GROUP BY ALL
            ORDER BY trips DESC, x, y, into_x, into_y LIMIT 100""",
    },
    "events": {
        "G1": """
            SELECT actor, year(day) AS year, month(day) AS month, count(*) AS events, sum(mentions) AS mentions,
                avg(tone) AS tone
            FROM events GROUP BY ALL""",
        "G2": """
            SELECT actor, target, root, count(*) AS events, sum(mentions * weight) AS weight
            FROM events JOIN codes USING (code) WHERE root >= 14 AND tone < 0 GROUP BY ALL HAVING count(*) > 5
            ORDER BY weight, actor, target, root LIMIT 1000""",
        "G3": """
            WITH cells AS (
                SELECT floor(x / 10) AS x, floor(y / 10) AS y, date_trunc('week', day) AS week, count(*) AS events,
                    avg(tone) AS tone
                FROM events GROUP BY ALL),
            usual AS (SELECT x, y, avg(events) AS events FROM cells GROUP BY x, y)
            SELECT x, y, week, cells.events, tone FROM cells JOIN usual USING (x, y)
            WHERE cells.events > 1.5 * usual.events""",
    },
}
PARTS = tuple(SCRIPTS)


def tables(part: str, scale: float, root: Path) -> Path:
    """The folder of a part's tables, one Parquet file each; generated on first use."""
    return data.finished(root / f"{part}-{scale:g}", partial(_generate, part, scale))


def _generate(part: str, scale: float, folder: Path) -> None:
    import numpy
    import pyarrow
    from pyarrow import parquet

    chance = numpy.random.default_rng([SEED, PARTS.index(part)])
    for name, columns in {"weather": _weather, "taxi": _taxi, "events": _events}[part](chance, scale).items():
        parquet.write_table(pyarrow.table(columns), folder / f"{name}.parquet", row_group_size=500_000)


def _weather(chance: Any, scale: float) -> dict[str, dict[str, Any]]:
    count = int(10_000_000 * scale)
    kind = chance.integers(0, len(MEASURES), count, dtype="int8")
    readings = {
        "station": chance.integers(0, STATIONS, count, dtype="int32"),
        "at": START + chance.integers(0, 86_400 * DAYS, count),
        "kind": _words(kind, MEASURES),
        "value": chance.normal(20.0 + 5 * kind, 10.0).round(1),
    }
    stations = {
        "station": range(STATIONS),
        "state": [f"S{number}" for number in chance.integers(0, 50, STATIONS)],
        "lon": chance.uniform(-98, -75, STATIONS),
        "lat": chance.uniform(24, 37, STATIONS),
    }
    return {"readings": readings, "stations": stations}


def _taxi(chance: Any, scale: float) -> dict[str, dict[str, Any]]:
    """A city of one degree by one; most trips are short, and begin near its centre."""
    import numpy

    count = int(8_000_000 * scale)
    begin = numpy.clip(chance.normal(0.5, 0.12, (2, count)), 0, 0.999)
    end = numpy.clip(begin + chance.normal(0, 0.03, (2, count)), 0, 0.999)
    distance = (70 * numpy.hypot(*(end - begin))).round(2)
    fare = (2.5 + 2.5 * distance + chance.exponential(2.0, count)).round(2)
    seconds = START + chance.integers(0, 86_400 * 365, count)
    trips = {
        "picked_up": (1_000_000 * seconds).astype("datetime64[us]"),
        "from_x": begin[0], "from_y": begin[1], "to_x": end[0], "to_y": end[1],
        "passengers": chance.integers(1, 7, count, dtype="int8"),
        "distance": distance,
        "fare": fare,
        "tip": (fare * chance.beta(2, 8, count)).round(2),
    }  # fmt: skip
    cells = numpy.sort(chance.choice(200 * 200, BLOCKS, replace=False))
    blocks = {
        "block": range(BLOCKS),
        "x": cells // 200,
        "y": cells % 200,
        "borough": [f"B{at // 8000}" for at in cells],
    }
    return {"trips": trips, "blocks": blocks}


def _events(chance: Any, scale: float) -> dict[str, dict[str, Any]]:
    """Few actors have most of the events."""
    import numpy

    count = int(12_000_000 * scale)
    names = [f"A{number:03}" for number in range(ACTORS)]
    actors = (ACTORS * chance.beta(0.6, 3.0, (2, count))).astype("int16")
    events = {
        "day": numpy.datetime64("2013-01-01") + chance.integers(0, 4 * 365, count),
        "actor": _words(actors[0], names),
        "target": _words(actors[1], names),
        "code": chance.integers(0, CODES, count, dtype="int16"),
        "mentions": chance.geometric(0.2, count).astype("int32"),
        "tone": chance.normal(-1.0, 3.0, count).round(2),
        "x": chance.uniform(-180, 180, count).round(3),
        "y": numpy.clip(chance.normal(30, 20, count), -90, 90).round(3),
    }
    codes = {
        "code": range(CODES),
        "root": numpy.arange(CODES) // 15 + 1,
        "weight": chance.uniform(-10, 10, CODES).round(1),
    }
    return {"events": events, "codes": codes}


def _words(numbers: Any, words: Sequence[str]) -> Any:
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(numbers, list(words)).cast(pyarrow.string())


def run(options: Options, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    answers: Answers = {}
    done: dict[str, dict[str, dict[str, int]]] = {}
    versions: dict[str, str] = {}
    for part in parts:
        with (
            tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name,
            sides(SIDES) as four,
        ):
            folder = Path(shutil.copytree(tables(part, options.scale, options.data), Path(name) / part))

            def renew(number: int, folder: Path = folder, four: Any = four) -> None:
                for file in folder.iterdir():
                    os.utime(file)
                for driver in four.values():
                    driver.register(folder)

            answers |= asked(four, SCRIPTS[part], options.rounds, texts("query", SCRIPTS[part]), 1, renew)
            ours = {side: four[side] for side, confs in SIDES.items() if confs is not None}
            done[part] = {side: {each: driver.counter(each) for each in DONE} for side, driver in ours.items()}
            versions = four["plain"].versions
        if any(done[part]["profile"].values()):
            raise RuntimeError(f"Found {done[part]['profile']} in mode observe, expected nothing.")
    return {
        **{f"{side}_over_plain": ratio(answers, answers, side, "plain") for side in SIDES if side != "plain"},
        "profile_over_plain_settled": ratio(answers, answers, "profile", "plain", "seconds_settled"),
        "scripts": {
            script: {side: round(median(values(answers, script, side)), 2) for side in SIDES} for script in answers
        },
        "ratios": {side: ratios(answers, side, "plain") for side in SIDES if side != "plain"},
        "differing": differing(answers),
        "done_by_plugin": done,
        "versions": versions,
        "seconds_all": all_seconds(answers),
    }


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given, others = parser.parse_known_args()
    benchmark_main("profiling", lambda options: run(options, given.parts), default_rounds=3, arguments=others)


if __name__ == "__main__":
    main()
