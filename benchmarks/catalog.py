"""What a decision reads from a large catalog: a plan's operators and the entries on them, as the planner asks for them.

python -m benchmarks.catalog [--rounds 300]

No Spark: the catalog is filled with operators and entries as a planner writes them, for plans of forty operators.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks.measure import Options, benchmark_main, percentile, timed
from spark_regions.dag.digests import digest, shape
from spark_regions.dag.plan import Plan, parse_plan
from spark_regions.dag.records import Entry, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.store.entries import entries_on
from spark_regions.store.opening import open_catalog, place
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.store.records import from_entry, from_variant
from spark_regions.store.schema import ENTRY, OPERATOR
from spark_regions.store.store import Store
from spark_regions.wire.messages import PlanNode, SignedQuery

SIZES = ((1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000))
"""Entries and operators."""
PLAN_NODES = 40
COLUMNS = tuple(digest(["column", str(number)]) for number in range(8))
WINDOW = 20
BATCH = 10_000


def catalog(options: Options) -> dict[str, Any]:
    """Milliseconds of the reads of one decision, by the size of the catalog, and its bytes on disk."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        where = place(name, "bench", "")
        opened = open_catalog(where)
        store = Store(opened, where)
        run = store.begin("app", "bench")
        graph = OperatorGraph(opened, run, "bench")
        entries = operators = 0
        for more_entries, more_operators in SIZES:
            opened.write(
                lambda connection, ends=((entries, more_entries), (operators, more_operators)): _fill(connection, *ends)
            )
            entries, operators = more_entries, more_operators
            file = Path(str(where.catalog_file))
            with opened.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            known, unknown = [], []
            for number in range(options.rounds):
                chance = random.Random(number)
                for times, first in (
                    (known, chance.randrange(operators - PLAN_NODES)),
                    (unknown, operators + number * 100),
                ):
                    plan = _plan(first)
                    times.append(1000 * timed(lambda plan=plan: _read(store, graph, plan)))
            found[f"{entries:,} entries, {operators:,} operators"] = {
                "milliseconds": {
                    kind: {"p50": round(percentile(times, 0.5), 2), "p99": round(percentile(times, 0.99), 2)}
                    for kind, times in (("plan seen before", known), ("new plan", unknown))
                },
                "catalog_bytes_per_operator": round(file.stat().st_size / operators),
                "housekeeping_seconds": round(timed(lambda: store.sweep_dead(7 * 86_400.0)), 2),
            }
        opened.close()
    return found


def _read(store: Store, graph: OperatorGraph, plan: Plan) -> None:
    graph.view(plan, WINDOW)
    cores = {node.signature.core for node in plan.nodes.values() if node.signature}
    store.catalog.read(lambda connection: entries_on(connection, cores))


def _core(number: int) -> str:
    return digest(["core", str(number)])


def _plan(first: int) -> Plan:
    nodes = tuple(
        PlanNode(
            id=number,
            operator="Project",
            children=(number + 1,) if number + 1 < PLAN_NODES else (),
            lineage=digest([_core(first + number)]),
            core=_core(first + number),
            columns=COLUMNS,
        )
        for number in range(PLAN_NODES)
    )
    return parse_plan(SignedQuery(nodes))


def _fill(connection: sa.Connection, entries: tuple[int, int], operators: tuple[int, int]) -> None:
    seen = RunningStatistics.of(1000.0)
    for start in range(operators[0], operators[1], BATCH):
        rows = []
        for number in range(start, min(start + BATCH, operators[1])):
            core = _core(number)
            rows.append(
                from_variant(
                    OperatorStatistics(
                        digest([core]), "Project", shape(COLUMNS), core, frozenset(), COLUMNS, rows=seen, bytes=seen,
                        seconds=seen, total=seen, demands=1, executions=1, last=time.time(),
                    )
                )
            )  # fmt: skip
        connection.execute(sa.insert(OPERATOR), rows)
    # On every tenth operator.
    for start in range(entries[0], entries[1], BATCH):
        made = []
        for number in range(start, min(start + BATCH, entries[1])):
            core = _core(10 * number)
            name = f"e{number:032x}"
            made.append(
                from_entry(
                    Entry(
                        name, digest([core]), core, frozenset(), COLUMNS, f"file:///store/{name}", "committed", 1000,
                        3000, time.time(), time.time(), recompute_seconds=1.0, application="app",
                    )
                )
            )  # fmt: skip
        connection.execute(sa.insert(ENTRY), made)


if __name__ == "__main__":
    benchmark_main("catalog", catalog, 300)
