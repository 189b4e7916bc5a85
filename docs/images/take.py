"""Takes the pictures of the Regions tab in docs/images: real applications, a real History Server, headless Chromium.

python docs/images/take.py [--jobs demo tpcds-q14 skew] [--into docs/images] [--folder kept/for/logs]

Needs chromium and chromedriver on the PATH. `report.png` is not taken here, nor is `regions-lost.png`: the example job
does not lose. Prints the median time of each page in the History Server, and the metrics that the live application
serves to Prometheus.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

import spark_regions  # noqa: E402
from examples import data  # noqa: E402
from examples.demo import LAPTOP, event_log_confs, plugin_confs  # noqa: E402
from tests.harness.browser import chrome  # noqa: E402
from tests.harness.ui import Served, free_port, history_server  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from selenium.webdriver import Chrome

SIZE = (1280, 900)
PROMETHEUS = {
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}
TIMES = 5


def orders_report(spark: SparkSession, folder: Path) -> None:
    job = runpy.run_path("examples/orders_report.py")  # as a person would call it: the path is on the pages
    job["run_reports"](job["clean_lines"](spark, str(data.tpch(0.1))), folder / "reports")


def tpcds_q14(spark: SparkSession, folder: Path) -> None:
    for name, file in data.tables(data.tpcds(0.1)).items():
        spark.read.parquet(str(file)).createOrReplaceTempView(name)
    spark.sparkContext.setJobDescription("TPC-DS q14")
    spark.sql(data.tpcds_queries()[14]).collect()


def skewed_join(spark: SparkSession, folder: Path) -> None:
    from benchmarks import skew

    for name, file in skew.tables(data.DATA, 1, "one60").items():
        spark.read.parquet(file).createOrReplaceTempView(name)
    for key, value in skew.OURS.items():
        spark.conf.set(key, value)
    spark.sparkContext.setJobDescription("full outer join")
    spark.sql(skew.QUERIES["full_join"]).collect()


def explored(spark: SparkSession, folder: Path) -> None:
    """A threshold and a kernel, then a smoothing for the two best; one branch fails."""
    from pyspark.sql import functions as F

    readings = spark.range(200_000).selectExpr("id", "id % 97 AS k", "cast((id * 7919) % 1000 AS double) AS v")

    def clean(low: int, kernel: str) -> DataFrame:
        spread = {"gauss": F.exp(-F.col("v") / 500), "tophat": F.col("v") / 1000, "linear": F.col("w")}[kernel]
        return readings.where(F.col("v") >= low).withColumn("weight", spread)

    def smooth(found: DataFrame, bandwidth: float) -> DataFrame:
        return found.groupBy("k").agg((F.avg("weight") * bandwidth).alias("weight"))

    runs = spark_regions.explore(low=[0, 100, 200, 400], kernel=["gauss", "tophat", "linear"])(clean)
    best = runs.choose(F.avg("weight"), spark_regions.top(2), shape={"low": "monotone"})
    best.explore(bandwidth=[0.1, 0.5, 2.0])(smooth).choose(F.max("weight"), spark_regions.maximum)


def stands(spark: SparkSession, folder: Path) -> None:
    """A query that stands before a row of a breakpoint; it ends with the application."""
    import threading

    from pyspark.sql import functions as F

    values = "cast(hash(id) % 2000 + 1995 AS int) AS followers", "sha2(string(id), 256) AS text"
    rows = spark.range(0, 800_000, 1, 2).selectExpr(*values).localCheckpoint()  # without a path on the page
    job = spark_regions.control(spark, "anna")
    score = F.udf(lambda text: sum(map(int, text[:8], [16] * 8)), "int")
    found = rows.where("text LIKE '%7%'").withColumn("score", score("text")).groupBy("score").agg(F.avg("followers"))
    job.pause()
    threading.Thread(target=found.collect, daemon=True).start()
    while "Filter" not in {each.name for each in job.operators() if each.tasks}:
        time.sleep(0.1)
    job.break_when("Filter", "followers < 0")
    job.break_when("ArrowEvalPython", "sum(followers) >= 500000000")
    job.resume()
    while not job.rows:
        time.sleep(0.1)


JOBS: dict[str, tuple[str, int, Callable[[SparkSession, Path], None]]] = {
    "demo": ("orders report", 2, orders_report),
    "tpcds-q14": ("tpcds q14", 3, tpcds_q14),
    "skew": ("skewed join", 1, skewed_join),
    "explore": ("kernels", 1, explored),
    "running": ("followers", 1, stands),
}
"""Name of the application, how often it runs (the last one is looked at), and what it does."""


def hold(job: str, folder: Path, port: str) -> None:
    """Run a job and keep its UI open until a line comes in."""
    from pyspark.sql import SparkSession

    name, _, work = JOBS[job]
    builder = SparkSession.builder.appName(name)
    confs = LAPTOP | plugin_confs(folder / f"store-{job}") | event_log_confs(folder / "logs") | PROMETHEUS
    more = {"spark.ui.enabled": "true", "spark.ui.port": port}
    more["spark.regions.control.enabled"] = str(job == "running").lower()
    for key, value in (confs | more).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    work(spark, folder)
    print(json.dumps({"application": spark.sparkContext.applicationId}), flush=True)
    sys.stdin.readline()
    spark.stop()


@contextmanager
def held(job: str, folder: Path) -> Iterator[tuple[str, Served]]:
    """The id and the UI of an application that has run its job."""
    port = free_port()
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    log = folder / f"{job}.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "docs/images/take.py", "--hold", job, "--folder", str(folder), "--port", str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, cwd=ROOT,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        line = next((each for each in process.stdout if each.startswith("{")), None)
        if line is None:
            raise RuntimeError(f"{job} ended:\n{log.read_text()[-4000:]}")
        try:
            yield json.loads(line)["application"], Served(f"http://127.0.0.1:{port}")
        finally:
            process.stdin.write("end\n")
            process.stdin.close()
            process.wait(60)


def pages(job: str, ui: Served, prefix: str = "") -> dict[str, str]:
    """Picture to path: the pages of the tab, of the query that did most, and Spark's own of it."""
    if job == "running":
        return {"running": "/regions/running/"}

    def ended(facts: dict[str, Any]) -> bool:
        return bool(facts["executions"]) and all(each["status"] != "running" for each in facts["executions"])

    executions = ui.until(f"{prefix}/regions/json", ended)["executions"]
    ui.until(f"{prefix}/regions/cache/json", lambda facts: all(each.get("operator") for each in facts["entries"]))
    most = max(executions, key=lambda each: (len(each["done"]), each["taskSeconds"] or 0))
    execution = most["executionId"]
    one = {"exploration": "/regions/exploration/?id=1"} if job == "explore" else {}
    return one | {
        "overview": "/regions/",
        "query": f"/regions/execution/?id={execution}",
        "cache": "/regions/cache/",
        "graph": "/regions/graph/",
        "lost": "/regions/lost/",
        "link-on-sql-page": f"/SQL/execution/?id={execution}",
    }


