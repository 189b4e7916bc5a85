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

from msgspec.structs import replace

from spark_regions._version import __version__
from spark_regions.conf import value_of
from spark_regions.errors import CatalogBusy, CatalogCorrupt, CatalogNewer, InvalidRequest, StoreError
from spark_regions.planner.control import Counting, controlled
from spark_regions.platforms.installed import usable_engines
from spark_regions.wire import messages as told
from spark_regions.wire.messages import (
    Answer,
    Asked,
    Decide,
    DecideAgain,
    Decision,
    Event,
    NodeDecline,
    Request,
    Why,
)

if TYPE_CHECKING:
    from spark_regions.planner.details import Details
    from spark_regions.planner.session import Session
    from spark_regions.runs.run_planner import Waiting
    from spark_regions.store.opening import StoreLocation

log = logging.getLogger("spark_regions.planner")

HOUSEKEEPING_SECONDS = 30.0
CLOCK_JUMP_SECONDS = 60.0
SETTLE_SECONDS = 0.03
Later = Callable[[], Answer]
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
        self._counting = Counting(float(value_of("control.countWait", self.confs) or 0) / 1000)
        self._closing = threading.Event()
        self.over = threading.Event()
        self._opened = threading.Event()

    def warm(self) -> None:
        """Import what the first request needs, so that it does not wait for it."""
        import spark_regions.optimizer.strategies.markov
        import spark_regions.planner.session
        import spark_regions.planner.skew
        import spark_regions.store.admin  # noqa: F401

    def hello(self, message: told.Hello) -> tuple[str, ...]:
        """The application introduces itself; the store is opened behind, and the next message waits for it."""
        with self._lock:
            application = (message.application or f"app-{os.getpid()}")[:256]
            opening = bool(self.application) and not self._opened.is_set()
            if application == self.application and (opening or self.session is not None):
                return usable_engines()
            self.application = application
            self._hello = (application, message.name, message.user)
            self._opened.clear()
            threading.Thread(target=self._open_first, name="opening", daemon=True).start()
            return usable_engines()

    def handle(self, message: Request | Event) -> Answer | Later | None:
        """The answer to one message, None where there is none, or what gives it and takes a while; never raises."""
        if not isinstance(message, told.DecideSkew | told.Control | told.CountRows):  # need no store
            self._opened.wait()
        match message:
            case told.Decide() | told.DecideAgain():
                return self._decide(message)
            case told.Announce():
                return self._answered(message, lambda: self._announce(message))
            case told.DigestFunctions():
                return self._answered(message, lambda: self._digest(message))
            case told.FindGrown():
                return self._answered(message, lambda: self._grown(message))
            case told.FindWritten():
                return self._answered(message, lambda: self._written(message))
            case told.DecideSkew():
                return self._answered(message, lambda: self._skew(message))
            case told.Control():
                return self._answered(message, lambda: controlled(message))
            case told.CountRows():
                return self._answered(message, lambda: self._counting(message))
            case told.Status():
                return self._answered(message, lambda: self._status(message))
            case told.Hello():
                return told.ErrorAnswer("BAD_HELLO", "a second hello", seq=message.seq)
            case _:
                self._guarded(lambda: self._observe(message))
                return None

    def status(self) -> told.StatusAnswer:
        """Facts about this planner and its store."""
        with self._lock:
            where, session = self._where, self.session
            facts = told.StatusAnswer(
                version=__version__,
                pid=os.getpid(),
                rss_bytes=rss_bytes(),
                application=self.application,
                namespace=where.namespace if where else "",
                catalog=_catalog_name(where),
                data=where.data if where else "",
                recycle="off" if self.off else "on",
                reasons=tuple(Why(code, detail) for code, detail in self._reasons()),
            )
            if session is None:
                return facts
            from spark_regions.store.entries import Held, held

            counters = {name: getattr(session.counters, name) for name in session.counters.__slots__}
            behind = session.learning.queue.behind
            facts = replace(facts, evictions=session.store.evictions, behind=behind, **counters)
            with contextlib.suppress(StoreError):
                by_state = session.store.catalog.read(held)
                facts = replace(
                    facts,
                    entries=by_state.get("committed", Held(0, 0)).entries,
                    bytes=sum(found.bytes for state, found in by_state.items() if state != "pending"),
                    reserved_bytes=by_state.get("pending", Held(0, 0)).bytes,
                )
            return facts

    def _status(self, message: told.Status) -> told.StatusAnswer:
        facts = self.status()
        if message.detail and self.session is not None:
            from spark_regions.planner.details import Details

            self._details = self._details or Details()
            with contextlib.suppress(StoreError):
                facts = self._details(self.session, message.end, facts)
        return facts

    def close(self, seconds: float) -> None:
        """Write what is pending, if that takes no longer than `seconds`."""
        self._closing.set()
        session = self.session
        if session is not None:
            with contextlib.suppress(Exception):
                session.graph.flush(seconds)

    def _answered(self, message: Asked, work: Callable[[], Answer]) -> Answer:
        found = self._guarded(work)
        return replace(told.ErrorAnswer(found.code, found.detail) if isinstance(found, Why) else found, seq=message.seq)

    def _guarded(self, work: Callable[[], Found]) -> Found | Why:
        """What the work gives, or why there is nothing."""
        try:
            return work()
        except InvalidRequest as error:
            log.warning("%s", error)
            return Why("PLANNER_PROTOCOL", str(error))
        except CatalogCorrupt as error:
            log.warning("catalog damaged: %s", error)
            with self._lock:
                self._open()
            return Why("CATALOG_RECREATED", str(error)[:200])
        except StoreError as error:
            log.warning("store: %s", error)
            return Why("CATALOG_BUSY" if isinstance(error, CatalogBusy) else "STORE_UNWRITABLE", str(error)[:200])
        except Exception as error:
            log.exception("error inside the planner")
            if self.session is not None:
                self.session.counters.errors += 1
            return Why("INTERNAL_ERROR", f"{type(error).__name__}: {error}"[:500])

    def _decide(self, message: Decide | DecideAgain) -> Decision | Later:
        def answer(found: Decision | Why) -> Decision:
            if isinstance(found, Why):
                found = Decision(declines=(NodeDecline(_root(message), found.code, found.detail),))
            return replace(found, seq=message.seq)

        first = self._guarded(lambda: self._decide_now(message))
        if isinstance(first, (Decision, Why)):
            return answer(first)

        def later() -> Decision:
            began = time.monotonic()
            ready = first.done.wait(first.seconds)
            with self._lock:
                if self.session is not None:
                    self.session.follower.planner.waited(time.monotonic() - began)
            found = self._guarded(lambda: self._decide_now(message)) if ready else None
            return answer(found if isinstance(found, (Decision, Why)) else Decision(again=True))

        return later

    def _decide_now(self, message: Decide | DecideAgain) -> Decision | Waiting:
        """The answer, or something to wait for outside of the lock."""
        if self.session is not None:
            # What the last query stored is read by this one; a catalog that somebody else has locked is not waited for.
            self.session.settle(SETTLE_SECONDS)
        with self._lock:
            session = self.session
            if session is None:
                code, detail = self.off or ("PLANNER_STARTING", "")
                return Decision(declines=(NodeDecline(_root(message), code, detail),))
            return session.decide(message)

    def _announce(self, message: told.Announce) -> told.BatchPlan:
        with self._lock:
            return self.session.follower.announce(message) if self.session else told.BatchPlan()

    def _observe(self, event: Event) -> None:
        with self._lock:
            if self.session is not None:
                self.session.observe(event)
        if isinstance(event, told.End):
            self.over.set()

    def _digest(self, message: told.DigestFunctions) -> told.FunctionDigests:
        from spark_regions.identity.udf.request import digest_functions

        trusted = self.confs.get("udf.trustedModules", "").replace(",", " ").split()
        return told.FunctionDigests(digest_functions(message, trusted))

    def _written(self, message: told.FindWritten) -> told.FoundWritten:
        return told.FoundWritten(self.session.store.written(message.listings) if self.session else {})

    def _grown(self, message: told.FindGrown) -> told.FoundGrown:
        if self.session is None:
            return told.FoundGrown()
        store = self.session.store
        return told.FoundGrown(store.grown(message.identities), store.sources(message.relations))

    def _skew(self, message: told.DecideSkew) -> told.SkewDecision:
        from spark_regions.planner.skew import counted, decide_skew, learned

        if self.session is None:
            return decide_skew(message)
        graph = self.session.graph
        answer = decide_skew(message, learned(graph, message))
        if answer.spec.kind == "none":
            return answer
        from spark_regions.planner.trusting import trusted

        answer = trusted(graph, self.session.queries.get(message.query), message, answer)
        return answer if answer.spec.kind == "none" else replace(answer, keys=counted(graph, message))

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
        from spark_regions.costs.money import Prices
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
            prices = Prices.of({_PREFIX + key: value for key, value in self.confs.items()})
            graph = OperatorGraph(catalog, run, self._where.data[:512])
            self.session = Session(store, graph, run, counters, prices)
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
        """Calibrate once, then beat, sweep and learn for as long as the application lives."""
        from spark_regions.store.weights import refitted

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
                    session.store.sweep_dead(session.confs.ttl_seconds)
                    from spark_regions.store.graph import prune

                    session.store.catalog.write(prune)
                session.worths.work_out(session.confs, session.counters.commits)
                session.weights = refitted(session.store.catalog)
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

    frame = told.SharedFrame("", 0, "", "")
    plan = parse_plan(told.SignedQuery((told.PlanNode(0, lineage="", core=""),), shared=(frame,)))
    session.graph.view(plan, 1)
    session.store.catalog.read(lambda connection: entries_on(connection, [""], [""], [""]))
    session.store.grown(["none"])
    session.store.written([""])


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


def _root(message: Decide | DecideAgain) -> int:
    return message.plan.root if isinstance(message, Decide) else 0
