"""Which rows leave their partition, and to how many tasks, for a given size of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from sys import maxsize

from spark_regions.skew.helpers import number_of_helpers
from spark_regions.skew.keys import KeyLoad
from spark_regions.skew.operators import JOINS, MERGED, Input, Operator, Spread, spread
from spark_regions.skew.packing import cut
from spark_regions.skew.spec import Decline, Kind, Split
from spark_regions.skew.stage import Costs, Stage

TABLE_BYTES = 16 << 20
"""Largest other input, in memory, of which every slice makes a table."""


@dataclass(frozen=True, slots=True)
class Splits:
    """:param declines: why some rows stay together, once for each reason"""

    splits: tuple[Split, ...]
    declines: tuple[Decline, ...]


def by_records(stage: Stage, loads: Mapping[str, KeyLoad], target: float, costs: Costs) -> Splits:
    """Heavy keys, and partitions whose other rows are too many, dealt to tasks of `target` seconds (§11.1, SBR).

    A key that may not be spread stands alone. Worked example: a key of 30 s of work at a target of 4 s gets 8 tasks,
    fewer where replicating the other input to more of them would cost more than it brings (§14.2).

    :param loads: of heavy keys (`keys.key_loads`); without any, only whole partitions are cut
    """
    refused: dict[str, Decline] = {}
    found: list[Split] = []
    rest = list(stage.seconds)
    for load in sorted(loads.values(), key=lambda each: (-each.seconds, each.key)):
        if load.seconds <= target:
            continue
        allowed = _key_refusal(stage, load)
        helpers = 1
        if allowed is None:
            possible = min(ceil(load.seconds / target), _most(stage, load))
            helpers = min(possible, _worthwhile(stage, possible, load.seconds, load.other_bytes, load.bytes, costs))
            if helpers < 2:
                code = "MIGRATION_TOO_SLOW" if possible > 1 else "FEW_ROWS"
                allowed = Decline(Kind.RECORDS, code, f"{load.seconds:.2f} s")
        if allowed is not None:
            refused.setdefault(allowed.code, allowed)
            if stage.layout_fixed or stage.operator is Operator.REDUCE:
                continue
        rest[load.partition] -= load.seconds
        replicate = stage.right is not None and not load.null and helpers > 1
        verify = helpers > 1 and _only_known_keys(stage, load) and not stage.observed
        found.append(Split(load.partition, load.key, helpers, load.side, replicate, load.share, load.error, (), verify))
    for number, seconds in enumerate(rest):
        if seconds > target:
            made = _whole_partition(stage, number, seconds, target, costs)
            if isinstance(made, Decline):
                refused.setdefault(made.code, made)
            else:
                found.append(made)
    return Splits(tuple(found), tuple(refused.values()))


def by_keys(stage: Stage, loads: Mapping[str, KeyLoad], target: float) -> Splits:
    """Heavy keys alone, the other rows of their partitions packed (§11.1, SBK)."""
    if stage.layout_fixed:
        return Splits((), (Decline(Kind.KEYS, "REPARTITION"),))
    if stage.operator is Operator.REDUCE:
        return Splits((), (Decline(Kind.KEYS, "UNKNOWN_OPERATOR"),))
    shared = {each.partition for each in loads.values() if stage.seconds[each.partition] > target}
    alone = [
        Split(load.partition, load.key, 1, load.side, False, load.share, load.error)
        for load in sorted(loads.values(), key=lambda each: (-each.seconds, each.key))
        if load.partition in shared and load.seconds > target / 2 and load.seconds < stage.seconds[load.partition]
    ]
    return Splits(tuple(alone), () if alone else (Decline(Kind.KEYS, "NO_HEAVY_KEYS"),))


def _refusal(stage: Stage, side: Input) -> Decline | None:
    kind = Kind.TWO_PHASES if stage.operator in MERGED else Kind.RECORDS
    if stage.layout_fixed:
        return Decline(kind, "REPARTITION")
    if stage.ordered:
        return Decline(kind, "ORDERED_KEYS")
    if spread(stage.operator, side) is Spread.NEVER:
        return Decline(kind, "WRONG_SIDE" if stage.operator in JOINS else "NOT_MERGEABLE", stage.operator.value)
    if kind is Kind.TWO_PHASES and stage.float_sums:
        return Decline(kind, "FLOAT_AGGREGATE")
    return None


def _key_refusal(stage: Stage, load: KeyLoad) -> Decline | None:
    if (found := _refusal(stage, load.side)) is not None:
        return found
    if spread(stage.operator, load.side) is Spread.AS_KEYS:
        return Decline(Kind.RECORDS, "WRONG_SIDE", stage.operator.value)
    if _only_known_keys(stage, load) and stage.residual:
        return Decline(Kind.RECORDS, "UNMATCHED_ROWS", stage.operator.value)
    return None


def _only_known_keys(stage: Stage, load: KeyLoad) -> bool:
    return spread(stage.operator, load.side) is Spread.KNOWN_KEYS and not load.null


def _most(stage: Stage, load: KeyLoad) -> int:
    """Tasks that a key can have; with KNOWN_KEYS, so few that each gets one of its rows.

    Every map task deals its rows in turn. With more than maps · (n - 1) rows, one of them has n or more: all n tasks
    get some. Worked example: 1,000 rows counted, 100 map tasks: at most 10.
    """
    if not _only_known_keys(stage, load):
        return max(int(load.rows), 1)
    shuffle = stage.input(load.side)
    rows = load.least_rows if stage.observed else int(load.rows)
    return max((rows - 1) // (shuffle.maps if shuffle else 1) + 1, 1)


def _whole_partition(stage: Stage, number: int, seconds: float, target: float, costs: Costs) -> Split | Decline:
    """Dealt in turn, or cut by map outputs where they are written; no key need be known, only which input spreads."""
    sides = [side for side in Input if stage.input(side) and _spreads_whole(stage, side)]
    if not sides:
        return _whole_refusal(stage)
    side = max(sides, key=lambda each: _cut_bytes(stage, each, number))
    if (refused := _refusal(stage, side)) is not None:
        return refused
    shuffle, other = stage.input(side), stage.input(side.other)
    assert shuffle is not None
    again = other.bytes[number] if other else 0
    wanted = ceil(seconds / target)
    wanted = min(wanted, _worthwhile(stage, wanted, seconds, again, shuffle.bytes[number], costs))
    if wanted < 2:
        return Decline(Kind.RECORDS, "MIGRATION_TOO_SLOW", f"{seconds:.2f} s")
    allowed = spread(stage.operator, side)
    unmatched = allowed is not Spread.ANY
    looked_up = (
        allowed is not Spread.AS_KEYS
        and stage.hashable
        and other is not None
        and other.in_memory(number) <= TABLE_BYTES
    )
    split = Split(number, None, wanted, side, other is not None, unmatched=unmatched, hashed=looked_up)
    if not stage.observed:
        return split
    blocks = shuffle.blocks.get(number) or (1,) * shuffle.maps
    ranges = cut(blocks, wanted)
    if shuffle.repeatable:
        longest = max(sum(blocks[start:end]) for start, end in ranges) / (sum(blocks) or 1)
        skipped = shuffle.bytes[number] * (1 - 1 / wanted) * costs.read_seconds_per_byte
        if seconds / wanted + skipped < seconds * longest:
            return split
    if len(ranges) < 2:
        return Decline(Kind.RECORDS, "ONE_BLOCK", f"{seconds:.2f} s")
    return replace(split, helpers=len(ranges), ranges=ranges)


def _spreads_whole(stage: Stage, side: Input) -> bool:
    """Without counted keys, unmatched rows take a pass of their own, over a shuffle that is written."""
    allowed = spread(stage.operator, side)
    return allowed is Spread.ANY or (allowed is not Spread.NEVER and stage.observed and not stage.residual)


def _whole_refusal(stage: Stage) -> Decline:
    if (refused := _refusal(stage, Input.LEFT)) is not None:
        return refused
    if stage.observed and stage.residual:
        return Decline(Kind.RECORDS, "UNMATCHED_ROWS", stage.operator.value)
    return Decline(Kind.RECORDS, "NO_HEAVY_KEYS")


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
    if stage.cores < 2 or total <= 0:
        return 1
    share = seconds / total
    if share * stage.cores <= 1:
        return maxsize
    even = (1 - share) / (stage.cores - 1)

    def migration(number: int) -> float:
        move = other_bytes * (number * costs.write_seconds_per_byte / stage.cores + costs.read_seconds_per_byte)
        if stage.operator is Operator.PARTITION_WINDOW:
            move += costs.stage_seconds + own_bytes / (number + 1) * costs.read_seconds_per_byte
        elif stage.operator in MERGED:
            move += costs.stage_seconds + stage.state_ratio * own_bytes * costs.read_seconds_per_byte
        return move

    others = (even,) * min(stage.cores - 1, wanted - 1)
    helpers = number_of_helpers(share, others, total, total, total / seconds, migration)
    return maxsize if helpers == len(others) else helpers + 1
