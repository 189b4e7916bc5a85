"""The same unchanged job by spark-submit: once with plain Spark, then three times with spark_regions on one store.

    python examples/demo.py [--scale 1] [--json]

Ends with 1 if a report of any run differs from the plain run's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pyarrow import parquet
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from examples import data  # noqa: E402

JOB = ROOT / "examples" / "orders_report.py"
LAPTOP = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
}


class JobFailed(RuntimeError):
    """spark-submit ended with an error; the message ends with the last lines of its log."""


@dataclass(frozen=True)
class Submitted:
    """One finished spark-submit: wall seconds of the whole process, seconds inside the reports, and its log."""

    seconds: float
    seconds_reports: float
    log: str


@dataclass(frozen=True)
class Effects:
    """What one run stored and loaded, and the seconds that it expected to save (None: not told)."""

    stored: int
    loaded: int
    predicted_seconds: float | None


@dataclass(frozen=True)
class Run:
    name: str
    seconds: float
    seconds_reports: float
    stored: int
    loaded: int
    predicted_saving_seconds: float | None
    measured_saving_seconds: float | None
    differing: list[str]


def plugin_confs(recycle_dir: Path) -> dict[str, str]:
    """The confs that turn spark_regions on for a job that does not know of it."""
    jar = subprocess.run([sys.executable, "-m", "spark_regions", "jar"], check=True, capture_output=True, text=True)
    return {
        "spark.jars": jar.stdout.strip(),
        "spark.regions.enabled": "true",
        "spark.regions.recycle.dir": recycle_dir.as_uri(),
        "spark.regions.planner.python": sys.executable,
    }


def submit(script: Path, arguments: list[str], confs: Mapping[str, str], timeout_seconds: float = 1800) -> Submitted:
    """Run a PySpark script with this interpreter's spark-submit; its second argument is its output folder."""
    command = [str(Path(sys.executable).parent / "spark-submit")]
    for key, value in confs.items():
        command += ["--conf", f"{key}={value}"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    start = time.perf_counter()
    process = subprocess.run(
        [*command, str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=ROOT,
        timeout=timeout_seconds,
    )
    seconds = time.perf_counter() - start
    if process.returncode != 0:
        said = f"{script.name} {' '.join(arguments)} ended with {process.returncode}"
        raise JobFailed(f"{said}\n{process.stdout[-4000:]}")
    reports = json.loads((Path(arguments[1]) / "seconds.json").read_text())
    return Submitted(seconds, sum(reports.values()), process.stdout)


def differing_reports(expected: Path, found: Path) -> list[str]:
    """Names of the reports that do not have exactly the same rows (order aside) and columns."""

    def reports(folder: Path) -> set[str]:
        return {path.name for path in folder.iterdir() if path.suffix == ".csv" or path.is_dir()}

    names = reports(expected) | reports(found)
    return sorted(name for name in names if _rows(expected / name) != _rows(found / name))


def _rows(report: Path) -> tuple[str, Counter[str]] | None:
    if report.is_dir():
        table = parquet.read_table(report)
        return str(table.schema), Counter(repr(tuple(row.values())) for row in table.to_pylist())
    if report.exists():
        header, *lines = report.read_text().splitlines()
        return header, Counter(lines)
    return None


def effects(recycle_dir: Path, log: str) -> Effects:
    """What a run did: told by the closing line that the shim writes into the driver's log."""
    closing = re.findall(r"spark_regions: stored (\d+), loaded (\d+)(?:, predicted saving ([\d.]+) s)?", log)
    if not closing:
        return Effects(0, 0, None)
    stored, loaded, predicted = closing[-1]
    return Effects(int(stored), int(loaded), float(predicted) if predicted else None)


def event_log_confs(folder: Path | None) -> dict[str, str]:
    """The confs that make Spark write its event logs there, for `spark-regions report`."""
    if folder is None:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.resolve().as_uri()}


def demonstrate(scale: float, plugin: bool, runs: int, folder: Path, event_logs: Path | None = None) -> list[Run]:
    tables = data.tpch(scale)
    plain = folder / "plain"
    logs = event_log_confs(event_logs)  # all runs write them or none: writing costs time
    first = submit(JOB, [str(tables), str(plain)], LAPTOP | logs)
    rows = [Run("plain", first.seconds, first.seconds_reports, 0, 0, None, None, [])]
    recycle_dir = folder / "recycle"
    confs = LAPTOP | (plugin_confs(recycle_dir) if plugin else {}) | logs
    for number in range(1, runs + 1):
        output = folder / f"run-{number}"
        job = submit(JOB, [str(tables), str(output)], confs)
        did = effects(recycle_dir, job.log)
        rows.append(
            Run(
                f"run {number}",
                job.seconds,
                job.seconds_reports,
                did.stored,
                did.loaded,
                did.predicted_seconds,
                first.seconds - job.seconds,
                differing_reports(plain, output),
            )
        )
    return rows


def print_runs(rows: list[Run], console: Console) -> None:
    table = Table(title="orders_report.py by spark-submit")
    for column in ("run", "job s", "of plain", "reports s", "stored", "loaded", "predicted s", "saved s", "rows"):
        table.add_column(column, justify="left" if column in ("run", "rows") else "right")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.seconds:.1f}",
            f"{row.seconds / rows[0].seconds:.2f}",
            f"{row.seconds_reports:.1f}",
            str(row.stored),
            str(row.loaded),
            "" if row.predicted_saving_seconds is None else f"{row.predicted_saving_seconds:.1f}",
            "" if row.measured_saving_seconds is None else f"{row.measured_saving_seconds:.1f}",
            "differ: " + ", ".join(row.differing) if row.differing else ("" if row is rows[0] else "identical"),
        )
    console.print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the example job with plain Spark and with spark_regions.")
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor")
    parser.add_argument("--runs", type=int, default=3, help="runs with spark_regions")
    parser.add_argument("--plain-only", action="store_true", help="all runs with plain Spark (measures the noise)")
    parser.add_argument("--event-logs", type=Path, help="folder for the event logs of all runs")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="orders-report-") as folder:
        rows = demonstrate(options.scale, not options.plain_only, options.runs, Path(folder), options.event_logs)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        console = Console()
        print_runs(rows, console if console.width >= 110 else Console(width=110))
    return 1 if any(row.differing for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
