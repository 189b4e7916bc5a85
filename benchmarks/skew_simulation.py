"""Skew decisions on simulated workers: no Spark, no cluster, only recorded or generated task times and arithmetic.

python -m benchmarks.skew_simulation [--recorded FILE] [--rounds 20] [--out benchmarks/results]

(a) A stage of 960 tasks and 2,880 task-seconds on 48 and 480 workers: makespan plain, with adaptive execution, and with
the decision. Decided before the shuffle is written, on an earlier run: rows per key 10 % off, a summary of them merged
from 20 parts, loads fitted on its tasks. Replayed on the true rows and times. `--recorded FILE` replays stages of a run
instead: a JSON list of `skew.messages`.

(b) The thesis's experiment on adaptive τ (§15.6, fig. 39): fixed τ, τ adapted within the thesis's range of the standard
error, and τ adapted within the range derived from the loads.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any
from zlib import crc32

from rich.console import Console
from rich.table import Table

from benchmarks.measure import add_arguments, environment, timed
from spark_regions.skew.adapt import Adaptive, ErrorRange
from spark_regions.skew.boundaries import boundaries, weights
from spark_regions.skew.loads import TaskTime, fit
from spark_regions.skew.messages import stage_from_json
from spark_regions.skew.operators import JOINS, Operator
from spark_regions.skew.repair import repair
from spark_regions.skew.simulate import compare
from spark_regions.skew.sketch import HeavyHitters, capacity_for
from spark_regions.skew.stage import Costs, HeavyKey, Shuffle, Stage, heavy_keys
from spark_regions.skew.streaming import Control, Stream, run

WORKERS = (48, 480)
PARTITIONS, MAPS, SUMMARIES, KEYS = 960, 100, 20, 20_000
TASK_SECONDS = 2_880.0
ROWS_PER_SECOND = 500_000
ROW_BYTES = 100
DRIFT = 0.1
"""How far the rows of a key are off in the earlier run."""
STATE_RATIO = 0.02
"""Bytes of an aggregate's partial states by bytes of input."""
NOISE = 0.1
"""Standard deviation of the logarithm of a task's speed."""
OPERATORS = (
    Operator.INNER_JOIN,
    Operator.RIGHT_JOIN,
    Operator.FULL_JOIN,
    Operator.MERGEABLE_AGGREGATE,
    Operator.PARTITION_WINDOW,
    Operator.SORT,
    Operator.REPARTITION,
    Operator.GROUP_APPLY,
)
"""The skewed input is the left one; a right join is the case that adaptive execution does not split."""

# Census of 2020, in millions; §15.2 gives the tweets of three locations. See `tweets`.
POPULATION = {
    "Alabama": 5.02, "Alaska": 0.73, "Arizona": 7.15, "Arkansas": 3.01, "California": 39.54, "Colorado": 5.77,
    "Connecticut": 3.61, "Delaware": 0.99, "District of Columbia": 0.69, "Florida": 21.54, "Georgia": 10.71,
    "Hawaii": 1.46, "Idaho": 1.84, "Illinois": 12.81, "Indiana": 6.79, "Iowa": 3.19, "Kansas": 2.94, "Kentucky": 4.51,
    "Louisiana": 4.66, "Maine": 1.36, "Maryland": 6.18, "Massachusetts": 7.03, "Michigan": 10.08, "Minnesota": 5.71,
    "Mississippi": 2.96, "Missouri": 6.15, "Montana": 1.08, "Nebraska": 1.96, "Nevada": 3.10, "New Hampshire": 1.38,
    "New Jersey": 9.29, "New Mexico": 2.12, "New York": 20.20, "North Carolina": 10.44, "North Dakota": 0.78,
    "Ohio": 11.80, "Oklahoma": 3.96, "Oregon": 4.24, "Pennsylvania": 13.00, "Rhode Island": 1.10,
    "South Carolina": 5.12, "South Dakota": 0.89, "Tennessee": 6.91, "Texas": 29.15, "Utah": 3.27, "Vermont": 0.64,
    "Virginia": 8.63, "Washington": 7.71, "West Virginia": 1.79, "Wisconsin": 5.89, "Wyoming": 0.58,
    "Puerto Rico": 3.29, "Guam": 0.15, "Virgin Islands": 0.09, "American Samoa": 0.05, "Northern Mariana Islands": 0.05,
}  # fmt: skip
TWEETS = {"California": 26.0, "Illinois": 6.5, "Arizona": 3.8}
ALL_TWEETS = 180.0

