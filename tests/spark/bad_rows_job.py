"""A job on two executors, in which a task fails and another one is overtaken by its copy, behind rows that are bad.

    python -m tests.spark.bad_rows_job MASTER FOLDER PLACE

Prints JSON: the sum and the number of rows, the bad rows that are kept, and what the status counts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import functions as F

import spark_regions
from tests.harness.session import spark_session, status

CONFS = {
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.regions.control.onBadRow": "quarantine",
    "spark.regions.control.maxBadRows": "3",
}


def main(master: str, folder: str, place: Path) -> None:
    def number(text: str) -> int:
        context = TaskContext.get()
        assert context is not None
        attempt = context.attemptNumber()
        if text in ("100", "2998"):
            (place / f"{text}-{attempt}").touch()
        if text == "100" and attempt == 0:
            os._exit(1)
        if text == "2998":
            until = time.monotonic() + 20
            # The first attempt waits to be overtaken, and its copy for the first one to be there: either may be faster.
            while time.monotonic() < until and (attempt == 0 or not (place / "2998-0").exists()):
                time.sleep(0.05)
        return int(text)

    with spark_session(place / "store", CONFS | {"spark.master": master}) as spark:
        spark.conf.set("spark.regions.control.quarantinePath", str(place / "kept"))
        numbers = spark.read.parquet(folder).select("id", F.udf(number, "long", useArrow=False)("text").alias("n"))
        rows = list(numbers.agg(F.sum("n"), F.count("id")).collect()[0])
        kept = [row.row["id"] for row in spark_regions.bad_rows(spark).collect()]
        print(json.dumps({"rows": rows, "kept": kept, "status": status(spark)["badRows"]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
