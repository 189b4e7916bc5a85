"""Python functions of groups that work long on few bytes: plain Spark without and with adaptive execution, and ours.

Adaptive execution puts small partitions together by their bytes, so that a table of a hundred kilobytes is one task,
however long the function takes. spark_regions knows from the second run on what each partition took.

python -m benchmarks.slow_groups [--scale 1] [--rounds 3]
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.skew import SIDES
from benchmarks.turns import drivers, in_turn

GROUPS = 200
MILLIS = 40
WORK = {
    "even": "1",
    "one_slow": f"IF(k = 0, {GROUPS // 3}, 1)",
    "zipf": f"{GROUPS} / 6 / (1 + k)",
}
"""Of a group, in units of `MILLIS`, by its key."""
RATIOS = ("first_ours_over_aqe", "later_ours_over_aqe", "later_ours_over_plain")


def run(options: Options) -> dict[str, Any]:
    found: dict[str, Any] = {}
    differing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder, drivers(Path(folder), SIDES) as three:
        for name, driver in three.items():
            driver.set(
                {"spark.sql.adaptive.enabled": str(name != "plain").lower(), "spark.sql.shuffle.partitions": "32"}
            )
        for name, work in WORK.items():
            rows = f"SELECT id % {GROUPS} AS k, id AS n FROM range({GROUPS * 50})"
            text = f"SELECT k, n, double({work}) AS work FROM ({rows})"
            answers: dict[str, list[dict[str, Any]]] = {side: [] for side in three}
            # The first is a warm-up, and what the others are predicted by.
            for number in range(options.rounds + 1):
                for side in in_turn(list(three), number):
                    answers[side].append(three[side].ask("groups", text=text, millis=MILLIS * options.scale))
            if len({answer["digest"] for each in answers.values() for answer in each}) > 1:
                differing.append(name)
            seconds = {side: [answer["seconds"] for answer in each] for side, each in answers.items()}
            later = {side: median(each[1:]) for side, each in seconds.items()}
            found[name] = {
                "seconds_first": {side: round(each[0], 2) for side, each in seconds.items()},
                "seconds_later": {side: round(each, 2) for side, each in later.items()},
                "first_ours_over_aqe": round(seconds["ours"][0] / seconds["aqe"][0], 3),
                "later_ours_over_aqe": paired_ratio(seconds["ours"][1:], seconds["aqe"][1:]),
                "later_ours_over_plain": paired_ratio(seconds["ours"][1:], seconds["plain"][1:]),
            }
        versions = three["ours"].versions
    ratios = {name: {work: each[name] for work, each in found.items()} for name in RATIOS}
    return {**ratios, "differing": differing, "versions": versions, "groups": found}


if __name__ == "__main__":
    benchmark_main("slow_groups", run, default_rounds=3)
