"""The process: handshake on stdin and stdout, then frames over loopback until stdin ends."""

from __future__ import annotations

import contextlib
import gc
import hmac
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from spark_regions._version import __version__
from spark_regions.planner.service import PROTOCOL, Later, Service
from spark_regions.planner.wire import BrokenFrame, receive, send

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
    greeting = _greeting(sys.stdin.buffer.readline(MAX_GREETING_BYTES))
    if isinstance(greeting, str):
        return _refuse("BAD_GREETING", greeting)
    if greeting.get("protocol") != PROTOCOL:
        return _refuse("PROTOCOL_MISMATCH", f"found protocol {greeting.get('protocol')!r}, expected {PROTOCOL}")
    service = Service(greeting.get("confs") or {})
    try:
        listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    except OSError as error:
        return _refuse("NO_PORT", str(error))
    _say({"port": listener.getsockname()[1], "protocol": PROTOCOL, "version": __version__})
    # The driver reads one line only; what a library prints later (HiGHS does) belongs into the log.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.Thread(target=_accept, args=(listener, service, str(greeting["token"])), daemon=True).start()
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


def _greeting(line: bytes) -> dict[str, Any] | str:
    try:
        greeting = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"found no JSON line on stdin: {error}"
    if not isinstance(greeting, dict) or not greeting.get("token") or not isinstance(greeting["token"], str):
        return "found no token, expected one JSON line with token, version, protocol and confs"
    if not isinstance(greeting.get("confs") or {}, dict):
        return "confs is not an object"
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

            def reply(answer: Mapping[str, Any]) -> None:
                with sending:
                    send(connection, answer)

            while (message := receive(connection)) is not None:
                answer = service.handle(message)
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


def _reply_later(later: Later, reply: Callable[[Mapping[str, Any]], None]) -> None:
    answer = later()
    # Nobody is left to answer once the driver has gone.
    with contextlib.suppress(OSError):
        reply(answer)


def _shake_hands(connection: socket.socket, service: Service, token: str) -> bool:
    message = receive(connection)
    if message is None:
        return False
    offered = message.get("token")
    if message.get("type") != "hello":
        refusal = ("BAD_HELLO", "expected a frame of type hello first")
    elif not isinstance(offered, str) or not hmac.compare_digest(offered.encode(), token.encode()):
        refusal = ("BAD_TOKEN", "the token is not the one of stdin")
    elif message.get("protocol") != PROTOCOL:
        refusal = ("PROTOCOL_MISMATCH", f"found protocol {message.get('protocol')!r}, expected {PROTOCOL}")
    else:
        service.hello(message)
        send(connection, {"type": "hello", "protocol": PROTOCOL, "version": __version__})
        return True
    send(connection, {"type": "error", "code": refusal[0], "detail": refusal[1]})
    return False


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _refuse(code: str, detail: str) -> int:
    _say({"error": code, "detail": detail})
    return 2
