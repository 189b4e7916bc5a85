"""A driver's side of docs/protocol.md, against a real process of ours."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
TOKEN = "secret-token"


class Child:
    """A process, started as the shim starts it."""

    def __init__(
        self, module: str, confs: Mapping[str, str], token: str = TOKEN, env: Mapping[str, str] | None = None
    ) -> None:
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | (env or {}),
        )
        self.greet({"token": token, "version": "0.1.0", "protocol": 1, "confs": confs})
        self.answer = json.loads(self._stdout().readline())
        self.start_seconds = time.perf_counter() - start

    def greet(self, greeting: Mapping[str, Any]) -> None:
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(json.dumps(greeting).encode() + b"\n")
        stdin.flush()

    def _stdout(self) -> Any:
        assert self.process.stdout is not None
        return self.process.stdout

    def connect(self, application: str = "app-1", token: str = TOKEN) -> Wire:
        return self.shake_hands(Wire(self.answer["port"]), application, token)

    def shake_hands(self, wire: Wire, application: str = "app-1", token: str = TOKEN) -> Wire:
        wire.say({"type": "hello", "token": token, "protocol": 1, "application": application, "name": "t", "user": "u"})
        wire.hello = wire.hear()
        return wire

    def end(self) -> tuple[int, float, str]:
        """Close stdin, as a driver that died. Returns the exit status, seconds until the end, and stderr."""
        start = time.perf_counter()
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        status = self.process.wait(timeout=10)
        seconds = time.perf_counter() - start
        complaints = self.process.stderr.read().decode()
        self.process.stderr.close()
        self._stdout().close()
        return status, seconds, complaints

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end()


class Wire:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.hello: dict[str, Any] | None = None
        self.seq = 0

    def say(self, message: Any) -> None:
        self.say_bytes(json.dumps(message).encode())

    def say_bytes(self, body: bytes, length: int | None = None) -> None:
        self.socket.sendall(struct.pack(">I", len(body) if length is None else length) + body)

    def hear(self) -> dict[str, Any] | None:
        head = self.exactly(4)
        if head is None:
            return None
        body = self.exactly(struct.unpack(">I", head)[0])
        assert body is not None
        message: dict[str, Any] = json.loads(body)
        return message

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self.seq += 1
        self.say({**message, "seq": self.seq})
        answer = self.hear()
        assert answer is not None
        assert answer["seq"] == self.seq
        return answer

    def observe(self, event: str, **fields: Any) -> None:
        self.say(observed(event, **fields))

    def status(self) -> dict[str, Any]:
        return self.ask({"type": "status"})

    def close(self) -> None:
        self.socket.close()

    def exactly(self, count: int) -> bytes | None:
        received = b""
        while len(received) < count:
            try:
                part = self.socket.recv(count - len(received))
            except ConnectionResetError:  # closed while our bytes were still unread
                return None
            if not part:
                return None
            received += part
        return received


def observed(event: str, **fields: Any) -> dict[str, Any]:
    """An event; most belong to a query."""
    return {"type": event} | ({} if event in ("heartbeat", "end") else {"query": 0}) | fields
