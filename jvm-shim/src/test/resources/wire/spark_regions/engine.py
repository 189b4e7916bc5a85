"""The far end of an engine's connections, for the shim's tests: a statement says what to do, and to answer (base64)."""

import base64
import json
import os
import socket
import struct
import sys
import threading
import time


def read(stream):
    head = stream.read(4)
    if len(head) < 4:
        return None
    return json.loads(stream.read(struct.unpack(">I", head)[0]))


def write(stream, message):
    body = json.dumps(message).encode()
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


def serve(peer, token, version):
    stream = peer.makefile("rwb")
    hello = read(stream)
    if hello["token"] != token:
        write(stream, {"type": "error", "code": "BAD_TOKEN", "detail": ""})
        return
    write(stream, {"type": "hello", "protocol": 1, "version": version})
    statement = read(stream)
    what, rows, answer = statement["sql"].split(" ")
    whole = base64.b64decode(answer)
    if what == "error":
        write(stream, {"type": "ran", "seq": 0, "error": {"code": "ENGINE_OUT_OF_MEMORY", "detail": statement["id"]}})
        return
    if what == "slow":
        peer.settimeout(None)
        # Until the other side ends the connection.
        if stream.read(1) == b"":
            print("warning: gone", file=sys.stderr, flush=True)
        return
    if what == "hang":
        time.sleep(3600)
    if what == "die":
        os._exit(9)
    write(stream, {"type": "ran", "seq": 0, "rows": int(rows), "bytes": len(whole), "seconds": 0.1})
    stream.write(whole[: len(whole) // 2] if what == "half" else whole)
    stream.flush()
    stream.close()
    peer.close()


def accept(server, token, version):
    while True:
        peer, _ = server.accept()
        threading.Thread(target=serve, args=(peer, token, version), daemon=True).start()


first = json.loads(sys.stdin.readline())
listening = socket.create_server(("127.0.0.1", 0))
told = "9.9.9" if first["confs"].get("version") else first["version"]
print(json.dumps({"port": listening.getsockname()[1], "protocol": 1, "version": told}), flush=True)
threading.Thread(target=accept, args=(listening, first["token"], told), daemon=True).start()
sys.stdin.read()
os._exit(0)
