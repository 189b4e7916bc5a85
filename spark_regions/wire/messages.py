"""What the driver and the planner say to each other, a struct a message; docs/protocol.md tells what the fields mean.

The driver's side has the same structs in Scala: `schema.py` writes `schema.json` from these, and the build makes case
classes of it (`scala.py`). A message that does not fit is refused by either side, with the field's name.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from spark_regions.wire.actions import Action
from spark_regions.wire.base import Long, Record


class Asked(Record, frozen=True, kw_only=True, tag_field="type"):
    """A request: its answer has the same `seq`."""

    seq: int = 0


class Told(Record, frozen=True, tag_field="type"):
    """Something observed: it has no answer."""


class Answered(Record, frozen=True, kw_only=True, tag_field="type"):
    seq: int = 0


class Why(Record, frozen=True):
    """:param code: of `spark_regions.reasons`"""

    code: str
    detail: str = ""


# The handshake: a line on the planner's stdin, a line on its stdout, and the first frame.


class Greeting(Record, frozen=True):
    token: str
    version: str
    protocol: int
    confs: dict[str, str] = msgspec.field(default_factory=dict)


class Started(Record, frozen=True):
    """:param error: a code; there is no port then"""

    port: int = 0
    protocol: int = 0
    version: str = ""
    error: str = ""
    detail: str = ""


class Hello(Asked, frozen=True, tag="hello"):
    token: str
    protocol: int
    application: str = ""
    name: str = ""
    user: str = ""


class HelloAnswer(Answered, frozen=True, tag="hello"):
    """
    :param engines: other engines that parts of a query can be for; those of a planner
    """

    protocol: int
    version: str
    engines: tuple[str, ...] = ()


class ErrorAnswer(Answered, frozen=True, tag="error"):
    """Instead of any answer."""

    code: str
    detail: str = ""


# A query is about to run.


class Confs(Record, frozen=True):
    """The confs of one query; `first_use_overhead` is a share of its own work, `verify` one of the decisions,
    `ttl_seconds` seconds, others bytes. `platforms`: the engine that may take parts of it, "auto" or "off"."""

    strategy: str = "markov"
    max_bytes: Long = 0
    ttl_seconds: float = 0.0
    recycle: bool = True
    persist: bool = True
    persist_max_bytes: Long = 0
    window: int = 20
    first_use_overhead: float = 0.0
    sharing: bool = False
    workflow: bool = False
    verify: float = 0.0
    platforms: str = "off"
    platforms_max_input_bytes: Long = 0
    platforms_max_result_bytes: Long = 0
    platforms_float_sums: bool = False

    @property
    def recycling(self) -> bool:
        """Whether stored results are read and made."""
        return self.recycle and self.strategy != "off"


class Grouping(Record, frozen=True):
    """What an aggregate is made of, so that one with more groups can serve one with fewer; docs/rollup.md.

    :param base: core of its input
    :param conjuncts: filters of its input that are none of its groups
    :param keys: values that it groups by
    :param functions: to the column with the function's value
    :param parts: of each function, those whose values over parts of a group give its value; none where there are none
    :param values: what a function reads that does not see how often a value comes
    :param refusal: of the first function with neither
    """

    base: str
    conjuncts: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    functions: dict[str, str] = msgspec.field(default_factory=dict)
    parts: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    values: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    refusal: Why | None = None


class Growth(Record, frozen=True):
    """What tells a stored result where the files of its relations are taken out; docs/growing.md.

    :param identity: of its plan
    :param columns: keys and functions of an aggregate, or columns of other rows, to the stored columns
    :param files: by relation, a digest of each file
    :param sources: by relation, what it is with its files
    """

    identity: str
    columns: dict[str, str] = msgspec.field(default_factory=dict)
    files: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    sources: dict[str, str] = msgspec.field(default_factory=dict)


class GrownEntry(Record, frozen=True):
    """A stored result that lacks some files of one relation.

    :param bytes: of these files
    :param whole: of all files of the relation
    :param nodes: from the relation up to the rows, or the aggregate, which work on the new rows only
    """

    entry: str
    bytes: Long
    whole: Long
    nodes: tuple[int, ...] = ()


class PlanNode(Record, frozen=True):
    """
    :param lineage: None where the node has no identifier, and `refusal` says why
    :param row_bytes: estimated width
    :param source_bytes: of a leaf, as its source counts it
    :param source_rows: of a leaf below a `weaker` plan, as its files say
    :param grouping: of an aggregate
    :param grown: stored results that lack some of its files
    """

    id: int
    operator: str = ""
    children: tuple[int, ...] = ()
    lineage: str | None = None
    core: str | None = None
    conjuncts: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    storable: bool = False
    session: bool = False
    refusal: Why | None = None
    row_bytes: float = 0.0
    source_bytes: Long | None = None
    source_rows: Long | None = None
    grouping: Grouping | None = None
    grown: tuple[GrownEntry, ...] = ()


class SharedFrame(Record, frozen=True):
    """A DataFrame of the user's, wider than `node`.

    :param inputs: lineage and bytes of a row of what its joins read
    :param weaker: no DataFrame, but the node without the filters that changed since the last iteration of a sweep
    :param typed: where another engine may be asked, its own nodes, as `Decide.typed`
    :param places: nodes of the query, each with the DataFrame's own node of the same rows
    :param more_python: it calls Python functions that the node does not call
    """

    ref: str
    node: int
    lineage: str
    core: str
    conjuncts: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    seen: int = 0
    held: bool = False
    row_bytes: float = 0.0
    inputs: tuple[tuple[str, float], ...] = ()
    weaker: bool = False
    typed: str | None = None
    places: tuple[tuple[int, int], ...] = ()
    more_python: bool = False


class RepeatedNodes(Record, frozen=True):
    """Nodes that one subplan can stand in for; lineage, columns and width are the subplan's."""

    nodes: tuple[int, ...]
    copies: tuple[int, ...]
    lineage: str
    core: str
    conjuncts: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    exact: bool = False
    exchange: bool = True
    row_bytes: float = 0.0


