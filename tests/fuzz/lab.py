"""One JVM with plain sessions and sessions with the plugin, and the data sets that programs read."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import spark_regions
from spark_regions.spark.jvm import api
from tests.fuzz import schemas
from tests.fuzz.prelude import write_data
from tests.harness.session import ENGINE, settle, sibling

# Spark itself leaves our rule out of the optimizer of such a session; the other settings keep the rest of ours quiet.
PLAIN = {
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.regions.rules.LineageRule",
    "spark.regions.mode": "observe",
    "spark.regions.recycle.strategy": "off",
    "spark.regions.persist.enabled": "false",
    "spark.regions.skew.enabled": "false",
    "spark.regions.platforms": "off",
}
ALWAYS = {"spark.regions.recycle.strategy": "always", "spark.regions.platforms": "off"}
APPLICATION = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
    " -Duser.timezone=UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.regions.ui.enabled": "false",
    # A query of ten rows costs what is around it: plans as text, code generation, buffers of megabytes, a process for
    # each change of a file's mode, of which files with checksums need twice as many.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "100",
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.buffer.pageSize": "256k",
    "spark.sql.parquet.columnarReaderBatchSize": "64",
    "spark.sql.orc.columnarReaderBatchSize": "64",
    "spark.shuffle.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.files.openCostInBytes": "1",  # a file is a partition
    "spark.sql.files.maxPartitionBytes": "4k",
    # Errors of ours are differences, and no reason to go on without us.
    "spark.regions.strict": "true",
}


class Lab:
    """Sessions, data sets and counters; `store` is the folder of what the plugin stores."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.plain, self.first, self.second, self.engine = (
            sibling(spark, confs) for confs in (PLAIN, ALWAYS, ALWAYS, ENGINE)
        )
        self._library: dict[tuple[str, str, bool], Path] = {}
        self._programs = 0
        self._seen = self._last_query()

    def data(self, spec: Mapping[str, Any]) -> Path:
        """The files of an input's data set, written when a program first reads it."""
        key = (spec["schema"], spec["format"], spec["partitioned"])
        if key not in self._library:
            target = self.folder / "library" / "-".join(map(str, key))
            columns = schemas.selected(spec["schema"])
            write_data(self.plain, columns, schemas.FILES, schemas.ROWS_PER_FILE, target, dict(spec))
            self._library[key] = target
        return self._library[key]

    @contextmanager
    def program_folder(self) -> Iterator[Path]:
        """A folder that no program had, so that nothing is stored of what is in it."""
        self._programs += 1
        folder = self.folder / f"program-{self._programs}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def counted(self) -> Counter[str]:
        """Running totals, after every finished query's stores are committed or given up."""
        jvm: Any = self.spark.sparkContext._jvm
        settle(self.spark)
        if not jvm.org.apache.spark.sql.regions.exec.Stores.awaitCommits(20_000):
            raise RuntimeError("a store is not committed after 20 s")
        return Counter(
            {name: int(count) for name, count in json.loads(api(self.spark).counters(_java(self.spark))).items()}
        )  # type: ignore[union-attr]

    def declines(self) -> Counter[str]:
        """Codes of what was declined or refused since the last call, at most in the last 200 queries."""
        found: Counter[str] = Counter()
        for decision in spark_regions.decisions(self.spark, 200):
            if decision["query"] > self._seen:
                found.update({str(decline["code"]) for decline in decision["declines"]})
                if decision["refusal"]:
                    found[str(decision["refusal"]["code"])] += 1
                found.update(str(a["reason"]) for a in decision["actions"] if a["kind"] in ("abandoned", "fallback"))
        self._seen = self._last_query()
        return found

    def _last_query(self) -> int:
        return max((int(decision["query"]) for decision in spark_regions.decisions(self.spark, 20)), default=0)


def _java(spark: SparkSession) -> Any:
    return spark._jsparkSession


@contextmanager
def laboratory(planner: Path | None = None) -> Iterator[Lab]:
    """A JVM with an empty store.

    :param planner: what runs the planner in the place of this Python
    """
    for name in ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "SPARK_HOME"):
        os.environ.pop(name, None)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    builder = SparkSession.builder.appName("fuzz").config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    for key, value in APPLICATION.items():
        builder = builder.config(key, value)
    if planner is not None:
        builder = builder.config("spark.regions.planner.python", str(planner))
    builder = spark_regions.configure(
        builder, recycle_dir=folder / "store", planner_deadline="20s", planner_startup_deadline="60s"
    )
    spark = builder.getOrCreate()
    try:
        state = spark_regions.status(spark)
        if not state.active:
            raise RuntimeError(f"this would be about plain Spark alone: {state}")
        # Errors are a part of the programs.
        spark.sparkContext.setLogLevel("OFF")
        for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            logging.getLogger(logger).disabled = True
        yield Lab(spark, folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
