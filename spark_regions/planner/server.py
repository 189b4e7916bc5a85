"""The process: handshake on stdin and stdout, then frames over loopback until stdin ends."""

from __future__ import annotations

import contextlib
import gc
import hmac
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable

import msgspec

from spark_regions._version import __version__
from spark_regions.planner.service import PROTOCOL, Later, Service
from spark_regions.wire.frames import BrokenFrame, Unreadable, decode, receive, send
from spark_regions.wire.messages import Answer, ErrorAnswer, Event, Greeting, Hello, HelloAnswer, Request, Started

log = logging.getLogger("spark_regions.planner")

MAX_GREETING_BYTES = 1 << 20
LAST_WRITE_SECONDS = 0.05
LAST_MESSAGE_SECONDS = 0.7
"""Less than the driver waits for this process to end."""
HELLO_SECONDS = 10.0


def main() -> int:
    """Serve until the driver is gone; returns the exit status."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    sys.setrecursionlimit(6000)
    # The writer thread must not hold up an answer for Python's usual 5 ms.
    sys.setswitchinterval(0.0005)
    try:
        greeting = _greeting(sys.stdin.buffer.readline(MAX_GREETING_BYTES))
    except Refused as refused:
        _say(Started(error=refused.code, detail=str(refused)))
        return 2
    service = Service(greeting.confs)
    try:
        listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    except OSError as error:
        _say(Started(error="NO_PORT", detail=str(error)))
        return 2
    _say(Started(listener.getsockname()[1], PROTOCOL, __version__))
    # The driver reads one line only; what a library prints later (HiGHS does) belongs into the log.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.Thread(target=_accept, args=(listener, service, greeting.token), daemon=True).start()
    threading.Thread(target=_warm, args=(service,), daemon=True).start()
    # The pipe lives as long as the driver, even if that is killed.
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 65536):
            pass
    # What the driver said last, its end among it, may still be on its way through the connection.
    service.over.wait(LAST_MESSAGE_SECONDS)
    service.close(LAST_WRITE_SECONDS)
    sys.stderr.flush()
    # Not sys.exit: it would wait for threads that may hold a lock.
    os._exit(0)


class Refused(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


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


def _warm(service: Service) -> None:
    try:
        service.warm()
        # What is loaded now stays; without this, a full collection walks it in the middle of some decision.
        gc.collect()
        gc.freeze()
    except Exception:
        log.exception("imports failed; requests will say so")


def _accept(listener: socket.socket, service: Service, token: str) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            log.exception("no more connections")
            return
        threading.Thread(target=_serve, args=(connection, service, token), daemon=True).start()


def _serve(connection: socket.socket, service: Service, token: str) -> None:
    with connection:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(HELLO_SECONDS)
            if not _shake_hands(connection, service, token):
                return
            connection.settimeout(None)
            sending = threading.Lock()

            def reply(answer: Answer) -> None:
                with sending:
                    send(connection, answer)

            while (body := receive(connection)) is not None:
                try:
                    answer = service.handle(decode(body))
                except Unreadable as unreadable:
                    log.warning("%s", unreadable)
                    # Without a number it was an event, which nobody waits for.
                    answer = unreadable.answer if unreadable.answer.seq else None
                if callable(answer):
                    # Other queries do not wait for what this one waits for.
                    threading.Thread(target=_reply_later, args=(answer, reply), name="waiting", daemon=True).start()
                elif answer is not None:
                    reply(answer)
        except (BrokenFrame, OSError) as error:
            log.warning("connection ended: %s", error)
        except Exception:
            log.exception("connection ended")
    service.over.set()


def _reply_later(later: Later, reply: Callable[[Answer], None]) -> None:
    answer = later()
    # Nobody is left to answer once the driver has gone.
    with contextlib.suppress(OSError):
        reply(answer)


def _shake_hands(connection: socket.socket, service: Service, token: str) -> bool:
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
        service.hello(message)
        send(connection, HelloAnswer(PROTOCOL, __version__))
        return True
    send(connection, refusal)
    return False


def _say(started: Started) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(started) + b"\n")
    sys.stdout.buffer.flush()
