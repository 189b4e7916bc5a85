"""Four scripts each over sensors, trips and events (tables of `benchmarks.profiling`), in steps as they are developed.

A script begins with a load and a filter, and each step adds an operator or a few (Piglet, fig. 8). The scripts of a
part differ in filters and grouping from the first steps on, so that only what lies below is common.
"""

from __future__ import annotations

from collections.abc import Mapping

STEPS = {
    "weather": (
        "SELECT station, at, kind, value FROM readings WHERE kind IN ({kinds}) AND value > {least}",
        "SELECT station, kind, CAST(at / {bucket} AS int) AS slot, value, value * value AS square FROM {below}",
        "SELECT b.*, state, floor(lon) AS x, floor(lat) AS y FROM {below} b JOIN stations USING (station)",
        "SELECT * FROM {below} WHERE y >= 26",
        "SELECT {keys}, kind, slot, count(*) AS n, avg(value) AS mean, max(value) AS most, sum(square) AS squares"
        " FROM {below} GROUP BY ALL",
        "SELECT * FROM {below} WHERE n > 3",
        "SELECT *, most - mean AS above FROM {below}",
        "SELECT *, rank() OVER (PARTITION BY kind ORDER BY above DESC, {keys}, slot) AS place FROM {below}",
        "SELECT * FROM {below} WHERE place <= 5000",
        "SELECT {keys}, count(*) AS slots, max(above) AS above, min(place) AS place FROM {below} GROUP BY ALL",
        "SELECT * FROM {below} WHERE slots > 1",
    ),
    "taxi": (
        "SELECT * FROM trips WHERE fare > {least} AND distance > 0.2",
        "SELECT dayofweek(picked_up) AS weekday, hour(picked_up) AS hour, from_x, from_y, to_x, to_y, passengers,"
        " distance, tip / fare AS share, fare / distance AS per_mile FROM {below}",
        "SELECT b.*, a.borough FROM {below} b JOIN blocks a ON floor(from_x * 200) = a.x AND floor(from_y * 200) = a.y",
        "SELECT b.*, a.borough AS into FROM {below} b"
        " JOIN blocks a ON floor(to_x * 200) = a.x AND floor(to_y * 200) = a.y",
        "SELECT borough, into, {keys}, count(*) AS trips, avg(share) AS share, max(per_mile) AS per_mile"
        " FROM {below} GROUP BY ALL",
        "SELECT * FROM {below} WHERE trips > 5",
        "SELECT *, trips / sum(trips) OVER (PARTITION BY borough) AS part FROM {below}",
        "SELECT * FROM {below} WHERE part > 0.0005",
        "SELECT *, rank() OVER (PARTITION BY borough ORDER BY trips DESC, into, {keys}) AS place FROM {below}",
        "SELECT * FROM {below} WHERE place <= 50",
        "SELECT borough, into, sum(trips) AS trips, max(per_mile) AS per_mile FROM {below} GROUP BY ALL",
    ),
    "events": (
        "SELECT day, actor, target, code, mentions, tone, x, y FROM events WHERE tone {tone}",
        "SELECT date_trunc('{unit}', day) AS at, actor, target, code, mentions, tone, floor(x / 10) AS x,"
        " floor(y / 10) AS y FROM {below}",
        "SELECT b.*, root, weight FROM {below} b JOIN codes USING (code)",
        "SELECT * FROM {below} WHERE root >= {root}",
        "SELECT {keys}, at, count(*) AS events, sum(mentions) AS mentions, sum(mentions * weight) AS weight,"
        " avg(tone) AS tone FROM {below} GROUP BY ALL",
        "SELECT *, avg(events) OVER (PARTITION BY {keys}) AS usual FROM {below}",
        "SELECT * FROM {below} WHERE events > 1.2 * usual",
        "SELECT *, rank() OVER (PARTITION BY at ORDER BY events DESC, {keys}) AS place FROM {below}",
        "SELECT * FROM {below} WHERE place <= 20",
        "SELECT {keys}, count(*) AS times, sum(events) AS events, min(place) AS place FROM {below} GROUP BY ALL",
        "SELECT * FROM {below} WHERE times > 2",
    ),
}
VARIANTS: Mapping[str, tuple[Mapping[str, object], ...]] = {
    "weather": (
        {"kinds": "'wind', 'pressure'", "least": 20, "bucket": 3600, "keys": "state"},
        {"kinds": "'rain', 'visibility'", "least": 25, "bucket": 86_400, "keys": "x, y"},
        {"kinds": "'temperature', 'humidity', 'wind'", "least": 10, "bucket": 21_600, "keys": "state"},
        {"kinds": "'pressure', 'visibility'", "least": 30, "bucket": 7200, "keys": "x, y"},
    ),
    "taxi": (
        {"least": 3, "keys": "weekday"},
        {"least": 5, "keys": "hour"},
        {"least": 8, "keys": "passengers"},
        {"least": 4, "keys": "weekday, hour"},
    ),
    "events": (
        {"tone": "< 0", "unit": "week", "root": 5, "keys": "actor"},
        {"tone": "> -2", "unit": "month", "root": 10, "keys": "x, y"},
        {"tone": "BETWEEN -5 AND 5", "unit": "month", "root": 2, "keys": "actor, target"},
        {"tone": "< 1", "unit": "quarter", "root": 8, "keys": "target"},
    ),
}


def steps(part: str, variant: int) -> list[str]:
    """The script after each of its steps, each with its first twenty rows."""
    given = VARIANTS[part][variant]
    parts = [
        f"s{number} AS ({text.format(below=f's{number - 1}', **given)})" for number, text in enumerate(STEPS[part])
    ]
    return [
        f"WITH {', '.join(parts[: number + 1])} SELECT * FROM s{number} ORDER BY ALL LIMIT 20"
        for number in range(len(parts))
    ]


def jobs() -> dict[str, str]:
    """All scripts cut into their steps: 132 small jobs, by name."""
    return {
        f"{part} {variant} step {number}": text
        for part, variants in VARIANTS.items()
        for variant in range(len(variants))
        for number, text in enumerate(steps(part, variant))
    }
