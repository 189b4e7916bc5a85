from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest
from report_logs import decided, end, lines, node, reused, start, write

from spark_regions.errors import EventLogError
from spark_regions.reports import eventlog
from spark_regions.reports.event_totals import WANTED
from spark_regions.reports.eventlog import events, open_log


def names(path: Path) -> list[str]:
    return [event["Event"] for event in events(open_log(path), WANTED)]


ALL = [event["Event"].rpartition(".")[2] for event in reused()]


def lz4_frames(data: bytes, piece: int = 700) -> bytes:
    """As lz4-java's LZ4BlockOutputStream writes: the last piece uncompressed, an empty block at the end."""
    import pyarrow

    codec = pyarrow.Codec("lz4_raw")
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    packed = [(0x26, codec.compress(each, asbytes=True), len(each)) for each in pieces[:-1]]
    packed += [(0x16, pieces[-1], len(pieces[-1])), (0x16, b"", 0)]
    return b"".join(
        b"LZ4Block" + struct.pack("<BiiI", token, len(block), length, 0) + block for token, block, length in packed
    )


def snappy_frames(data: bytes, piece: int = 700) -> bytes:
    """As snappy-java's SnappyOutputStream writes; a second stream follows the first."""
    import pyarrow

    codec = pyarrow.Codec("snappy")
    header = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    blocks = [codec.compress(data[at : at + piece], asbytes=True) for at in range(0, len(data), piece)]
    framed = [struct.pack(">i", len(block)) + block for block in blocks]
    return header + framed[0] + header + b"".join(framed[1:])


def zstd_frames(data: bytes) -> bytes:
    """Two frames: Spark's log of a restarted writer."""
    import zstandard

    half = len(data) // 2
    return b"".join(zstandard.ZstdCompressor().compress(part) for part in (data[:half], data[half:]))


CODECS = {"plain": bytes, "gz": gzip.compress, "lz4": lz4_frames, "snappy": snappy_frames, "zstd": zstd_frames}


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(CODECS[codec](lines(reused())))
    assert names(path) == ALL


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_off_log_is_read_up_to_its_end(tmp_path: Path, codec: str) -> None:
    whole = CODECS[codec](lines(reused() * 20))
    path = tmp_path / "log.inprogress"
    path.write_bytes(whole[: len(whole) * 3 // 4 + 5])
    log = open_log(path)
    found = list(events(log, WANTED))
    assert len(ALL) <= len(found) < 20 * len(ALL)


def test_a_truncated_last_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.inprogress"
    path.write_bytes(lines(reused())[:-20])
    log = open_log(path)
    assert [event["Event"] for event in events(log, WANTED)] == ALL[:-1]
    assert log.truncated


def test_a_last_line_without_its_end_counts_if_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(lines(reused()).rstrip(b"\n"))
    log = open_log(path)
    assert len(list(events(log, WANTED))) == len(ALL)
    assert not log.truncated


def test_unknown_events_and_damaged_lines_are_left_out(tmp_path: Path) -> None:
    first, rest = lines(start()), lines([decided(1, [node(0, "a")]), end()])
    path = tmp_path / "log"
    path.write_bytes(first + b'{"Event":"org.example.Unknown","x":[1]}\n\xff\xfe garbage\n{"Event":"Spark\n' + rest)
    log = open_log(path)
    assert len(list(events(log, WANTED))) == 6
    assert log.unreadable == 2


def test_a_very_long_line_is_left_out_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eventlog, "LINE_LIMIT", 1000)
    path = tmp_path / "log"
    long = b'{"Event":"SparkListenerRegionsState","x":"' + b"x" * 5000 + b'"}\n'
    path.write_bytes(lines(start()) + long + lines([end()]))
    log = open_log(path)
    assert [event["Event"] for event in events(log, WANTED)][-1] == "SparkListenerApplicationEnd"
    assert log.unreadable == 1


def rolled(folder: Path, *files: str) -> Path:
    folder.mkdir()
    (folder / "appstatus_app-1").touch()
    for file in files:
        number = int(file.split("_")[1])
        write(folder / file, [*(start() if number == 1 else []), decided(number, [])])
    return folder


def queries(path: Path) -> list[int]:
    return [event["query"] for event in events(open_log(path), {"SparkListenerRegionsDecided"})]


def test_a_rolling_log_is_read_by_number(tmp_path: Path) -> None:
    files = [f"events_{number}_app-1" for number in (1, 2, 9, 10, 11)]
    assert queries(rolled(tmp_path / "eventlog_v2_app-1", *reversed(files))) == [1, 2, 9, 10, 11]


def test_a_compacted_file_stands_for_those_before_it(tmp_path: Path) -> None:
    files = ["events_1_app-1", "events_2_app-1", "events_2_app-1.compact", "events_3_app-1"]
    folder = rolled(tmp_path / "eventlog_v2_app-1", *files)
    log = open_log(folder)
    assert [file.name for file in log.files] == ["events_2_app-1.compact", "events_3_app-1"]


def test_a_folder_of_logs_is_no_log(tmp_path: Path) -> None:
    write(tmp_path / "app-1", start())
    with pytest.raises(EventLogError, match=r"Hint: give one of what is in it: app-1"):
        open_log(tmp_path)


def test_a_codec_that_is_not_read_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"ZV\x01\x00\x10")
    with pytest.raises(EventLogError, match=r"compressed by lzf.*Hint: set spark.eventLog.compression.codec=zstd"):
        names(tmp_path / "log")


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "log").write_bytes(zstd_frames(lines(start())))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(EventLogError, match=r"zstandard is not installed. Hint: pip install 'spark-regions\[report\]'"):
        names(tmp_path / "log")


def test_a_damaged_block_of_any_length_is_not_allocated(tmp_path: Path) -> None:
    good = lz4_frames(lines(start()))
    (tmp_path / "log").write_bytes(good + b"LZ4Block" + struct.pack("<BiiI", 0x26, 2**31 - 1, 2**31 - 1, 0))
    log = open_log(tmp_path / "log")
    assert len(list(events(log, WANTED))) == 4
    assert log.truncated


def test_progress_adds_up_to_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "log", reused() * 200)
    moved: list[float] = []
    log = open_log(path)
    for _ in events(log, WANTED, moved.append):
        pass
    assert sum(moved) == log.bytes
    assert len(moved) > 2
