"""Real Spark daemons on this machine: a standalone cluster and a Spark Connect server, ended with the test."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent


class NotReady(RuntimeError):
    """A daemon ended, or did not say within its time that it serves; the message ends with its log."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def daemon(
    command: list[str], log: Path, ready: str, environment: Mapping[str, str] = {}, seconds: float = 90
) -> Iterator[re.Match[str]]:
    """Run a process group until the block ends; yields the match of `ready` in its log."""
    environ = os.environ | {"SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable} | environment
    with open(log, "w") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environ,
            start_new_session=True,
        )
    try:
        yield _await(process, log, re.compile(ready), time.monotonic() + seconds)
    finally:
        _end(process)


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, apart: bool = False) -> Iterator[str]:
    """A master and its workers with one core and 1 GiB each; yields the master's URL.

    :param apart: each worker has an address of its own: no copy of a task runs on the host of the task
    """
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        master = stack.enter_context(
            daemon(
                [spark_class, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"],
                folder / "master.log",
                r"Starting Spark master at (spark://\S+)",
            )
        )[1]
        for number in range(workers):
            place = folder / f"worker-{number}"
            host = f"127.0.0.{number + 1 if apart else 1}"
            arguments = ["--host", host, "--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(place), master]
            stack.enter_context(
                daemon(
                    [spark_class, f"{deploy}.worker.Worker", *arguments],
                    folder / f"worker-{number}.log",
                    r"Successfully registered with master",
                )
            )
        yield master


@contextmanager
def connect_server(folder: Path, confs: Mapping[str, str]) -> Iterator[str]:
    """A server started by Spark's own script; yields the URL for clients."""
    port = free_port()
    command = [str(SPARK_HOME / "sbin" / "start-connect-server.sh")]
    for key, value in ({"spark.connect.grpc.binding.port": str(port)} | dict(confs)).items():
        command += ["--conf", f"{key}={value}"]
    # In the foreground, so that the process is ours to end.
    environment = {"SPARK_NO_DAEMONIZE": "1", "SPARK_LOG_DIR": str(folder), "SPARK_PID_DIR": str(folder)}
    with daemon(command, folder / "connect.log", r"Spark Connect server started", environment):
        yield f"sc://127.0.0.1:{port}"


def _await(process: subprocess.Popen[bytes], log: Path, ready: re.Pattern[str], deadline: float) -> re.Match[str]:
    while time.monotonic() < deadline:
        text = log.read_text(errors="replace")
        if match := ready.search(text):
            return match
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise NotReady(f"{log.name}: no {ready.pattern!r}, exit code {process.poll()}\n{log.read_text()[-3000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=15)
            return
        except ProcessLookupError:
            process.wait()
            return
        except subprocess.TimeoutExpired:
            continue
