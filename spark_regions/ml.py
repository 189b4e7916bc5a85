"""Takes the place of `pyspark.ml.tuning`: `from spark_regions.ml import CrossValidator`."""

from spark_regions.spark.ml import CrossValidator, TrainValidationSplit

__all__ = ["CrossValidator", "TrainValidationSplit"]
