"""A driver's side of docs/protocol.md, against a real planner process."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from spark_regions.dag.digests import digest
from spark_regions.planner.session import Session
from spark_regions.runs.run_planner import Waiting
from spark_regions.wire.messages import RanNode, SignedQuery
from tests.harness.wire import read, written

ROOT = Path(__file__).parents[2]
TOKEN = "secret-token"
PLAN_FIELDS = frozenset(each.encode_name for each in msgspec.structs.fields(SignedQuery))
RAN_FIELDS = frozenset(each.encode_name for each in msgspec.structs.fields(RanNode))


class PlannerProcess:
    """A planner, started as the shim starts it."""

    def __init__(self, directory: Path | str, token: str = TOKEN, **confs: str) -> None:
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spark_regions.planner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        confs = {"spark.regions.recycle.dir": str(directory), "recycle.namespace": "tests"} | confs
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
        wire = Wire(self.answer["port"])
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

    def __enter__(self) -> PlannerProcess:
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
        head = self._exactly(4)
        if head is None:
            return None
        body = self._exactly(struct.unpack(">I", head)[0])
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

    def _exactly(self, count: int) -> bytes | None:
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


def node(
    number: int, operator: str, children: tuple[int, ...] = (), core: str = "", conjuncts: tuple[str, ...] = (),
    columns: tuple[str, ...] = ("a", "b"), storable: bool = True, row_bytes: float = 50, session: bool = False,
) -> dict[str, Any]:  # fmt: skip
    name = digest([core])
    filters = sorted(digest([each]) for each in conjuncts)
    return {
        "id": number, "operator": operator, "children": list(children), "lineage": digest([name, *filters]),
        "core": name, "conjuncts": filters, "columns": [digest([each]) for each in columns], "storable": storable,
        "refusal": None, "session": session, "rowBytes": row_bytes,
    }  # fmt: skip


def frame(rows: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A DataFrame of the user's, with the rows of a node."""
    kept = ("lineage", "core", "conjuncts", "columns", "rowBytes")
    return {name: rows[name] for name in kept} | more


def report(name: str = "agg") -> list[dict[str, Any]]:
    """Aggregate over a join of two scans."""
    return [
        node(0, "Aggregate", (1,), core=name, columns=("k", "sum")),
        node(1, "Join", (2, 3), core="join", columns=("a", "b")),
        node(2, "Relation", (), core="left", columns=("a", "x")),
        node(3, "Relation", (), core="right", columns=("b", "x")),
    ]


def decide(nodes: list[dict[str, Any]], query: int, application: str = "app-1", **more: Any) -> dict[str, Any]:
    confs = {"strategy": "markov", "maxBytes": 10**9, "ttlSeconds": 604800, "recycle": True, "persist": True,
             "persistMaxBytes": 0, "window": 20} | more.pop("confs", {})  # fmt: skip
    plan = {"root": 0, "nodes": nodes, "expressions": {}, "conjunctColumns": {}, "shared": []}
    plan |= {name: more.pop(name) for name in PLAN_FIELDS & more.keys()}
    return {
        "type": "decide", "query": query, "application": application, "session": "s", "mode": "apply", "confs": confs,
        "parallelism": 2, "plan": plan,
    } | more  # fmt: skip


def observed(event: str, **fields: Any) -> dict[str, Any]:
    """An event; most belong to a query."""
    return {"type": event} | ({} if event in ("heartbeat", "end") else {"query": 0}) | fields


MEASURED = {"Aggregate": (100, 2400, 1.0), "Join": (100_000, 5_000_000, 6.0), "Relation": (1_000_000, 50_000_000, 2.0)}


def executed(
    nodes: list[dict[str, Any]], query: int, loads: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    ran = []
    for each in nodes:
        rows, size, seconds = MEASURED.get(each["operator"], (1000, 10_000, 1.0))
        known = {name: value for name, value in each.items() if name in RAN_FIELDS}
        ran.append(known | {"rows": rows, "bytes": size, "seconds": seconds})
    return {
        "query": query,
        "outcome": "ok",
        "seconds": 4.2,
        "taskSeconds": 8.1,
        "nodes": ran,
        "loads": loads or [],
    } | more


class PatientSession(Session):
    """Waits where a driver would be asked to wait, and until the catalog has what was observed; JSON in and out."""

    def observe(self, event: Mapping[str, Any]) -> None:  # type: ignore[override]
        super().observe(read(event))
        assert self.learning.queue.drain(60.0)

    def decide(self, message: Mapping[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        while isinstance(answer := super().decide(read(message)), Waiting):
            assert answer.done.wait(60.0)
        return dict(written(answer))
