"""The long form of a status, for those who show it to people."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spark_regions.errors import StoreError
from spark_regions.store.entries import all_entries
from spark_regions.store.summary import MAX_ENTRIES, MAX_OPERATORS, MostUsed, entry_list, most_used
from spark_regions.wire.messages import EntryGraph, StatusAnswer

if TYPE_CHECKING:
    from spark_regions.planner.session import Session

log = logging.getLogger("spark_regions.planner")

LAST_WRITE_SECONDS = 0.5


class Details:
    """Entries and the most used operators of a session's store.

    Messages are answered in order, and the operators of a large graph take longer to sort than a query waits for its
    decision: they are read on a thread of their own, and an answer has what the last reading found.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._graph = MostUsed([], [], 0)
        self._changes = -1
        self._reading = False

    def __call__(self, session: Session, end: bool, facts: StatusAnswer) -> StatusAnswer:
        """The facts with entries and operators.

        `stale` in the answer: a later one will know more, though nothing else happens.

        :param end: nobody asks again, so everything is read now
        """
        catalog = session.store.catalog
        changed = catalog.read(catalog.changes) != self._changes
        if end:
            with contextlib.suppress(StoreError):
                session.graph.flush(LAST_WRITE_SECONDS)
            self._read(session)
        elif changed and self._begin():
            threading.Thread(target=self._read, args=(session,), name="summary", daemon=True).start()
        entries = catalog.read(lambda connection: entry_list(connection, all_entries(connection)))
        graph = self._graph
        return replace(
            facts,
            entry_list=tuple(entries),
            graph=EntryGraph(tuple(graph.nodes), tuple(graph.edges)),
            graph_operators=graph.operators,
            stale=not end and (changed or session.graph.unwritten),
            truncated=len(entries) == MAX_ENTRIES or len(graph.nodes) == MAX_OPERATORS,
        )

    def _begin(self) -> bool:
        with self._lock:
            begun, self._reading = not self._reading, True
            return begun

    def _read(self, session: Session) -> None:
        catalog = session.store.catalog
        try:
            self._changes, self._graph = catalog.read(lambda found: (catalog.changes(found), most_used(found)))
        except StoreError as error:
            log.warning("summary: %s", error)
        finally:
            self._reading = False
