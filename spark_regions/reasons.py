"""Every reason why something was done or was not done: a stable code and its sentence.

>>> sentence("TOO_CHEAP", "0.02 s")
'Recomputing costs too little to be worth an entry (0.02 s).'
>>> sentence("DISABLED")
'spark_regions is switched off.'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_TAKEN = {
    "BENEFIT": "The expected uses save more than reading and writing cost",
    "ROLLED_UP": "Groups of a stored aggregate are merged into those of the query",
    "REFRESHED": "A stored result is brought up to date from the files that it lacks",
    "HELD": "The program still refers to this DataFrame, or uses it again; given up if writing takes long",
    "SMALL_RESULT": "A query's rows, or the groups below them, are kept if they are few and took a while to compute",
    "SWEEP": "The query runs again with other values, and is expected to as often as it has",
    "SKI_RENTAL": "Earlier executions have cost as much more than reads as an entry would have",
    "ALWAYS": "The strategy acts at every eligible point",
    "PLANNED": "Later queries of the job use it, as in its last run",
    "LAST_USE": "No later query of the job uses it, as in its last run",
    "SHARED": "Computed once for several places of the query",
    "SHARED_UNSEEN": "Computed once for several places of the query, by the size of its sources",
    "ENGINE": "Another engine has the same rows for less",
    "ENGINE_UNSEEN": "Another engine has the same rows for less, by the size of their sources",
    "LATEST": "The last storable point of the plan",
    "SPLIT_BY_RECORDS": "The rows of heavy keys are dealt to several tasks",
    "TWO_PHASES": "The rows of heavy keys are dealt to several tasks, and a second phase merges their states",
    "TIES_SPREAD": "Rows of equal sort keys may go to several ranges, should a key be heavy",
    "MEASURED": "What the stage really took",
    "VERIFIED": "Run both ways, with equal rows",
    "LONGEST_FIRST": "Partitions are packed, and the longest task starts first",
}
_SERVES = {
    "SAME_ROWS": "The stored rows are those of the query",
    "FILTERED": "The query has more filters, which are applied on top",
    "IMPLIED": "The query's filters imply the stored ones, and are applied on top",
}
_INPUTS = {
    "INPUT_CHANGED": "An input changed while the query ran",
    "EDITED": "Rows were left out at a breakpoint: nothing computed since is kept for others",
    "RACY_INPUT": "A source file is so young that a change might not show in its time: nothing is stored yet",
    "NO_FILE_TIME": "The file system tells no time of a source file",
    "TOO_LARGE_TO_VERIFY": "Files without a footer are too large to be read for their identity",
    "UNVERIFIABLE_INPUT": "A source file's footer or content cannot be read",
    "TOO_MANY_FILES": "The relation has more files than are listed for its identity",
    "LOCAL_TOO_LARGE": "The local relation is too large to be digested",
    "RDD_SOURCE": "The rows come from an RDD, which has no identity across applications",
    "JDBC_SOURCE": "The rows come from a database that may change unseen",
    "STREAMING_SOURCE": "Streaming plans are never touched",
    "HIVE_SOURCE": "Hive tables read through Hive have no listing",
    "V2_SOURCE": "The data source does not say which version it reads",
    "UNKNOWN_SOURCE": "The data source is not known to keep its identity",
    "METADATA_COLUMN": "A column describes the files instead of their rows",
    "TOLERANT_READER": "The reader may silently skip or alter what it cannot parse",
    "USER_CACHED": "The program keeps these rows in Spark's cache: only what takes more to compute from them is stored",
    "NOT_REGISTERED": "Files that the query writes are known by their listing alone",
}
_PLANS = {
    "UNKNOWN_OPERATOR": "The operator is not known to the normal form",
    "OUTER_REFERENCE": "A subquery depends on the row outside of it",
    "CTE_REFERENCE": "A common table expression is referenced here",
    "PLAN_TOO_LARGE": "The plan has more operators than are signed",
    "ORDERED": "The order of the rows is part of the result",
    "TIE_DEPENDENT": "Ties may be resolved differently in another run",
    "LIMIT_WITHOUT_TOTAL_ORDER": "A limit without a total order may keep other rows in another run",
    "SAMPLE": "A sample may differ in another run",
    "COMMAND": "Commands are never replaced",
    "OBSERVE": "Observed metrics would be skipped",
    "OPAQUE_PYTHON": "A Python operator cannot be read",
    "OBJECT_OPERATOR": "An operator on JVM objects cannot be read",
    "CHILD_REFUSED": "An input of the operator has no identity",
    "NONDETERMINISTIC": "The expression may give another value in another run",
    "ORDER_DEPENDENT": "The result depends on the order of the input rows",
    "FLOAT_AGGREGATE": "A floating-point aggregate depends on the order of the input rows",
    "REPEATED_FLOAT_AGGREGATE": "Where else the query has this floating-point aggregate, its value must be the same",
    "UNDIGESTIBLE_FUNCTION": "A function has no digest",
    "UNDIGESTIBLE_EXPRESSION": "An expression has no digest",
    "SIGNER_FAILED": "An error inside spark_regions while the plan was read",
}
_FUNCTIONS = {
    "UDF_UNREADABLE": "The pickled Python function cannot be read",
    "UDF_MODULE_UNKNOWN": "A module that the Python function names was not found",
    "UDF_SIDE_EFFECT": "The Python function has effects beside its result",
    "UDF_UNPROVEN": "The Python function is not shown to depend on its arguments alone",
    "UDF_MUTABLE_STATE": "The Python function changes what is kept from call to call",
    "UDF_NONDETERMINISTIC": "The Python function may give another value in another run",
    "UDF_BROADCAST": "The Python function reads a broadcast variable",
}
_NEVER_STORED = {
    "SOURCE": "A stored copy of a plain source would bring nothing",
    "REPARTITION": "The user asked for this partitioning",
    "RUNTIME_FILTER": "A runtime filter has removed rows that other queries need",
    "SUBQUERY_DECIDED": "The subquery had a decision of its own",
    "BAD_ROWS": "Rows that fail may be missing from it",
}
_MATCHING = {
    "TYPE_MISMATCH": "The stored column has another type",
    "NOT_COVERED": "A stored entry lacks columns",
    "NOT_GROWN": "A stored result of other files cannot be brought up to date",
    "CONJUNCTS_DIFFER": "A stored entry was filtered otherwise",
    "ROW_ORDER": "Its rows, or their partitions, are not known to come in the order in which plain Spark gives them",
    "EXPIRED": "The stored entry is older than recycle.ttl",
    "SHADOWED": "Loading the entry twice saved less than predicted",
    "LOAD_NOT_CHEAPER": "Reading the stored entry is not cheaper than recomputing",
}
_DECIDING = {
    "NO_HISTORY": "The point has not been measured yet",
    "YOUNG_SWEEP": "The second iteration may be the last, and an entry costs more than a tenth of it",
    "IN_VAIN": "A loop whose last iterations had nothing of what was decided: only now and then one is decided on",
    "TOO_CHEAP": "Recomputing costs too little to be worth an entry",
    "TOO_LARGE": "The result is larger than the budget",
    "OVER_BUDGET": "No room within the byte budget",
    "NOT_SMALL": "More rows than tasks hold in memory for it",
    "NOT_WORTH_WRITING": "The expected uses do not pay for the write",
    "NOT_CHOSEN": "The strategy preferred another point",
    "ALREADY_STORED_BELOW": "A point below was chosen",
    "ALREADY_STORED_ABOVE": "A point above was chosen",
    "PENDING_ELSEWHERE": "Another query is writing this result",
    "NOT_WORTH_SHARING": "Computing it again costs less than the shuffle that sharing takes",
    "CONTRADICTED": "Reading it saved less than a fifth of what was predicted",
    "LOST": "As measured, it has made the query slower than plain Spark",
    "DIFFERS": "A query that was run both ways gave other rows than plain Spark: switched off until it is lifted",
    "DISAPPOINTED": "Computing it once has made the query no faster",
    "COMPARED": "One run apart, to compare runs in which it was computed once",
    "MAY_FAIL": "The expression may fail on rows that only plain Spark, or only another place, evaluates it on",
    "SHAPES_DIFFER": "The subplans cannot be merged into one",
    "NOT_PARTITIONABLE": "No column of the shared subplan can be hashed",
    "OBSERVE_ONLY": "The mode is observe",
    "RECYCLE_OFF": "Recycling is switched off",
    "UNKNOWN_STRATEGY": "No strategy of that name",
}
_ENGINES = {
    "NOT_IN_TABLE": "Nothing proven equal is known of this in another engine",
    "UNPROVEN_TYPE": "Another engine is not shown to give the same values for this type",
    "UNPROVEN_ARGUMENT": "Another engine is not shown to give the same values for this argument",
    "UNREAD_FIELD": "An argument of the expression is not known to what is proven of it",
    "MAY_RAISE": "Spark may raise on a row here, which another engine might not evaluate",
    "UNDETERMINED": "Which rows or values these are depends on the order of rows",
    "FLOAT_KEY": "Floating-point keys that compare as equal may differ",
    "INPUT_IN_SPARK": "What is below stays in Spark",
    "IN_ENGINE": "Another engine computes these rows",
    "ENGINE_NOT_CHEAPER": "Another engine is not expected to be faster",
    "INPUT_TOO_LARGE": "The files are larger than platforms.maxInputBytes",
    "RESULT_TOO_LARGE": "The rows are larger than platforms.maxResultBytes",
    "TIED": "Rows with equal sort keys, of which Spark may have others, or in another order",
    "NOT_IN_STATISTICS": "A compared column has NaN or -0.0, rows with which Spark may lose by files' statistics",
    "FILE_SCHEMA": "A file is not stored in a way that both read alike",
    "REBASE_MODES": "The relations are read by different calendars",
    "RESULT_SCHEMA": "Another engine gave columns of other types",
    "CANCELLED": "The statement was cancelled",
    "DEADLINE": "Another engine took far longer than Spark was expected to, or than platforms.timeout",
    "ENGINE_ERROR": "Another engine raised an error",
    "ENGINE_OUT_OF_MEMORY": "Another engine has no memory left",
    "ENGINE_DISK_FULL": "Another engine has no room on the disk left",
    "ENGINE_NOT_INSTALLED": "The other engine is not installed",
    "ENGINE_UNPROVEN": "Nothing is proven of the version of the other engine that is installed",
    "ENGINE_NOT_STARTABLE": "Another engine's process cannot be started",
    "ENGINE_VERSION_MISMATCH": "The jar and the package that runs another engine have different versions",
    "ENGINE_PROTOCOL": "Another engine's process sent something that is not the protocol",
    "ENGINE_DOWN": "Another engine's process ended",
    "ENGINE_GAVE_UP": "Another engine's process failed too often and is not started again",
}
_SKEW = {
    "BALANCED": "No partition exceeds what order and packing can balance",
    "GAIN_TOO_SMALL": "The repair gains less than the error of the prediction",
    "HAND_SALTED": "The query spreads its keys by a salt of its own",
    "PARTITIONS_VISIBLE": "The caller may read the partitions themselves, in which equal keys are together",
    "NO_HEAVY_KEYS": "No key of the partition was known to be heavy when this was decided",
    "ONE_BLOCK": "The partition comes from one map task as a whole",
    "MIGRATION_TOO_SLOW": "Copying the other rows to helpers takes longer than it saves",
    "NOT_MERGEABLE": "The operator needs all rows of a key in one task",
    "STATE_AS_LARGE": "The state of a key holds its rows or values, so that a second phase would read them all again",
    "EQUAL_BUT_DIFFERENT": "Keys that compare as equal may differ, so that rows cannot be joined back by them",
    "GROUP_LIMITED": "Spark keeps only the first rows of each key before the shuffle",
    "CO_PARTITIONED": "Another operator of the stage relies on how these rows are partitioned",
    "UNMATCHED_ROWS": "With a further condition, a task cannot tell which rows stay unmatched",
}
_STORING = {
    "PARTIAL_CONSUMPTION": "Not every partition was read to its end",
    "NOT_EXECUTED": "What it is part of was read instead, or did not run",
    "NOT_HELD": "The program has let go of the DataFrame",
    "INDETERMINATE_RETRY": "A stage with undetermined order was retried",
    "STORE_NOT_SHARED": "The store's directory is not shared with the executors",
    "WRITE_FAILED": "Writing the entry failed",
    "TYPE_NOT_STORABLE": "A column type cannot be stored",
    "NO_COLUMNS": "Only the number of rows is needed: there is nothing to store, but a stored result can tell it",
    "ENTRY_EXISTS": "The entry's files exist already",
    "ENTRY_MISSING": "The entry's files are gone",
    "ENTRY_DAMAGED": "The entry's files are damaged",
    "APPLICATION_ENDED": "The application ended before the commit",
    "OWNER_GONE": "The application that wrote the entry ended before the commit",
    "ANSWER_UNUSED": "The query ended without using the answer",
    "SUPERSEDED": "A wider entry replaced it",
    "REMOVED": "Removed by the user",
}
_STORE = {
    "STORE_UNWRITABLE": "The recycling cache's directory or catalog cannot be used",
    "CATALOG_RECREATED": "The catalog was damaged; it was moved aside and a new one was made",
    "CATALOG_OLDER": "The catalog was of an earlier version; it was moved aside and a new one was made",
    "CATALOG_NEWER": "The catalog was written by a later version",
    "CATALOG_BUSY": "Another process held the catalog's lock",
}
_PLANNER = {
    "PLANNER_DEADLINE": "The planner did not answer in time",
    "PLANNER_DOWN": "The planner is not running",
    "PLANNER_GAVE_UP": "The planner failed too often and is not started again",
    "PLANNER_PROTOCOL": "The planner sent something that is not the protocol",
    "PLANNER_VERSION_MISMATCH": "The jar and the Python package have different versions",
    "PLANNER_NOT_STARTABLE": "The planner cannot be started",
    "PLANNER_STARTING": "The planner is still starting",
    "UNKNOWN_ACTION": "The planner asked for an action that the jar does not know",
    "ATTRIBUTE_CLASH": "The action would give a column that exists already",
    "INTERNAL_ERROR": "An error inside spark_regions",
}
_ACTIVATION = {
    "WRONG_SPARK": "The jar was built for another Spark version",
    "DISABLED": "spark_regions is switched off",
    "INVALID_CONF": "A configuration value cannot be used",
}

SECTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Why an action was taken": _TAKEN,
        "By which rule a stored result serves": _SERVES,
        "Inputs that have no identity, or none that outlives the application": _INPUTS,
        "Plans that have no identity": _PLANS,
        "Python functions": _FUNCTIONS,
        "Operators that have an identity, and whose result is never stored": _NEVER_STORED,
        "Matching": _MATCHING,
        "Deciding": _DECIDING,
        "Other engines": _ENGINES,
        "Skew": _SKEW,
        "Storing and loading": _STORING,
        "The store": _STORE,
        "The planner": _PLANNER,
        "Activation": _ACTIVATION,
    }
)
"""The codes by what they are about, in the order of a query's way."""

