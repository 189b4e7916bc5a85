"""The connection to the catalog: transactions that several processes can hold at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from spark_regions.errors import CatalogBusy, CatalogCorrupt, CatalogNewer, CatalogOlder, StoreError
from spark_regions.store.schema import HEAD, META, METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

BUSY_SECONDS = 5.0
_CHANGES = "changes"
_VERSION = sa.text("SELECT version_num FROM alembic_version")


class Catalog:
    """One catalog, by SQLAlchemy URL.

    :param busy_seconds: how long to wait for another writer
    """

    def __init__(self, url: str, busy_seconds: float = BUSY_SECONDS) -> None:
        self.url = url
        self.busy_seconds = busy_seconds
        parsed = sa.make_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self.engine = sa.create_engine(
                url,
                connect_args={"timeout": busy_seconds, "check_same_thread": False, "isolation_level": None},
                poolclass=sa.pool.QueuePool,
                pool_size=4,
            )
            sa.event.listen(self.engine, "connect", _tune_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        else:
            self.engine = sa.create_engine(url, pool_pre_ping=True, pool_size=2)

    def close(self) -> None:
        self.engine.dispose()

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` in a read transaction.

        :raises CatalogCorrupt: the file is damaged
        :raises CatalogBusy: the lock was not free in time
        """
        with self._translated(), self.engine.connect() as connection:
            return work(connection)

    def write(
        self,
        work: Callable[[sa.Connection], T],
        seconds: float | None = None,
        counted: bool = False,
        fresh: bool = False,
    ) -> T:
        """Run `work` in a write transaction, again if another process was faster; it must be safe to repeat.

        :param seconds: give up after this long; default `busy_seconds`
        :param counted: the operator graph changes, so what others keep of it in memory is old
        :param fresh: the catalog may have no tables yet
        """
        deadline = time.monotonic() + (self.busy_seconds if seconds is None else seconds)
        while True:
            try:
                wait = max(0.0, deadline - time.monotonic())
                writer = self.engine.execution_options(regions_write=int(wait * 1000))
                with self._translated(), writer.connect() as connection, connection.begin():
                    if not self.is_sqlite:
                        # One writer at a time, as SQLite has it: budgets and merges are read before they are written.
                        # By itself PostgreSQL would wait for the other writer without end; 0 would mean just that.
                        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, int(wait * 1000))}")
                        connection.execute(_LOCK_FRESH if fresh else _LOCK)
                    result = work(connection)
                    if counted:
                        connection.execute(_COUNT_CHANGE)
                    return result
            except (CatalogBusy, _Conflict) as error:
                if time.monotonic() >= deadline:
                    raise CatalogBusy(str(error)) from error
                time.sleep(random.uniform(0.001, 0.01))

    def changes(self, connection: sa.Connection) -> int:
        """How many counted write transactions the catalog has seen."""
        return connection.execute(_SELECT_CHANGES).scalar() or 0

    def prepare(self) -> None:
        """Make the tables of a fresh catalog; of another, see that they are ours.

        :raises CatalogOlder: they are of an earlier version
        :raises CatalogNewer: they are of a later version
        """
        current = self._revision()
        if current is None:
            self.write(_create, fresh=True)
        elif current < HEAD:
            raise CatalogOlder(f"Found catalog revision {current}, expected {HEAD}.")
        elif current > HEAD:
            raise CatalogNewer(
                f"Found catalog revision {current}, expected at most {HEAD}. Hint: upgrade spark-regions."
            )

    def _revision(self) -> str | None:
        def version(connection: sa.Connection) -> str | None:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            found: str | None = connection.execute(_VERSION).scalar()
            return found

        return self.read(version)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            raise _Conflict(str(error)) from error
        except OperationalError as error:
            text = str(error.orig).lower()
            if any(sign in text for sign in ("locked", "lock timeout", "busy", "deadlock", "serialize")):
                raise CatalogBusy(text) from error
            raise _damage(error) from error
        except DBAPIError as error:
            raise _damage(error) from error


class _Conflict(StoreError):
    """Two processes inserted the same row."""


_SELECT_CHANGES = sa.select(META.c.value).where(META.c.name == _CHANGES)
_LOCK = _SELECT_CHANGES.with_for_update()
# Of a database without our tables nothing can be locked but a number that stands for them.
_LOCK_FRESH = sa.text("SELECT pg_advisory_xact_lock(7310868735422358374)")
_COUNT_CHANGE = sa.update(META).where(META.c.name == _CHANGES).values(value=META.c.value + 1)


def _damage(error: DBAPIError) -> StoreError:
    text = str(error.orig)
    damaged = ("malformed", "not a database", "disk image", "no such table", "no such column", "file is encrypted")
    if any(sign in text for sign in damaged):
        return CatalogCorrupt(text)
    return StoreError(text)


def _tune_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    # A power failure may lose the last transactions, but never damages the file: statistics can be lost, and an entry
    # whose record is lost is swept as a leftover.
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA cache_size=-4096")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # A deferred transaction that reads first cannot wait for a lock when it writes: SQLite fails it at once.
    wait = connection.get_execution_options().get("regions_write")
    if wait is None:
        connection.exec_driver_sql("BEGIN")
        return
    connection.exec_driver_sql(f"PRAGMA busy_timeout={wait}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _create(connection: sa.Connection) -> None:
    if sa.inspect(connection).has_table("alembic_version"):
        return
    METADATA.create_all(connection)
    connection.execute(sa.insert(META).values(name=_CHANGES, value=0))
    connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.execute(sa.text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
