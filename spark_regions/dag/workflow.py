"""The physical plan of a workflow: operators, output ports and edges (Pasta §2.1), and its JSON form.

```json
{"operators": [{"id": "v1", "seconds": 1.2}, {"id": "v2"}],
 "edges": [{"id": "e1", "source": "v1", "target": "v2", "bytes": 10, "blocking": false}]}
```

Optional: `seconds` and `first_seconds` of an operator (0), `id` (e1, e2, … by position), `blocking` (false) and `port`
of an edge. `port` names the sending port: edges of one port block together or not at all. Other fields are ignored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spark_regions.errors import InvalidWorkflow


@dataclass(frozen=True, slots=True)
class Operator:
    """A processing unit.

    :param seconds: how long it runs
    :param first_seconds: from its first input row to its first output row
    """

    id: str
    seconds: float = 0.0
    first_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection from an output port of `source` to an input port of `target`.

    :param bytes: what passes over it
    :param blocking: the sending port emits nothing before all input of `source` has arrived (Pasta def. 2.1)
    :param port: of `source`; empty where the input names none
    """

    id: str
    source: str
    target: str
    bytes: float
    blocking: bool = False
    port: str = ""


@dataclass(frozen=True)
class PhysicalPlan:
    """A directed acyclic multigraph; built by `physical_plan` or `read_plan`, which check it.

    Algorithms see operators and edges by position: `tails[e]` and `heads[e]` are positions of operators.
    """

    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]
    name: str = ""

    @cached_property
    def position(self) -> Mapping[str, int]:
        return {operator.id: place for place, operator in enumerate(self.operators)}

    @cached_property
    def tails(self) -> tuple[int, ...]:
        return tuple(self.position[edge.source] for edge in self.edges)

    @cached_property
    def heads(self) -> tuple[int, ...]:
        return tuple(self.position[edge.target] for edge in self.edges)

    @cached_property
    def blocking(self) -> frozenset[int]:
        return frozenset(place for place, edge in enumerate(self.edges) if edge.blocking)

    @cached_property
    def out_edges(self) -> tuple[tuple[int, ...], ...]:
        return _grouped(self.tails, len(self.operators))

    @cached_property
    def in_edges(self) -> tuple[tuple[int, ...], ...]:
        return _grouped(self.heads, len(self.operators))

    @cached_property
    def topological(self) -> tuple[int, ...]:
        """Positions of operators, each after all that feed it; without those on or behind a cycle."""
        waiting = [len(edges) for edges in self.in_edges]
        order = [place for place, count in enumerate(waiting) if not count]
        for place in order:
            for edge in self.out_edges[place]:
                head = self.heads[edge]
                waiting[head] -= 1
                if not waiting[head]:
                    order.append(head)
        return tuple(order)

    @cached_property
    def results(self) -> tuple[int, ...]:
        """Result operators: those without outgoing edges (thesis def. 4.1)."""
        return tuple(place for place, edges in enumerate(self.out_edges) if not edges)


def physical_plan(operators: Sequence[Operator], edges: Sequence[Edge], name: str = "") -> PhysicalPlan:
    """A checked plan.

    :raises InvalidWorkflow: duplicate ids, unknown ends, negative or infinite numbers, ports that block in part, cycles
    """
    _unique("operator", [operator.id for operator in operators])
    _unique("edge", [edge.id for edge in edges])
    known = {operator.id for operator in operators}
    for operator in operators:
        _number(operator.seconds, f"seconds of operator {operator.id}")
        _number(operator.first_seconds, f"first_seconds of operator {operator.id}")
    ports: dict[tuple[str, str], Edge] = {}
    for edge in edges:
        _number(edge.bytes, f"bytes of edge {edge.id}")
        for end, what in ((edge.source, "source"), (edge.target, "target")):
            if end not in known:
                raise InvalidWorkflow(f"Edge {edge.id} has the {what} {end!r}, which is no operator.")
        if edge.port and ports.setdefault((edge.source, edge.port), edge).blocking != edge.blocking:
            other = ports[edge.source, edge.port]
            raise InvalidWorkflow(f"Edges {other.id} and {edge.id} leave one port, but only one of them is blocking.")
    plan = PhysicalPlan(tuple(operators), tuple(edges), name)
    if len(plan.topological) < len(operators):
        raise InvalidWorkflow(f"The graph has a cycle: {' -> '.join(_cycle(plan))}. Expected an acyclic one.")
    return plan