TAUS = (10, 50, 100, 500, 1000, 1500, 1800, 2000)
MODES = {
    "fixed": lambda tau: Adaptive(tau, adjustments=0),
    "adapted within [98, 110]": lambda tau: Adaptive(tau, ErrorRange(98, 110), step=50, adjustments=3),
    "adapted, range derived": lambda tau: Adaptive(tau),
}


def distributions() -> dict[str, list[float]]:
    """Shares of the keys."""
    found = {"uniform": [1.0] * KEYS}
    for exponent in (0.8, 1.2, 2.0):
        found[f"zipf {exponent}"] = [rank**-exponent for rank in range(1, KEYS + 1)]
    found["one key 60 %"] = [0.6 * (KEYS - 1) / 0.4, *[1.0] * (KEYS - 1)]
    totals = {name: sum(values) for name, values in found.items()}
    return {name: [each / totals[name] for each in values] for name, values in found.items()}


def generated(cores: int, seed: int) -> Iterator[tuple[str, Stage, Stage]]:
    """Of every distribution and operator: the stage that the decision sees, and the one that runs."""
    for name, shares in distributions().items():
        random = Random(f"{name} {seed}")
        rows = {f"k{number:05}": round(share * TASK_SECONDS * ROWS_PER_SECOND) for number, share in enumerate(shares)}
        earlier = {key: round(count * random.uniform(1 - DRIFT, 1 + DRIFT)) for key, count in rows.items()}
        summary = HeavyHitters(capacity_for(cores))
        left = dict(earlier)
        for number in range(SUMMARIES, 0, -1):
            part = {
                key: round(count / number * random.uniform(0.5, 1.5)) if number > 1 else count
                for key, count in left.items()
            }
            left = {key: left[key] - count for key, count in part.items()}
            summary = summary.merge(HeavyHitters.of(part.items(), capacity_for(cores)))
        for operator in OPERATORS:
            make = _sort if operator is Operator.SORT else _hashed
            yield f"{operator.value}, {name}", *make(operator, cores, rows, earlier, summary, random)


Rows = dict[str, int]


def _hashed(
    operator: Operator, cores: int, rows: Rows, earlier: Rows, summary: HeavyHitters, random: Random
) -> tuple[Stage, Stage]:
    place = {key: crc32(key.encode()) % PARTITIONS for key in rows}
    others = [0] * PARTITIONS
    for key in rows:
        others[place[key]] += 1
    right = Shuffle(tuple(count * ROW_BYTES for count in others), tuple(others), maps=8) if operator in JOINS else None
    keys = heavy_keys(summary, place, 0.1 / cores, dict.fromkeys(rows, 1) if right else None)
    counts = {key: rows[key] for key in (each.key for each in keys)}
    total = sum(rows.values())
    true_keys = tuple(
        HeavyKey(each.key, counts[each.key] / total, 0.0, each.partition, False, each.other_rows, counts[each.key])
        for each in keys
    )
    seen = _stage(operator, cores, _held(earlier, place), keys, right, random)
    return seen, _really(_stage(operator, cores, _held(rows, place), true_keys, right, random), random)


def _sort(
    operator: Operator, cores: int, rows: Rows, earlier: Rows, summary: HeavyHitters, random: Random
) -> tuple[Stage, Stage]:
    """Values in an order that has nothing to do with their weight; plain ranges are cut from a sample, values whole."""
    ordered = sorted(rows, key=lambda key: crc32(key.encode()))
    seen: dict[str, int] = {}
    for key in random.choices(ordered, [earlier[key] for key in ordered], k=100 * PARTITIONS):
        seen[key] = seen.get(key, 0) + 1
    sample = tuple((key, float(seen[key])) for key in ordered if key in seen)
    found = []
    ends = boundaries(sample, PARTITIONS, ties_free=False)
    for counts, distribution in ((earlier, sample), (rows, tuple((key, float(rows[key])) for key in ordered))):
        held = [round(each) for each in weights([(key, float(counts[key])) for key in ordered], ends)]
        stage = _stage(operator, cores, held + [0] * (PARTITIONS - len(held)), (), None, random)
        found.append(replace(stage, distribution=distribution, ties_free=True))
    return found[0], _really(found[1], random)


