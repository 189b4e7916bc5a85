"""Every rate that a cost is made of: seconds and bytes of one core, until something was measured.

A store location's own are measured and learned (`Rates`, the factor `bps` of Piglet's eq. 4); the others stay as they
are.
"""

from __future__ import annotations

from dataclasses import dataclass

READ_OVERHEAD_SECONDS = 0.03
WRITE_OVERHEAD_SECONDS = 0.05
READ_BYTES_PER_SECOND = 150e6
WRITE_BYTES_PER_SECOND = 25e6
"""What one core decodes and encodes in Parquet before anything was observed; a slower disk lowers them."""
READ_SECONDS_PER_ROW = 0.03e-6
READ_SECONDS_PER_VALUE = 0.015e-6
WRITE_SECONDS_PER_ROW = 0.2e-6
WRITE_SECONDS_PER_VALUE = 0.08e-6
"""The same of rows that compress well: whatever bytes they take, each value is decoded and encoded, and each row that
is written leaves the code that Spark made for its stage."""
PLANNED_AGAIN_SECONDS_PER_NODE = 1.5e-3
"""What is read in the middle of a plan is read in plain Spark's order, which is found by planning the query without
it."""
PERSIST_READ_BYTES_PER_SECOND = 100e6
PERSIST_WRITE_BYTES_PER_SECOND = 20e6
PERSIST_READ_OVERHEAD_SECONDS = 0.03
PERSIST_WRITE_OVERHEAD_SECONDS = 0.2
"""The same for compressed rows in the block manager. A kept plan is planned apart, and runs as a job of its own."""
CARRIED_BYTES_PER_SECOND = 30e6
"""What one core writes to a shuffle, reads from it, and sorts."""

SCAN_BYTES_PER_SECOND = 100e6
SECONDS_PER_ROW = 0.3e-6
SHUFFLED_SECONDS_PER_ROW = 1.2e-6
"""Of an operator before anything ran: rows passed on, and rows that are moved, sorted or hashed."""

SECONDS_PER_ROW_AND_CONJUNCT = 5e-8
SECONDS_PER_ROW_AND_EXPRESSION = 2e-7
"""Of what is left to do over a stored result."""

SHARED_BYTES_PER_SECOND = 150e6
"""What one core writes to, or reads from, the shuffle of a subplan that is computed once."""
SHARED_STAGE_SECONDS = 0.05
"""A shuffle more is a stage more to plan, to start and to wait for."""
SECONDS_PER_ROW_OF = {"Join": 0.3e-6, "Aggregate": 0.3e-6, "Window": 0.8e-6}
"""Of operators of such a subplan that were never measured: the weights of `Attribution` in the shim with the shuffles
that go along."""
SECONDS_PER_SOURCE_ROW = 0.25e-6

TASK_BYTES_PER_SECOND = 50e6
TASK_SECONDS_PER_ROW = 2e-7
"""Of a task of a reduce stage, until tasks of its like were observed."""
SPREAD_WRITE_BYTES_PER_SECOND = 120e6
SPREAD_READ_BYTES_PER_SECOND = 240e6
SPILL_BYTES_PER_SECOND = 120e6
TASK_OVERHEAD_SECONDS = 0.01
STAGE_OVERHEAD_SECONDS = 0.1
TIE_SECONDS_PER_ROW = 1e-8
"""Of a stage that is arranged otherwise: rows that are written to and read from a shuffle once more, rows that a sort
puts aside, a task before its first row, a further stage, and a further sort key."""

ENGINE_START_SECONDS = 0.4
ENGINE_OVERHEAD_SECONDS = 0.05
ENGINE_READ_BYTES_PER_SECOND = 300e6
ENGINE_SECONDS_PER_ROW = 0.05e-6
ENGINE_RESULT_BYTES_PER_SECOND = 100e6
"""Of another engine on this machine, by one core, before any statement was seen: its process and a statement; what it
decodes of Parquet, rows that it moves, sorts or hashes, and what it hands over, which no second core speeds up."""
ENGINE_DEADLINE_FACTOR = 3.0
ENGINE_DEADLINE_LEAST_SECONDS = 30.0
"""A statement is given up after so many times what Spark is expected to take in its place, which the query then takes
beside that. What Spark is expected to take can be a guess that is far too low, and the machine can be busy: no
statement has less than so many seconds."""

