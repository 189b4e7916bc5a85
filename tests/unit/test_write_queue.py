from __future__ import annotations

import logging
import sqlite3
import threading

from wire_client import decide, executed, report

from spark_regions.errors import CatalogBusy
from spark_regions.learn.queue import WriteQueue
from spark_regions.planner.service import Service
from spark_regions.wire.messages import Hello
from tests.harness.wire import handled


def test_in_order_and_after_one_that_fails(caplog):
    queue, done = WriteQueue(), []

    def fails():
        raise CatalogBusy("somebody else has it")

    with caplog.at_level(logging.WARNING):
        for work in (lambda: done.append(1), fails, lambda: 1 / 0, lambda: done.append(2)):
            queue.put(work)
        assert queue.drain(60.0)
    assert done == [1, 2]
    assert "somebody else has it" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_draining_gives_up_in_time():
    queue, go_on = WriteQueue(), threading.Event()
    queue.put(lambda: go_on.wait(60.0))
    assert not queue.drain(0.01)
    go_on.set()
    assert queue.drain(60.0)


def test_a_catalog_that_another_process_has_locked_holds_up_no_decision(tmp_path, monkeypatch):
    """What is observed meanwhile is written as soon as the catalog is free."""
    service = Service({"recycle.dir": str(tmp_path), "recycle.namespace": "tests"})
    service.hello(Hello("", 1, "app-1", "job", "anna"))
    assert handled(service, decide(report(), 1))["actions"] == []
    catalog = service.session.store.where.catalog_file
    other = sqlite3.connect(catalog, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answered = threading.Event()

    def ask():
        handled(service, {"type": "executed", **executed(report(), 1)})
        handled(service, {"type": "abandoned", "entry": "e0", "query": 1, "code": "X"})
        handled(service, {"type": "committed", "entry": "e1", "query": 1, "rows": 1, "bytes": 1, "seconds": 1})
        answer = handled(service, decide(report(), 2, mode="observe"))
        if any(decline["code"] == "OBSERVE_ONLY" for decline in answer["declines"]):
            answered.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    # The writer waits five seconds for the lock, and nobody gives it back before the answer is there.
    assert answered.wait(4.0)
    assert not service.session.learning.queue.drain(0.0)
    other.execute("ROLLBACK")
    assert service.session.learning.queue.drain(60.0)