def _held(rows: Rows, place: dict[str, int]) -> list[int]:
    counts = [0] * PARTITIONS
    for key, count in rows.items():
        counts[place[key]] += count
    return counts


def _stage(
    operator: Operator, cores: int, counts: list[int], keys: tuple[HeavyKey, ...], right: Shuffle | None, random: Random
) -> Stage:
    """Predicted loads: fitted on tasks of another run, with noise of their own."""
    sizes = [count * ROW_BYTES for count in counts]
    times = [count * random.lognormvariate(0.0, NOISE) / ROWS_PER_SECOND for count in counts]
    model = fit(TaskTime(*each) for each in zip(sizes, counts, times, strict=True))
    return Stage(
        operator=operator,
        seconds=model.loads(sizes, counts),
        left=Shuffle(tuple(sizes), tuple(counts), keys, MAPS),
        cores=cores,
        right=right,
        error_share=model.error_share,
        state_ratio=STATE_RATIO,
    )


def _really(stage: Stage, random: Random) -> Stage:
    """What the tasks take this time."""
    return replace(
        stage,
        seconds=tuple(count * random.lognormvariate(0.0, NOISE) / ROWS_PER_SECOND for count in stage.left.rows),
    )


def recorded(file: Path, cores: int) -> Iterator[tuple[str, Stage, Stage]]:
    """Stages of a run; decided and replayed on the same times, on another number of workers."""
    for number, record in enumerate(json.loads(file.read_text())):
        stage = replace(stage_from_json(record), cores=cores)
        yield record.get("name", f"stage {number}"), stage, stage


def replays(file: Path | None, cores: int) -> list[dict[str, Any]]:
    costs = Costs()
    found = []
    for name, seen, truth in recorded(file, cores) if file else generated(cores, 7):
        spec = repair(seen, costs)
        replayed = compare(truth, spec, costs)
        found.append(
            {
                "stage": name,
                "workers": cores,
                "bound": truth.balanced_bound,
                "kind": spec.kind.value,
                "reason": spec.reason,
                "declines": sorted({each.code for each in spec.declines}),
                "predicted": spec.predicted_makespan,
                "heavy_keys_split": sum(split.helpers > 1 for split in spec.splits if split.key is not None),
                **{side: asdict(result) for side, result in replayed.items()},
            }
        )
    return found


def tweets() -> dict[str, float]:
    """Millions of tweets by location: §15.2 names three; the others of 180 millions are spread by population.

    Check: Texas gets 15 millions, and §15.12 counts 10 + 10 of Texas's worker and its helper together.
    """
    others = {name: people for name, people in POPULATION.items() if name not in TWEETS}
    left = (ALL_TWEETS - sum(TWEETS.values())) / sum(others.values())
    return TWEETS | {name: people * left for name, people in others.items()}


def workload() -> tuple[Stream, tuple[int, int], tuple[int, int]]:
    """W1 on 48 workers, in units of 10,000 tweets; the workers of California and Texas, and their helpers.

    The helpers are those of §15.2: the workers of Arizona and Illinois.

    A worker takes 416 s for California's 26 millions (§15.2): 6.25 units a second. Input comes in 100 s, so that τ =
    2000 is hardly reached (§15.6). Bursts are such that ε is within [98, 110] at a gap of 500 and below 98 at 700, as
    §15.6 reports: a sample every 5 s, variance / mean = 13.
    """
    locations = sorted(tweets())
    shares = [0.0] * 48
    for number, name in enumerate(locations):
        shares[number % 48] += tweets()[name] / ALL_TWEETS
    stream = Stream(tuple(shares), total=18_000, rate=180, speed=6.25, dispersion=13)
    at = {name: number % 48 for number, name in enumerate(locations)}
    return stream, (at["California"], at["Texas"]), (at["Arizona"], at["Illinois"])