class Comparison(Record, frozen=True):
    """Of a value with a literal.

    :param operator: "=", "!=", "<", "<=", ">", ">=" or "prefix"
    :param literal: of the value's type; strings and binaries in hex, dates and times as Spark's number
    """

    operator: str
    literal: str


class Predicate(Record, frozen=True):
    """What a filter says of one value: true exactly where that is not null and all comparisons of a branch hold.

    :param conjunct: the filter
    :param column: the value
    :param data_type: as Spark calls it
    :param any: the branches; one without comparisons lets pass each value
    """

    conjunct: str
    column: str
    data_type: str
    any: tuple[tuple[Comparison, ...], ...]


class SignedQuery(Record, frozen=True):
    """A plan as it was signed; what a recorded run keeps of a query.

    :param equal: a conjunct to two columns that have the same value in each row that it lets pass
    :param predicates: what its simple filters say
    """

    nodes: tuple[PlanNode, ...]
    root: int = 0
    expressions: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    conjunct_columns: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    equal: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    shared: tuple[SharedFrame, ...] = ()
    repeated: tuple[RepeatedNodes, ...] = ()
    predicates: tuple[Predicate, ...] = ()


class QueryTop(Record, frozen=True):
    """What tells a query from others.

    :param key: of its rows, their columns, and how they are written if they are
    :param lineage: of the rows
    """

    key: str
    core: str
    lineage: str


class QueryShape(Record, frozen=True):
    """A plan without its values, by which iterations of a loop are known.

    :param shape: digest of the operators, expressions and sources
    :param values: digest of its literals and pickled functions
    """

    shape: str
    values: str


