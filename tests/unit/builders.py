"""Plans, statistics and entries for tests, by short names instead of digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_regions.costs.rates import Rates
from spark_regions.dag.digests import digest, shape
from spark_regions.dag.plan import CandidateDataFrame, Node, Plan, Signature
from spark_regions.dag.records import EdgeUse, Entry, GraphView, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Confs, Question
from spark_regions.optimizer.optimizer import optimize


def signature(core: str, columns: Iterable[str] = ("a",), conjuncts: Iterable[str] = ()) -> Signature:
    filters = frozenset(conjuncts)
    return Signature(lineage(core, filters), core, filters, tuple(columns))


def lineage(core: str, conjuncts: Iterable[str] = ()) -> str:
    return digest([core, *sorted(conjuncts)])


def plan(
    tree: Mapping[int, tuple[str, Signature | None, tuple[int, ...]]],
    expressions: Mapping[str, tuple[str, ...]] | None = None,
    conjunct_columns: Mapping[str, tuple[str, ...]] | None = None,
    shared: tuple[CandidateDataFrame, ...] = (),
    not_storable: frozenset[int] = frozenset(),
    session: frozenset[int] = frozenset(),
    row_bytes: float = 10.0,
    equal: Mapping[str, tuple[str, str]] | None = None,
) -> Plan:
    """`tree`: node to operator, signature and children; node 0 is the root."""
    nodes = {
        number: Node(number, operator, children, signed, number not in not_storable, "", number in session, row_bytes)
        for number, (operator, signed, children) in tree.items()
    }
    parents = {child: number for number, node in nodes.items() for child in node.children}
    return Plan(0, nodes, parents, expressions or {}, conjunct_columns or {}, shared, equal=equal or {})


def chain(*cores: str) -> Plan:
    """A plan without branches, the root first."""
    last = len(cores) - 1
    return plan(
        {number: ("Op", signature(core), () if number == last else (number + 1,)) for number, core in enumerate(cores)}
    )


def variant(
    signed: Signature, kind: str = "Op", seconds: float | None = 1.0, rows: float = 1000, size: float | None = 10_000,
    executions: int = 1, demands: int | None = None, total: float | None = None,
) -> OperatorStatistics:  # fmt: skip
    return OperatorStatistics(
        signed.lineage, kind, shape(signed.columns), signed.core, signed.conjuncts, signed.columns,
        rows=RunningStatistics.of(rows),
        bytes=RunningStatistics() if size is None else RunningStatistics.of(size),
        seconds=RunningStatistics() if seconds is None else RunningStatistics.of(seconds),
        total=RunningStatistics() if total is None else RunningStatistics.of(total),
        demands=executions if demands is None else demands,
        executions=executions,
    )  # fmt: skip


def view_of(
    *variants: OperatorStatistics,
    edges: Mapping[tuple[str, str], tuple[int, int]] | None = None,
    runs: int = 0,
    session: Mapping[tuple[str, str], int] | None = None,
    served: Iterable[str] = (),
) -> GraphView:
    """`edges`: (child lineage, parent lineage) to (runs, occurrences)."""
    by_lineage: dict[str, list[OperatorStatistics]] = {}
    by_core: dict[str, list[OperatorStatistics]] = {}
    for each in variants:
        by_lineage.setdefault(each.lineage, []).append(each)
        by_core.setdefault(each.core, []).append(each)
    known: dict[str, dict[str, EdgeUse]] = {}
    for (child, parent), (count, occurrences) in (edges or {}).items():
        known.setdefault(child, {})[parent] = EdgeUse(count, occurrences)
    asked: dict[str, dict[str, int]] = {}
    for (child, parent), times in (session or {}).items():
        asked.setdefault(child, {})[parent] = times
    return GraphView(by_lineage, by_core, known, frozenset(served), asked, runs)


def entry(
    name: str, signed: Signature, size: int = 1000, state: str = "committed", recompute: float = 5.0, rows: int = 10,
    **more: float,
) -> Entry:  # fmt: skip
    values = {"created": 0.0, "used": 0.0} | more
    return Entry(
        name, signed.lineage, signed.core, signed.conjuncts, signed.columns, f"file:///{name}", state, rows, size,
        recompute_seconds=recompute, **values,  # type: ignore[arg-type]
    )  # fmt: skip


def decided(
    tree: Plan, view: GraphView, entries: Iterable[Entry] = (), confs: Confs | None = None, cores: int = 1,
    now: float = 0.0,
) -> Draft:  # fmt: skip
    """What is decided, where no pass may fail."""
    chosen = confs or Confs(max_bytes=10**9)
    return optimize(Question(tree, view, tuple(entries), Rates(), chosen, cores, now), strict=True)
