"""A real PostgreSQL server of this machine's own package, in a folder of its own, ended with the tests."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

# Debian keeps the server's programs out of PATH.
PACKAGED = "/usr/lib/postgresql/*/bin"
ACCOUNT = "postgres"


class NotInstalled(RuntimeError):
    """No PostgreSQL server is installed here."""


class Server:
    """A running server; every database that it gives is fresh."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    def url(self, database: str) -> str:
        """What `spark.regions.recycle.catalog` takes."""
        return f"postgresql+psycopg://regions@/{database}?host={self._folder}"

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"catalog_{next(self._numbers)}"
        engine = sa.create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return self.url(name)


def program(name: str) -> str:
    """:raises NotInstalled: with one line on how to get it"""
    packaged = sorted(Path("/").glob(f"{PACKAGED[1:]}/{name}"), key=lambda path: int(path.parts[-3]))
    found = shutil.which(name) or (str(packaged[-1]) if packaged else None)
    if found is None:
        raise NotInstalled(f"no PostgreSQL server here: neither {name} on PATH nor {PACKAGED}/{name}")
    return found


@contextmanager
def server() -> Iterator[Server]:
    """A cluster that is reached by a Unix socket, so that it needs no port; gone at the end."""
    initdb, postgres = program("initdb"), program("postgres")
    # Not below pytest's folder: the socket's path must be short, and its account must be able to go there.
    folder = Path(tempfile.mkdtemp(prefix="spark-regions-pg-"))
    # PostgreSQL refuses to run as root.
    owner: dict[str, str] = {"user": ACCOUNT, "group": ACCOUNT} if os.geteuid() == 0 else {}
    if owner:
        shutil.chown(folder, **owner)
    data, log = folder / "data", folder / "log"
    common = {"cwd": folder, "env": os.environ | {"HOME": str(folder), "LC_ALL": "C"}, **owner}
    try:
        made = subprocess.run(
            [initdb, "-D", data, "-U", "regions", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            capture_output=True,
            text=True,
            **common,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        settings = {"listen_addresses": "", "unix_socket_directories": str(folder), "fsync": "off"}
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with log.open("wb") as output:
            process = subprocess.Popen([postgres, "-D", data, *given], stdout=output, stderr=output, **common)
        try:
            running = Server(folder)
            _await(running, process, log)
            yield running
        finally:
            process.send_signal(signal.SIGINT)  # "fast": connections that are still open do not keep it
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await(running: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    engine = sa.create_engine(running.url("postgres"), poolclass=sa.pool.NullPool)
    end = time.monotonic() + 60
    while True:
        try:
            with engine.connect():
                return
        except sa.exc.OperationalError as error:
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(log.read_text()) from error
            time.sleep(0.05)