class Decide(Asked, frozen=True, tag="decide"):
    """
    :param subquery: it is a part of a query, which is decided on by itself before that is
    :param top: None where the rows have no identity, or are written by a command that is not known
    :param typed: where another engine may be asked, the nodes with expressions and types, as JSON (`platforms.typed`)
    :param engine_up: its process runs
    :param shape: None where sweeps are switched off, or a source has no identity
    """

    query: Long
    plan: SignedQuery
    confs: Confs
    application: str = ""
    session: str = ""
    mode: str = "apply"
    parallelism: int = 1
    offered: int = 0
    unordered: tuple[tuple[int, str], ...] = ()
    subquery: bool = False
    top: QueryTop | None = None
    typed: str | None = None
    engine_up: bool = False
    shape: QueryShape | None = None


class DecideAgain(Asked, frozen=True, tag="again"):
    """About a query whose plan was sent: more of its DataFrames, or what was found of earlier answers.

    :param unordered: nodes, each with an entry or a DataFrame whose rows would come in another order than plain Spark's
    """

    query: Long
    offered: int = 0
    shared: tuple[SharedFrame, ...] = ()
    unordered: tuple[tuple[int, str], ...] = ()


class NodeDecline(Record, frozen=True):
    node: int
    code: str
    detail: str = ""


class RegionInput(Record, frozen=True):
    region: int
    label: str = ""


class Region(Record, frozen=True):
    id: int
    rank: int
    nodes: tuple[int, ...] = ()
    operators: tuple[str, ...] = ()
    inputs: tuple[RegionInput, ...] = ()
    seconds: float | None = None


class NumberedRegions(Record, frozen=True):
    """The query's regions, and the predicted seconds; `step` of `steps` where a recorded run is followed."""

    step: int | None = None
    steps: int | None = None
    chosen_seconds: float | None = None
    plain_seconds: float | None = None
    regions: tuple[Region, ...] | None = None


class LearnedWeights(Record, frozen=True):
    """
    :param fitted: when (epoch, in seconds)
    :param micros: of one core on one row, by kind of operator
    :param expressions: by which the fixed weights of expressions are multiplied
    :param others: by which those of all other operators are
    """

    fitted: float
    micros: dict[str, float] = msgspec.field(default_factory=dict)
    expressions: float = 1.0
    others: float = 1.0


class Baseline(Record, frozen=True):
    """What plain execution of the same query took.

    :param state: "cold" where the application has not run the query's core before, else "warm"
    :param seconds: of the wall clock, the mean of `runs` in that state; None where there was none
    """

    state: str
    seconds: float | None = None
    runs: int = 0


class Decision(Answered, frozen=True, tag="decision"):
    """
    :param baseline: None of a query that cannot be told from others
    :param verify: the driver is to run the query both ways, after it
    :param sweep: locations of evicted entries whose files the driver must delete
    :param offer: the driver is to ask again, with so many of the query's DataFrames
    :param again: the run is still being planned; the driver is to ask again
    :param millis: of the parts of deciding
    :param weights: where the driver divides by others, as its last `executed` told
    :param tied: digests of sorts that had rows with equal keys; told once
    :param unasked: for so many seconds queries of this one's shape run as they are
    """

    actions: tuple[Action, ...] = ()
    declines: tuple[NodeDecline, ...] = ()
    sweep: tuple[str, ...] = ()
    regions: NumberedRegions | None = None
    offer: int = 0
    again: bool = False
    millis: dict[str, float] = msgspec.field(default_factory=dict)
    weights: LearnedWeights | None = None
    baseline: Baseline | None = None
    verify: bool = False
    tied: tuple[str, ...] = ()
    unasked: float = 0.0


class Announce(Asked, frozen=True, tag="announce"):
    """Queries that follow; without any, the batch is over.

    :param at_once: so many at a time, in this order, though some may be left out; 0: all side by side, in any order
    """

    queries: tuple[Decide, ...] = ()
    at_once: int = 0


class BatchPlan(Answered, frozen=True, tag="announce"):
    """
    :param ranks: positions of the queries
    :param release: persisted results that the driver drops
    """

    ranks: tuple[tuple[int, ...], ...] = ()
    release: tuple[str, ...] = ()
    chosen_seconds: float | None = None
    plain_seconds: float | None = None
    kept: int | None = None


