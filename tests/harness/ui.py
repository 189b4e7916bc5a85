"""A real application with Spark's UI on, a real History Server over its event log, and what they serve."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "tests" / "spark" / "ui_job.py"
ADD_OPENS = ("java.lang", "java.net", "java.nio", "java.util", "java.util.concurrent")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass
class Served:
    """The UI of one application.

    :param base: its address, without a slash at the end
    """

    base: str

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.base}{path}", timeout=60) as answer:
            body: bytes = answer.read()
        return body.decode()

    def json(self, path: str) -> Any:
        return json.loads(self.get(path))

    def status(self, path: str) -> int:
        try:
            self.get(path)
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    def until(self, path: str, wanted: Any, seconds: float = 60.0) -> Any:
        """The JSON of `path` as soon as `wanted` holds of it."""
        end = time.monotonic() + seconds
        while True:
            found = self.json(path)
            if wanted(found):
                return found
            assert time.monotonic() < end, f"{path} still serves {json.dumps(found)[:2000]}"
            time.sleep(0.3)


class Application:
    """`tests/spark/ui_job.py` in a process of its own; it answers one line of JSON to each line."""

    def __init__(self, folder: Path, confs: dict[str, str] | None = None) -> None:
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
        self.port = free_port()
        self.folder = folder
        self.log = folder / "driver.log"
        self._errors = self.log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, str(JOB), str(folder), str(self.port), json.dumps(confs or {})],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment, cwd=folder,
        )  # fmt: skip
        self.id = self.answer()["application"]
        self.ui = Served(f"http://127.0.0.1:{self.port}")

    def ask(self, command: str) -> Any:
        self.tell(command)
        return self.answer()

    def tell(self, command: str) -> None:
        """Its answer is still to come."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the application ended:\n{self.log.read_text()[-4000:]}"
        return json.loads(line)

    def end(self) -> None:
        """A regular end, with the last events in the log."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(60)
        self._errors.close()


@contextlib.contextmanager
def history_server(logs: Path, folder: Path, jar: Path | None) -> Iterator[Served]:
    """Spark's own History Server over `logs`, with or without our jar on its class path; it has read all of them."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    port = free_port()
    path = f"{jars}/*" + (f"{os.pathsep}{jar}" if jar else "")
    java = shutil.which("java") or f"{os.environ['JAVA_HOME']}/bin/java"
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ADD_OPENS]
    command = [
        java, "-Xmx512m", "-XX:TieredStopAtLevel=1", *opens, "-cp", path,
        f"-Dspark.history.fs.logDirectory={logs.as_uri()}", f"-Dspark.history.ui.port={port}",
        "org.apache.spark.deploy.history.HistoryServer",
    ]  # fmt: skip
    log = folder / f"history-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
        )
        try:
            server = Served(f"http://127.0.0.1:{port}")
            end = time.monotonic() + 120
            while True:
                # Until its API is attached, it answers with a page.
                with contextlib.suppress(OSError, ValueError):
                    if len(server.json("/api/v1/applications")) == len(list(logs.iterdir())):
                        break
                assert process.poll() is None and time.monotonic() < end, log.read_text()[-4000:]
                time.sleep(0.5)
            yield server
        finally:
            process.terminate()
            process.wait(30)


def texts(page: str) -> str:
    """What a page says, without its tags, scripts and styles."""
    plain = re.sub(r"(?s)<(script|style).*?</\1>", " ", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain))