SECOND_ITERATION = 2
SECOND_ITERATION_OVERHEAD = 0.1
"""Of a sweep's second iteration: what is kept in it may take as much of its own work, a twentieth of both, since it may
be the last one."""

SECOND_USE_OVERHEAD = 0.5
"""What writing a DataFrame may take at its second use, where no numbers are known, as a part of the query's own work:
its first use paid about as much for not having it."""

MIN_BENEFIT_SECONDS = 0.05
"""What a result has to save at least, else it is neither kept nor read."""


def carried_seconds(more_bytes: float, parallelism: int) -> float:
    """What columns take that a query carries through its shuffles for others only."""
    return max(0.0, more_bytes) / CARRIED_BYTES_PER_SECOND / max(parallelism, 1)


@dataclass(frozen=True, slots=True)
class Rates:
    """Speed of one task at a store location.

    :param stored_ratio: bytes of the files per estimated byte of the rows
    :param persisted_ratio: the same of what the block manager keeps
    """

    read_bytes_per_second: float = READ_BYTES_PER_SECOND
    write_bytes_per_second: float = WRITE_BYTES_PER_SECOND
    read_overhead_seconds: float = READ_OVERHEAD_SECONDS
    write_overhead_seconds: float = WRITE_OVERHEAD_SECONDS
    stored_ratio: float = 1.0
    persisted_ratio: float = 0.4
    persist_read_bytes_per_second: float = PERSIST_READ_BYTES_PER_SECOND
    persist_write_bytes_per_second: float = PERSIST_WRITE_BYTES_PER_SECOND

    def read_seconds(self, size_bytes: float, parallelism: int, rows: float = 0.0, columns: int = 0) -> float:
        """Eq. 4, card · width / bps, at least what the rows take, over the cores, with a fixed part for each load.

        >>> round(Rates(read_bytes_per_second=100e6).read_seconds(400e6, 2), 2)
        2.03
        """
        decoded = rows * (READ_SECONDS_PER_ROW + columns * READ_SECONDS_PER_VALUE)
        busy = max(size_bytes / self.read_bytes_per_second, decoded)
        return busy / max(parallelism, 1) + self.read_overhead_seconds

    def write_seconds(self, size_bytes: float, parallelism: int, rows: float = 0.0, columns: int = 0) -> float:
        """
        >>> round(Rates(write_bytes_per_second=50e6).write_seconds(100e6, 2), 2)
        1.05
        """
        encoded = rows * (WRITE_SECONDS_PER_ROW + columns * WRITE_SECONDS_PER_VALUE)
        busy = max(size_bytes / self.write_bytes_per_second, encoded)
        return busy / max(parallelism, 1) + self.write_overhead_seconds

    def level_bytes(self, row_bytes: float, persisted: bool) -> float:
        """What rows of that size take there."""
        return row_bytes * (self.persisted_ratio if persisted else self.stored_ratio)

    def level_read_seconds(
        self, size_bytes: float, parallelism: int, persisted: bool, rows: float = 0.0, columns: int = 0
    ) -> float:
        """To read what is kept in the block manager, or in the store."""
        if not persisted:
            return self.read_seconds(size_bytes, parallelism, rows, columns)
        busy = size_bytes / self.persist_read_bytes_per_second / max(parallelism, 1)
        return busy + PERSIST_READ_OVERHEAD_SECONDS

    def level_write_seconds(self, size_bytes: float, parallelism: int, persisted: bool) -> float:
        """To keep it there while it is computed."""
        if not persisted:
            return self.write_seconds(size_bytes, parallelism)
        busy = size_bytes / self.persist_write_bytes_per_second / max(parallelism, 1)
        return busy + PERSIST_WRITE_OVERHEAD_SECONDS
