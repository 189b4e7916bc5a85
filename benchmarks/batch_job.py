"""Eight writes over the workflow's DataFrames: one after another, or given to `spark_regions.run`.

spark-submit batch_job.py <tables> <folder for the reports> one_by_one|run
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.workflow_job import frames, reports

WRITES = (
    "revenue", "segments", "nations", "margin_by_maker", "margin_by_type", "loss_makers", "busiest_months", "growth"
)  # fmt: skip


def main() -> None:
    tables, output, kind = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName(f"batch job {kind}").getOrCreate()
    asked = reports(frames(spark, tables, lambda frame: frame))
    start = time.perf_counter()
    if kind == "run":
        import spark_regions

        spark_regions.run([spark_regions.later(asked[name]).write.parquet(str(output / name)) for name in WRITES])
    else:
        for name in WRITES:
            asked[name].write.parquet(str(output / name))
    (output / "seconds.json").write_text(json.dumps({"writes": time.perf_counter() - start}))
    spark.stop()


if __name__ == "__main__":
    main()
