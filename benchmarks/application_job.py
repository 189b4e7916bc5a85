"""An ordinary use of a package that uses PySpark, as its documentation has it. The job does not know of spark_regions.

spark-submit application_job.py <folder of its data> <folder for what it finds> splink|datacompy|analyzer
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def splink(spark: SparkSession, data: str, output: Path) -> None:
    """Records of one person are found: a model is trained, pairs are scored, and clusters are made of them."""
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, SparkAPI, block_on

    spark.sparkContext.setCheckpointDir(str(output / "checkpoints"))
    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=[
            cl.JaroWinklerAtThresholds("first_name", [0.9, 0.7]),
            cl.JaroWinklerAtThresholds("surname", [0.9, 0.7]),
            cl.LevenshteinAtThresholds("dob", [1, 2]),
            cl.ExactMatch("city").configure(term_frequency_adjustments=True),
            cl.LevenshteinAtThresholds("email", [2, 4]),
        ],
        blocking_rules_to_generate_predictions=[
            block_on("first_name", "surname"),
            block_on("surname", "city"),
            block_on("dob"),
        ],
        linker_uid="benchmark",
    )
    api = SparkAPI(spark_session=spark)
    linker = Linker(api.register(spark.read.parquet(data), table_name="people"), settings)
    linker.training.estimate_probability_two_random_records_match(
        [block_on("first_name", "surname", "dob")], recall=0.7
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    linker.training.estimate_parameters_using_expectation_maximisation(block_on("first_name", "surname"))
    linker.training.estimate_parameters_using_expectation_maximisation(block_on("dob"))
    pairs = linker.inference.predict(threshold_match_probability=0.5)
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(pairs, threshold_match_probability=0.95)
    pairs.to_parquet(str(output / "pairs"))
    clusters.to_parquet(str(output / "clusters"))


def datacompy(spark: SparkSession, data: str, output: Path) -> None:
    """What differs between two days."""
    from datacompy.spark import SparkSQLCompare

    frames = (spark.read.parquet(f"{data}/{day}.parquet") for day in ("yesterday", "today"))
    compare = SparkSQLCompare(spark, *frames, join_columns="account", rel_tol=1e-6, df1_name="old", df2_name="new")
    (output / "report.json").write_text(json.dumps({"report": compare.report(), "columns": compare.column_stats}))


def analyzer(spark: SparkSession, data: str, output: Path) -> None:
    """Profiles of a table, of the table with what belongs to it, and of what is left after a filter."""
    from pyspark_analyzer import analyze

    accounts = spark.read.parquet(f"{data}/today.parquet")
    branches = accounts.groupBy("branch").agg(F.count("*").alias("size"), F.max("opened").alias("latest"))
    joined = accounts.join(branches, "branch")
    frames = {"all": accounts, "joined": joined, "closed": joined.where("state_1 = 'closed'")}
    found: dict[str, Any] = {
        name: analyze(frame, sampling=False, output_format="dict", show_progress=False)
        for name, frame in frames.items()
    }
    for profile in found.values():
        del profile["sampling"]  # how long it took
    (output / "profiles.json").write_text(json.dumps(found, default=str))


def main() -> None:
    data, output, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName(f"application {name}").getOrCreate()
    start = time.perf_counter()
    {"splink": splink, "datacompy": datacompy, "analyzer": analyzer}[name](spark, data, output)
    (output / "seconds.json").write_text(json.dumps({name: time.perf_counter() - start}))
    spark.stop()


if __name__ == "__main__":
    main()
