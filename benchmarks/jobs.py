"""Whole jobs by spark-submit: what is compared takes turns, each round with a store of its own.

python -m benchmarks.jobs NAME [--scale 1] [--rounds 2]
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmarks_main, paired_ratio
from benchmarks.turns import in_turn
from examples import data
from examples.demo import LAPTOP, ROOT, differing_reports, effects, plugin_confs, submit

EDGES, NODES, FILES, LOOPS = 1_000_000, 200_000, 4, 8
READINGS, SENSORS = 3_000_000, 500
BY_HAND = ("memory_and_disk", "disk_only", "write_and_read")
STORAGE = {"memory": "peak_storage_memory_bytes", "disk": "peak_storage_disk_bytes", "spilled": "spilled_bytes"}
"""What a job may tell of itself: the most bytes persisted in memory and on disk, and those that stages spilled."""


@dataclass(frozen=True)
class Run:
    """One run of a job in a round.

    :param plugin: confs beside those that turn the plugin on; None: plain Spark
    :param argument: the job's last one
    :param copied: on a copy of the tables, of which nothing is known
    """

    plugin: Mapping[str, str] | None = None
    argument: str = "plain"
    copied: bool = False


@dataclass(frozen=True)
class Job:
    """
    :param runs: by name; whose rows are compared with the `plain` one's, or the first one's if there is none
    :param turns: what takes turns; the runs of one stay in their order
    :param ratios: by name: a run over another, or over the best of several
    :param of: what the ratios are of, seconds of the process or of its reports
    :param before: not measured; with `after`, in every round around the turns
    :param memory: megabytes of the driver, and how many more by scale
    :param by_iteration: its reports are iterations of loops, which have ratios of their own
    """

    script: str
    runs: Mapping[str, Run]
    turns: tuple[tuple[str, ...], ...]
    ratios: Mapping[str, tuple[str, tuple[str, ...]]]
    of: str = "seconds_reports"
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    memory: tuple[int, int] | None = None
    rounds: int = 2
    by_iteration: bool = False
    tables: Callable[[Options], Path] = field(default=lambda options: data.tpch(options.scale, options.data))


def in_files(columns: Mapping[str, Any], folder: Path) -> None:
    """Arrays of one length as Parquet files, each with every fourth row."""
    import pyarrow
    import pyarrow.parquet

    for number in range(FILES):
        part = pyarrow.table({name: each[number::FILES] for name, each in columns.items()})
        pyarrow.parquet.write_table(part, folder / f"part-{number}.parquet")


def graph(options: Options) -> Path:
    """Parquet files of edges between nodes whose numbers are close to each other; made anew where they are missing."""
    import numpy

    def generate(making: Path) -> None:
        chance = numpy.random.default_rng(5)
        count, nodes = int(EDGES * options.scale), int(NODES * options.scale)
        a = chance.integers(0, nodes, count)
        b = numpy.clip(a + chance.integers(-40, 41, count), 0, nodes - 1)
        in_files({"a": a, "b": b}, making)

    return data.finished(options.data / f"edges-{options.scale:g}", generate)


def readings(options: Options) -> Path:
    """Parquet files of sensors' readings: normal, with one in fifty far off."""
    import numpy

    def generate(making: Path) -> None:
        chance = numpy.random.default_rng(7)
        count = int(READINGS * options.scale)
        sensor = chance.integers(0, SENSORS, count)
        values = chance.normal(sensor % 17, 1 + sensor % 5, count)
        values = numpy.where(chance.random(count) < 0.02, values * chance.uniform(2, 9, count), values)
        in_files({"sensor": sensor, "at": numpy.arange(count) // 1000, "v": values}, making)

    return data.finished(options.data / f"readings-{options.scale:g}", generate)


def by_iteration(above: Iterable[Mapping[str, float]], below: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Ratio of the first, second, third and all other iterations of each loop, whose reports are named by number.

    >>> by_iteration([{"x 0": 2.0, "x 3": 1.0, "x 4": 1.0}], [{"x 0": 1.0, "x 3": 4.0, "x 4": 4.0}])
    {'x 1': 2.0, 'x rest': 0.25}
    """

    def sums(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for report, seconds in (each for run in runs for each in run.items()):
            loop, number = report.rsplit(maxsplit=1)
            found[f"{loop} {int(number) + 1 if int(number) < 3 else 'rest'}"] += seconds
        return found

    plain = sums(below)
    return {name: round(seconds / plain[name], 3) for name, seconds in sums(above).items()}


def exploration(name: str, ways: tuple[str, ...]) -> Job:
    """By hand, each way, against `explore` and `choose`; the first run, from an empty store."""
    hand = {way: Run(argument=f"{name}-{way}") for way in ways}
    return Job(
        "explore_job.py",
        hand | {"ours": Run({}, f"{name}-ours")},
        tuple((way,) for way in (*ways, "ours")),
        {"ours_over_loop": ("ours", (ways[0],)), "ours_over_best_hand": ("ours", ways)},
        by_iteration=name == "sweep",
        tables=readings,
    )


def weights(name: str) -> Job:
    """One setting after the other, against all by `explore` and `choose`, and against the initial weights first."""
    ways = ("exhaustive", "early")
    return Job(
        "tuning_job.py",
        {"plain": Run(argument=f"{name}-loop")} | {way: Run({}, f"{name}-{way}") for way in ways},
        (("plain",), *((way,) for way in ways)),
        {f"{way}_over_plain": (way, ("plain",)) for way in ways},
        rounds=1,
        tables=readings,
    )


OURS = Run({})
WAYS = ("loop", "threads", "cached", "cached_prefix", "breadth_first")
SELECTIONS = ("all", "top", "ordered", *(f"random{seed}" for seed in range(12)))
JOBS = {
    # Families of programs (Meta-Dataflows, figs. 6, 9 and 7), and a loop over settings that nobody rewrote.
    "kde": exploration("kde", WAYS),
    **{name: exploration(name, WAYS) for name in ("nested16", "nested36", "nested100")},
    **{name: exploration(name, ("loop",)) for name in ("series16", "series64", "series256", "series1024")},
    # What is chosen decides how much of it is run (fig. 8): each from an empty store.
    "selections": Job(
        "explore_job.py",
        {"plain": Run(argument="selections-ordered")} | {way: Run({}, f"selections-{way}") for way in SELECTIONS},
        tuple((way,) for way in ("plain", *SELECTIONS)),
        {f"{way}_over_all": (way, ("all",)) for way in SELECTIONS[1:]},
        rounds=1,
        tables=readings,
    ),
    "sweep": exploration("sweep", ("loop",)),
    # Loops of quick queries, in which nothing but what we cost and what Spark compiles again can tell.
    "quick": Job(
        "quick_job.py",
        {"plain": Run(), "ours": OURS},
        (("plain",), ("ours",)),
        {"ours_over_plain": ("ours", ("plain",))},
        by_iteration=True,
        tables=lambda options: data.tpch(options.scale / 10, options.data),
    ),
    # A network's initial weights by its settings (fig. 5), and cross-validation.
    **{name: weights(name) for name in ("weights16", "weights128")},
    "folds": Job(
        "tuning_job.py",
        {"plain": Run(argument="folds-plain"), "ours": Run(argument="folds-ours")},
        (("plain",), ("ours",)),
        {"ours_over_plain": ("ours", ("plain",))},
        tables=readings,
    ),
    # The third run of a job that recurs, against the plain job.
    "recurring": Job(
        "lines_job.py",
        {"plain": Run(), "run 1": OURS, "run 2": OURS, "run 3": OURS},
        (("plain",), ("run 1", "run 2", "run 3")),
        {"third_run_over_plain": ("run 3", ("plain",)), "first_run_over_plain": ("run 1", ("plain",))},
        of="seconds",
    ),
    # A first run from an empty store, against the same job with its base materialized by hand.
    "first_run": Job(
        "lines_job.py",
        {"spark_regions": OURS} | {kind: Run(argument=kind) for kind in BY_HAND},
        tuple((name,) for name in ("spark_regions", *BY_HAND)),
        {"first_run_over_best_hand": ("spark_regions", BY_HAND)},
        of="seconds",
    ),
    # Plain Spark computes all earlier rounds again in each round of a loop, and its plan doubles: after eight it has
    # some 5,000 operators, so that this is also what decisions on large plans cost.
    "loop": Job(
        "loop_job.py",
        {"plain": Run(argument=str(LOOPS)), "run 1": Run({}, str(LOOPS)), "run 2": Run({}, str(LOOPS))},
        (("plain",), ("run 1", "run 2")),
        {"first_run_over_plain": ("run 1", ("plain",)), "second_run_over_plain": ("run 2", ("plain",))},
        rounds=1,
        tables=graph,
    ),
    # A workflow's second run planned as a whole, in a driver whose memory is too small for all that is shared. The
    # first run sees one day's files and the second another day's, so that nothing stored can serve it; a third one sees
    # these again.
    "workflow": Job(
        "workflow_job.py",
        {
            "first": OURS,
            "planned": Run({}, copied=True),
            "hand": Run(None, "hand", copied=True),
            "plain": Run(copied=True),
            "again": Run({}, copied=True),
        },
        (("planned",), ("hand",), ("plain",)),
        {
            "second_run_over_hand": ("planned", ("hand",)),
            "second_run_over_plain": ("planned", ("plain",)),
            "third_run_same_files_over_plain": ("again", ("plain",)),
        },
        before=("first",),
        after=("again",),
        memory=(512, 512),
    ),
    # Eight writes given to `spark_regions.run`, against the same one by one; nothing is stored.
    "batch": Job(
        "batch_job.py",
        {"run": Run({"spark.regions.recycle.enabled": "false"}, "run"), "plain": Run(argument="one_by_one")},
        (("run",), ("plain",)),
        {"run_over_one_by_one": ("run", ("plain",))},
    ),
}


def run(job: Job, options: Options) -> dict[str, Any]:
    """The ratios, what the plugin did in each run, and all seconds."""
    tables = job.tables(options)
    least, more = job.memory or (0, 0)
    driver = {"spark.driver.memory": f"{int(least + more * options.scale)}m"} if job.memory else {}
    measured = [name for name in job.runs if name not in job.before]
    right = "plain" if "plain" in job.runs else next(name for name in measured if job.runs[name].plugin is None)
    told: dict[str, dict[str, list[Any]]] = defaultdict(lambda: {name: [] for name in measured})
    differing: set[str] = set()
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
            folder = Path(name)
            if any(each.copied for each in job.runs.values()):
                shutil.copytree(tables, folder / "tables", copy_function=shutil.copy)
            ours = plugin_confs(folder / "recycle")
            turns = [each for turn in in_turn(job.turns, number) for each in turn]
            for kind in (*job.before, *turns, *job.after):
                wanted, output = job.runs[kind], folder / kind
                confs = LAPTOP | driver | ({} if wanted.plugin is None else ours | dict(wanted.plugin))
                arguments = [str(folder / "tables" if wanted.copied else tables), str(output), wanted.argument]
                found = submit(ROOT / "benchmarks" / job.script, arguments, confs)
                if kind in job.before:
                    continue
                told["seconds"][kind].append(found.seconds)
                told["seconds_reports"][kind].append(found.seconds_reports)
                did = effects(folder / "recycle", found.log)
                told["done_by_plugin"][kind].append(f"stored {did.stored}, loaded {did.loaded}")
                told["predicted_saving_seconds"][kind].append(did.predicted_seconds)
                if (output / "storage.json").exists():
                    told["storage"][kind].append(json.loads((output / "storage.json").read_text()))
                if job.by_iteration:
                    told["iterations"][kind].append(json.loads((output / "seconds.json").read_text()))
            for kind in measured:
                differing |= {f"{kind}: {each}" for each in differing_reports(folder / right, folder / kind)}
    medians = {of: {kind: median(each) for kind, each in told[of].items()} for of in ("seconds", "seconds_reports")}
    best = {name: min(below, key=lambda kind: medians[job.of][kind]) for name, (_, below) in job.ratios.items()}
    storage, iterations = told.pop("storage", {}), told.pop("iterations", {})
    return {
        **{
            name: paired_ratio(told[job.of][above], told[job.of][best[name]]) for name, (above, _) in job.ratios.items()
        },
        **{
            name: {kind: max(each[of] for each in all_) for kind, all_ in storage.items()}
            for of, name in STORAGE.items()
            if storage
        },
        **{
            f"{name}_by_iteration": by_iteration(iterations[above], iterations[best[name]])
            for name, (above, _) in job.ratios.items()
            if iterations
        },
        "ratios_of": {name: f"{job.of} of {above} / {best[name]}" for name, (above, _) in job.ratios.items()},
        "differing": sorted(differing),
        "medians": medians,
        **told,
    }


if __name__ == "__main__":
    benchmarks_main("jobs", {name: (partial(run, job), job.rounds) for name, job in JOBS.items()})
