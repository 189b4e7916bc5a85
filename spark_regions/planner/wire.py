"""Frames of docs/protocol.md: 4 bytes of length, big-endian, then a JSON object."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

MAX_FRAME_BYTES = 64 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class BrokenFrame(Exception):
    """What came is not a frame; the connection is of no more use."""


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """The next message; None at a regular end.

    :raises BrokenFrame: too long, cut off, or not a JSON object
    """
    head = _exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME_BYTES:
        raise BrokenFrame(f"frame of {length} bytes, at most {MAX_FRAME_BYTES} expected")
    body = _exactly(connection, length)
    if body is None:
        raise BrokenFrame("frame cut off")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BrokenFrame(f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise BrokenFrame(f"a JSON {type(message).__name__}, an object expected")
    return message


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    # One write: a separate small one for the length would wait for the peer's delayed acknowledgement.
    body = json.dumps(message, separators=(",", ":")).encode()
    connection.sendall(_LENGTH.pack(len(body)) + body)


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    if count == 0:
        return b""
    received = bytearray()
    while len(received) < count:
        part = connection.recv(min(count - len(received), 1 << 20))
        if not part:
            if received:
                raise BrokenFrame("frame cut off")
            return None
        received += part
    return bytes(received)
