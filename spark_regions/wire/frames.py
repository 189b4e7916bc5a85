"""Frames of docs/protocol.md: 4 bytes of length, big-endian, then a JSON object."""

from __future__ import annotations

import socket
import struct
from numbers import Real
from typing import Any, Generic, TypeVar, get_args

import msgspec

from spark_regions.wire.messages import ErrorAnswer, Event, Request

MAX_FRAME_BYTES = 64 * 1024 * 1024
_LENGTH = struct.Struct(">I")
Message = TypeVar("Message")


class BrokenFrame(Exception):
    """What came is not a frame; the connection is of no more use."""


class Unreadable(Exception):
    """A frame that is JSON and no message.

    :param seq: of the request, 0 where it is none
    """

    def __init__(self, code: str, detail: str, seq: int) -> None:
        super().__init__(detail)
        self.answer = ErrorAnswer(code, detail, seq=seq)


class _Envelope(msgspec.Struct):
    type: str = ""
    seq: int = 0


class Messages(Generic[Message]):
    """Reads what one side may say.

    :param union: of the messages
    :param code: of one that does not fit
    """

    def __init__(self, union: Any, code: str) -> None:
        self._decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(union)
        self._tags = frozenset(each.__struct_config__.tag for each in get_args(union))
        self._code = code

    def decode(self, body: bytes) -> Message:
        """
        :raises BrokenFrame: not a JSON object
        :raises Unreadable: a message that does not fit, with the field's name
        """
        try:
            return self._decoder.decode(body)
        except msgspec.ValidationError as error:
            problem = str(error)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BrokenFrame(f"not JSON: {error}") from error
        try:
            envelope = msgspec.json.decode(body, type=_Envelope)
        except msgspec.ValidationError as error:
            raise BrokenFrame(f"no message: {error}") from error
        known = envelope.type in self._tags
        detail = f"{envelope.type}: {problem}" if known else f"unknown type {envelope.type[:100]!r}"
        raise Unreadable(self._code if known else "UNKNOWN_TYPE", detail, envelope.seq)


decode = Messages[Request | Event](Request | Event, "PLANNER_PROTOCOL").decode


def receive(connection: socket.socket) -> bytes | None:
    """The next frame; None at a regular end.

    :raises BrokenFrame: too long, or cut off
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
    return body


def _number(value: Any) -> Any:
    """A number of numpy's, which a solver gives."""
    if isinstance(value, Real):
        return value.item() if hasattr(value, "item") else float(value)
    raise NotImplementedError(f"a {type(value).__name__} in a message")


encode = msgspec.json.Encoder(enc_hook=_number).encode


def send(connection: socket.socket, message: msgspec.Struct) -> None:
    # One write: a separate small one for the length would wait for the peer's delayed acknowledgement.
    body = encode(message)
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