def document(plan: PhysicalPlan) -> dict[str, Any]:
    """The plan as JSON values, as `parse_plan` reads them."""
    operators: list[dict[str, Any]] = []
    for operator in plan.operators:
        first = {"first_seconds": round(operator.first_seconds, 6)} if operator.first_seconds else {}
        operators.append({"id": operator.id, "seconds": round(operator.seconds, 6)} | first)
    edges: list[dict[str, Any]] = []
    for edge in plan.edges:
        found = {"id": edge.id, "source": edge.source, "target": edge.target, "bytes": round(edge.bytes)}
        edges.append(found | {"blocking": edge.blocking} | ({"port": edge.port} if edge.port else {}))
    return {"name": plan.name, "operators": operators, "edges": edges}


def read_plan(path: Path) -> PhysicalPlan:
    """A plan from a JSON file.

    :raises InvalidWorkflow: the file cannot be read, is no JSON, or describes no valid plan
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidWorkflow(f"Cannot read {path}: {reason}.") from error
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidWorkflow(f"{path} is no JSON: {error}.") from error
    return parse_plan(document, path.stem)


def parse_plan(document: Any, name: str = "") -> PhysicalPlan:
    """A plan from a decoded JSON document.

    :raises InvalidWorkflow: it describes no valid plan
    """
    if not isinstance(document, dict):
        raise InvalidWorkflow(f"Found {_kind(document)}, expected an object with operators and edges.")
    operators = [
        Operator(
            _text(found, "id", f"operator {place}"),
            _optional_number(found, "seconds", f"operator {place}"),
            _optional_number(found, "first_seconds", f"operator {place}"),
        )
        for place, found in _objects(document, "operators")
    ]
    edges = [_edge(found, place) for place, found in _objects(document, "edges")]
    given = document.get("name", name)
    return physical_plan(operators, edges, given if isinstance(given, str) else name)


def _edge(found: Mapping[str, Any], place: int) -> Edge:
    what = f"edge {place}"
    name = _text(found, "id", what) if "id" in found else f"e{place}"
    if "bytes" not in found:
        raise InvalidWorkflow(f"Edge {name} has no bytes.")
    blocking = found.get("blocking", False)
    if not isinstance(blocking, bool):
        raise InvalidWorkflow(f"Found blocking={blocking!r} of edge {name}, expected true or false.")
    port = _text(found, "port", what) if "port" in found else ""
    size = _optional_number(found, "bytes", f"edge {name}")
    return Edge(name, _text(found, "source", what), _text(found, "target", what), size, blocking, port)


def _objects(document: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    found = document.get(key)
    if not isinstance(found, list):
        raise InvalidWorkflow(f"Found {_kind(found)} as {key!r}, expected a list.")
    for item in found:
        if not isinstance(item, dict):
            raise InvalidWorkflow(f"Found {_kind(item)} in {key!r}, expected objects.")
    return list(enumerate(found, 1))


def _text(found: Mapping[str, Any], key: str, what: str) -> str:
    value = found.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise InvalidWorkflow(f"Found {value!r} as {key!r} of {what}, expected a name.")
    return value


def _optional_number(found: Mapping[str, Any], key: str, what: str) -> float:
    value = found.get(key, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidWorkflow(f"Found {key}={value!r} of {what}, expected a number.")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _number(value: float, what: str) -> None:
    if not math.isfinite(value) or value < 0:
        raise InvalidWorkflow(f"Found {value:g} as {what}, expected a finite number, zero or above.")


def _unique(what: str, ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for found in ids:
        if found in seen:
            raise InvalidWorkflow(f"Two {what}s have the id {found!r}.")
        seen.add(found)


def _cycle(plan: PhysicalPlan) -> list[str]:
    """Ids around one cycle, the first again at the end. Every operator left has one left that feeds it."""
    left = set(range(len(plan.operators))) - set(plan.topological)
    path = [min(left)]
    while len(set(path)) == len(path):
        path.append(next(plan.tails[edge] for edge in plan.in_edges[path[-1]] if plan.tails[edge] in left))
    around = path[path.index(path[-1]) :]
    return [plan.operators[place].id for place in reversed(around)]


def _grouped(ends: Sequence[int], count: int) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = [[] for _ in range(count)]
    for edge, end in enumerate(ends):
        groups[end].append(edge)
    return tuple(map(tuple, groups))


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
