"""Measure a store location once, then learn from every load and store."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from spark_regions.costs.rates import Rates

PROBE_SECONDS = 0.1
_CHUNK = b"\xa5" * (256 * 1024)
_WEIGHT = 0.3
_TELLING_BYTES = 4e6
"""What takes less than this is mostly class loading and compilation, and teaches little."""
_MIN_BYTES = 256 * 1024


def probe_disk(directory: Path, seconds: float = PROBE_SECONDS) -> tuple[float, float] | None:
    """Bytes per second written and read back in `directory`, within about `seconds`; None where it cannot be tried.

    The read comes from the page cache, so it only bounds from above; a disk slower than Parquet's codec is
    what matters.
    """
    path = directory / f".probe-{os.getpid()}-{time.monotonic_ns()}"
    written = 0
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    try:
        start = time.perf_counter()
        while written < 8 * len(_CHUNK) and time.perf_counter() - start < seconds / 2:
            written += os.write(handle, _CHUNK)
        write_seconds = max(time.perf_counter() - start, 1e-6)
        os.lseek(handle, 0, os.SEEK_SET)
        start = time.perf_counter()
        read = 0
        while time.perf_counter() - start < seconds / 4:
            got = len(os.read(handle, len(_CHUNK)))
            if not got:
                break
            read += got
        return written / write_seconds, read / max(time.perf_counter() - start, 1e-6)
    except OSError:
        return None
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


def rates_of(learned: Mapping[str, float]) -> Rates:
    """Rates from the catalog's calibration rows; what was observed replaces what was probed."""
    rates = Rates()
    if "probe_read" in learned:
        rates = replace(rates, read_bytes_per_second=min(rates.read_bytes_per_second, learned["probe_read"]))
    if "probe_write" in learned:
        rates = replace(rates, write_bytes_per_second=min(rates.write_bytes_per_second, learned["probe_write"]))
    if learned.get("read", 0) > 0:
        rates = replace(rates, read_bytes_per_second=learned["read"])
    if learned.get("write", 0) > 0:
        rates = replace(rates, write_bytes_per_second=learned["write"])
    if learned.get("ratio", 0) > 0:
        rates = replace(rates, stored_ratio=learned["ratio"])
    if learned.get("persist_write", 0) > 0:
        rates = replace(rates, persist_write_bytes_per_second=learned["persist_write"])
    if learned.get("persisted_ratio", 0) > 0:
        rates = replace(rates, persisted_ratio=learned["persisted_ratio"])
    return rates


def observed_rate(size_bytes: float, task_seconds: float, overhead_seconds: float) -> float | None:
    """Bytes per second of one load or store; None where the fixed part hides it.

    >>> observed_rate(10e6, 0.13, 0.03)
    100000000.0
    >>> observed_rate(1000, 0.1, 0.03) is None
    True
    """
    busy = task_seconds - overhead_seconds
    if size_bytes < _MIN_BYTES or busy < 0.01:
        return None
    return round(size_bytes / busy, 3)


def observed_ratio(size_bytes: float, row_bytes: float) -> float | None:
    """Bytes of files per estimated byte of rows, within what an estimate can be wrong; None for rows that tell nothing.

    >>> observed_ratio(5e6, 10e6), observed_ratio(90e6, 10e6), observed_ratio(5e6, 1000.0)
    (0.5, 4.0, None)
    """
    if size_bytes <= 0 or row_bytes <= _MIN_BYTES:
        return None
    return min(4.0, max(0.02, size_bytes / row_bytes))


def blended(before: float | None, observed: float, size_bytes: float | None = None) -> float:
    """Exponential average, which follows a machine that changes; of a size that tells little, less.

    >>> blended(100.0, 200.0)
    130.0
    >>> blended(None, 200.0)
    200.0
    >>> blended(100.0, 200.0, 4e6)
    115.0
    """
    weight = _WEIGHT if size_bytes is None else _WEIGHT * size_bytes / (size_bytes + _TELLING_BYTES)
    return observed if before is None else before + weight * (observed - before)
