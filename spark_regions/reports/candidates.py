"""The points that would have been best to store: benefit as in Piglet's eq. 1 and 4, chosen greedily."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spark_regions.costs.rates import Rates
from spark_regions.reports.lineages import Lineage, Lineages

SHOWN = 10
_MIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point, were its result stored before the next run of the application.

    :param seconds: task-seconds to compute it once, what was chosen before it read from the store
    :param saved_seconds: wall seconds that one run would save: uses · (compute - read), and nothing for the write
    :param write_seconds: wall seconds of the one write
    :param code: what was most often said against storing it; empty where nothing was
    """

    lineage: str
    operator: str
    label: str
    uses: float
    seconds: float
    bytes: float
    rows: int | None
    saved_seconds: float
    write_seconds: float
    code: str
    stored: bool


def best(lineages: Lineages, cores: int, stored: Iterable[str] = (), shown: int = SHOWN) -> list[Candidate]:
    """The best points, most seconds first. Each counts only what those before it leave: uses that no chosen point above
    would spare, and time that no chosen point below would.

    Worked example: A (4 task-seconds) is below B (1 more) and C (1 more), each used by one query, one core, reads free.
    A saves 2 · 4 = 8 s, B and C 5 s each. A is first; then B and C are worth the one second above A.

    :param stored: lineages with a stored result
    """
    order = _bottom_up(lineages.found)
    already = set(stored)
    chosen: dict[str, Candidate] = {}
    while len(chosen) < shown:
        spent = _spent(lineages.found, order, chosen, cores)
        uses = _uses(lineages.found, order, chosen)
        found = [
            candidate
            for lineage in order
            if lineage not in chosen
            and (
                candidate := _candidate(lineage, lineages.found[lineage], spent[lineage], uses[lineage], cores, already)
            )
        ]
        if not found:
            break
        first = max(found, key=lambda each: (each.saved_seconds, each.lineage))
        chosen[first.lineage] = first
    return list(chosen.values())


def _candidate(
    name: str, lineage: Lineage, seconds: float, uses: float, cores: int, stored: set[str]
) -> Candidate | None:
    size = _bytes(lineage)
    if lineage.source or not lineage.runs or size is None:
        return None
    rates = Rates()
    # Where the result has the source's own rows, they are read either way.
    seconds -= lineage.source_seconds / lineage.runs
    saved = uses * (seconds / cores - rates.read_seconds(size, cores))
    if saved < _MIN_SECONDS:
        return None
    code = lineage.codes.most_common(1)[0][0] if lineage.codes else ""
    write = rates.write_seconds(size, cores)
    return Candidate(
        name, lineage.operator, lineage.label, uses, seconds, size, lineage.rows, saved, write, code, name in stored
    )


def _bytes(lineage: Lineage) -> float | None:
    return None if lineage.bytes is None else lineage.bytes * Rates().stored_ratio


def _bottom_up(found: Mapping[str, Lineage]) -> list[str]:
    """Lineages after all that stand below them; what is in a cycle, which digests cannot make, is left out."""
    waiting = {name: sum(each in found for each in lineage.below) for name, lineage in found.items()}
    above: dict[str, list[str]] = {name: [] for name in found}
    for name, lineage in found.items():
        for each in lineage.below:
            if each in found:
                above[each].append(name)
    order = [name for name, count in waiting.items() if count == 0]
    for name in order:
        for parent in above[name]:
            waiting[parent] -= 1
            if waiting[parent] == 0:
                order.append(parent)
    return order


def _spent(
    found: Mapping[str, Lineage], order: Iterable[str], chosen: Mapping[str, Candidate], cores: int
) -> dict[str, float]:
    """Task-seconds to compute each once, chosen ones below read."""
    spent: dict[str, float] = {}
    for name in order:
        lineage = found[name]
        total = lineage.self_seconds
        for child, count in lineage.below.items():
            if child in chosen:
                cost = Rates().read_seconds(chosen[child].bytes, cores) * cores
            else:
                cost = spent.get(child, 0.0)
            total += cost * count / max(lineage.uses, 1)
        spent[name] = total
    return spent


def _uses(found: Mapping[str, Lineage], order: list[str], chosen: Mapping[str, Candidate]) -> dict[str, float]:
    """Uses of each that no chosen point above spares."""
    uses = {name: float(found[name].roots) for name in order}
    for name in reversed(order):
        if name in chosen:
            continue
        share = uses[name] / max(found[name].uses, 1)
        for child, count in found[name].below.items():
            if child in uses:
                uses[child] += share * count
    return uses
