"""Three applications a day hand rows to each other as files, and every path is new each day.

python -m benchmarks.pipeline pipeline|growing_pipeline [--scale 1] [--rounds 1]

The sources stay as they are, as on a day on which a pipeline runs again, or a file of lines is added each day. Plain
Spark and the plugin take turns, stage by stage; the plugin's store is empty on the first day of a round.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from benchmarks.measure import Options, benchmarks_main
from benchmarks.pipeline_job import STAGES
from benchmarks.turns import in_turn
from examples import data
from examples.demo import LAPTOP, ROOT, differing_reports, effects, plugin_confs, submit

DAYS = (1, 2, 3)
SIDES = ("plain", "plugin")


def pipeline(options: Options) -> dict[str, Any]:
    """`_days` over the same files each day."""
    return _days(options, grows=False)


def growing_pipeline(options: Options) -> dict[str, Any]:
    """`_days` over what was there, and one more file of lines each day: a hundredth of them."""
    return _days(options, grows=True)


def add_lines(tables: Path, target: Path, day: int) -> None:
    """The files of a day beside those of the days before: 98 of a hundred lines, then one more each day."""
    lines = pq.read_table(tables / "lineitem.parquet")
    ends = [0, *(len(lines) * (97 + each) // 100 for each in DAYS)]
    folder = target / "lineitem.parquet"
    if day == DAYS[0]:
        folder.mkdir(parents=True)
        for name in ("orders", "customer"):
            (target / f"{name}.parquet").symlink_to(tables / f"{name}.parquet")
    pq.write_table(lines.slice(ends[day - 1], ends[day] - ends[day - 1]), folder / f"day-{day}.parquet")


def _days(options: Options, grows: bool) -> dict[str, Any]:
    """Seconds of each day's three applications over plain Spark's, of the whole processes and of their writes."""
    tables = data.tpch(options.scale, options.data)
    seconds: dict[str, dict[tuple[int, str], list[float]]] = {of: defaultdict(list) for of in ("processes", "writes")}
    stages: dict[str, list[float]] = defaultdict(list)
    did: list[str] = []
    differing: list[str] = []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
            folder = Path(name)
            confs = {"plain": LAPTOP, "plugin": LAPTOP | plugin_confs(folder / "recycle")}
            for day in DAYS:
                sums = {side: [0.0, 0.0] for side in SIDES}
                if grows:
                    add_lines(tables, folder / "sources", day)
                source = dict.fromkeys(SIDES, folder / "sources" if grows else tables)
                for stage in STAGES:
                    for side in in_turn(SIDES, number + day):
                        target = folder / f"{side}-{number}-{day}-{stage}"
                        script = ROOT / "benchmarks" / "pipeline_job.py"
                        found = submit(script, [str(source[side]), str(target), stage], confs[side])
                        sums[side][0] += found.seconds
                        sums[side][1] += found.seconds_reports
                        stages[f"day {day} {stage} {side}"].append(round(found.seconds_reports, 2))
                        source[side] = target
                        if side == "plugin":
                            done = effects(folder / "recycle", found.log)
                            did.append(f"day {day} {stage}: stored {done.stored}, loaded {done.loaded}")
                    differing += [f"day {day}: {each}" for each in differing_reports(source["plain"], source["plugin"])]
                for side in SIDES:
                    seconds["processes"][day, side].append(sums[side][0])
                    seconds["writes"][day, side].append(sums[side][1])
    return {
        **{
            f"day_{day}_over_plain_{of}": median(
                ours / theirs for ours, theirs in zip(found[day, "plugin"], found[day, "plain"], strict=True)
            )
            for of, found in seconds.items()
            for day in DAYS
        },
        "differing": sorted(set(differing)),
        "done_by_plugin": did,
        "seconds_of_writes": stages,
        "seconds_of_processes": {f"day {day} {side}": each for (day, side), each in seconds["processes"].items()},
    }


if __name__ == "__main__":
    benchmarks_main("pipeline", {each.__name__: (each, 1) for each in (pipeline, growing_pipeline)})
