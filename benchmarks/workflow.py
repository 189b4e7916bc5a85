"""The second run of a workflow planned as a whole, against all shared nodes persisted by hand, and against plain Spark.

The driver's memory is too small for everything. The first run sees one day's files and the second another day's, so
that nothing stored can serve it; a third one sees the second day's files again. Every run is a spark-submit of its own.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.turns import in_turn
from examples import data
from examples.demo import LAPTOP, ROOT, differing_reports, plugin_confs, submit

JOB = ROOT / "benchmarks" / "workflow_job.py"
MEMORY_MB = 512, 512
"""Of the driver, and more of it per scale: less than the shared nodes take, and enough for plain Spark's sorts."""
KINDS = ("planned", "hand", "plain")


def run(options: Options) -> dict[str, Any]:
    monday = data.tpch(options.scale, options.data)
    reports: dict[str, list[float]] = {name: [] for name in (*KINDS, "again")}
    storage: dict[str, list[dict[str, int]]] = {name: [] for name in reports}
    differing: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        folder = Path(name)
        tuesday = folder / "tuesday"
        shutil.copytree(monday, tuesday, copy_function=shutil.copy)
        least, more = MEMORY_MB
        memory = {"spark.driver.memory": f"{int(least + more * options.scale)}m"}
        ours = LAPTOP | memory | plugin_confs(folder / "recycle")

        def once(kind: str, tables: Path, output: Path) -> None:
            confs = ours if kind in ("planned", "again") else LAPTOP | memory
            job = submit(JOB, [str(tables), str(output), "hand" if kind == "hand" else "plain"], confs)
            reports[kind].append(job.seconds_reports)
            storage[kind].append(json.loads((output / "storage.json").read_text()))

        for number in range(options.rounds):
            shutil.rmtree(folder / "recycle", ignore_errors=True)
            submit(JOB, [str(monday), str(folder / f"first-{number}"), "plain"], ours)
            for kind in in_turn(KINDS, number):
                once(kind, tuesday, folder / f"{kind}-{number}")
            once("again", tuesday, folder / f"again-{number}")
            for kind in ("planned", "hand", "again"):
                found = differing_reports(folder / f"plain-{number}", folder / f"{kind}-{number}")
                differing |= {f"{kind}: {each}" for each in found}
    return {
        "second_run_over_hand": paired_ratio(reports["planned"], reports["hand"]),
        "second_run_over_plain": paired_ratio(reports["planned"], reports["plain"]),
        "third_run_same_files_over_plain": paired_ratio(reports["again"], reports["plain"]),
        "peak_storage_memory_bytes": {kind: max(each["memory"] for each in storage[kind]) for kind in storage},
        "peak_storage_disk_bytes": {kind: max(each["disk"] for each in storage[kind]) for kind in storage},
        "spilled_bytes": {kind: max(each["spilled"] for each in storage[kind]) for kind in storage},
        "differing": sorted(differing),
        "seconds_reports": {kind: median(values) for kind, values in reports.items()},
        "seconds_reports_all": reports,
    }


if __name__ == "__main__":
    benchmark_main("workflow", run, default_rounds=2)
