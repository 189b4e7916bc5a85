"""Questions in short notation, and drafts as lines, for tests of the decision's passes.

A plan is one node a line, indented below its parent: `1 Join sales(a, b) where f`, with `private`, `unstorable` or
`20 bytes` (of a row) behind. What the graph has seen: `Join sales(a, b): 4 s, 1 MB, 1000 rows, 2 times`. An entry:
`e1 sales(a, b) where f: 1 MB, 5 s, 2 reads`. A DataFrame: `s0 at 1 sales(a, b, c): seen 2, held, 30 bytes`. A repeated
subplan: `2, 5 sales(a, b)`. What was measured of choices: `load sales(a): -0.5 s, 3 runs`; what is `off`: rows' names.
Every filter reads column `a`; one like `b>=5` is a simple one, of integers. An aggregate: `totals of sales by a, b
where f: sum, mean = sum + count, spread = none`, with the columns `totals.sum` and so on. What lacks files:
`1 e1 20 of 100 by 2, 3` (node, entry, bytes, and nodes on the way). Names of operators' rows stand for digests.
`engine`: another one can be asked: whether it is `started`, what it has `refused`, and `megabytes` of each source; all
columns are integers there. What its statements took: `sales(a, b): 0.2 s` in `ran`. Of a sweep the `iteration` and the
plan of the `last` one; a DataFrame that is `weaker` is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_regions.costs.engines import EngineRates
from spark_regions.costs.money import Prices
from spark_regions.costs.rates import Rates
from spark_regions.dag.digests import digest, shape
from spark_regions.dag.plan import (
    REPEATED_FLOAT_AGGREGATE,
    CandidateDataFrame,
    Node,
    Plan,
    RepeatedSubplan,
    Signature,
)
from spark_regions.dag.records import EdgeUse, Entry, GraphView, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics as Seen
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Confs, Engine, Question
from spark_regions.decision.values import Sweep
from spark_regions.platforms.typed import Args, Attribute, Expression, SortKey, SourceFile, TypedPlan
from spark_regions.platforms.typed import Node as TypedNode
from spark_regions.runs.program import Budget
from spark_regions.runs.recorded_query import Measured, RecordedQuery, query_part
from spark_regions.runs.run_planner import RunPlanner
from spark_regions.runs.run_view import RunView
from spark_regions.stats.engine_runs import engine_run
from spark_regions.stats.plain_runs import outcome
from spark_regions.wire.messages import Comparison, Grouping, GrownEntry, Predicate, QueryTop, Why

ROWS = re.compile(
    r"(?P<core>\w+)\((?P<columns>[^)]*)\)(?: where (?P<filters>[\w, <>=]+?))?"
    r"(?P<rest>(?::.*| private| unstorable| several| as it is| \d+ bytes)*)$"
)
SIMPLE = re.compile(r"(?P<column>\w+)(?P<operator>[<>=]+)(?P<literal>\d+)$")
CORES = 2
PATIENT_SECONDS = 60.0


def question(case: Mapping[str, Any]) -> Question:
    """The question of a case of a fixture file."""
    groupings = dict(map(_grouping, case.get("groupings", ())))
    grown = list(map(_grown, case.get("grown", ())))
    tree = _grouped(plan(case["plan"], case.get("shared", ()), case.get("repeated", ())), groupings)
    nodes = {n: replace(each, grown=tuple(g for at, g in grown if at == n)) for n, each in tree.nodes.items()}
    tree = replace(tree, nodes=nodes)
    confs = Confs(**({"max_bytes": 10**9} | case.get("confs", {})))
    entries = tuple(_entry(line) for line in case.get("entries", ()))
    entries = tuple(replace(each, grouping=groupings.get(each.core)) for each in entries)
    unordered = frozenset((int(node), str(name)) for node, name in case.get("unordered", ()))
    view = _view(case)
    run = _run(case["run"], tree, confs) if "run" in case else None
    root = tree.nodes[tree.root].signature
    top = QueryTop(root.lineage, root.core, root.lineage) if root else None
    return Question(
        tree,
        view,
        entries,
        Rates(),
        confs,
        CORES,
        case.get("now", 0.0),
        run,
        unordered,
        top=top,
        plain_seconds=case.get("plain"),
        prices=Prices(**case.get("prices", {})),
        engine=_engine(case["engine"], tree) if "engine" in case else None,
        sweep=Sweep(case["iteration"], plan(case["last"])) if "last" in case else None,
    )


def plan(text: str, shared: Iterable[str] = (), repeated: Iterable[str] = ()) -> Plan:
    nodes: dict[int, Node] = {}
    parents: dict[int, int] = {}
    above: list[tuple[int, int]] = []
    for line in filter(str.strip, text.splitlines()):
        depth = len(line) - len(line.lstrip())
        number, operator, rows = line.split(maxsplit=2)
        signed, rest = _rows(rows)
        above = [(d, n) for d, n in above if d < depth]
        if above:
            parents[int(number)] = above[-1][1]
        above.append((depth, int(number)))
        width, count = re.search(r"(\d+) bytes", rest), re.search(r"(\d+) rows", rest)
        nodes[int(number)] = Node(
            int(number), operator, (), signed, not re.search("unstorable|several", rest),
            REPEATED_FLOAT_AGGREGATE if re.search("several|as it is", rest) else "", "private" in rest,
            float(width[1]) if width else 10.0, source_bytes=1e6 if operator == "Scan" else None,
            source_rows=float(count[1]) if count else None,
        )  # fmt: skip
    children = {number: tuple(n for n, p in parents.items() if p == number) for number in nodes}
    nodes = {number: replace(node, children=children[number]) for number, node in nodes.items()}
    filters = {each for node in nodes.values() if node.signature for each in node.signature.conjuncts}
    reads = dict.fromkeys(filters, ("a",))
    return Plan(
        min(nodes), nodes, parents, {}, reads, tuple(map(_shared, shared)), tuple(map(_repeated, repeated)),
        predicates={each.conjunct: each for each in _simple(filters)},
    )  # fmt: skip


def _simple(filters: Iterable[str]) -> tuple[Predicate, ...]:
    found = [(each, SIMPLE.match(each)) for each in sorted(filters)]
    return tuple(
        Predicate(name, simple["column"], "int", ((Comparison(simple["operator"], simple["literal"]),),))
        for name, simple in found
        if simple
    )


def shown(question: Question, draft: Draft) -> list[str]:
    """All that the draft holds, a line each."""
    found = []
    if draft.run:
        found.append(f"step {draft.run.step + 1} of {draft.run.steps}")
        found += [f"wanted {w.node} ({', '.join(w.signature.columns)}) {w.level}" for w in draft.run.wanted]
        found += ["finished"] * len(draft.run.finished)
    for name in ("self_seconds", "inclusive_seconds", "uncached_seconds", "seconds", "least_seconds"):
        known = getattr(draft, name)
        found += [f"{name} {number} {known[number].value:.2f}" for number in sorted(known)]
    names = {node.signature.lineage: n for n, node in question.plan.nodes.items() if node.signature}
    found += [f"probability {names[each]} {p:.2f}" for each, p in draft.probabilities.items() if p]
    found += [
        f"match {n} {m.entry.id} {m.seconds:.2f} s{'' if m.rule in ('SAME_ROWS', 'FILTERED') else f' {m.rule}'}"
        for n, m in draft.matches.items()
    ]
    found += [f"gain {n} {gain:.2f} s" for n, gain in draft.gains.items()]
    found += [f"eligible {', '.join(map(str, sorted(draft.eligible)))}"] if draft.eligible else []
    found += [
        f"{kind} {_where(c)}: {c.benefit:.2f} s, {c.bytes / 1e6:.2f} MB, past {c.past:g}, expected {c.expected:g}"
        + (f", {c.detail}" if c.detail else "")
        for kind in ("candidates", "private")
        for c in getattr(draft, kind)
    ]
    found += [f"unknown {n}" for n in draft.unknown]
    found += [f"load {n}: {reason}, saves {draft.saved[n]:.2f} s" for n, reason in draft.loads.items()]
    found += [f"store {_where(c)}: {reason}{' in memory' if c.in_memory else ''}" for c, reason in draft.stores]
    found += ["first uses"] if draft.first_uses else []
    found += [f"keep {_where(each)}" for each in draft.keeps]
    found += [f"persist {_where(each)}" for each in draft.persists]
    found += [f"share {', '.join(map(str, s.nodes))}: {s.reason}, saves {s.saving:.2f} s" for s in draft.shares]
    found += [f"route {r.node}: {r.reason}, {r.predicted_seconds:.2f} s, saves {r.saving:.2f} s" for r in draft.routes]
    told = draft.regions.regions if draft.regions else None
    found += [f"region {r.id} {', '.join(r.operators)}" for r in told or ()]
    return found + [f"decline {d.node} {d.code} {d.detail}".rstrip() for d in draft.declines]


def changes(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """What a pass added, and what it took away."""
    return [f"- {line}" for line in before if line not in after] + [f"+ {line}" for line in after if line not in before]


def _where(candidate: Any) -> str:
    at = f"{candidate.node} as {candidate.ref}" if candidate.ref is not None else str(candidate.node)
    names = (name for name in candidate.signature.columns)
    return f"{at} ({', '.join(names)})"


def _rows(text: str) -> tuple[Signature | None, str]:
    if text.startswith("-"):
        return None, text
    found = ROWS.match(text.strip())
    assert found, f"no rows: {text!r}"
    columns = tuple(each.strip() for each in found["columns"].split(",") if each.strip())
    filters = frozenset(each.strip() for each in (found["filters"] or "").split(",") if each.strip())
    return Signature(digest([found["core"], *sorted(filters)]), found["core"], filters, columns), found["rest"]


def _number(text: str, unit: str, default: float) -> float:
    found = re.search(rf"(-?[\d.]+) {unit}\b", text)
    return float(found[1]) if found else default


def _entry(line: str) -> Entry:
    name, rows = line.split(maxsplit=1)
    signed, rest = _rows(rows)
    assert signed
    state = "pending" if "pending" in rest else "committed"
    return Entry(
        name, signed.lineage, signed.core, signed.conjuncts, signed.columns, f"file:///{name}", state, 1000,
        int(_number(rest, "MB", 1.0) * 1e6), 0.0, 0.0, recompute_seconds=_number(rest, "s", 5.0),
        contradictions=int(_number(rest, "disappointments", 0)), persisted="persisted" in rest,
        uses=int(_number(rest, "reads", 0)), predicates=_simple(signed.conjuncts),
    )  # fmt: skip


def _grouping(line: str) -> tuple[str, Grouping]:
    head, _, calls = line.partition(": ")
    told = re.match(r"(\w+) of (\w+) by ([\w, ]*?)(?: where ([\w, ]+))?$", head)
    assert told, f"no aggregate: {line!r}"
    core, base, keys, filters = told.groups()
    functions: dict[str, str] = {}
    parts: dict[str, tuple[str, ...]] = {}
    values: dict[str, tuple[str, ...]] = {}
    refusal = None
    for call in filter(None, calls.split(", ")):
        name, _, made = call.partition(" = ")
        functions[name] = f"{core}.{name}"
        if made == "none":
            refusal = Why("NOT_MERGEABLE", name)
        elif made.startswith("distinct "):
            values[name] = (made.removeprefix("distinct "),)
        else:
            parts[name] = tuple(made.split(" + ")) if made else (name,)
    named = tuple(filter(None, keys.split(", ")))
    return core, Grouping(base, tuple(filters.split(", ")) if filters else (), named, functions, parts, values, refusal)


def _grown(line: str) -> tuple[int, GrownEntry]:
    told = re.match(r"(\d+) (\w+) (\d+) of (\d+) by ([\d, ]+)", line)
    assert told, f"nothing grown: {line!r}"
    node, entry, added, whole, way = told.groups()
    return int(node), GrownEntry(entry, int(added), int(whole), tuple(map(int, way.split(", "))))


def _grouped(tree: Plan, groupings: Mapping[str, Grouping]) -> Plan:
    nodes = {
        number: replace(node, grouping=groupings.get(node.signature.core))
        if node.signature and node.operator == "Aggregate"
        else node
        for number, node in tree.nodes.items()
    }
    filters = {each for grouping in groupings.values() for each in grouping.conjuncts}
    return replace(tree, nodes=nodes, conjunct_columns={**tree.conjunct_columns, **dict.fromkeys(filters, ("a",))})


def _view(case: Mapping[str, Any]) -> GraphView:
    by_lineage: dict[str, list[OperatorStatistics]] = {}
    by_core: dict[str, list[OperatorStatistics]] = {}
    for line in case.get("seen", ()):
        operator, rows = line.split(maxsplit=1)
        signed, rest = _rows(rows)
        assert signed
        times = int(_number(rest, "times", 1))
        total = _number(rest, "s in all", -1.0)
        found = OperatorStatistics(
            signed.lineage, operator, shape(signed.columns), signed.core, signed.conjuncts, signed.columns,
            rows=Seen.of(_number(rest, "rows", 1000)), bytes=Seen.of(_number(rest, "MB", 1.0) * 1e6),
            seconds=Seen.of(_number(rest, "s", 1.0)), total=Seen.of(total) if total >= 0 else Seen(),
            demands=times, executions=times,
        )  # fmt: skip
        by_lineage.setdefault(signed.lineage, []).append(found)
        by_core.setdefault(signed.core, []).append(found)
    edges: dict[str, dict[str, EdgeUse]] = {}
    session: dict[str, dict[str, int]] = {}
    for child, parent, runs, times in case.get("edges", ()):
        edges.setdefault(digest([child]), {})[digest([parent]) if parent else ""] = EdgeUse(runs, times)
    for child, parent, times in case.get("asked", ()):
        session.setdefault(digest([child]), {})[digest([parent]) if parent else ""] = times
    for line in case.get("saved", ()):
        kind, rows = line.split(maxsplit=1)
        signed, rest = _rows(rows)
        assert signed
        for _ in range(int(_number(rest, "runs", 1))):
            by_lineage.setdefault(signed.lineage, []).append(
                outcome(kind, signed.lineage, _number(rest, "s", 0.0), 0.0)
            )
    for line in case.get("ran", ()):
        signed, rest = _rows(line)
        assert signed
        run = engine_run(signed.lineage, "duckdb", _number(rest, "s", 1.0), _number(rest, "rows", 1000), 0.0)
        by_lineage.setdefault(signed.lineage, []).append(run)
    off = {digest([each]): "1 of 3 rows are others than plain Spark's" for each in case.get("off", ())}
    return GraphView(by_lineage, by_core, edges, frozenset(), session, case.get("runs", 0), off)


def _engine(told: Mapping[str, Any], tree: Plan) -> Engine:
    size = int(told.get("megabytes", 1.0) * 1e6)
    nodes = tuple(_typed(node, size) for node in tree.nodes.values())
    refused = {digest([rows]): Why(code) for rows, code in told.get("refused", {}).items()}
    return Engine(TypedPlan(nodes), EngineRates(), told.get("started", True), refused)


def _typed(node: Node, size: int) -> TypedNode:
    """Columns are integers, and the same in all nodes; a group is of all columns of its node."""
    names = node.signature.columns if node.signature else ()
    output = tuple(Attribute(str(ord(name[0])), name, "INT") for name in names)
    columns = tuple(Expression("AttributeReference", "INT", fields={"id": each.id}) for each in output)
    args = {
        "Scan": Args(files=(SourceFile("/data.parquet", size, 0),)),
        "Aggregate": Args(keys=columns, expressions=columns),
        "Project": Args(expressions=columns),
        "Filter": Args(condition=Expression("IsNotNull", "BOOLEAN", children=columns[:1])),
        "Join": Args(kind="Inner"),
        "Sort": Args(order=tuple(SortKey(each, True, True) for each in columns), whole=True),
    }
    operator = "LogicalRelation" if node.operator == "Scan" else node.operator
    return TypedNode(node.id, operator, node.children, output, args.get(node.operator, Args()))


def _shared(line: str) -> CandidateDataFrame:
    ref, _, node, rows = line.split(maxsplit=3)
    signed, rest = _rows(rows)
    assert signed
    seen = re.search(r"seen (\d+)", rest)
    width = _number(rest, "bytes", 10.0)
    times = int(seen[1]) if seen else 1
    return CandidateDataFrame(ref, int(node), times, signed, width, "held" in rest, weaker="weaker" in rest)


def _repeated(line: str) -> RepeatedSubplan:
    numbers, rows = re.match(r"([\d, ]+) (\w+\(.*)", line).groups()  # type: ignore[union-attr]
    signed, _ = _rows(rows)
    assert signed
    nodes = tuple(int(each) for each in numbers.split(","))
    return RepeatedSubplan(nodes, nodes, signed, True, 10.0)


def _run(case: Mapping[str, Any], tree: Plan, confs: Confs) -> RunView | None:
    """The recorded run, followed to the step that the plan is."""
    queries = []
    for text in case["queries"]:
        recorded = plan(text, case.get("shared", ()))
        seconds = {n: case["seconds"][node.operator] for n, node in recorded.nodes.items()}
        rows = dict.fromkeys(recorded.nodes, case.get("rows", 1e6))
        queries.append(RecordedQuery(query_part(recorded), Measured(seconds, rows, {})))
    planner = RunPlanner(queries)
    budget = Budget(float(confs.persist_max_bytes), float(confs.max_bytes))
    kept = {}
    if "kept" in case:
        signed, _ = _rows(case["kept"])
        assert signed
        kept[signed.lineage, frozenset(signed.columns)] = 1e6
    for number in range(case.get("step", 0)):
        planner.look(queries[number].plan)
        planner.view(number, queries[number].plan, number, kept)
        planner.ran(number)
    step = planner.look(tree)
    planner.prepare(budget, Rates(), CORES, kept, list, PATIENT_SECONDS)
    return None if step is None else planner.view(99, tree, step, kept)
