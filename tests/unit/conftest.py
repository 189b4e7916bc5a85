from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_regions.planner.session import Counters
from spark_regions.store.opening import open_catalog, place
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.store.store import Store

sys.path.insert(0, str(Path(__file__).parent))

from wire_client import PatientSession


@pytest.fixture
def session(tmp_path: Path) -> Iterator[PatientSession]:
    """An application's session of the planner, on a catalog of its own."""
    where = place(str(tmp_path), "anna")
    catalog = open_catalog(where)
    store = Store(catalog, where)
    run = store.begin("app-1", "job")
    yield PatientSession(store, OperatorGraph(catalog, run, where.data), run, Counters())
    catalog.close()
