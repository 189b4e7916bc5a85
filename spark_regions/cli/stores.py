"""Which store a command looks at: options, else the confs that a driver on this machine would get, else defaults."""

from __future__ import annotations

import contextlib
import getpass
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spark_regions import conf
from spark_regions.errors import StoreError

if TYPE_CHECKING:
    from spark_regions.costs.money import Prices
    from spark_regions.store.opening import StoreLocation
    from spark_regions.store.store import Store
    from spark_regions.wire.messages import Confs

DIR, CATALOG, NAMESPACE = (f"{conf.PREFIX}recycle.{name}" for name in ("dir", "catalog", "namespace"))


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """:param settings: other keys of `spark.regions.*` that are set outside of an application"""

    dir: str
    catalog: str
    namespace: str
    max_bytes: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def confs(self) -> dict[str, str]:
        """As the shim hands them to a planner."""
        known = {entry.key: entry.default for entry in conf.CONFS}
        own = {DIR: self.dir, CATALOG: self.catalog, NAMESPACE: self.namespace}
        return {**known, **own, f"{conf.PREFIX}recycle.maxBytes": str(self.max_bytes)}

    def query_confs(self) -> Confs:
        """As a query of a driver on this machine would have them."""
        from spark_regions.wire.messages import Confs

        return Confs(max_bytes=self.max_bytes, ttl_seconds=float(conf.value_of("recycle.ttl", self.settings) or 0))

    def prices(self) -> Prices:
        from spark_regions.costs.money import Prices

        return Prices.of(self.settings)

    def amount(self, value: float) -> str:
        """Seconds, or money where there are prices, as people read it."""
        return f"{value:,.4g}" if self.prices().given else f"{value:,.1f} s"

    def place(self) -> StoreLocation:
        """Where its data and its catalog are; nothing is touched."""
        from spark_regions.store.opening import place

        return place(self.dir, self.namespace, self.catalog)

    def exists(self) -> bool:
        """False for a store that nothing was ever written to. Of a catalog server only opening it can tell."""
        file = self.place().catalog_file
        return file is None or file.is_file()


@contextlib.contextmanager
def opened(location: StoreOptions) -> Iterator[Store]:
    """The store of a location. Unlike a planner's, a command's look does not make one.

    Errors: `StoreError` where there is none, or where it cannot be opened.
    """
    from spark_regions.store import admin

    if not location.exists():
        raise StoreError(
            f"No store at {location.dir} for namespace {location.namespace}. "
            "Hint: one is made by the first job with spark.regions.enabled=true; --dir and --namespace name another."
        )
    with admin.opened(location.dir, location.namespace, location.catalog) as store:
        yield store


def at_store(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `--dir`, `--namespace` and `--catalog`, as one `StoreOptions`."""

    @click.option("--dir", "folder", help="spark.regions.recycle.dir")
    @click.option("--namespace", help="spark.regions.recycle.namespace")
    @click.option("--catalog", help="spark.regions.recycle.catalog")
    @wraps(command)
    def with_location(
        *arguments: Any, folder: str | None, namespace: str | None, catalog: str | None, **options: Any
    ) -> Any:
        given = {DIR: folder, NAMESPACE: namespace, CATALOG: catalog}
        settings = {**_outside(), **{key: value for key, value in given.items() if value}}
        return command(*arguments, location=_location(settings), **options)

    return with_location


def _outside() -> dict[str, str]:
    try:
        from spark_regions.spark.environment import outside_confs

        return outside_confs()
    except ImportError:  # A machine without PySpark can still look at a store.
        return {}


def _location(settings: dict[str, str]) -> StoreOptions:
    return StoreOptions(
        dir=settings.get(DIR) or str(Path.home() / ".spark_regions"),
        catalog=settings.get(CATALOG, ""),
        namespace=settings.get(NAMESPACE) or os.environ.get("SPARK_USER") or getpass.getuser(),
        max_bytes=int(conf.value_of("recycle.maxBytes", settings) or 0),
        settings=settings,
    )
