"""Starts a real planner, as the shim would, and asks for its status (docs/protocol.md)."""

from __future__ import annotations

import json
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
from typing import Any

from spark_regions._version import __version__
from spark_regions.errors import PlannerError
from spark_regions.planner.wire import BrokenFrame, receive, send

PROTOCOL = 1
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
            greeting = {"token": token, "version": __version__, "protocol": PROTOCOL, "confs": dict(confs)}
            try:
                planner.stdin.write(json.dumps(greeting).encode() + b"\n")
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
            opening = json.loads(line)
            if "port" not in opening:
                raise PlannerError(f"The planner refused: {opening.get('error')} {opening.get('detail', '')}. {_HINT}")
            with socket.create_connection(("127.0.0.1", opening["port"]), timeout=timeout_seconds) as wire:
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                hello = {"type": "hello", "token": token, "protocol": PROTOCOL}
                _ask(wire, {**hello, "application": f"doctor-{os.getpid()}", "name": "doctor", "user": ""})
                asked = time.monotonic()
                status = _ask(wire, {"type": "status", "seq": 1})
                answered = time.monotonic()
            return ProbeResult(
                version=str(opening.get("version", "")),
                start_milliseconds=(started - began) * 1000,
                answer_milliseconds=(answered - asked) * 1000,
                rss_bytes=int(status.get("rssBytes") or 0),
            )
        except (OSError, ValueError, BrokenFrame) as error:
            raise PlannerError(f"The planner did not answer: {error}. {_HINT}") from error
        finally:
            planner.stdin.close()
            try:
                planner.wait(timeout=2)
            except subprocess.TimeoutExpired:
                planner.kill()
                planner.wait()
            planner.stdout.close()


def _ask(wire: socket.socket, message: Mapping[str, Any]) -> dict[str, Any]:
    send(wire, message)
    answer = receive(wire)
    if answer is None:
        raise PlannerError(f"The planner closed the connection. {_HINT}")
    if answer.get("type") == "error":
        raise PlannerError(f"The planner answered {answer.get('code')}: {answer.get('detail', '')}. {_HINT}")
    return answer
