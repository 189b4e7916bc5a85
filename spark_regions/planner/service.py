"""Requests to answers, and the housekeeping behind them."""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spark_regions._version import __version__
from spark_regions.errors import CatalogBusy, CatalogCorrupt, CatalogNewer, InvalidRequest, StoreError

if TYPE_CHECKING:
    from spark_regions.planner.details import Details
    from spark_regions.planner.session import Session
    from spark_regions.runs.run_planner import Waiting
    from spark_regions.store.opening import StoreLocation

log = logging.getLogger("spark_regions.planner")

HOUSEKEEPING_SECONDS = 30.0
CLOCK_JUMP_SECONDS = 60.0
PROTOCOL = 1
SETTLE_SECONDS = 0.03
Later = Callable[[], dict[str, Any]]
Found = TypeVar("Found")
_PREFIX = "spark.regions."


class Service:
    """Everything behind the wire. Handlers may be called from several threads.

    SQLAlchemy takes a third of a second to import, so the port is announced and `hello` answered before;
    a store that cannot be opened leaves a service that declines, with the reason.

    :param confs: startup confs, with or without the prefix
    """

    def __init__(self, confs: Mapping[str, Any]) -> None:
        self.confs = {str(key).removeprefix(_PREFIX): str(value) for key, value in confs.items()}
        self.session: Session | None = None
        self.off: tuple[str, str] | None = None
        self.application = ""
        self._where: StoreLocation | None = None
        self._hello: tuple[str, str, str] = ("", "", "")
        self._lock = threading.RLock()
        self._details: Details | None = None
        self._closing = threading.Event()
        self.over = threading.Event()
        self._opened = threading.Event()

    def warm(self) -> None:
        """Import what the first request needs, so that it does not wait for it."""
        import spark_regions.optimizer.strategies.markov
        import spark_regions.planner.session
        import spark_regions.planner.skew
        import spark_regions.store.admin  # noqa: F401

    def hello(self, message: Mapping[str, Any]) -> None:
        """The application introduces itself; the store is opened behind, and the next message waits for it."""
        with self._lock:
            application = str(message.get("application") or f"app-{os.getpid()}")[:256]
            opening = bool(self.application) and not self._opened.is_set()
            if application == self.application and (opening or self.session is not None):
                return
            self.application = application
            self._hello = (application, str(message.get("name") or ""), str(message.get("user") or ""))
            self._opened.clear()
            threading.Thread(target=self._open_first, name="opening", daemon=True).start()

    def handle(self, message: Mapping[str, Any]) -> dict[str, Any] | Later | None:
        """The answer to one message, None where there is none, or what gives it and takes a while; never raises."""
        kind = message.get("type")
        if kind != "skew":  # needs no store
            self._opened.wait()
        seq = message.get("seq")
        if kind == "observe":
            self._guarded(lambda: self._observe(message), None)
            return None
        if kind == "decide":
            return self._decide(message)
        if kind == "announce":
            return {"type": "announce", "seq": seq} | self._guarded(lambda: self._announce(message), None)
        if kind == "digest_udf":
            return {"type": "digest_udf", "seq": seq} | self._guarded(lambda: self._digest(message), None)
        if kind == "skew":
            return {"type": "skew", "seq": seq} | self._guarded(lambda: self._skew(message), None)
        if kind == "status":
            return {"type": "status", "seq": seq} | self._guarded(lambda: self._status(message), None)
        return {"type": "error", "seq": seq, "code": "UNKNOWN_TYPE", "detail": f"unknown type {str(kind)[:100]!r}"}

    def status(self) -> dict[str, Any]:
        """Facts about this planner and its store."""
        with self._lock:
            where = self._where
            facts: dict[str, Any] = {
                "version": __version__,
                "pid": os.getpid(),
                "rssBytes": rss_bytes(),
                "application": self.application,
                "namespace": where.namespace if where else "",
                "catalog": _catalog_name(where),
                "data": where.data if where else "",
                "recycle": "off" if self.off else "on",
                "reasons": [{"code": code, "detail": detail} for code, detail in self._reasons()],
                "entries": 0,
                "bytes": 0,
                "hits": 0,
                "evictions": 0,
                "behind": 0,
            }
            session = self.session
            if session is None:
                return facts
            from spark_regions.store.entries import all_entries

            with contextlib.suppress(StoreError):
                entries = session.store.catalog.read(all_entries)
                facts["entries"] = sum(entry.state == "committed" for entry in entries)
                facts["bytes"] = sum(entry.bytes for entry in entries if entry.state != "pending")
                facts["reservedBytes"] = sum(entry.bytes for entry in entries if entry.state == "pending")
            facts["evictions"] = session.store.evictions
            facts["behind"] = session.learning.queue.behind
            counters = session.counters
            return facts | {name: getattr(counters, name) for name in counters.__slots__}

    def _status(self, message: Mapping[str, Any]) -> dict[str, Any]:
        facts = self.status()
        if message.get("detail") and self.session is not None:
            from spark_regions.planner.details import Details

            self._details = self._details or Details()
            with contextlib.suppress(StoreError):
                facts |= self._details(self.session, bool(message.get("end")))
        return facts

    def close(self, seconds: float) -> None:
        """Write what is pending, if that takes no longer than `seconds`."""
        self._closing.set()
        session = self.session
        if session is not None:
            with contextlib.suppress(Exception):
                session.graph.flush(seconds)

    def _guarded(self, work: Callable[[], Found], decided: Mapping[str, Any] | None) -> Found | dict[str, Any]:
        """What the work gives, or an answer that says why there is nothing."""
        try:
            return work()
        except InvalidRequest as error:
            log.warning("%s", error)
            return _failure("PLANNER_PROTOCOL", str(error), decided)
        except CatalogCorrupt as error:
            log.warning("catalog damaged: %s", error)
            with self._lock:
                self._open()
            return _failure("CATALOG_RECREATED", str(error)[:200], decided)
        except StoreError as error:
            log.warning("store: %s", error)
            code = "CATALOG_BUSY" if isinstance(error, CatalogBusy) else "STORE_UNWRITABLE"
            return _failure(code, str(error)[:200], decided)
        except Exception as error:
            log.exception("error inside the planner")
            if self.session is not None:
                self.session.counters.errors += 1
            return _failure("INTERNAL_ERROR", f"{type(error).__name__}: {error}"[:500], decided)

    def _decide(self, message: Mapping[str, Any]) -> dict[str, Any] | Later:
        seq = message.get("seq")
        empty: dict[str, Any] = {"type": "decision", "seq": seq, "actions": [], "declines": [], "sweep": []}
        first = self._guarded(lambda: self._decide_now(message), message)
        if isinstance(first, dict):
            return empty | first

        def later() -> dict[str, Any]:
            began = time.monotonic()
            ready = first.done.wait(first.seconds)
            with self._lock:
                if self.session is not None:
                    self.session.follower.planner.waited(time.monotonic() - began)
            answer = self._guarded(lambda: self._decide_now(message), message) if ready else None
            return empty | (answer if isinstance(answer, dict) else {"again": True})

        return later

    def _decide_now(self, message: Mapping[str, Any]) -> dict[str, Any] | Waiting:
        """The answer, or something to wait for outside of the lock."""
        if self.session is not None:
            # What the last query stored is read by this one; a catalog that somebody else has locked is not waited for.
            self.session.settle(SETTLE_SECONDS)
        with self._lock:
            session = self.session
            if session is None:
                code, detail = self.off or ("PLANNER_STARTING", "")
                return {"declines": [{"node": _root(message), "code": code, "detail": detail}]}
            return session.decide(message)

    def _announce(self, message: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            return self.session.follower.announce(message) if self.session else {"ranks": [], "release": []}

    def _observe(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            if self.session is not None:
                self.session.observe(message)
        if message.get("event") == "end":
            self.over.set()

    def _digest(self, message: Mapping[str, Any]) -> dict[str, Any]:
        from spark_regions.identity.udf.request import digest_functions

        trusted = self.confs.get("udf.trustedModules", "").replace(",", " ").split()
        return {"digests": digest_functions(message, trusted)}

    def _skew(self, message: Mapping[str, Any]) -> dict[str, Any]:
        from spark_regions.planner.skew import counted, decide_skew, learned

        if self.session is None:
            return decide_skew(message)
        graph = self.session.graph
        answer = decide_skew(message, learned(graph, message))
        keys = counted(graph, message) if answer["spec"]["kind"] != "none" else None
        return answer if keys is None else answer | {"keys": keys}

    def _reasons(self) -> list[tuple[str, str]]:
        notices = list(self._where.notices) if self._where else []
        return notices + ([self.off] if self.off else [])

    def _open_first(self) -> None:
        try:
            with self._lock:
                self._open()
        except Exception as error:
            log.exception("the store could not be opened")
            self.session, self.off = None, ("INTERNAL_ERROR", f"{type(error).__name__}: {error}"[:500])
        finally:
            self._opened.set()

    def _open(self) -> None:
        from spark_regions.planner.session import Counters, Session
        from spark_regions.store.opening import open_catalog, place
        from spark_regions.store.operator_graph import OperatorGraph
        from spark_regions.store.store import Store

        application, name, user = self._hello
        namespace = self.confs.get("recycle.namespace") or user or getpass.getuser()
        before = self._where
        first = self.session is None
        self._where = place(self.confs.get("recycle.dir", ""), namespace, self.confs.get("recycle.catalog", ""))
        if before is not None:
            self._where.notices.extend(before.notices)
        counters = self.session.counters if self.session else Counters()
        try:
            catalog = open_catalog(self._where)
            store = Store(catalog, self._where)
            run = store.begin(application, name)
            self.session = Session(store, OperatorGraph(catalog, run, self._where.data[:512]), run, counters)
            self.off = None
        except StoreError as error:
            code = "CATALOG_NEWER" if isinstance(error, CatalogNewer) else "STORE_UNWRITABLE"
            log.warning("recycling is off: %s: %s", code, error)
            self.session, self.off = None, (code, str(error))
            return
        _rehearse(self.session)
        threading.Thread(target=self.session.graph.write_behind, name="writer", daemon=True).start()
        if first:
            threading.Thread(target=self._keep_house, name="housekeeping", daemon=True).start()

    def _keep_house(self) -> None:
        """Calibrate once, then beat and sweep for as long as the application lives."""
        with contextlib.suppress(Exception):
            self._calibrate()
        wall, steady = time.time(), time.monotonic()
        pause = 1.0
        while not self._closing.wait(pause):
            pause = HOUSEKEEPING_SECONDS
            session = self.session
            if session is None:
                continue
            jumped = abs((time.time() - wall) - (time.monotonic() - steady)) > CLOCK_JUMP_SECONDS
            wall, steady = time.time(), time.monotonic()
            try:
                session.store.heartbeat(session.run)
                with self._lock:
                    unused = session.queries.take_unused()
                session.store.give_up(session.run, unused)
                # After a jump every lease looks dead; the others get one period to beat again.
                if not jumped:
                    session.store.sweep_dead(session.is_expired)
                    from spark_regions.store.graph import prune

                    session.store.catalog.write(prune)
            except StoreError as error:
                log.warning("housekeeping: %s", error)
            except Exception:
                log.exception("housekeeping")

    def _calibrate(self) -> None:
        from spark_regions.costs.calibrate import probe_disk
        from spark_regions.store.graph import calibration

        session = self.session
        if session is None or session.store.where.local_data is None:
            return
        graph = session.graph
        known = graph.catalog.read(lambda connection: calibration(connection, graph.location))
        if "probe_read" in known:
            return
        probed = probe_disk(session.store.where.local_data)
        if probed is not None:
            graph.learn("probe_write", probed[0])
            graph.learn("probe_read", probed[1])


def rss_bytes() -> int:
    """Resident memory of this process."""
    try:
        with Path("/proc/self/statm").open(encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _rehearse(session: Session) -> None:
    """Run a decision's statements once: SQLAlchemy compiles each on its first use."""
    from spark_regions.dag.plan import parse_plan
    from spark_regions.store.entries import entries_on

    nothing = {"lineage": "", "core": "", "conjuncts": [], "columns": []}
    nodes = [{"id": 0, "operator": "", "children": [], **nothing}]
    plan = parse_plan({"nodes": nodes, "shared": [{"ref": "", "node": 0, **nothing}]})
    session.graph.view(plan, 1)
    session.store.catalog.read(lambda connection: entries_on(connection, [""]))


def _catalog_name(where: StoreLocation | None) -> str:
    if where is None:
        return ""
    if where.catalog_file is not None:
        return str(where.catalog_file)
    from spark_regions.store.opening import shown

    try:
        return shown(where.catalog_url)
    except Exception:  # A malformed URL is shown by its error; what is in it may be a password.
        return ""


def _failure(code: str, detail: str, decided: Mapping[str, Any] | None) -> dict[str, Any]:
    if decided is None:
        return {"error": {"code": code, "detail": detail}}
    return {"declines": [{"node": _root(decided), "code": code, "detail": detail}]}


def _root(message: Mapping[str, Any]) -> int:
    try:
        return int(message.get("root") or 0)
    except (TypeError, ValueError):
        return 0
