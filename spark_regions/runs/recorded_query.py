"""The queries of one run of an application, as they were recorded, with what each operator took (DESIGN §8)."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

import msgspec

from spark_regions.dag.digests import digest
from spark_regions.dag.plan import Node, Plan, parse_plan
from spark_regions.errors import InvalidRequest
from spark_regions.stats.operators import PROJECT
from spark_regions.wire.messages import SignedQuery

log = logging.getLogger("spark_regions.planner")

MAX_BODY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen of a query's nodes; a node that did not run, or is not counted, is left out.

    :param seconds: wall seconds of the node alone: its task-seconds over the cores
    :param widened: nodes that carried columns for others than their own query, and took longer for it
    """

    seconds: Mapping[int, float] = field(default_factory=dict)
    rows: Mapping[int, float] = field(default_factory=dict)
    bytes: Mapping[int, float] = field(default_factory=dict)
    widened: frozenset[int] = frozenset()


@dataclass(frozen=True)
class RecordedQuery:
    """One query of a run.

    :param cores: that it ran on
    """

    plan: Plan
    measured: Measured
    cores: int = 1

    @cached_property
    def recurring_signature(self) -> str:
        return recurring_signature(self.plan)

    @cached_property
    def prefix_seconds(self) -> Mapping[int, float]:
        """Seconds of each node with all that is below it."""
        found: dict[int, float] = {}
        for number in self.plan.bottom_up():
            below = sum(found[child] for child in self.plan.nodes[number].children)
            found[number] = below + self.measured.seconds.get(number, 0.0)
        return found


def query_part(plan: Plan) -> Plan:
    """The plan without the command at its root: a write of a query is that query."""
    root = plan.nodes[plan.root]
    if root.signature is not None or len(root.children) != 1 or not root.operator.endswith("Command"):
        return plan
    (child,) = root.children
    nodes = {number: node for number, node in plan.nodes.items() if number != plan.root}
    parents = {number: above for number, above in plan.parents.items() if above != plan.root}
    return replace(plan, root=child, nodes=nodes, parents=parents)


def recurring_signature(plan: Plan) -> str:
    """Digest of a plan's form, whatever data it reads and whatever literals it has."""
    parts = []
    for number in plan.below(plan.root):
        node = plan.nodes[number]
        signed = node.signature
        width = f"{len(signed.columns)} {len(signed.conjuncts)}" if signed else ""
        parts.append(f"{node.kind} {len(node.children)} {width}")
    return digest(parts)


class _Step(msgspec.Struct):
    """A query as the catalog keeps it; numbers are of `Measured`."""

    plan: SignedQuery
    seconds: dict[int, float]
    rows: dict[int, float]
    bytes: dict[int, float]
    widened: tuple[int, ...] = ()
    cores: int = 1


def encode(query: SignedQuery, measured: Measured, cores: int = 1) -> bytes | None:
    """A step as bytes for the catalog; None where it is too large to be worth keeping."""
    seconds, rows, sizes = (
        {node: round(value, 6) for node, value in values.items()}
        for values in (measured.seconds, measured.rows, measured.bytes)
    )
    shared = tuple(msgspec.structs.replace(each, typed=None, places=()) for each in query.shared)
    plan = msgspec.structs.replace(query, shared=shared, repeated=(), predicates=())
    step = _Step(plan, seconds, rows, sizes, tuple(sorted(measured.widened)), cores)
    body = zlib.compress(msgspec.json.encode(step), 6)
    return body if len(body) <= MAX_BODY_BYTES else None


def decode(body: bytes) -> RecordedQuery:
    """
    :raises InvalidRequest: these are not the bytes of a step
    """
    try:
        step = msgspec.json.decode(zlib.decompress(body), type=_Step)
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"recorded step: {type(error).__name__}: {error}") from error
    measured = Measured(step.seconds, step.rows, step.bytes, frozenset(step.widened))
    return RecordedQuery(query_part(parse_plan(step.plan)), measured, step.cores)


def decoded(bodies: Iterable[bytes]) -> list[RecordedQuery]:
    """Recorded queries; none where one of them cannot be read."""
    queries: list[RecordedQuery] = []
    for body in bodies:
        try:
            queries.append(decode(body))
        except InvalidRequest as error:
            log.warning("the last run cannot be followed: %s", error)
            return []
    return completed(queries)


def completed(steps: Sequence[RecordedQuery]) -> list[RecordedQuery]:
    """The steps; what was not seen of a node is taken from the same operator on the same rows in other steps.

    A node below something that was loaded did not run in that query, but perhaps in another. What was seen of a node
    that was widened for other queries counts only where nothing else is known.
    """
    seconds: dict[tuple[str, str], list[_Seen]] = {}
    widened: dict[tuple[str, str], list[_Seen]] = {}
    rows: dict[str, float] = {}
    for step in steps:
        for number, node in step.plan.nodes.items():
            if node.signature is None:
                continue
            if number in step.measured.seconds:
                key = (node.signature.lineage, node.operator)
                seen = widened if number in step.measured.widened else seconds
                columns = frozenset(node.signature.columns)
                seen.setdefault(key, []).append(_Seen(columns, node.row_bytes, step.measured.seconds[number]))
            if number in step.measured.rows:
                as_it_is = number not in step.measured.widened
                if as_it_is or node.signature.lineage not in rows:
                    rows[node.signature.lineage] = step.measured.rows[number]
    known = widened | seconds
    found = []
    for step in steps:
        known_seconds = dict(step.measured.seconds)
        known_rows = dict(step.measured.rows)
        for number, node in step.plan.nodes.items():
            if node.signature is None:
                continue
            key = (node.signature.lineage, node.operator)
            if key in known and (number not in known_seconds or (key in seconds and number in step.measured.widened)):
                known_seconds[number] = _typical(node, known[key])
            if node.signature.lineage in rows and (number not in known_rows or number in step.measured.widened):
                known_rows[number] = rows[node.signature.lineage]
        found.append(replace(step, measured=replace(step.measured, seconds=known_seconds, rows=known_rows)))
    return found


@dataclass(frozen=True, slots=True)
class _Seen:
    """What an operator took in one step, with the columns that it had to produce."""

    columns: frozenset[str]
    row_bytes: float
    seconds: float


def _typical(node: Node, seen: Sequence[_Seen]) -> float:
    """Of the same columns, the mean. Of others: a projection takes what its own expressions take, at the least what the
    cheapest seen did; what a join or an aggregate takes goes with the width of its rows.
    """
    assert node.signature is not None
    same = [each.seconds for each in seen if each.columns == frozenset(node.signature.columns)]
    if same:
        return fmean(same)
    if node.operator == PROJECT:
        return min(each.seconds for each in seen)
    return fmean(each.seconds * max(node.row_bytes, 1.0) / max(each.row_bytes, 1.0) for each in seen)