class PickledFunction(Record, frozen=True):
    """:param command: base64"""

    key: str
    command: str
    python_version: str = ""
    hash_seed: str = "0"


class DigestFunctions(Asked, frozen=True, tag="digest_udf"):
    """:param roots: folders and archives in which modules of the user's own can lie"""

    functions: Annotated[tuple[PickledFunction, ...], msgspec.Meta(max_length=1_000)]
    roots: tuple[str, ...] = ()


class FunctionDigest(Record, frozen=True):
    digest: str | None = None
    refusal: Why | None = None


class FunctionDigests(Answered, frozen=True, tag="digest_udf"):
    digests: dict[str, FunctionDigest] = msgspec.field(default_factory=dict)


class WrittenFiles(Record, frozen=True):
    """Files that writes of known rows have committed; docs/files.md.

    :param root: the folder that was written to
    :param rows: digest of the rows of each of the writes
    :param contents: digest of a file's bytes by its path below `root`, where they were read
    """

    root: str
    rows: tuple[str, ...]
    contents: dict[str, str] = msgspec.field(default_factory=dict)


class FindWritten(Asked, frozen=True, tag="written"):
    """:param listings: digests of the paths, lengths and times of all files of a relation"""

    listings: Annotated[tuple[str, ...], msgspec.Meta(max_length=1_000)]


class FoundWritten(Answered, frozen=True, tag="written"):
    """:param found: by listing"""

    found: dict[str, WrittenFiles] = msgspec.field(default_factory=dict)


class FindGrown(Asked, frozen=True, tag="grown"):
    """
    :param identities: of plans whose relations' files are taken out
    :param relations: without their files
    """

    identities: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()
    relations: Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)] = ()


class FoundGrown(Answered, frozen=True, tag="grown"):
    """
    :param found: by entry
    :param sources: by relation, what it was with the files that results were stored of
    """

    found: dict[str, Growth] = msgspec.field(default_factory=dict)
    sources: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


# A running job is under control.


class TaskAttempt(Record, frozen=True):
    """:param number: Spark's `taskAttemptId`"""

    stage: int
    partition: int
    number: Long


class WaitingRow(Record, frozen=True):
    """A row at which a task stands; see `debugging.rows.HeldRow`."""

    attempt: TaskAttempt
    operator: str
    ordinal: Long
    values: dict[str, str]
    why: str
    answer: str = ""
    going: bool = False
    error: str = ""
    types: dict[str, str] = msgspec.field(default_factory=dict)
    nullable: bool = False
    fixed: dict[str, str | None] = msgspec.field(default_factory=dict)


class BreakAt(Record, frozen=True):
    """See `debugging.state.Breakpoint`."""

    number: int
    operator: str
    action: str
    sql: str = ""
    target: Long = 0


class ControlState(Record, frozen=True):
    """See `debugging.state.State`."""

    name: str
    operators: tuple[str, ...] = ()
    breakpoints: tuple[BreakAt, ...] = ()
    held: tuple[WaitingRow, ...] = ()
    paused: bool = False
    version: Long = 0
    controller: str = ""
    edited: bool = False
    params: dict[str, str] = msgspec.field(default_factory=dict)
    declared: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    answered: tuple[WaitingRow, ...] = ()


class ControlCommand(Record, frozen=True):
    """:param command: a class of `debugging.state` in small letters; the other fields are its"""

    command: str
    by: str
    operator: str = ""
    condition: str = ""
    action: str = "ask"
    number: int = 0
    row: str = ""
    held: WaitingRow | None = None
    attempt: TaskAttempt | None = None
    name: str = ""
    value: str = ""
    values: dict[str, str | None] = msgspec.field(default_factory=dict)


class Control(Asked, frozen=True, tag="control"):
    """
    :param state: as the last answer had it
    :param commands: one after the other, all or none of them
    """

    state: ControlState
    commands: tuple[ControlCommand, ...] = ()


