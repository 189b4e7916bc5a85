"""Results that several queries of a recorded run need: where each can be made, and where it can be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_regions.costs.rates import (
    MIN_BENEFIT_SECONDS,
    SECONDS_PER_ROW_AND_CONJUNCT,
    SECONDS_PER_ROW_AND_EXPRESSION,
)
from spark_regions.dag.plan import Plan, Signature
from spark_regions.matching.subsumes import MatchFailure, subsumes
from spark_regions.runs.recorded_query import RecordedQuery
from spark_regions.stats.cardinality import unfiltered_rows
from spark_regions.stats.estimate import Estimate
from spark_regions.stats.operators import NO_FILES, Files, files_below

MAX_RESULTS = 80


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A node that a result serves.

    :param share: of the result's columns, those that are read
    :param residual: seconds of one core for the filters and expressions on top
    :param exact: the node has the result's rows, and all of its columns: it can make the result as it is
    :param bytes: of the rows that the query itself needs there
    """

    step: int
    node: int
    share: float
    residual: float
    exact: bool
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """Rows and columns that could be kept.

    :param signature: in the recorded run's identifiers; `columns` are those that some place reads
    :param wide: the whole DataFrame where it is one, wider than the nodes that it serves
    :param places: by step; none is below another in one step
    :param files: that it comes from
    """

    signature: Signature
    wide: Signature | None
    rows: float
    bytes: float
    places: tuple[Occurrence, ...]
    storable: bool
    files: Files = NO_FILES

    def makers(self) -> Iterable[Occurrence]:
        """Places that can make it: for a DataFrame every one, since it can stand in for the node."""
        return (place for place in self.places if self.wide is not None or place.exact)


def results(steps: Sequence[RecordedQuery], ahead: Sequence[int]) -> list[Result]:
    """What could be kept for the steps `ahead`, the most work first.

    One place saves nothing; neither do places that are quick to compute.
    """
    prefixes = {k: steps[k].prefix_seconds for k in ahead}
    by_core: dict[str, list[tuple[int, int]]] = {}
    rows: dict[str, float] = {}
    for k in ahead:
        for number, node in steps[k].plan.nodes.items():
            if node.signature is not None:
                by_core.setdefault(node.signature.core, []).append((k, number))
                if number in steps[k].measured.rows:
                    rows[node.signature.lineage] = steps[k].measured.rows[number]
    found: dict[tuple[tuple[int, int], ...], Result] = {}
    for signature, wide, row_bytes, storable in _sources(steps, ahead):
        cardinality = _rows(signature, rows, steps, by_core.get(signature.core, ()))
        if cardinality is None:
            continue
        result = _result(steps, signature, wide, cardinality, row_bytes, storable, by_core)
        if result is None:
            continue
        work = sorted(prefixes[p.step][p.node] for p in result.places)
        if sum(work[:-1]) < MIN_BENEFIT_SECONDS:
            continue
        key = tuple((p.step, p.node) for p in result.places)
        # Of two that serve the same places, the smaller one; of one size, what stands in for no node.
        if key not in found or _cost(result) < _cost(found[key]):
            found[key] = result
    ranked = sorted(found.values(), key=lambda r: -sum(prefixes[p.step][p.node] for p in r.places))
    return ranked[:MAX_RESULTS]


def _cost(result: Result) -> tuple[float, bool]:
    return result.bytes, result.wide is not None


def _sources(
    steps: Sequence[RecordedQuery], ahead: Sequence[int]
) -> Iterable[tuple[Signature, Signature | None, float, bool]]:
    """Signatures that something could be kept under: nodes, and the DataFrames that the program uses several times."""
    seen: set[tuple[str, frozenset[str], bool]] = set()
    for k in ahead:
        plan = steps[k].plan
        for shared in plan.shared:
            key = (shared.signature.lineage, frozenset(shared.signature.columns), True)
            if key not in seen:
                seen.add(key)
                yield shared.signature, shared.signature, shared.row_bytes, True
        for node in plan.nodes.values():
            signed = node.signature
            if signed is None or not node.children or not (node.storable or node.session):
                continue
            key = (signed.lineage, frozenset(signed.columns), False)
            if key not in seen:
                seen.add(key)
                yield signed, None, node.row_bytes, node.storable


