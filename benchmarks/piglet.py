"""The experiments of Piglet's paper (§6) on generated sensors, trips and events: reuse over executions, over steps of
development, and by strategy.

Plain Spark and the plugin take turns, job by job, each warm by whole scripts on a hundredth of the rows:

- *executions* (fig. 7): nine scripts, three times each; the first has nothing to go by.
- *steps* (fig. 8): one script of each part as it grows by eleven steps; cumulative.
- *jobs*: twelve scripts cut into 132 small jobs in random order, with each strategy as the paper has it (recycling
  alone) and with the plugin as it is by default; cumulative. The paper: 0.74 of `last` with `markov`.

python -m benchmarks.piglet [--scale 1] [--rounds 1] [--quick] [--only executions steps jobs]
    [--strategies latest maxbenefit markov default]

`--quick`: a tenth of the rows of the scale.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main
from benchmarks.piglet_scripts import VARIANTS, jobs, steps
from benchmarks.profiling import PARTS, SCRIPTS, tables
from benchmarks.queries import OFF, ON, predictions
from benchmarks.turns import Answers, Driver, asked, differing, drivers, ratio, texts, values
from examples.demo import event_log_confs
from spark_regions.reports.savings import Measured
from spark_regions.reports.summary import Prices, read_report

SEED = 132
WARM_SCALE = 0.01
EXECUTIONS = 3
MEMORY = {"spark.driver.memory": "3g"}
ALONE = {
    "spark.regions.workflow.enabled": "false",
    "spark.regions.sharing.enabled": "false",
    "spark.regions.persist.enabled": "false",
    "spark.regions.skew.enabled": "false",
    "spark.regions.recycle.firstUseOverhead": "0",
}
"""Recycling alone."""
STRATEGIES: dict[str, dict[str, str]] = {
    **{name: ALONE | {"spark.regions.recycle.strategy": name} for name in ("latest", "maxbenefit", "markov")},
    "default": {},
}
EXPERIMENTS = ("executions", "steps", "jobs")


@contextmanager
def _pair(options: Options, confs: Mapping[str, str], measured: dict[str, Measured], name: str) -> Iterator[Any]:
    """Plain Spark and the plugin with a fresh store, both warm; what its choices saved is in `measured` at the end."""
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        logs, others = Path(folder) / "logs", Path(folder) / "others"
        with (
            drivers(Path(folder), {"plain": None}, MEMORY | event_log_confs(others)) as plain,
            drivers(Path(folder), {"plugin": confs}, MEMORY | event_log_confs(logs)) as ours,
        ):
            found = {**plain, **ours}
            _register(found, WARM_SCALE, options)
            found["plugin"].set(OFF)
            scripts = {script: text for part in PARTS for script, text in SCRIPTS[part].items()}
            whole = {(part, n): steps(part, n)[-1] for part in PARTS for n in range(len(VARIANTS[part]))}
            asked(found, scripts | whole, 1, texts("query", scripts | whole))
            _register(found, options.scale, options)
            found["plugin"].set(ON)
            if "spark.regions.recycle.strategy" in confs:
                found["plugin"].set({key: value for key, value in confs.items() if key.endswith("strategy")})
            yield found
        (log,) = logs.iterdir()
        measured[name] = read_report(log, Prices()).measured


def _register(found: Mapping[str, Driver], scale: float, options: Options) -> None:
    for part, driver in itertools.product(PARTS, found.values()):
        driver.register(tables(part, scale, options.data))


def executions(options: Options, measured: dict[str, Measured]) -> tuple[dict[str, Any], Answers]:
    """Each script as often as the paper executes it, the executions of one after the other."""
    queries = {script: text for part in PARTS for script, text in SCRIPTS[part].items()}
    with _pair(options, {}, measured, "executions") as pair:
        answers = asked(pair, queries, EXECUTIONS, texts("query", queries))
    each = {
        script: [
            round(ours / theirs, 3)
            for ours, theirs in zip(values(answers, script, "plugin"), values(answers, script, "plain"), strict=True)
        ]
        for script in answers
    }
    in_all = [
        sum(values(answers, script, "plugin")[n] for script in answers)
        / sum(values(answers, script, "plain")[n] for script in answers)
        for n in range(EXECUTIONS)
    ]
    return {"executions_over_plain": [round(each, 3) for each in in_all], "executions_by_script": each}, answers


def growing(options: Options, measured: dict[str, Measured]) -> tuple[dict[str, Any], Answers]:
    """A script of each part, step by step."""
    found: dict[str, Any] = {}
    whole: Answers = {}
    with _pair(options, {}, measured, "steps") as pair:
        for part in PARTS:
            queries = {f"{part} {number}": text for number, text in enumerate(steps(part, 0))}
            answers = asked(pair, queries, 1, texts("query", queries))
            found[part] = round(ratio(answers, answers, "plugin", "plain"), 3)
            whole |= answers
    by_step = {item: [round(values(whole, item, side)[0], 2) for side in ("plain", "plugin")] for item in whole}
    cumulative = ratio(whole, whole, "plugin", "plain")
    return {"steps_over_plain": cumulative, "steps_by_part": found, "steps_plain_and_plugin": by_step}, whole


def small_jobs(
    options: Options, measured: dict[str, Measured], strategies: Sequence[str]
) -> tuple[dict[str, Any], Answers]:
    """All jobs in one random order, with each strategy on a store of its own."""
    order = list(jobs().items())
    Random(SEED).shuffle(order)
    queries = dict(order)
    found: dict[str, Any] = {}
    seconds: dict[str, list[float]] = {}
    whole: Answers = {}
    for name in strategies:
        confs = STRATEGIES[name]
        with _pair(options, confs, measured, name) as pair:
            answers = asked(pair, queries, 1, texts("query", queries))
            done = {counter: pair["plugin"].counter(counter) for counter in ("stores", "loads")}
        found[name] = round(ratio(answers, answers, "plugin", "plain"), 3)
        seconds[name] = [round(sum(values(answers, i, side)[0] for i in answers), 1) for side in ("plain", "plugin")]
        print(json.dumps({name: found[name], "seconds": seconds[name]} | done), file=sys.stderr, flush=True)
        whole |= {f"{name}: {item}": each for item, each in answers.items()}
    best = min(found, key=lambda name: found[name])
    return {
        "jobs_best_over_plain": found[best], "jobs_over_plain": found, "jobs_seconds_plain_and_plugin": seconds,
        "jobs": len(queries), "beyond_1.05_plus_50_ms": _slow(whole),
    }, whole  # fmt: skip


def _slow(answers: Answers) -> dict[str, int]:
    """How many jobs of each strategy took longer than that."""
    found: Counter[str] = Counter()
    for item in answers:
        ours, theirs = (values(answers, item, side)[0] for side in ("plugin", "plain"))
        found[item.partition(":")[0]] += ours > 1.05 * theirs + 0.05
    return dict(found)


def run(options: Options, only: Sequence[str], strategies: Sequence[str]) -> dict[str, Any]:
    assert len(jobs()) == sum(len(steps(part, 0)) * len(each) for part, each in VARIANTS.items())
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in only}
    measured: dict[str, Measured] = {}
    wrong: list[str] = []
    make = {"executions": executions, "steps": growing, "jobs": partial(small_jobs, strategies=strategies)}
    for name, _ in itertools.product(only, range(options.rounds)):
        told, answers = make[name](options, measured)
        wrong += differing(answers)
        found[name].append(told)
        print(json.dumps(told), file=sys.stderr, flush=True)
    return {
        **{key: value for rounds in found.values() for key, value in rounds[-1].items()},
        **{
            key: median(each[key] for each in rounds)
            for rounds in found.values()
            for key, value in rounds[-1].items()
            if isinstance(value, float)
        },
        "differing": sorted(set(wrong)),
        **predictions(measured),
    }


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS)
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=tuple(STRATEGIES))
    parser.add_argument("--quick", action="store_true")
    given, others = parser.parse_known_args()

    def measure(options: Options) -> dict[str, Any]:
        scale = options.scale / 10 if given.quick else options.scale
        return run(Options(scale, options.rounds, options.data), given.only, given.strategies)

    benchmark_main("piglet", measure, default_rounds=1, arguments=others)


if __name__ == "__main__":
    main()
