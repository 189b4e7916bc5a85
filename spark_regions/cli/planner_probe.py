"""Starts a real planner, as the shim would, and asks for its status (docs/protocol.md)."""

from __future__ import annotations

import os
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from spark_regions._version import __version__
from spark_regions.errors import PlannerError
from spark_regions.wire.frames import BrokenFrame, receive, send
from spark_regions.wire.messages import (
    Answered,
    Asked,
    ErrorAnswer,
    Greeting,
    Hello,
    HelloAnswer,
    Started,
    Status,
    StatusAnswer,
)

PROTOCOL = 1
Found = TypeVar("Found", bound=Answered)
_HINT = "Hint: run `echo '{}' | python -m spark_regions.planner` to see its own message."


@dataclass(frozen=True, slots=True)
class ProbeResult:
    version: str
    start_milliseconds: float
    answer_milliseconds: float
    rss_bytes: int


def probe(confs: Mapping[str, str], *, timeout_seconds: float = 10.0, python: str = sys.executable) -> ProbeResult:
    """Start a planner, shake hands, ask for its status, and let it end.

    Errors: `PlannerError` with what it said.
    """
    token = secrets.token_hex(16)
    began = time.monotonic()
    with tempfile.TemporaryFile() as complaints:
        planner = subprocess.Popen(
            [python, "-P", "-m", "spark_regions.planner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
        )
        assert planner.stdin is not None
        assert planner.stdout is not None
        try:
            greeting = Greeting(token, __version__, PROTOCOL, dict(confs))
            try:
                planner.stdin.write(msgspec.json.encode(greeting) + b"\n")
                planner.stdin.flush()
            except BrokenPipeError:
                pass  # It ended at once; what it said is read below.
            ready, _, _ = select.select([planner.stdout], [], [], timeout_seconds)
            if not ready:
                raise PlannerError(f"The planner did not start within {timeout_seconds:.0f} s. {_HINT}")
            line = planner.stdout.readline()
            started = time.monotonic()
            if not line:
                complaints.seek(0)
                said = complaints.read().decode(errors="replace").strip().splitlines()
                raise PlannerError(f"The planner ended: {said[-1] if said else 'without a word'}. {_HINT}")
            opening = msgspec.json.decode(line, type=Started)
            if opening.error:
                raise PlannerError(f"The planner refused: {opening.error} {opening.detail}. {_HINT}")
            with socket.create_connection(("127.0.0.1", opening.port), timeout=timeout_seconds) as wire:
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _ask(wire, Hello(token, PROTOCOL, f"doctor-{os.getpid()}", "doctor"), HelloAnswer)
                asked = time.monotonic()
                status = _ask(wire, Status(seq=1), StatusAnswer)
                answered = time.monotonic()
            return ProbeResult(
                version=opening.version,
                start_milliseconds=(started - began) * 1000,
                answer_milliseconds=(answered - asked) * 1000,
                rss_bytes=status.rss_bytes,
            )
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, BrokenFrame) as error:
            raise PlannerError(f"The planner did not answer: {error}. {_HINT}") from error
        finally:
            planner.stdin.close()
            try:
                planner.wait(timeout=2)
            except subprocess.TimeoutExpired:
                planner.kill()
                planner.wait()
            planner.stdout.close()


def _ask(wire: socket.socket, message: Asked, kind: type[Found]) -> Found:
    send(wire, message)
    body = receive(wire)
    if body is None:
        raise PlannerError(f"The planner closed the connection. {_HINT}")
    answer: Found | ErrorAnswer = msgspec.json.decode(body, type=kind | ErrorAnswer)
    if isinstance(answer, ErrorAnswer):
        raise PlannerError(f"The planner answered {answer.code}: {answer.detail}. {_HINT}")
    return answer
