"""Compressed event logs as streams of plain bytes, recognised by their first bytes and not by their names.

Spark's own codecs frame their blocks in Java libraries' formats: LZ4 as `LZ4BlockOutputStream` of lz4-java, Snappy as
`SnappyOutputStream` of snappy-java. Standard tools read neither; both are unpacked here block by block.
"""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from spark_regions.errors import EventLogError

_LZ4 = b"LZ4Block"
_SNAPPY = b"\x82SNAPPY\0"
_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b"
_LZF = b"ZV"
_BLOCK_LIMIT = 64 * 1024 * 1024
"""No codec of Spark's writes larger blocks than this; a larger number is a damaged file."""


def unpacked(raw: io.BufferedReader) -> BinaryIO:
    """The bytes of a log, whatever it is compressed with. What is cut off in the middle of a block ends before it.

    :param raw: at its start, seekable

    :raises EventLogError: a codec whose library is not installed, or that is not read at all
    """
    magic = raw.read(8)
    raw.seek(0)
    if magic.startswith(_ZSTD):
        zstandard = _library("zstandard", "zstd")
        stream: Any = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=False)
        return io.BufferedReader(stream)
    if magic.startswith(_GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw))
    if magic == _LZ4:
        return io.BufferedReader(_Blocks(_lz4_blocks(raw, _arrow("lz4_raw", "lz4"))))
    if magic == _SNAPPY:
        return io.BufferedReader(_Blocks(_snappy_blocks(raw, _arrow("snappy", "snappy"))))
    if magic.startswith(_LZF):
        raise EventLogError(
            "The log is compressed by lzf, expected none, zstd, lz4, snappy or gzip. "
            "Hint: set spark.eventLog.compression.codec=zstd for later applications."
        )
    return raw


def _library(name: str, codec: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise EventLogError(
            f"The log is compressed by {codec}, and {name} is not installed. Hint: pip install 'spark-regions[report]'"
        ) from None


def _arrow(name: str, codec: str) -> Callable[[bytes, int], bytes]:
    found: Any = _library("pyarrow", codec).Codec(name)
    return lambda block, length: bytes(found.decompress(block, length, asbytes=True))


class _Blocks(io.RawIOBase):
    """Blocks of bytes as one readable stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)


def _lz4_blocks(raw: BinaryIO, decompress: Callable[[bytes, int], bytes]) -> Iterator[bytes]:
    """`LZ4Block`, a token (method and level), then little-endian compressed length, length, checksum, and the block.

    A block of length 0 ends one stream; another may follow.
    """
    while len(header := raw.read(21)) == 21:
        token, packed, length, _ = struct.unpack("<BiiI", header[8:])
        if header[:8] != _LZ4 or not 0 <= packed <= _BLOCK_LIMIT or not 0 <= length <= _BLOCK_LIMIT:
            raise OSError("damaged lz4 block")
        block = raw.read(packed)
        if len(block) < packed:
            return
        if length:
            yield block if token & 0xF0 == 0x10 else decompress(block, length)


def _snappy_blocks(raw: BinaryIO, decompress: Callable[[bytes, int], bytes]) -> Iterator[bytes]:
    """A header of 16 bytes, then big-endian compressed lengths and blocks; another header begins another stream."""
    while len(start := raw.read(4)) == 4:
        if start == _SNAPPY[:4]:
            raw.read(12)
            continue
        (packed,) = struct.unpack(">i", start)
        if not 0 < packed <= _BLOCK_LIMIT:
            raise OSError("damaged snappy block")
        block = raw.read(packed)
        if len(block) < packed:
            return
        yield decompress(block, _varint(block))


def _varint(block: bytes) -> int:
    """The length that a raw Snappy block begins with.

    >>> _varint(bytes([0xAC, 0x02]))
    300
    """
    value = 0
    for place, byte in enumerate(block[:5]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    if value > _BLOCK_LIMIT:
        raise OSError("damaged snappy block")
    return value
