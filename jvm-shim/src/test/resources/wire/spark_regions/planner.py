"""The far end of the wire for the bridge's tests: decides nothing, and misbehaves on request (WIRE_MODE)."""

import json
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path

MODE = os.environ.get("WIRE_MODE", "echo")
LOG = os.environ.get("WIRE_LOG")
HEARD_THE_END = threading.Event()


def log(message):
    if LOG:
        with Path(LOG).open("a") as out:
            out.write(json.dumps(message) + "\n")


def read(stream):
    head = stream.read(4)
    if len(head) < 4:
        return None
    body = stream.read(struct.unpack(">I", head)[0])
    return json.loads(body)


def write(stream, message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


def serve(server, token, version):
    peer, _ = server.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = peer.makefile("rwb")
    hello = read(stream)
    log(hello)
    if hello["token"] != token:
        write(stream, {"type": "error", "code": "BAD_TOKEN", "detail": ""})
        return
    write(stream, {"type": "hello", "protocol": 1, "version": version})
    count = 0
    observed = 0
    while (message := read(stream)) is not None:
        log(message)
        if "seq" not in message:
            observed += 1
            if message["type"] == "end":
                HEARD_THE_END.set()
            continue
        count += 1
        if message["type"] == "status":
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            facts = {"version": version, "pid": os.getpid(), "rssBytes": pages * 4096}
            names = dict.fromkeys(("application", "namespace", "catalog", "data", "recycle"), "")
            write(stream, {"type": "status", "seq": message["seq"], **facts, **names})
            continue
        if MODE == "slow":
            time.sleep(0.3)
        if MODE == "slow-once" and count == 1:
            time.sleep(0.3)
        if MODE == "hang":
            time.sleep(3600)
        if MODE == "garbage":
            write(stream, b"\xff\xfenot json")
            continue
        if MODE == "die":
            os._exit(3)
        said = {"said": {"digest": message["roots"][0]}, "observed": {"digest": str(observed)}}
        write(stream, {"type": "digest_udf", "seq": message["seq"], "digests": said})


def main():
    if MODE == "silent":
        time.sleep(3600)
    if MODE == "chatter":
        print("Welcome!", flush=True)
    first = json.loads(sys.stdin.readline())
    log(first)
    if MODE == "late":
        time.sleep(1)
    if MODE == "refuse":
        print(json.dumps({"error": "CATALOG_CORRUPT", "detail": "catalog.sqlite"}), flush=True)
        return
    version = "9.9.9" if MODE == "other-version" else first["version"]
    server = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": server.getsockname()[1], "protocol": 1, "version": version}), flush=True)
    print("listening", file=sys.stderr, flush=True)
    threading.Thread(target=serve, args=(server, first["token"], version), daemon=True).start()
    sys.stdin.read()
    HEARD_THE_END.wait(0.5)  # said before, and maybe not read yet
    os._exit(0)


main()
