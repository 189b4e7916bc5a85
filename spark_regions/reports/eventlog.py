"""Spark's event logs as events: one file, or the folder of a rolling one, line by line in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from spark_regions.errors import EventLogError
from spark_regions.reports.codecs import unpacked

LINE_LIMIT = 64 * 1024 * 1024
"""A longer line is left out: a plan's description can be of any size, and no event of ours is."""
_EVENT = re.compile(rb'\s*\{\s*"Event"\s*:\s*"([^"\\]+)"')
_ROLLED = re.compile(r"events_(\d+)_.+")
_COMPACTED = ".compact"
_EXPECTED = "expected an event log of Spark: a file, or a folder eventlog_v2_… with files events_1_…"


@dataclass(slots=True)
class Log:
    """An event log that is being read.

    :param files: in the order of their events
    :param lines: read so far
    :param unreadable: lines that are no event, or too long, left out
    :param truncated: the log ends within a line, or within a compressed block: its application still runs,
        or was killed
    """

    files: tuple[Path, ...]
    lines: int = 0
    unreadable: int = 0
    truncated: bool = False

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)


def open_log(path: Path) -> Log:
    """The log at a path; nothing is read yet.

    :raises EventLogError: there is none
    """
    if path.is_dir():
        return Log(_rolled(path))
    if not path.is_file():
        raise EventLogError(f"Nothing found at {path}, {_EXPECTED}. Hint: spark.eventLog.dir of the application.")
    return Log((path,))


def events(log: Log, wanted: Container[str], moved: Callable[[int], None] = lambda _: None) -> Iterator[dict[str, Any]]:
    """The events whose class has one of the simple names `wanted`, in the order of the log.

    :param moved: told how many bytes of the files were read since the last time

    :raises EventLogError: the file is no event log, or cannot be read
    """
    for file in log.files:
        try:
            with file.open("rb") as raw:
                yield from _of_file(log, raw, wanted, moved)
        except EventLogError as error:
            raise EventLogError(f"{file}: {error}") from None
        except PermissionError as error:
            raise EventLogError(f"{file} cannot be read: {error.strerror}.") from error
    if log.lines == log.unreadable:
        raise EventLogError(f"No event in {log.files[0]}, {_EXPECTED}.")


def _of_file(
    log: Log, raw: BufferedReader, wanted: Container[str], moved: Callable[[int], None]
) -> Iterator[dict[str, Any]]:
    before = 0
    for line in _lines(log, unpacked(raw)):
        log.lines += 1
        if log.lines % 256 == 0:
            moved(raw.tell() - before)
            before = raw.tell()
        named = _EVENT.match(line)
        if named is None:
            if log.lines == 1:
                raise EventLogError(f"Found {_start(line)}, {_EXPECTED}.")
            log.unreadable += 1
            continue
        name = named[1].decode("utf-8", "replace").rpartition(".")[2]
        if name not in wanted:
            continue
        try:
            event = json.loads(line)
        except ValueError:
            log.unreadable += 1
            continue
        yield event | {"Event": name}
    moved(raw.tell() - before)


def _lines(log: Log, stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines. The last one may lack its end, and then is complete only if it is a whole object."""
    try:
        while line := stream.readline(LINE_LIMIT):
            if line.endswith(b"\n"):
                yield line
            elif len(line) < LINE_LIMIT:
                if _whole(line):
                    yield line
                else:
                    log.truncated = True
                    if log.lines == 0:
                        raise EventLogError(f"Found {_start(line)}, {_EXPECTED}.")
            else:
                log.lines += 1
                log.unreadable += 1
                while line and not line.endswith(b"\n"):
                    line = stream.readline(LINE_LIMIT)
    except _codec_errors():
        if log.lines == 0:
            raise EventLogError(f"Its compressed bytes cannot be read, {_EXPECTED}.") from None
        log.truncated = True


def _codec_errors() -> tuple[type[Exception], ...]:
    """What a damaged or cut-off compressed stream raises."""
    import zlib

    plain = (OSError, EOFError, zlib.error)
    try:
        from zstandard import ZstdError
    except ImportError:
        return plain
    return (*plain, ZstdError)


def _whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _start(line: bytes) -> str:
    return repr(line[:40].decode("utf-8", "replace").rstrip())


def _rolled(folder: Path) -> tuple[Path, ...]:
    """Files of a rolling log by number. A compacted file stands for all up to its number."""
    found: dict[int, Path] = {}
    for file in folder.iterdir():
        rolled = _ROLLED.fullmatch(file.name)
        if rolled is None:
            continue
        number = int(rolled[1])
        if number not in found or file.name.endswith(_COMPACTED):
            found[number] = file
    if not found:
        inside = sorted(entry.name for entry in folder.iterdir())[:5]
        hint = f" Hint: give one of what is in it: {', '.join(inside)}." if inside else " It is empty."
        raise EventLogError(f"Found the folder {folder}, {_EXPECTED}.{hint}")
    first = max((number for number, file in found.items() if file.name.endswith(_COMPACTED)), default=min(found))
    return tuple(found[number] for number in sorted(found) if number >= first)
