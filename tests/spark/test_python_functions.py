"""Python functions in real queries: what is pure is stored and read back, what reads the world never is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.homes import at_home
from tests.harness.session import committed, decisions, sibling
from tests.spark.test_same_rows import OFF
from tests.udf.cells import cells, space_of

pytestmark = pytest.mark.spark
ALWAYS = {"spark.regions.recycle.strategy": "always"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def always(spark: SparkSession) -> SparkSession:
    return sibling(spark, ALWAYS)


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("functions")
    sibling(spark, OFF).range(0, 40, 1, 2).selectExpr("id", "concat('t', id) AS text").write.parquet(str(path / "t"))
    for file in (path / "t").iterdir():
        os.utime(file, (time.time() - 60, time.time() - 60))
    return str(path / "t")


def refusals(session: SparkSession, folder: str, function: Any) -> set[str]:
    """What stands against storing a projection of the function, without running it."""
    frame = session.read.parquet(folder).select(F.udf(function, "string")("text").alias("v")).distinct()
    return {node.code for node in spark_regions.why_not(frame).refused if node.code}


def test_pure_functions_can_be_stored(always: SparkSession, folder: str) -> None:
    pure = cells("pure.txt")
    declined = {}
    for title, source in pure.items():
        found = {code for code in refusals(always, folder, space_of(source)["f"]) if code.startswith("UDF_")}
        if found:
            declined[title] = found
    assert len(declined) <= 0.02 * len(pure), declined


def test_impure_functions_cannot(always: SparkSession, folder: str) -> None:
    impure = cells("impure.txt")
    stored, unpickled = [], 0
    for title, source in impure.items():
        try:
            found = refusals(always, folder, space_of(source)["f"])
        except Exception as error:
            # What cannot be pickled never reaches a worker.
            assert "pickle" in str(error).lower(), f"{title}: {error}"
            unpickled += 1
            continue
        if not any(code.startswith("UDF_") for code in found):
            stored.append(title)
    assert stored == []
    assert unpickled < 0.1 * len(impure)


def rows(session: SparkSession, folder: str, function: Any) -> list[Row]:
    frame = session.read.parquet(folder).withColumn("v", F.udf(function, "string")("text"))
    return sorted(frame.groupBy("v").agg(F.count("*").alias("n")).collect())


def test_a_pure_function_is_stored_and_read_back(spark: SparkSession, always: SparkSession, folder: str) -> None:
    def f(text: str) -> str:
        return text[::-1].upper()[:1]

    plain = rows(sibling(spark, OFF), folder, f)
    start = committed(always)
    assert rows(always, folder, f) == plain
    assert committed(always).stores > start.stores
    again = sibling(spark, ALWAYS)
    assert rows(again, folder, f) == plain
    assert "load" in {each["kind"] for each in decisions(again)}


def test_a_function_that_reads_a_file_is_never_stale(
    spark: SparkSession, always: SparkSession, folder: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "limit.txt")

    def f(text: str) -> str:
        return Path(path).read_text()

    found = []
    for word in ("one", "two", "three"):
        Path(path).write_text(word)
        found.append(rows(always, folder, f)[0].v)
        assert found[-1] == rows(sibling(spark, OFF), folder, f)[0].v
    assert found == ["one", "two", "three"]


def test_the_reason_names_the_expression_and_the_line(always: SparkSession, folder: str) -> None:
    def f(text: str) -> str:
        return str(time.time())

    frame = always.read.parquet(folder).select(F.udf(f, "string")("text").alias("v")).distinct()
    told = str(spark_regions.why_not(frame))
    assert "UDF_UNPROVEN" in told
    assert "time.time (f, line " in told


def test_the_users_own_word_counts(spark: SparkSession, always: SparkSession, folder: str) -> None:
    @spark_regions.pure
    def f(text: str) -> str:
        return os.environ.get("NOT_SET_ANYWHERE", text)

    assert not any(code.startswith("UDF_") for code in refusals(always, folder, f))
    plain = rows(sibling(spark, OFF), folder, f)
    start = committed(always)
    assert rows(always, folder, f) == plain
    assert committed(always).stores > start.stores


TRUSTED = """
import json, sys
import world_of_ours
from pyspark.sql import SparkSession, functions as F
import spark_regions

options = {"planner_deadline": "10s"}
if sys.argv[3] == "trusted":
    options["udf_trustedModules"] = "world_of_ours"
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "1")
builder = spark_regions.configure(builder, recycle_dir=sys.argv[2], recycle_strategy="always", **options)
spark = builder.getOrCreate()
for _ in range(2):
    frame = spark.read.parquet(sys.argv[1]).withColumn("v", F.udf(world_of_ours.label, "string")("text"))
    rows = frame.groupBy("v").count().collect()
    jvm = spark.sparkContext._jvm
    assert jvm.org.apache.spark.sql.regions.exec.Stores.awaitCommits(20000)
kinds = [action["kind"] for made in spark_regions.decisions(spark) for action in made["actions"]]
print("RESULT", json.dumps([len(rows), kinds.count("load")]))
spark.stop()
"""


@pytest.mark.parametrize(("word", "loads"), [("trusted", 1), ("not trusted", 0)])
def test_the_modules_that_the_user_trusts_count(folder: str, tmp_path: Path, word: str, loads: int) -> None:
    """A start-up key, hence an application of its own."""
    (tmp_path / "world_of_ours.py").write_text(
        "import os\n\n\ndef label(text):\n    return os.environ.get('LABEL_THAT_NOBODY_SET', text)\n"
    )
    command = [sys.executable, "-c", TRUSTED, folder, str(tmp_path / "store"), word]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=at_home(tmp_path, PYTHONPATH=os.pathsep.join((str(ROOT), str(tmp_path)))),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("RESULT ")]
    assert json.loads(line.removeprefix("RESULT ")) == [40, loads]
