"""Which partitions are cut, and into how many slices, for a given size of a task (thesis §11.1, SBR)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from sys import maxsize

from spark_regions.skew.helpers import number_of_helpers
from spark_regions.skew.operators import JOINS, Input, Operator, Spread, spread
from spark_regions.skew.packing import cut
from spark_regions.skew.reduce_stage import Costs, Stage
from spark_regions.skew.spec import Decline, Kind, Split

TABLE_BYTES = 16 << 20
"""Largest other input, in memory, of which every slice makes a table."""


@dataclass(frozen=True, slots=True)
class Splits:
    """:param declines: why some rows stay together, once for each reason"""

    splits: tuple[Split, ...]
    declines: tuple[Decline, ...]


def by_records(stage: Stage, target: float, costs: Costs) -> Splits:
    """Partitions of more than `target` seconds, in slices of about that.

    Worked example: a partition of 30 s of work at a target of 4 s gets 8 tasks, fewer where copying the other input to
    more of them would cost more than it brings (§14.2).
    """
    refused: dict[str, Decline] = {}
    found: list[Split] = []
    for number, seconds in enumerate(stage.seconds):
        if seconds > target:
            made = _partition(stage, number, seconds, target, costs)
            if isinstance(made, Decline):
                refused.setdefault(made.code, made)
            else:
                found.append(made)
    return Splits(tuple(found), tuple(refused.values()))


def _partition(stage: Stage, number: int, seconds: float, target: float, costs: Costs) -> Split | Decline:
    """Cut by map outputs, or round robin; no key need be known, only which input spreads."""
    sides = [side for side in Input if stage.input(side) and _spreads(stage, side)]
    if not sides:
        code = "UNMATCHED_ROWS" if stage.operator in JOINS else "NOT_MERGEABLE"
        return Decline(Kind.RECORDS, code, stage.operator.value)
    side = max(sides, key=lambda each: _cut_bytes(stage, each, number))
    shuffle, other = stage.input(side), stage.input(side.other)
    assert shuffle is not None
    again = other.bytes[number] if other else 0
    wanted = ceil(seconds / target)
    wanted = min(wanted, _worthwhile(stage, wanted, seconds, again, shuffle.bytes[number], costs))
    if wanted < 2:
        return Decline(Kind.RECORDS, "MIGRATION_TOO_SLOW", f"{seconds:.2f} s")
    allowed = spread(stage.operator, side)
    looked_up = (
        allowed is not Spread.AS_KEYS
        and stage.hashable
        and other is not None
        and other.in_memory(number) <= TABLE_BYTES
    )
    unmatched = allowed is not Spread.ANY
    round_robin = Split(number, wanted, side, other is not None, unmatched=unmatched, hashed=looked_up)
    blocks = shuffle.blocks.get(number) or (1,) * shuffle.maps
    ranges = cut(blocks, wanted)
    if shuffle.repeatable:
        longest = max(sum(blocks[start:end]) for start, end in ranges) / (sum(blocks) or 1)
        skipped = shuffle.bytes[number] * (1 - 1 / wanted) * costs.read_seconds_per_byte
        if seconds / wanted + skipped < seconds * longest:
            return round_robin
    if len(ranges) < 2:
        return Decline(Kind.RECORDS, "ONE_BLOCK", f"{seconds:.2f} s")
    return replace(round_robin, helpers=len(ranges), ranges=ranges)


def _spreads(stage: Stage, side: Input) -> bool:
    """Unmatched rows take a pass of their own, which finds them by their keys alone."""
    allowed = spread(stage.operator, side)
    return allowed is Spread.ANY or (allowed is not Spread.NEVER and not stage.residual)


def _cut_bytes(stage: Stage, side: Input, number: int) -> float:
    """An input whose unmatched rows take a pass of their own is read twice, and should be worth it."""
    shuffle = stage.input(side)
    size = shuffle.in_memory(number) if shuffle else 0.0
    return size if spread(stage.operator, side) is Spread.ANY else size / 2


def _worthwhile(stage: Stage, wanted: int, seconds: float, other_bytes: float, own_bytes: float, costs: Costs) -> int:
    """Tasks up to which moving state pays: the owner and its helpers by §14.2, in seconds of work for tuples.

    Unmitigated, the stage takes as long as its longest load, which tells how much of it the operator does in a second.
    The other workers are taken as evenly loaded. Where every core may help, or as many as are wanted, or the load is
    below a fair share and is only cut to pack better, the prediction alone decides.
    """
    total = sum(stage.seconds)
    share = seconds / total
    if share * stage.cores <= 1:
        return maxsize
    even = (1 - share) / (stage.cores - 1)

    def migration(number: int) -> float:
        move = other_bytes * (number * costs.write_seconds_per_byte / stage.cores + costs.read_seconds_per_byte)
        if stage.operator is Operator.PARTITION_WINDOW:
            move += costs.stage_seconds + own_bytes / (number + 1) * costs.read_seconds_per_byte
        return move

    others = (even,) * min(stage.cores - 1, wanted - 1)
    helpers = number_of_helpers(share, others, total, total, total / seconds, migration)
    return maxsize if helpers == len(others) else helpers + 1
