"""Numbers by which the shim acts without asking the planner: the build makes `Policy.scala` of them (`scala`)."""

from __future__ import annotations

CONTRADICTION_SHARE = 0.2
CONTRADICTION_SECONDS = 0.05
"""A saving contradicts its prediction where it is less than this share of it, and by more than so many seconds."""

COLUMNAR_READS = 3
"""From so many planned reads on, what is kept in memory is kept by columns: that takes a third longer, and a read half
as long."""
MOST_OFFERS = 8
"""DataFrames of one query that the planner can have signed; each costs an optimizer run."""
MOST_ASKS = 30
"""How often the planner may ask to be asked again about a query."""
OPERATORS_PER_MILLI = 2
ENGINE_OPERATOR_MILLIS = 4
PARTITIONS_PER_MILLI = 10
"""The planner has a millisecond more for as many operators of a plan, or partitions of a stage, and so many for each
operator where it makes statements for another engine."""
DEADLINE_SHARE = 0.1
DEADLINE_MOST_MILLIS = 2000
"""How long a decision is worth waiting for: this share of what decisions of late have saved, so long at the most."""

STORED_AT_ONCE_MILLIS = 200
"""What a query has to take before its result is stored unseen: reading it takes a part of that, too."""

SKEW_BYTES_WORTH_ASKING = 8_000_000
SKEW_ROWS_WORTH_ASKING = 1_000_000
"""What a core works through while a decision is asked for and a further stage starts, some 0.2 s."""
STAGE_LEAST_MILLIS = 200
"""Of all tasks of a stage: below, what it took is not kept."""

OPERATOR_WEIGHTS = {
    "FileSourceScanExec": 0.25,
    "BatchScanExec": 0.25,
    "InMemoryTableScanExec": 0.1,
    "LocalTableScanExec": 0.05,
    "RowDataSourceScanExec": 1.0,
    "RDDScanExec": 0.3,
    "RangeExec": 0.01,
    "ColumnarToRowExec": 0.05,
    "ProjectExec": 0.05,
    "FilterExec": 0.05,
    "HashAggregateExec": 0.2,
    "ObjectHashAggregateExec": 0.6,
    "SortAggregateExec": 0.2,
    "SortMergeJoinExec": 0.3,
    "BroadcastHashJoinExec": 0.15,
    "ShuffledHashJoinExec": 0.3,
    "BroadcastNestedLoopJoinExec": 2.0,
    "CartesianProductExec": 0.1,
    "SortExec": 0.4,
    "WindowExec": 0.6,
    "ExpandExec": 0.1,
    "GenerateExec": 0.3,
    "ShuffleExchangeExec": 0.4,
    "ShuffleExchangeExec.read": 0.4,
    "BroadcastExchangeExec": 0.2,
    "BroadcastExchangeExec.read": 0.2,
    "TakeOrderedAndProjectExec": 0.1,
    "TeeExec": 0.6,
    "UnionExec": 0.0,
}
PYTHON_WEIGHT = 3.0
OTHER_WEIGHT = 0.2
"""µs of one core on one row, by which a stage's time is divided over its operators until others are learned; only their
proportions matter."""
TIMED_STAGE_LEAST_MILLIS = 20
TIMED_STAGES_MOST = 30
"""Of all tasks of a stage that tells what rows cost, and stages of one query."""

REGEX_MICROS = 0.8
FIND_MICROS = 0.3
TEXT_MICROS = 0.1
NUMBER_MICROS = 0.05
CALENDAR_MICROS = 0.15
PATTERN_MICROS = 0.25
JSON_MICROS = 1.3
DIGEST_MICROS = 0.3
WIDE_DECIMAL_MICROS = 0.15
UDF_MICROS = 1.0
"""Of an operator's expressions on one row, beyond moving its columns. The last is not measured: what a function of the
user's does is unknown, and calling it converts its arguments and its result."""


def scala() -> str:
    """The shim's object with the same numbers.

    >>> "val otherWeight: Double = 0.2" in scala()
    True
    """
    lines = [f"  val {_camel(name)}: {_value(value)}" for name, value in globals().items() if name.isupper()]
    head = "// Made from spark_regions/costs/policy.py by the build.\npackage org.apache.spark.sql.regions\n\n"
    return head + "private[regions] object Policy {\n" + "\n".join(lines) + "\n}\n"


def _camel(name: str) -> str:
    first, *rest = name.lower().split("_")
    return first + "".join(each.capitalize() for each in rest)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "Map[String, Double] = Map(" + ", ".join(f'"{key}" -> {each}' for key, each in value.items()) + ")"
    return f"{'Int' if isinstance(value, int) else 'Double'} = {value}"
