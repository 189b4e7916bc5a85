"""What every generated program may call. Its text is a part of each printed script, so it uses nothing of ours."""

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType

OLD = 1_600_000_000
"""Files are as old as that, in seconds since 1970, and each change makes one a little younger, but never new."""


def write_data(
    spark: SparkSession, columns: list[str], files: int, rows: int, target: Path, spec: dict[str, Any]
) -> None:
    """The data set of an input, in `files` files (in each directory, where partitioned)."""
    writer = spark.range(0, files * rows, 1, files).selectExpr(*columns).write.format(spec["format"])
    if spec["partitioned"]:
        writer = writer.partitionBy("k")
    writer.mode("overwrite").save(str(target))


class Inputs:
    """The inputs of one program in `folder`, of data sets in `library`."""

    def __init__(self, spark: SparkSession, folder: Path, library: dict[str, Path], specs: dict[str, Any]) -> None:
        self.spark, self.folder, self.library, self.specs = spark, folder, library, specs
        self.changes = 0

    def start(self) -> None:
        """Every input as it was at first."""
        for name, spec in self.specs.items():
            shutil.rmtree(self.folder / name, ignore_errors=True)
            for number in range(spec["files"]):
                self._put(name, number, number)
            if spec["table"]:
                self.spark.sql(f"DROP TABLE IF EXISTS tab_{name}")
                parts = "PARTITIONED BY (k)" if spec["partitioned"] else ""
                location = f"LOCATION '{self.folder / name}'"
                self.spark.sql(f"CREATE TABLE tab_{name} ({spec['ddl']}) USING {spec['format']} {parts} {location}")
                if spec["partitioned"]:
                    self.spark.sql(f"MSCK REPAIR TABLE tab_{name}")

    def read(self, name: str) -> DataFrame:
        spec = self.specs[name]
        if spec["table"]:
            self.spark.sql(f"REFRESH TABLE tab_{name}")
            return self.spark.table(f"tab_{name}")
        reader = self.spark.read.format(spec["format"])
        if spec["format"] in ("json", "csv"):
            reader = reader.schema(spec["ddl"])
        return reader.load(str(self.folder / name))

    def append(self, name: str, number: int) -> None:
        self.changes += 1
        self._put(name, number, number)

    def replace(self, name: str, number: int, by: int) -> None:
        """The file keeps its name."""
        self.delete(name, number)
        self._put(name, by, number)

    def delete(self, name: str, number: int) -> None:
        self.changes += 1
        for file in self._numbered(self.folder / name, number):
            file.unlink()

    def overwrite(self, name: str, condition: str) -> None:
        """By Spark itself."""
        spec = self.specs[name]
        reader = self.spark.read.format(spec["format"]).schema(spec["ddl"])
        writer = reader.load(str(self.library[name])).where(condition).write.mode("overwrite").format(spec["format"])
        if spec["partitioned"]:
            writer = writer.partitionBy("k")
        writer.save(str(self.folder / name))
        self.changes += 1
        for file in (self.folder / name).rglob("part-*"):
            os.utime(file, (OLD + 60 * self.changes,) * 2)

    def written(self, frame: DataFrame) -> DataFrame:
        """What comes back of a frame that was written."""
        target = str(self.folder / "written")
        frame.write.mode("overwrite").parquet(target)
        return self.spark.read.parquet(target)

    def through_files(self, frame: DataFrame, fmt: str, by: str = "") -> DataFrame:
        """What comes back of a frame that was written under a name that is new in each run."""
        target = str(self.folder / f"through-{uuid.uuid4().hex}")
        writer = frame.write.format(fmt)
        (writer.partitionBy(by) if by else writer).save(target)
        columns = [*(name for name in frame.columns if name != by), by] if by else frame.columns
        return self.spark.read.format(fmt).schema(frame.schema).load(target).select(*columns)

    def _put(self, name: str, number: int, target: int) -> None:
        library = self.library[name]
        for file in self._numbered(library, number):
            copy = self.folder / name / file.relative_to(library).with_name(f"part-{target:05}{file.name[10:]}")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            os.utime(copy, (OLD + 60 * self.changes,) * 2)

    @staticmethod
    def _numbered(folder: Path, number: int) -> list[Path]:
        return [file for file in sorted(folder.rglob("part-*")) if int(re.findall(r"\d+", file.name)[0]) == number]


def plain_udf(addend):
    return F.udf(lambda x: None if x is None else (x + addend) % 1000, IntegerType())


@F.udf(returnType=StringType())
def tagged(text, number):
    return f"{text!r}:{number}"


@F.udf(returnType=ArrayType(IntegerType()))
def digits(number):
    return None if number is None else [int(digit) for digit in str(abs(number))[:3]]


@F.pandas_udf(LongType())
def halved(x: pd.Series) -> pd.Series:
    return x.fillna(0).astype("int64") // 2


@F.pandas_udf(LongType())
def spread(x: pd.Series) -> int:
    known = x.dropna()
    return int(known.max() % 1000 - known.min() % 1000) if len(known) else -1


def counted(group: pd.DataFrame) -> pd.DataFrame:
    known = int(group.iloc[:, 1].notna().sum())
    return pd.DataFrame([[group.iloc[0, 0], len(group), known]])


def even_only(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        yield batch[batch.iloc[:, 0] % 2 == 0]
