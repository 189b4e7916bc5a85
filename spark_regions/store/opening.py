"""Find or make a store: its directories and its catalog."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from spark_regions.errors import CatalogCorrupt, CatalogOlder, StoreError, StoreUnwritable
from spark_regions.store.catalog import BUSY_SECONDS, Catalog
from spark_regions.store.files import file_uri, local_path, make_private

LAYOUT = "v1"
DEFAULT_DIR = "~/.spark_regions"
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._@-]{0,63}")


@dataclass(slots=True)
class StoreLocation:
    """Where a namespace's store is.

    :param data: URI of the data directory
    :param local_data: the same as a path, where it is local
    :param catalog_file: the SQLite file, where the catalog is one
    :param notices: (reason code, detail) of what was repaired
    """

    namespace: str
    data: str
    local_data: Path | None
    catalog_url: str
    catalog_file: Path | None
    notices: list[tuple[str, str]] = field(default_factory=list)


def shown(url: str) -> str:
    """A catalog URL without its password."""
    return make_url(url).render_as_string(hide_password=True)


def folder_name(namespace: str) -> str:
    """A namespace as one plain folder name.

    >>> folder_name("anna"), len(folder_name("../etc"))
    ('anna', 33)
    """
    if _PLAIN.fullmatch(namespace):
        return namespace
    return "n" + hashlib.sha256(namespace.encode()).hexdigest()[:32]


def place(directory: str, namespace: str, catalog_url: str = "") -> StoreLocation:
    """Where the store of a namespace is, by `recycle.dir` and `recycle.catalog`; nothing is touched."""
    directory = directory or DEFAULT_DIR
    root = local_path(directory)
    name = folder_name(namespace)
    if root is not None:
        home = root.expanduser().absolute() / LAYOUT / name
        data, local_data, file = file_uri(home / "data"), home / "data", home / "catalog.sqlite"
    else:
        data, local_data = f"{directory.rstrip('/')}/{LAYOUT}/{name}/data", None
        # SQLite needs a local file. Without recycle.catalog each driver machine keeps its own for a remote store.
        digest = hashlib.sha256(directory.encode()).hexdigest()[:12]
        file = Path(DEFAULT_DIR).expanduser() / LAYOUT / name / f"catalog-{digest}.sqlite"
    if catalog_url:
        return StoreLocation(name, data, local_data, catalog_url, _sqlite_file(catalog_url))
    return StoreLocation(name, data, local_data, str(make_url("sqlite://").set(database=str(file))), file)


def open_catalog(where: StoreLocation, busy_seconds: float = BUSY_SECONDS) -> Catalog:
    """Open the catalog, creating what is missing; a damaged or older file is moved aside and made anew.

    :raises StoreUnwritable: a directory or the catalog cannot be created or written, or it is a server's and older
    :raises CatalogNewer: written by a later version
    """
    try:
        if where.local_data is not None:
            make_private(where.local_data)
        if where.catalog_file is not None:
            make_private(where.catalog_file.parent)
            with _locked(where.catalog_file):
                return _open_file(where, where.catalog_file, busy_seconds)
        return _open(where, busy_seconds)
    except CatalogOlder as error:
        raise StoreUnwritable(f"{error} Hint: name another database in spark.regions.recycle.catalog.") from error
    except OSError as error:
        raise StoreUnwritable(str(error)) from error


def _open_file(where: StoreLocation, file: Path, busy_seconds: float) -> Catalog:
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    os.close(handle)
    try:
        return _open(where, busy_seconds)
    except (CatalogCorrupt, CatalogOlder) as error:
        older = isinstance(error, CatalogOlder)
        aside = file.with_name(f"{file.name}.{'older' if older else 'corrupt'}-{int(time.time() * 1000)}")
        file.rename(aside)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                file.with_name(file.name + suffix).rename(aside.with_name(aside.name + suffix))
        where.notices.append(("CATALOG_OLDER" if older else "CATALOG_RECREATED", f"{aside.name}: {error}"))
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        return _open(where, busy_seconds)


def _open(where: StoreLocation, busy_seconds: float) -> Catalog:
    try:
        catalog = Catalog(where.catalog_url, busy_seconds)
    except Exception as error:  # A missing database driver or a malformed URL can be any exception of SQLAlchemy's.
        raise StoreUnwritable(f"catalog: {type(error).__name__}: {error}") from error
    try:
        catalog.prepare()
    except CatalogCorrupt:
        catalog.close()
        raise
    except StoreError as error:
        catalog.close()
        if type(error) is StoreError:
            raise StoreUnwritable(f"catalog: {error}") from error
        raise
    return catalog


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """One process at a time creates or repairs the catalog."""
    handle = os.open(file.with_name(file.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sqlite_file(url: str) -> Path | None:
    try:
        parsed = make_url(url)
    except ArgumentError:
        return None
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(parsed.database or "")
