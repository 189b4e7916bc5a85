"""Connected components by spreading the least label: every round builds on the last one, and looks at what it brought.

spark-submit loop_job.py <folder of the edges> <folder for the result> <rounds>
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main() -> None:
    edges_folder, output, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName("loop job").getOrCreate()
    edges = spark.read.parquet(edges_folder)
    both = edges.union(edges.select(F.col("b").alias("a"), F.col("a").alias("b")))
    labels = both.select(F.col("a").alias("node")).distinct().withColumn("label", F.col("node"))
    seconds = {}
    with (output / "rounds.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "nodes", "sum"])
        for number in range(rounds):
            start = time.perf_counter()
            least = both.join(labels, F.col("a") == F.col("node")).groupBy("b").agg(F.min("label").alias("least"))
            labels = labels.join(least, F.col("node") == F.col("b"), "left").select(
                "node", F.least("label", F.coalesce("least", "label")).alias("label")
            )
            (found,) = labels.where("node <> label").agg(F.count("*"), F.sum("label")).collect()
            writer.writerow([number, *found])
            seconds[f"round {number}"] = time.perf_counter() - start
    (output / "seconds.json").write_text(json.dumps(seconds))
    spark.stop()


if __name__ == "__main__":
    main()