class Controlled(Answered, frozen=True, tag="control"):
    """:param error: why the state is still what it was"""

    state: ControlState
    error: str = ""


class CountRows(Asked, frozen=True, tag="count"):
    """What happened at a breakpoint that counts rows, or sums up their values.

    :param breakpoint: its number
    :param summed: whether values are summed up
    :param first: of this breakpoint; without it, one that is not known is an error
    :param event: `joined`, `reported`, `finished`, `lost` or `waited`
    """

    breakpoint: int
    target: Long
    first: bool
    event: str
    attempt: TaskAttempt | None = None
    round: int = 0
    produced: float = 0.0
    summed: bool = False


class CountOrder(Record, frozen=True):
    """
    :param order: `target`, `ask`, `wait` or `hit`
    :param last: of a target of a sum: the row that comes to it or beyond passes
    """

    order: str
    attempt: Long = 0
    round: int = 0
    amount: float = 0.0
    seconds: float = 0.0
    last: bool = False


class CountOrders(Answered, frozen=True, tag="count"):
    orders: tuple[CountOrder, ...] = ()


# A stage is about to run.


class ShuffleRead(Record, frozen=True):
    """One input of a reduce stage.

    :param bytes: of each partition
    :param blocks: bytes from each map task, of partitions that may be cut
    """

    bytes: tuple[Long, ...]
    rows: tuple[Long, ...]
    maps: int = 1
    data_bytes: Long = 0
    blocks: dict[str, tuple[Long, ...]] = msgspec.field(default_factory=dict)
    repeatable: bool = False


class ReduceStage(Record, frozen=True):
    operator: str
    cores: int
    left: ShuffleRead
    right: ShuffleRead | None = None
    salted: bool = False
    residual: bool = False
    hashable: bool = False
    sorts: bool = False
    task_memory: Long = 0
    executor_memory: Long = 0
    reshuffle_bytes: Long = 0


class AdaptiveSizes(Record, frozen=True):
    advisory_bytes: Long
    min_bytes: Long
    parallelism_first: bool


class DecideSkew(Asked, frozen=True, tag="skew"):
    """
    :param shape: digest of the stage's operators
    :param lineage: of its rows
    """

    stage: ReduceStage
    adaptive: AdaptiveSizes
    query: Long = 0
    strategy: str = "cost"
    deadline_seconds: float = 0.2
    shape: str = ""
    lineage: str | None = None


class HeavyKey(Record, frozen=True):
    """:param share: of the rows; at most `error` off"""

    key: str
    share: Annotated[float, msgspec.Meta(ge=0, le=1)]
    error: Annotated[float, msgspec.Meta(ge=0, le=1)]


class SplitPartition(Record, frozen=True):
    """A partition whose rows go to `helpers` tasks; docs/skew.md.

    :param maps: map tasks of each helper, half-open; empty: round robin
    """

    partition: int
    helpers: int
    spread: str
    replicate: str | None = None
    unmatched: bool = False
    hashed: bool = False
    maps: tuple[tuple[int, int], ...] = ()


class SkewDecline(Record, frozen=True):
    kind: str
    code: str
    detail: str = ""


class SkewPlan(Record, frozen=True):
    """docs/skew.md; seconds from the stage's start to its last task's end.

    :param tasks: what each reads: partitions, each with the number of the slice, 0 where it is not split
    """

    kind: str
    partitions: tuple[SplitPartition, ...] = ()
    tasks: tuple[tuple[tuple[int, int], ...], ...] = ()
    predicted_makespan: float = 0.0
    plain_makespan: float = 0.0
    balanced_bound: float = 0.0
    reason: str = ""
    detail: str = ""
    declines: tuple[SkewDecline, ...] = ()


class SkewDecision(Answered, frozen=True, tag="skew"):
    """
    :param learned: by what the stage took when it last ran
    :param keys: where they were counted on the very same rows
    """

    spec: SkewPlan
    learned: bool = False
    keys: tuple[HeavyKey, ...] | None = None


# How the planner is.


