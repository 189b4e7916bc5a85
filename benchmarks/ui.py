"""What the Regions tab costs: time of its pages, growth of the event log, heap of the driver.

The same thousand queries by the plugin with the tab and without it, and a query of a thousand operators. Pages are
asked for over HTTP, `rounds` times each; what a browser takes to draw them is measured apart, where there is one. The
log's growth is that of our events over all others.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, percentile
from examples.demo import ROOT, plugin_confs
from tests.harness.browser import chrome, installed

QUERIES = 1000
"""At scale 1; the scale factor counts queries here, not rows."""
PAGES = ("", "?limit=1000", "cache/", "graph/", "lost/", "json", "execution/?id={small}", "execution/?id={wide}")


def run(options: Options) -> dict[str, Any]:
    queries = max(1, round(QUERIES * options.scale))
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        sides = {
            name: application(Path(folder), name, {"spark.regions.ui.enabled": shown}, queries, options.rounds)
            for name, shown in (("with", "true"), ("without", "false"))
        }
    tab, plain = sides["with"], sides["without"]
    pages = tab["milliseconds"]
    return {
        "queries": queries,
        "operators_of_wide_query": tab["operators"],
        "milliseconds_by_page": {page: round(median(times), 1) for page, times in pages.items()},
        "milliseconds_slowest_page": round(max(median(times) for times in pages.values()), 1),
        "milliseconds_drawn_by_page": {page: round(median(times), 1) for page, times in tab["drawn"].items()},
        "milliseconds_p95": {page: round(percentile(times, 0.95), 1) for page, times in pages.items()},
        "log_bytes_ours_a_query": round(tab["log"]["ours"] / queries),
        "log_growth": tab["log"]["ours"] / tab["log"]["others"],
        "log_bytes_by_event": tab["log"]["events"],
        "heap_with_over_without": tab["heap_after"] / plain["heap_after"],
        "heap_bytes_a_query": round(
            ((tab["heap_after"] - tab["heap_before"]) - (plain["heap_after"] - plain["heap_before"])) / queries
        ),
        "heap_bytes": {name: [side["heap_before"], side["heap_after"]] for name, side in sides.items()},
        "differing": [] if tab["digest"] == plain["digest"] else ["the queries"],
    }


def application(folder: Path, name: str, confs: dict[str, str], queries: int, rounds: int) -> dict[str, Any]:
    """One run of the job: what it says, times of its pages, and bytes of its event log."""
    logs = folder / name
    logs.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    confs = plugin_confs(folder / f"store-{name}") | confs
    # String hashes are compared between the two.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONHASHSEED": "0"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / "ui_job.py"), str(logs), str(port), str(queries), json.dumps(confs)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    facts: dict[str, Any] = json.loads(process.stdout.readline())
    if confs["spark.regions.ui.enabled"] == "true":
        facts |= asked(f"http://127.0.0.1:{port}/regions/", rounds)
    process.stdin.write("end\n")
    process.stdin.close()
    process.wait(120)
    return facts | {"log": log_bytes(logs / facts["application"])}


def asked(base: str, rounds: int) -> dict[str, Any]:
    wide = None
    end = time.monotonic() + 60
    while wide is None and time.monotonic() < end:
        listed = json.loads(fetched(base + "json?limit=2000"))["queries"]
        wide = next((q for q in listed if q["operators"] >= 1000 and q["outcome"]), None)
    assert wide is not None, "the query of a thousand operators is not shown"
    small = next(q for q in listed if q["operators"] < 100 and q["outcome"])
    times: dict[str, list[float]] = {}
    urls = {page: base + page.format(small=small["executionId"], wide=wide["executionId"]) for page in PAGES}
    for page, url in urls.items():
        fetched(url)
        for _ in range(rounds):
            start = time.perf_counter()
            fetched(url)
            times.setdefault(page, []).append(1000 * (time.perf_counter() - start))
    drawn = drawn_by(urls, rounds) if installed("chromedriver") else {}
    return {"milliseconds": times, "drawn": drawn, "operators": wide["operators"]}


def drawn_by(urls: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds from the end of a page's answer until its scripts have drawn it."""
    times: dict[str, list[float]] = {}
    with chrome() as browser:
        for page, url in urls.items():
            for _ in range(rounds if page != "json" else 0):
                browser.get(url)
                took = browser.execute_script(
                    """var load = performance.getEntriesByType('navigation')[0];
                    return load.domContentLoadedEventEnd - load.responseEnd"""
                )
                times.setdefault(page, []).append(took)
    return times


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=120) as answer:
        body: bytes = answer.read()
    return body


def log_bytes(log: Path) -> dict[str, Any]:
    events: dict[str, int] = {}
    others = 0
    with log.open() as lines:
        for line in lines:
            name = json.loads(line)["Event"].rpartition(".")[2]
            if "SparkListenerRegions" in name:
                events[name] = events.get(name, 0) + len(line)
            else:
                others += len(line)
    return {"ours": sum(events.values()), "others": others, "events": events}


if __name__ == "__main__":
    benchmark_main("ui", run, 20)
