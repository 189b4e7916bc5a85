"""Rows that failed and did not end their job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_regions.errors import NotActiveError
from spark_regions.spark.session import ABSENT, ABSENT_HINT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def bad_rows(spark: SparkSession) -> DataFrame:
    """The rows of this application that failed and are kept, each with its error; classic or Connect.

    Those of tasks that ended well, under `spark.regions.control.onBadRow=quarantine`, in the folder of the session's
    settings. Columns: `query` (Spark's number of the SQL execution, below zero for jobs over an RDD), `stage`,
    `partition`, `attempt`, `operator`, `function` (the Python function, or the expression), `error`, `condition`
    (Spark's name of it), `trace`, `row` (the operator's input, as strings), `arguments`, `file` and `block` (where its
    bytes begin), `milliseconds`.

    Errors: `NotActiveError` where the session runs without the plugin.
    """
    from pyspark.errors import AnalysisException

    try:
        found = spark.sql("SELECT * FROM spark_regions_bad_rows()")
        # A Connect session asks the server only now.
        _ = found.schema
    except AnalysisException as error:
        if error.getCondition() == "UNRESOLVABLE_TABLE_VALUED_FUNCTION":
            raise NotActiveError(f"{ABSENT} Hint: {ABSENT_HINT}") from None
        raise
    return found