REASONS: Mapping[str, str] = MappingProxyType(
    {code: text for codes in SECTIONS.values() for code, text in codes.items()}
)


def sentence(code: str, detail: str = "") -> str:
    """The sentence of a reason code, with its argument; an unknown code stands for itself."""
    text = REASONS.get(code, code)
    return f"{text} ({detail})." if detail else f"{text}."


def properties() -> str:
    """The table as the Java properties file that the shim shows sentences from; the build writes it."""
    lines = [f"{code}={text}\n" for code, text in sorted(REASONS.items())]
    return "# Generated from spark_regions/reasons.py; do not edit.\n" + "".join(lines)


_WOULD = {
    "load": "load would save {:.2f} s",
    "store": "store would save {:.2f} s a use",
    "share": "computing it once would save {:.2f} s",
    "route": "another engine would save {:.2f} s",
}
_WOULD_FORMS = {
    kind: re.compile(re.escape(form).replace(r"\{:\.2f\}", r"(-?[0-9.]+)")) for kind, form in _WOULD.items()
}


def would_save(kind: str, seconds: float) -> str:
    """What OBSERVE_ONLY says of a load, a store, a share or a route that was not done."""
    return _WOULD[kind].format(seconds)


def read_would_save(detail: str) -> tuple[str, float] | None:
    """The kind and the seconds of a text of `would_save`, None for any other.

    >>> read_would_save(would_save("load", 1.25))
    ('load', 1.25)
    >>> read_would_save("0.02 s") is None
    True
    """
    for kind, form in _WOULD_FORMS.items():
        if found := form.fullmatch(detail):
            return kind, float(found[1])
    return None
