"""The planner's process: its service behind the frames of loopback connections."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import sys
import threading
from collections.abc import Callable

from spark_regions.planner.service import Later, Service
from spark_regions.wire.frames import Unreadable, decode, receive, send
from spark_regions.wire.messages import Answer, Greeting, Hello
from spark_regions.wire.process import serve

log = logging.getLogger("spark_regions.planner")

LAST_WRITE_SECONDS = 0.05
LAST_MESSAGE_SECONDS = 0.7
"""Less than the driver waits for this process to end."""


def main() -> int:
    """Serve until the driver is gone; returns the exit status."""
    sys.setrecursionlimit(6000)
    # The writer thread must not hold up an answer for Python's usual 5 ms.
    sys.setswitchinterval(0.0005)
    return serve(Planning)


class Planning:
    """A service for the driver that greeted."""

    def __init__(self, greeting: Greeting) -> None:
        self._service = Service(greeting.confs)

    def warm(self) -> None:
        self._service.warm()
        # What is loaded now stays; without this, a full collection walks it in the middle of some decision.
        gc.collect()
        gc.freeze()

    def hello(self, message: Hello) -> tuple[str, ...]:
        return self._service.hello(message)

    def converse(self, connection: socket.socket) -> None:
        try:
            self._converse(connection)
        finally:
            self._service.over.set()

    def end(self) -> None:
        # What the driver said last, its end among it, may still be on its way through the connection.
        self._service.over.wait(LAST_MESSAGE_SECONDS)
        self._service.close(LAST_WRITE_SECONDS)

    def _converse(self, connection: socket.socket) -> None:
        sending = threading.Lock()

        def reply(answer: Answer) -> None:
            with sending:
                send(connection, answer)

        while (body := receive(connection)) is not None:
            try:
                answer = self._service.handle(decode(body))
            except Unreadable as unreadable:
                log.warning("%s", unreadable)
                # Without a number it was an event, which nobody waits for.
                answer = unreadable.answer if unreadable.answer.seq else None
            if callable(answer):
                # Other queries do not wait for what this one waits for.
                threading.Thread(target=_reply_later, args=(answer, reply), name="waiting", daemon=True).start()
            elif answer is not None:
                reply(answer)


def _reply_later(later: Later, reply: Callable[[Answer], None]) -> None:
    answer = later()
    # Nobody is left to answer once the driver has gone.
    with contextlib.suppress(OSError):
        reply(answer)