class Status(Asked, frozen=True, tag="status"):
    """:param end: nobody asks again, so that everything is read anew"""

    detail: bool = False
    end: bool = False


class EntryGraph(Record, frozen=True):
    nodes: tuple[Any, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()


class StatusAnswer(Answered, frozen=True, tag="status"):
    """
    :param behind: observations that the catalog does not have yet
    :param stale: another request will find more
    """

    version: str
    pid: int
    rss_bytes: Long
    application: str
    namespace: str
    catalog: str
    data: str
    recycle: str
    reasons: tuple[Why, ...] = ()
    entries: int = 0
    bytes: Long = 0
    reserved_bytes: Long = 0
    evictions: int = 0
    behind: int = 0
    decisions: int = 0
    hits: int = 0
    stores: int = 0
    commits: int = 0
    abandoned: int = 0
    errors: int = 0
    entry_list: tuple[Any, ...] | None = None
    graph: EntryGraph | None = None
    graph_operators: int | None = None
    stale: bool | None = None
    truncated: bool | None = None


# What was observed.


class RanNode(Record, frozen=True):
    """
    :param seconds: task-seconds of the node alone
    :param region: Spark's stage that made its rows
    :param exchange: what Spark materialized above it, and the bytes that a shuffle wrote
    """

    id: int
    operator: str = ""
    children: tuple[int, ...] = ()
    lineage: str | None = None
    core: str | None = None
    conjuncts: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: Long | None = None
    bytes: Long | None = None
    seconds: float | None = None
    region: int | None = None
    exchange: str | None = None
    exchange_bytes: Long | None = None


class RanLoad(Record, frozen=True):
    entry: str
    seconds: float | None = None
    rows: Long | None = None
    bytes: Long | None = None


class RanRoute(Record, frozen=True):
    """A statement that an engine was asked for.

    :param query: number of the plan that `node` is of: the query's, or a subquery's
    :param seconds: from the request to the last of its rows, the engine's start included
    :param start_seconds: of them, for the engine's start
    :param refusal: why Spark ran the node after all
    """

    query: Long
    node: int
    platform: str
    seconds: float = 0.0
    start_seconds: float = 0.0
    rows: Long = 0
    bytes: Long = 0
    refusal: Why | None = None


class TimedStage(Record, frozen=True):
    """What the tasks of a stage took, and what went through its operators.

    :param measured_seconds: what operators measured of their own time
    :param rows: by kind of operator; of what a stage reads that another one wrote, with `.read` behind
    :param expression_micros: what their expressions take by fixed weights
    """

    seconds: float
    cpu_seconds: float = 0.0
    measured_seconds: float = 0.0
    tasks: int = 1
    rows: dict[str, float] = msgspec.field(default_factory=dict)
    expression_micros: float = 0.0


class Executed(Told, frozen=True, tag="executed"):
    """A query has ended.

    :param outcome: "ok" or "failed"
    :param fitted: of the weights by which the seconds of a stage were divided over its nodes; 0: fixed ones
    :param seconds: of the wall clock, deciding included
    :param deciding: seconds of them that deciding took
    :param write_seconds: task-seconds of storing and keeping results
    :param queries: numbers of the plans that ran in it, its own first
    :param alone: no other query ran meanwhile
    :param saved: seconds against the baseline; None where there is none, or nothing that spares work was applied
    :param routes: what an engine was asked for
    """

    query: Long
    outcome: str
    seconds: float = 0.0
    task_seconds: float = 0.0
    nodes: tuple[RanNode, ...] = ()
    loads: tuple[RanLoad, ...] = ()
    stages: tuple[TimedStage, ...] = ()
    fitted: float = 0.0
    deciding: float = 0.0
    write_seconds: float = 0.0
    queries: tuple[Long, ...] = ()
    alone: bool = False
    saved: float | None = None
    routes: tuple[RanRoute, ...] = ()


class Tied(Told, frozen=True, tag="tied"):
    """Rows are equal in the keys of a sort: which of them come first, only plain Spark's order of rows says.

    :param digest: of the sort
    """

    digest: str
    query: Long


class Verified(Told, frozen=True, tag="verified"):
    """A query was run both ways.

    :param same: with equal rows
    :param plain: seconds of the wall clock as Spark itself planned it; None where something else ran meanwhile
    :param saved: seconds less than `plain`, deciding included
    """

    query: Long
    same: bool
    plain: float | None = None
    saved: float | None = None
    detail: str = ""


class Committed(Told, frozen=True, tag="committed"):
    """An entry's manifest is on disk.

    :param growth: of what may be brought up to date
    """

    entry: str
    query: Long
    rows: Long
    bytes: Long
    files: int = 0
    seconds: float = 0.0
    growth: Growth | None = None


class Abandoned(Told, frozen=True, tag="abandoned"):
    """An entry was not completed.

    :param seconds: that encoding and writing took nevertheless, summed over tasks
    """

    entry: str
    query: Long
    code: str
    detail: str = ""
    seconds: float = 0.0


class Invalid(Told, frozen=True, tag="invalid"):
    """A reader found the entry unusable."""

    entry: str
    query: Long
    code: str
    detail: str = ""


class Released(Told, frozen=True, tag="released"):
    """A lease ends."""

    entry: str
    query: Long


class Persisted(Told, frozen=True, tag="persisted"):
    """:param seconds: task-seconds that keeping it took, where its format counts them"""

    entry: str
    query: Long
    bytes: Long
    seconds: float | None = None


class Dropped(Told, frozen=True, tag="dropped"):
    entry: str
    query: Long
    code: str = ""
    detail: str = ""


class Wrote(Told, frozen=True, tag="wrote"):
    """A query has written files, which are all that is below their root, beside those of earlier known writes."""

    listing: str
    files: WrittenFiles
    query: Long = 0


class RanTask(Record, frozen=True):
    """
    :param partitions: empty where it read slices
    :param spilled: bytes in memory that it put aside
    """

    bytes: Long
    rows: Long
    seconds: float
    spilled: Long = 0
    partitions: tuple[int, ...] = ()


class RanStage(Told, frozen=True, tag="stage"):
    """:param bytes: of each partition, all inputs together"""

    shape: str
    bytes: tuple[Long, ...]
    rows: tuple[Long, ...]
    tasks: tuple[RanTask, ...]
    lineage: str | None = None
    query: Long = 0


class CountedKeys(Told, frozen=True, tag="keys"):
    shape: str
    operator: str
    keys: tuple[HeavyKey, ...] = ()
    lineage: str | None = None
    query: Long = 0


class Heartbeat(Told, frozen=True, tag="heartbeat"):
    """Every 30 s."""


class End(Told, frozen=True, tag="end"):
    """The regular end of the application."""


Request = (
    Hello
    | Decide
    | DecideAgain
    | Announce
    | DigestFunctions
    | FindWritten
    | FindGrown
    | DecideSkew
    | Control
    | CountRows
    | Status
)
Event = (
    Executed
    | Tied
    | Verified
    | Committed
    | Abandoned
    | Invalid
    | Released
    | Persisted
    | Dropped
    | Wrote
    | RanStage
    | CountedKeys
    | Heartbeat
    | End
)
ANSWERS: dict[type[Asked], type[Answered]] = {
    Hello: HelloAnswer,
    Decide: Decision,
    DecideAgain: Decision,
    Announce: BatchPlan,
    DigestFunctions: FunctionDigests,
    FindWritten: FoundWritten,
    FindGrown: FoundGrown,
    DecideSkew: SkewDecision,
    Control: Controlled,
    CountRows: CountOrders,
    Status: StatusAnswer,
}
"""What each request is answered with, where it is not an `ErrorAnswer`."""
Answer = (
    HelloAnswer
    | ErrorAnswer
    | Decision
    | BatchPlan
    | FunctionDigests
    | FoundWritten
    | FoundGrown
    | SkewDecision
    | Controlled
    | CountOrders
    | StatusAnswer
)
