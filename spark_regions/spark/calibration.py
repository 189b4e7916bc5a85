"""Queries on generated rows, for a first set of stages on a machine that has run none yet."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from spark_regions import conf
from spark_regions.errors import NotActiveError
from spark_regions.spark.activation import configure
from spark_regions.spark.session import status

SIZES = (250_000, 1_000_000, 2_500_000)
ROUNDS = 2
"""Of two stages with the same work the later one counts: code is compiled by then."""
ROWS = """
    SELECT id, id % 1000 AS few, id * 7919 % {size} AS key, id * 0.5D AS amount, concat('name ', id % 5000) AS name
    FROM range({size})
"""
QUERIES = {
    "filter": "SELECT count(*) FROM facts WHERE few = 17 AND amount > 10",
    "columns": "SELECT max(amount * 2 + few) FROM facts WHERE key % 3 = 1",
    "texts": "SELECT max(upper(substr(name, 3))) FROM facts WHERE name LIKE '%7'",
    "few groups": "SELECT few, count(*), sum(amount) FROM facts GROUP BY few",
    "many groups": "SELECT key, count(*), sum(amount) FROM facts GROUP BY key",
    "distinct": "SELECT count(DISTINCT name), count(DISTINCT few) FROM facts",
    "broadcast join": "SELECT /*+ broadcast(s) */ label, sum(id) FROM facts JOIN small s USING (few) GROUP BY label",
    "sorted join": "SELECT /*+ merge(d) */ sum(f.amount + d.amount) FROM facts f JOIN facts d ON f.id = d.key",
    "hashed join": "SELECT /*+ shuffle_hash(d) */ max(d.id) FROM facts f JOIN facts d ON f.key = d.id AND d.few < 99",
    "window": "SELECT row_number() OVER (PARTITION BY few ORDER BY amount) AS place FROM facts",
    "sort": "SELECT id, name FROM facts DISTRIBUTE BY few SORT BY name, amount",
    "top": "SELECT id, amount FROM facts ORDER BY amount DESC LIMIT 100",
    "cube": "SELECT few % 10 AS a, key % 10 AS b, sum(amount) FROM facts GROUP BY CUBE(few % 10, key % 10)",
    "explode": "SELECT part, count(*) FROM (SELECT explode(split(name, ' ')) AS part FROM facts) GROUP BY part",
    "union": "SELECT few, sum(amount) FROM (SELECT * FROM facts UNION ALL SELECT * FROM facts) GROUP BY few",
}


def run_queries(
    confs: Mapping[str, str], told: Callable[[str], None] = lambda name: None, sizes: Sequence[int] = SIZES
) -> None:
    """Each query on each size of the rows, in a Spark of its own that stores nothing but what stages took.

    :param confs: of the store
    :param told: the name of each that starts
    :raises NotActiveError: the plugin does not run
    """
    own = {key: value for key, value in confs.items() if key.startswith(f"{conf.PREFIX}recycle.")}
    own |= {f"{conf.PREFIX}recycle.strategy": "off", f"{conf.PREFIX}workflow.enabled": "false"}
    builder = SparkSession.builder.master("local[*]").appName("spark-regions calibrate")
    for key, value in {**own, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}.items():
        builder = builder.config(key, value)
    spark = configure(builder).getOrCreate()
    try:
        found = status(spark)
        if not found.active:
            raise NotActiveError(f"Spark runs without the plugin: {found.reason} Hint: {found.hint}")
        with tempfile.TemporaryDirectory(prefix="spark-regions-") as folder:
            for size in sizes:
                file = str(Path(folder, str(size)))
                spark.sql(ROWS.format(size=size)).write.parquet(file)
                spark.read.parquet(file).createOrReplaceTempView("facts")
                spark.sql("SELECT id AS few, id % 10 AS label FROM range(1000)").createOrReplaceTempView("small")
                for name, query in [*QUERIES.items()] * ROUNDS:
                    told(f"{name}, {size:,} rows")
                    spark.sql(query).write.format("noop").mode("overwrite").save()
    finally:
        spark.stop()
