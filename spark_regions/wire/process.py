"""A process of the driver's: a greeting on stdin, a port on stdout, then frames over loopback until stdin ends.

The handshake is that of docs/protocol.md. The planner is such a process, and so is an engine.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Protocol

import msgspec

from spark_regions._version import __version__
from spark_regions.wire.frames import BrokenFrame, Unreadable, decode, receive, send
from spark_regions.wire.messages import ErrorAnswer, Event, Greeting, Hello, HelloAnswer, Request, Started

log = logging.getLogger("spark_regions")

PROTOCOL = 1
MAX_GREETING_BYTES = 1 << 20
HELLO_SECONDS = 10.0


class Work(Protocol):
    """What a process does for its driver."""

    def warm(self) -> None:
        """Whatever the first request should not wait for."""

    def hello(self, message: Hello) -> tuple[str, ...]:
        """The driver introduces itself on a connection; the answer's `engines`."""

    def converse(self, connection: socket.socket) -> None:
        """Frames of a connection after its first, until it ends."""

    def end(self) -> None:
        """The driver is gone; what is not over when this returns is cut off."""


class Refused(Exception):
    """The process does not start."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def serve(begin: Callable[[Greeting], Work]) -> int:
    """Serve until the driver is gone; returns the exit status.

    :param begin: makes the work out of the greeting, or raises `Refused`
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        greeting = _greeting(sys.stdin.buffer.readline(MAX_GREETING_BYTES))
        work = begin(greeting)
    except Refused as refused:
        _say(Started(error=refused.code, detail=str(refused)))
        return 2
    try:
        listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    except OSError as error:
        _say(Started(error="NO_PORT", detail=str(error)))
        return 2
    _say(Started(listener.getsockname()[1], PROTOCOL, __version__))
    # The driver reads one line only; what a library prints later (HiGHS does) belongs into the log.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.Thread(target=_accept, args=(listener, work, greeting.token), daemon=True).start()
    threading.Thread(target=_warm, args=(work,), daemon=True).start()
    # The pipe lives as long as the driver, even if that is killed.
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 65536):
            pass
    work.end()
    sys.stderr.flush()
    # Not sys.exit: it would wait for threads that may hold a lock.
    os._exit(0)


class _Spoken(msgspec.Struct):
    """All that is read of the greeting of a shim that speaks another protocol."""

    protocol: int = PROTOCOL


def _greeting(line: bytes) -> Greeting:
    try:
        protocol = msgspec.json.decode(line, type=_Spoken).protocol
        if protocol != PROTOCOL:
            raise Refused("PROTOCOL_MISMATCH", f"found protocol {protocol}, expected {PROTOCOL}")
        greeting = msgspec.json.decode(line, type=Greeting)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused("BAD_GREETING", f"expected a line of JSON on stdin: {error}") from error
    if not greeting.token:
        raise Refused("BAD_GREETING", "the token is empty")
    return greeting


def _warm(work: Work) -> None:
    try:
        work.warm()
    except Exception:
        log.exception("warming up failed; requests will say so")


def _accept(listener: socket.socket, work: Work, token: str) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            log.exception("no more connections")
            return
        threading.Thread(target=_serve, args=(connection, work, token), daemon=True).start()


def _serve(connection: socket.socket, work: Work, token: str) -> None:
    with connection:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(HELLO_SECONDS)
            if not _shake_hands(connection, work, token):
                return
            connection.settimeout(None)
            work.converse(connection)
        except (BrokenFrame, OSError) as error:
            log.warning("connection ended: %s", error)
        except Exception:
            log.exception("connection ended")


def _shake_hands(connection: socket.socket, work: Work, token: str) -> bool:
    body = receive(connection)
    if body is None:
        return False
    message: Request | Event | ErrorAnswer
    try:
        message = decode(body)
    except Unreadable as unreadable:
        message = unreadable.answer
    if not isinstance(message, Hello):
        detail = f": {message.detail}" if isinstance(message, ErrorAnswer) else ""
        refusal = ErrorAnswer("BAD_HELLO", f"expected a frame of type hello first{detail}")
    elif not hmac.compare_digest(message.token.encode(), token.encode()):
        refusal = ErrorAnswer("BAD_TOKEN", "the token is not the one of stdin")
    elif message.protocol != PROTOCOL:
        refusal = ErrorAnswer("PROTOCOL_MISMATCH", f"found protocol {message.protocol}, expected {PROTOCOL}")
    else:
        send(connection, HelloAnswer(PROTOCOL, __version__, work.hello(message)))
        return True
    send(connection, refusal)
    return False


def _say(started: Started) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(started) + b"\n")
    sys.stdout.buffer.flush()