KEPT = {
    "demo": {page: f"regions-{page}.png" for page in ("overview", "query", "cache", "graph", "link-on-sql-page")},
    "tpcds-q14": {page: f"regions-{page}-tpcds-q14.png" for page in ("query", "graph")},
    "skew": {"query": "regions-skew.png"},
    "explore": {"exploration": "regions-exploration.png"},
    "running": {"running": "regions-running.png"},
}
"""The pictures that the documentation shows, of the live applications."""


def shoot(browser: Chrome, url: str, file: Path, at: str | None = None) -> None:
    """One page as a picture of few colours; `at`: a word of the heading that is scrolled to."""
    from PIL import Image

    browser.get(url)
    time.sleep(1.5)  # Spark draws its plan by a script
    if at is not None:
        browser.execute_script(
            """var found = Array.from(document.querySelectorAll('h4')).find(h => h.textContent.includes(arguments[0]));
            found.scrollIntoView({block: 'center'})""",
            at,
        )
        time.sleep(1)
    browser.save_screenshot(str(file))
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(256).save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the Regions tab.")
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS), help="whose pictures to take")
    parser.add_argument("--into", type=Path, default=HERE, help="folder of the documentation's pictures")
    parser.add_argument("--folder", type=Path, help="where logs and all other pictures are kept (a temporary one)")
    parser.add_argument("--hold", choices=sorted(JOBS), help=argparse.SUPPRESS)
    parser.add_argument("--port", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hold:
        hold(options.hold, options.folder, options.port)
        return
    options.into.mkdir(parents=True, exist_ok=True)
    if options.folder is None:
        with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
            take(options.jobs, Path(folder), options.into)
    else:
        options.folder.mkdir(parents=True, exist_ok=True)
        take(options.jobs, options.folder.resolve(), options.into)


def take(jobs: list[str], folder: Path, into: Path) -> None:
    applications: dict[str, str] = {}
    with chrome(SIZE) as browser:
        for job in jobs:
            _, runs, _ = JOBS[job]
            for number in range(1, runs + 1):
                with held(job, folder) as (application, ui):
                    if number == runs:
                        applications[job] = application
                        shoot_all(browser, job, ui, folder, into)
        with history_server(folder / "logs", folder, spark_regions.jar_path()) as server:
            for job, application in applications.items():
                print(json.dumps(in_history(browser, job, application, server, folder)), flush=True)


def shoot_all(browser: Chrome, job: str, ui: Served, folder: Path, into: Path) -> None:
    for page, path in pages(job, ui).items():
        kept = KEPT[job].get(page)
        at = "Skewed stages" if job == "skew" and page == "query" else None
        shoot(browser, ui.base + path, into / kept if kept else folder / f"live-{job}-{page}.png", at)
    if job == "demo":
        print(*(line for line in ui.get("/metrics/prometheus/").splitlines() if "spark_regions" in line), sep="\n")


def in_history(browser: Chrome, job: str, application: str, server: Served, folder: Path) -> dict[str, Any]:
    """Median milliseconds of each page, and a picture of each in `folder`."""
    prefix = f"/history/{application}"
    times: dict[str, float] = {}
    for page, path in pages(job, server, prefix).items():
        url = f"{prefix}{path}"
        shoot(browser, server.base + url, folder / f"history-{job}-{page}.png")
        taken = []
        for _ in range(TIMES):
            start = time.perf_counter()
            server.get(url)
            taken.append(1000 * (time.perf_counter() - start))
        times[page] = round(median(taken), 1)
    return {"job": job, "history server, median ms": times}


if __name__ == "__main__":
    main()
