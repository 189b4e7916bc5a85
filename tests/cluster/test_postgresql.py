"""Two applications with one store, whose catalog is a real PostgreSQL server."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from examples import data
from spark_regions.store.schema import ENTRY, LEASE, RUN
from tests.harness.postgresql import Server
from tests.spark.test_faults import always, count, driver, told

pytestmark = [pytest.mark.spark, pytest.mark.postgresql]
QUERY = "SELECT l_returnflag, l_tax, count(*) AS n, min(l_comment) AS c FROM lineitem GROUP BY l_returnflag, l_tax"


def test_two_applications_share_a_store(postgresql: Server, tmp_path: Path) -> None:
    source, url = data.tpch(0.01), postgresql.database()
    confs = always(tmp_path / "r", recycle_catalog=url)
    with driver(confs["spark.jars"]) as one, driver(confs["spark.jars"]) as two:
        assert [each.start(confs) for each in (one, two)] == [None, None]
        plain = one.run(source, recycle_strategy="off")
        stored = one.run(source, recycle_strategy="always")
        read = two.run(source)
        # At once, and what neither has run yet: both want to store it.
        question = {"run": str(source), "queries": [QUERY]}
        with ThreadPoolExecutor() as pool:
            both = list(pool.map(lambda application: application.ask(question), (one, two)))
        again = [application.ask(question) for application in (one, two)]
        leased = rows_of(url, sa.select(sa.func.count()).select_from(LEASE))
        entries = rows_of(url, sa.select(ENTRY.c.application, ENTRY.c.state, ENTRY.c.lineage, ENTRY.c.uses))
    assert plain["rows"] == stored["rows"] == read["rows"]
    assert len({str(answer["rows"]) for answer in both + again}) == 1
    assert count(plain, "commits") == 0 < count(stored, "commits"), told(stored)
    assert count(read, "loads") > 0, told(read)
    loads = [count(late, "loads") - count(early, "loads") for early, late in zip(both, again, strict=True)]
    assert min(loads) > 0, loads
    assert leased == [(0,)], "queries that have ended hold nothing"
    assert {state for _, state, _, _ in entries} == {"committed"}
    assert len({lineage for _, _, lineage, _ in entries}) == len(entries), "one result was stored twice"
    assert max(uses for *_, uses in entries) >= 2
    ended = rows_of(url, sa.select(RUN.c.ended.is_not(None)))
    assert ended == [(True,), (True,)], "both applications told of their end"
    assert not list((tmp_path / "r").rglob("*.sqlite*"))


def rows_of(url: str, query: sa.Select[tuple[object, ...]]) -> list[tuple[object, ...]]:
    with sa.create_engine(url, poolclass=sa.pool.NullPool).connect() as connection:
        return [tuple(row) for row in connection.execute(query)]
