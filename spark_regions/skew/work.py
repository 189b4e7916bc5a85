"""How long a stage takes under a decision: pieces, tasks and phases in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from statistics import median

from spark_regions.skew.boundaries import weights
from spark_regions.skew.keys import KeyLoad, key_loads
from spark_regions.skew.operators import Operator, Spread, spread
from spark_regions.skew.packing import in_order
from spark_regions.skew.spec import Kind, Piece, SkewSpec, Split
from spark_regions.skew.stage import Costs, Stage

KEY_PASS = 1.4
"""Bringing out the distinct keys of rows, in times of reading them: 170 MB/s measured, where reading takes 240."""


@dataclass(frozen=True, slots=True)
class Phase:
    """:param before: seconds until its tasks may start; :param tasks: seconds, in the order of start"""

    before: float
    tasks: tuple[float, ...]

    def makespan(self, cores: int) -> float:
        return self.before + in_order(self.tasks, cores).makespan


def total_makespan(phases: Iterable[Phase], cores: int) -> float:
    """Phases wait for each other."""
    return sum(phase.makespan(cores) for phase in phases)


def phases(
    stage: Stage,
    spec: SkewSpec,
    costs: Costs,
    loads: Mapping[str, KeyLoad] | None = None,
    seconds: Mapping[Piece, float] | None = None,
) -> tuple[Phase, ...]:
    """What runs under a decision that changes something. The stage may be another one than the decision was made on.

    :param loads: of the stage's heavy keys, and :param seconds: of the decision's pieces, where they are known already
    """
    if spec.kind is Kind.BOUNDARIES:
        shares = weights(stage.distribution, spec.boundaries)
        total = sum(shares) or 1.0
        ranges = [sum(stage.seconds) * share / total for share in shares]
        return (Phase(0.0, tuple(ranges[task[0].partition] + costs.task_seconds for task in spec.tasks)),)
    if spec.kind is Kind.TIES:
        ties = [rows * costs.tie_seconds_per_row for rows in stage.left.rows]
        return (Phase(0.0, tuple(map(sum, zip(stage.seconds, ties, repeat(costs.task_seconds))))),)
    pieces = _Pieces(stage, spec.splits, key_loads(stage) if loads is None else loads, costs)
    of = pieces.seconds if seconds is None else seconds.__getitem__
    main = stage.with_spills(
        [sum(map(of, task)) + costs.task_seconds for task in spec.tasks],
        [sum(map(pieces.sorted_data, task)) for task in spec.tasks],
        costs,
    )
    spreads = [split for split in spec.splits if split.helpers > 1]
    replicated = sum(
        pieces.other_bytes(split) * (split.helpers - 1)
        for split in spreads
        if split.replicate and split.key is not None
    )
    found = [Phase(replicated * costs.write_seconds_per_byte / stage.cores, main)]
    if checked := [split for split in spreads if split.unmatched]:
        # The keys of all slices first; they tell which rows of the other input stay unmatched.
        keys = [
            pieces.bytes(split) / split.helpers * KEY_PASS * costs.read_seconds_per_byte + costs.task_seconds
            for split in checked
            for _ in range(split.helpers)
        ]
        last = [pieces.rest_seconds(split) + costs.task_seconds for split in checked]
        found = [Phase(0.0, tuple(keys)), Phase(found[0].before + costs.stage_seconds, (*main, *last))]
    if spreads and stage.operator is Operator.PARTITION_WINDOW:
        # The value of each key first, from a pass over its rows; then every slice brings out its rows with it.
        partial = [
            pieces.read_bytes(split) * KEY_PASS * costs.read_seconds_per_byte + costs.task_seconds
            for split in spreads
            for _ in range(split.helpers)
        ]
        found = [Phase(0.0, tuple(partial)), Phase(found[0].before + costs.stage_seconds, main)]
    elif spreads and stage.operator in (Operator.MERGEABLE_AGGREGATE, Operator.LIMITED_WINDOW):
        merges = [
            stage.state_ratio * pieces.bytes(split) * costs.read_seconds_per_byte + costs.task_seconds
            for split in spreads
        ]
        found.append(Phase(costs.stage_seconds, tuple(sorted(merges, reverse=True))))
    if spreads and stage.reshuffle_bytes:
        rate = costs.write_seconds_per_byte + costs.read_seconds_per_byte
        each = stage.reshuffle_bytes * rate / stage.cores + costs.task_seconds
        found.append(Phase(costs.stage_seconds, (each,) * stage.cores))
    return tuple(found)


def pieces_of(stage: Stage, splits: Iterable[Split]) -> list[Piece]:
    """Every row of the stage in exactly one piece (rows of a replicated input apart)."""
    helpers = {(split.partition, split.key): split.helpers for split in splits}
    rest = [
        Piece(number, None, at) for number in range(len(stage.seconds)) for at in range(helpers.get((number, None), 1))
    ]
    keyed = [
        Piece(number, key, at) for (number, key), count in helpers.items() if key is not None for at in range(count)
    ]
    return rest + keyed


def piece_seconds(
    stage: Stage, splits: tuple[Split, ...], costs: Costs, loads: Mapping[str, KeyLoad]
) -> dict[Piece, float]:
    pieces = _Pieces(stage, splits, loads, costs)
    return {piece: pieces.seconds(piece) for piece in pieces_of(stage, splits)}


class _Pieces:
    def __init__(self, stage: Stage, splits: Iterable[Split], loads: Mapping[str, KeyLoad], costs: Costs) -> None:
        self._stage, self._loads, self._costs = stage, loads, costs
        self._splits = {(split.partition, split.key): split for split in splits}
        taken: dict[int, float] = {}
        self._taken_bytes: dict[int, float] = {}
        for split in self._splits.values():
            load = loads.get(split.key) if split.key is not None else None
            if load:
                taken[load.partition] = taken.get(load.partition, 0.0) + load.seconds
                self._taken_bytes[load.partition] = self._taken_bytes.get(load.partition, 0.0) + load.bytes
        self._slices: dict[tuple[int, str | None], float] = {}
        self._rest = {number: max(stage.seconds[number] - seconds, 0.0) for number, seconds in taken.items()}

    def bytes(self, split: Split) -> float:
        """Of the input that is spread."""
        if split.key is not None:
            load = self._loads.get(split.key)
            return load.bytes if load else 0.0
        shuffle = self._stage.input(split.spread)
        whole = shuffle.bytes[split.partition] if shuffle else 0
        return max(whole - self._taken_bytes.get(split.partition, 0.0), 0.0)

    def read_bytes(self, split: Split) -> float:
        """Of the input that is spread, for each slice: of a written shuffle, one that is dealt reads all blocks."""
        whole = self.bytes(split)
        return whole if self._stage.observed and split.key is None and not split.ranges else whole / split.helpers

    def state_bytes(self, split: Split) -> float:
        """States of all keys of the partition, of one slice: the light keys are as many as in any partition."""
        usual = median(self._stage.left.bytes) if self._stage.left.bytes else 0.0
        return self._stage.state_ratio * min(self.bytes(split), usual)

    def other_bytes(self, split: Split) -> float:
        """Of the other input, for each slice."""
        if split.key is not None:
            load = self._loads.get(split.key)
            return load.other_bytes if load else 0.0
        other = self._stage.input(split.spread.other)
        return other.bytes[split.partition] if other else 0.0

    def as_keys(self, split: Split) -> bool:
        return spread(self._stage.operator, split.spread) is Spread.AS_KEYS

    def rest_seconds(self, split: Split) -> float:
        """Of the task that joins the other input with the keys of all slices: all its work, or what is left of it."""
        if not self.as_keys(split):
            return self.other_bytes(split) * self._costs.read_seconds_per_byte
        own, other = self.bytes(split), self.other_bytes(split)
        whole = self._rest.get(split.partition, self._stage.seconds[split.partition])
        return whole * other / (own + other) if own + other else 0.0

    def sorted_data(self, piece: Piece) -> float:
        """Bytes in memory that a piece adds to what its task sorts."""
        split = self._splits.get((piece.partition, piece.key))
        if split is None or split.helpers < 2:
            return self._stage.data(piece.partition) if piece.key is None else 0.0
        if split.hashed or self.as_keys(split) or self._stage.operator is Operator.PARTITION_WINDOW:
            return 0.0
        shuffle, other = self._stage.input(split.spread), self._stage.input(split.spread.other)
        at = split.partition
        copied = self.other_bytes(split) * other.expansion(at) if other and split.replicate else 0.0
        own = self.bytes(split) * shuffle.expansion(at) if shuffle else 0.0
        return copied + own * self._part(split, piece.slice)

    def seconds(self, piece: Piece) -> float:
        place = (piece.partition, piece.key)
        split = self._splits.get(place)
        if split is None or split.ranges:
            return self._seconds(piece, split)
        if place not in self._slices:  # rows dealt in turn: all slices are alike
            self._slices[place] = self._seconds(piece, split)
        return self._slices[place]

    def _seconds(self, piece: Piece, split: Split | None) -> float:
        if piece.key is None:
            whole = self._rest.get(piece.partition, self._stage.seconds[piece.partition])
        else:
            load = self._loads.get(piece.key)
            whole = load.seconds if load else 0.0
        whole += self._skipped(piece, split) * self._costs.read_seconds_per_byte
        if split is None or split.helpers < 2:
            return whole
        if self.as_keys(split):
            return 0.0  # its rows are read for their keys, before
        mine = whole * self._part(split, piece.slice)
        if split.replicate and piece.key is None and self._stage.observed:
            # Each slice works through all copied rows, not only reads them.
            own, copied = self.bytes(split), self.other_bytes(split)
            share = copied / (own + copied) if own + copied else 0.0
            mine = mine * (1 - share) + whole * share
            if split.hashed:
                mine *= self._costs.looked_up
        elif split.replicate:
            mine += self.other_bytes(split) * self._costs.read_seconds_per_byte
        if self._stage.observed and piece.key is None and not split.ranges:
            mine += self.bytes(split) * (1 - 1 / split.helpers) * self._costs.read_seconds_per_byte
        if self._stage.operator is Operator.PARTITION_WINDOW:
            mine *= self._costs.looked_up
        if self._stage.operator is Operator.PARTITION_WINDOW and self._stage.observed:
            # Each slice merges the states of all slices by itself.
            mine += split.helpers * self.state_bytes(split) * KEY_PASS * self._costs.read_seconds_per_byte
        if self._stage.operator is Operator.MERGEABLE_AGGREGATE:
            state = self._stage.state_ratio * self.bytes(split) / split.helpers
            mine += state * self._costs.write_seconds_per_byte
        return mine

    def _skipped(self, piece: Piece, split: Split | None) -> float:
        """Bytes of map outputs that are read for other rows, where the shuffle is written already."""
        if not self._stage.observed:
            return 0.0
        if piece.key is None:
            return self._taken_bytes.get(piece.partition, 0.0)
        shuffle = self._stage.input(split.spread) if split else None
        return max(shuffle.bytes[piece.partition] - self.bytes(split), 0.0) if shuffle and split else 0.0

    def _part(self, split: Split, number: int) -> float:
        shuffle = self._stage.input(split.spread)
        blocks = shuffle.blocks.get(split.partition, ()) if shuffle else ()
        if split.ranges and sum(blocks):
            start, end = split.ranges[number]
            return sum(blocks[start:end]) / sum(blocks)
        return 1 / split.helpers