def _result(
    steps: Sequence[RecordedQuery],
    signature: Signature,
    wide: Signature | None,
    rows: float,
    row_bytes: float,
    storable: bool,
    by_core: Mapping[str, Sequence[tuple[int, int]]],
) -> Result | None:
    reads: dict[tuple[int, int], tuple[frozenset[str], float]] = {}
    for k, number in by_core.get(signature.core, ()):
        plan = steps[k].plan
        node = plan.nodes[number]
        assert node.signature is not None
        if not node.children or not (node.storable or node.session or node.counted):
            continue
        mapping = subsumes(plan, node.signature, signature)
        if isinstance(mapping, MatchFailure):
            continue
        residual = len(node.signature.conjuncts - signature.conjuncts) * SECONDS_PER_ROW_AND_CONJUNCT
        residual += len(mapping.computed) * SECONDS_PER_ROW_AND_EXPRESSION
        reads[k, number] = (mapping.reads, residual * rows)
    tops = {place: found for place, found in reads.items() if not _served_above(steps[place[0]].plan, place, reads)}
    kept = frozenset().union(*(columns for columns, _ in tops.values()))
    if wide is None:
        kept = frozenset(signature.columns)
        tops = _with_makers(steps, tops, reads, signature)
    if len({k for k, _ in tops}) < 2:
        return None
    columns = tuple(each for each in dict.fromkeys(signature.columns) if each in kept)
    width = max(row_bytes, 1.0) * max(len(columns), 1) / max(len(set(signature.columns)), 1)
    places = []
    for (k, number), (needed, residual) in sorted(tops.items()):
        signed = steps[k].plan.nodes[number].signature
        assert signed is not None
        exact = _exact(signed, signature.lineage, kept)
        own = rows * min(steps[k].plan.nodes[number].row_bytes, width)
        places.append(Occurrence(k, number, len(needed) / max(len(columns), 1), residual, exact, own))
    if not any(place.exact for place in places[:-1]) and wide is None:
        return None
    kept_signature = Signature(signature.lineage, signature.core, signature.conjuncts, columns)
    files = [files_below(steps[k].plan, number, steps[k].measured.seconds.get) for k, number in tops]
    return Result(kept_signature, wide, rows, rows * width, tuple(places), storable, max(files))


def _with_makers(
    steps: Sequence[RecordedQuery],
    tops: Mapping[tuple[int, int], tuple[frozenset[str], float]],
    reads: Mapping[tuple[int, int], tuple[frozenset[str], float]],
    signature: Signature,
) -> dict[tuple[int, int], tuple[frozenset[str], float]]:
    """The topmost places; where none of them can make the result, those below them that can stand in for them.

    Worked example: eight queries round `v / 2`, `v / 3` … of one join. Each result could be read in the place of that
    projection, but only the join below it has all columns of the join.
    """
    kept = frozenset(signature.columns)

    def makes(place: tuple[int, int]) -> bool:
        signed = steps[place[0]].plan.nodes[place[1]].signature
        return signed is not None and _exact(signed, signature.lineage, kept)

    if any(map(makes, tops)):
        return dict(tops)
    makers = {place: found for place, found in reads.items() if makes(place)}
    replaced = {(k, above) for k, number in makers for above in steps[k].plan.above([number])}
    return {place: found for place, found in tops.items() if place not in replaced} | makers


def _exact(signed: Signature, lineage: str, kept: frozenset[str]) -> bool:
    """Whether a node has the rows of a result, and all that is kept of them."""
    return signed.lineage == lineage and kept <= set(signed.columns)


def _served_above(plan: Plan, place: tuple[int, int], served: Mapping[tuple[int, int], object]) -> bool:
    step, number = place
    above = plan.parents.get(number)
    while above is not None:
        if (step, above) in served:
            return True
        above = plan.parents.get(above)
    return False


def _rows(
    signature: Signature,
    known: Mapping[str, float],
    steps: Sequence[RecordedQuery],
    kin: Iterable[tuple[int, int]],
) -> float | None:
    """Cardinality: seen, or from a place with more filters."""
    if signature.lineage in known:
        return known[signature.lineage]
    seen: list[tuple[frozenset[str], Estimate]] = []
    for k, number in kin:
        signed = steps[k].plan.nodes[number].signature
        assert signed is not None
        if signed.lineage in known and signature.conjuncts <= signed.conjuncts:
            seen.append((signed.conjuncts, Estimate(known[signed.lineage], 1.0)))
    seen.sort(key=lambda each: each[1].value)
    found = unfiltered_rows(signature.conjuncts, seen)
    return found.value if found else None