def thresholds(seeds: int) -> list[dict[str, Any]]:
    stream, skewed, helpers = workload()
    found = []
    for mode, adaptive in MODES.items():
        for tau in TAUS:
            outcomes = [
                run(stream, skewed, Control(adaptive(tau), eta=min(TAUS)), seed, helpers) for seed in range(seeds)
            ]
            iterations = mean(sum(each.iterations for each in pair) for pair in outcomes)
            ratio = mean(mean(each.balancing_ratio for each in pair) for pair in outcomes)
            each_ratio = mean(
                mean(each.balancing_ratio for each in pair) / max(sum(each.iterations for each in pair), 1)
                for pair in outcomes
            )
            found.append(
                {
                    "mode": mode,
                    "tau": tau,
                    "iterations": iterations,
                    "balancing_ratio": ratio,
                    "balancing_ratio_per_iteration": each_ratio,
                    "tau_in_the_end": mean(mean(each.tau for each in pair) for pair in outcomes),
                    "california_in_the_end": [mean(pair[0].allotted[at] for pair in outcomes) for at in (0, 1)],
                }
            )
    return found


def show(stages: list[dict[str, Any]], taus: list[dict[str, Any]]) -> None:
    console = Console(width=150)
    for cores in sorted({each["workers"] for each in stages}):
        table = Table(
            "stage", "bound s", "plain s", "AQE s", "ours s", "ours/bound", "ours/AQE", "max/med AQE", "ours",
            "ratio AQE", "ours", "decision", title=f"{cores} workers",
        )  # fmt: skip
        for each in (each for each in stages if each["workers"] == cores):
            plain, aqe, ours = each["plain"], each["aqe"], each["ours"]
            numbers = [
                each["bound"], plain["makespan"], aqe["makespan"], ours["makespan"], ours["makespan"] / each["bound"],
                ours["makespan"] / aqe["makespan"], aqe["max_over_median"], ours["max_over_median"],
                aqe["balancing_ratio"], ours["balancing_ratio"],
            ]  # fmt: skip
            table.add_row(each["stage"], *(f"{number:.2f}" for number in numbers), each["reason"])
        console.print(table)
    table = Table("τ", title="Adaptive τ: iterations / balancing ratio / ratio per iteration / τ in the end")
    for mode in MODES:
        table.add_column(mode)
    for tau in TAUS:
        cells = [each for each in taus if each["tau"] == tau]
        table.add_row(
            str(tau),
            *(
                f"{each['iterations']:.1f} / {each['balancing_ratio']:.2f} / "
                f"{each['balancing_ratio_per_iteration']:.3f} / {each['tau_in_the_end']:.0f}"
                for each in cells
            ),
        )
    console.print(table)


def headlines(stages: list[dict[str, Any]], taus: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of the summary: what may be spread, and what may not, apart."""
    spread = [each for each in stages if not each["stage"].startswith(Operator.GROUP_APPLY.value)]
    best = {mode: min(each["balancing_ratio"] for each in taus if each["mode"] == mode) for mode in MODES if taus}
    return {
        "largest_ours_over_bound": {
            str(cores): max(each["ours"]["makespan"] / each["bound"] for each in spread if each["workers"] == cores)
            for cores in sorted({each["workers"] for each in spread})
        },
        "largest_ours_over_aqe": max(
            (each["ours"]["makespan"] / each["aqe"]["makespan"] for each in stages if each["aqe"]["makespan"]),
            default=1.0,
        ),
        "least_balancing_ratio_over_tau": best,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.skew_simulation")
    add_arguments(parser)
    parser.add_argument("--recorded", type=Path, help="stages of a run to replay instead of generated ones")
    given = parser.parse_args()
    before = environment()
    stages: list[dict[str, Any]] = []
    taus: list[dict[str, Any]] = []
    rounds = given.rounds or 20

    def measure() -> None:
        for cores in WORKERS:
            stages.extend(replays(given.recorded, cores))
        taus.extend(thresholds(rounds))

    seconds = timed(measure)
    show(stages, taus)
    result = {
        "benchmark": "skew_simulation",
        "rounds": rounds,
        "recorded": given.recorded.name if given.recorded else None,
        "seconds_taken": round(seconds, 1),
        **headlines(stages, taus),
        "stages": stages,
        "thresholds": taus,
        "environment": before,
    }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "skew_simulation.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
