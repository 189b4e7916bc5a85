from __future__ import annotations

import multiprocessing
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import entry, signature, variant
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from spark_regions.dag.records import EdgeUse, Entry
from spark_regions.errors import CatalogBusy, CatalogNewer, StoreError, StoreUnwritable
from spark_regions.store import admin, graph, schema, sources, written
from spark_regions.store import entries as records
from spark_regions.store.admission import make_room, supersedes
from spark_regions.store.catalog import Catalog
from spark_regions.store.files import delete_entry, local_path
from spark_regions.store.opening import open_catalog, place
from spark_regions.store.store import Store
from spark_regions.wire.messages import Growth, WrittenFiles


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request):
    """Of a fresh catalog; empty: a file in the store's folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgresql").database()


@pytest.fixture
def store(tmp_path, clock, url):
    where = place(str(tmp_path / "dir"), "anna", url)
    catalog = open_catalog(where)
    yield Store(catalog, where, clock)
    catalog.close()


def reserve(store, signed, size=100, budget=1000, application="app", gain=1.0, query=1):
    made = store.new_entry(entry("", signed, size, recompute=gain, application=application, query=query))

    def room(known, leased):
        return make_room(known, size, gain / size, budget, store.clock(), leased).evict

    _, refused, _ = store.admit([], [(made, room)], budget, 1.0)
    return made, refused.get(made.id)


def write_files(store, made: Entry) -> Path:
    path = local_path(made.location)
    assert path is not None
    path.mkdir()
    (path / "part-0.parquet").write_bytes(b"x" * 10)
    return path


def commit(store, made, size=50):
    write_files(store, made)
    return store.commit(made.id, 5, size, 0.1, supersedes)


def states(store):
    return {each.id: each.state for each in admin.list_entries(store)}


@pytest.mark.parametrize("url", [""])
def test_files_are_the_owners_alone(store):
    file = store.where.catalog_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for each in (file.with_name(file.name + "-wal"), file.with_name(file.name + "-shm")):
        assert not each.exists() or stat.S_IMODE(each.stat().st_mode) == 0o600
    for directory in (store.where.local_data, file.parent, file.parent.parent, file.parent.parent.parent):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_an_older_catalog_is_put_aside_or_refused(tmp_path, url):
    where = place(str(tmp_path), "anna", url)
    catalog = open_catalog(where)
    Store(catalog, where).begin("app", "job")
    catalog.write(lambda connection: connection.execute(sa.text("UPDATE alembic_version SET version_num = '0004'")))
    catalog.close()
    where = place(str(tmp_path), "anna", url)
    if url:
        with pytest.raises(StoreUnwritable, match=rf"Found catalog revision 0004, expected {schema.HEAD}.*Hint: name"):
            open_catalog(where)
        return
    catalog = open_catalog(where)
    ((code, detail),) = where.notices
    assert code == "CATALOG_OLDER" and detail.endswith(f": Found catalog revision 0004, expected {schema.HEAD}.")
    assert catalog.read(lambda connection: connection.execute(sa.select(schema.RUN)).all()) == []
    catalog.close()
    (aside,) = where.catalog_file.parent.glob("catalog.sqlite.older-*[0-9]")
    kept = Catalog(f"sqlite:///{aside}")
    assert len(kept.read(lambda connection: connection.execute(sa.select(schema.RUN)).all())) == 1
    kept.close()
    where = place(str(tmp_path), "anna", url)
    open_catalog(where).close()
    assert where.notices == []


def test_the_schema_and_the_queries_compile_for_postgresql():
    dialect = postgresql.dialect()
    for table in schema.METADATA.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
    assert "IN (__[POSTCOMPILE_lineages])" in str(graph._BY_LINEAGE.compile(dialect=dialect))


def test_a_newer_catalog_is_left_alone(tmp_path, url):
    where = place(str(tmp_path), "anna", url)
    catalog = open_catalog(where)
    catalog.write(lambda connection: connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'")))
    catalog.close()
    with pytest.raises(CatalogNewer, match="Found catalog revision 9999"):
        open_catalog(where)


@pytest.mark.parametrize(
    "content", [b"this is no database, but it is quite long" * 100, b"SQLite format 3\0" + b"\xff" * 8192]
)
def test_a_corrupt_catalog_is_moved_aside(tmp_path, content):
    where = place(str(tmp_path), "anna")
    open_catalog(where).close()
    where.catalog_file.write_bytes(content)
    for suffix in ("-wal", "-shm"):
        where.catalog_file.with_name(where.catalog_file.name + suffix).unlink(missing_ok=True)
    catalog = open_catalog(where)
    assert [code for code, _ in where.notices] == ["CATALOG_RECREATED"]
    (aside,) = [
        p for p in where.catalog_file.parent.glob("catalog.sqlite.corrupt-*") if p.suffix not in ("-wal", "-shm")
    ]
    assert aside.read_bytes() == content
    Store(catalog, where).begin("app", "name")
    catalog.close()


def test_places(tmp_path, monkeypatch):
    assert place("/a b", "anna").data == "file:///a%20b/v1/anna/data"
    assert place("file:///x/", "anna").local_data == Path("/x/v1/anna/data")
    remote = place("s3a://bucket/x/", "anna", "postgresql+psycopg://u:p@host/db")
    assert (remote.data, remote.local_data, remote.catalog_file) == ("s3a://bucket/x/v1/anna/data", None, None)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place("hdfs://x/y", "anna").catalog_file.is_relative_to(tmp_path)
    assert place("", "anna").local_data == tmp_path / ".spark_regions/v1/anna/data"
    assert "/" not in place("/x", "../../etc").namespace


def test_a_directory_that_is_a_file_is_unwritable(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnwritable):
        open_catalog(place(str(tmp_path / "file"), "anna"))
    with pytest.raises(StoreUnwritable, match="catalog"):
        open_catalog(place(str(tmp_path), "anna", "nosuchdialect://x"))


def test_life_of_an_entry(store, clock):
    run = store.begin("app", "job")
    made, refused = reserve(store, signature("c"))
    assert refused is None
    assert states(store) == {made.id: "pending"}
    assert commit(store, made) == ""
    (kept,) = admin.list_entries(store)
    assert (kept.state, kept.bytes, kept.rows) == ("committed", 50, 5)
    assert store.admit([(made.id, "app", 7)], [], 1000, 1.0) == (frozenset(), {}, {})
    store.abandon(made.id, "ENTRY_DAMAGED")
    path = local_path(made.location)
    assert states(store) == {made.id: "evicted"}
    assert path.exists()
    store.release(run, made.id, 7)
    assert states(store) == {}
    assert not path.exists()
    assert store.admit([(made.id, "app", 8)], [], 1000, 1.0)[0] == {made.id}


def test_a_dead_reader_does_not_keep_files(store, clock):
    store.begin("app", "job")
    made, _ = reserve(store, signature("c"))
    commit(store, made)
    store.admit([(made.id, "app", 7)], [], 1000, 1.0)
    store.abandon(made.id, "REMOVED")
    clock.now += 60
    assert store.sweep_dead(0.0) == []
    clock.now += 70
    assert store.sweep_dead(0.0) == [made.id]
    assert not local_path(made.location).exists()


def test_a_heartbeat_keeps_a_lease(store, clock):
    run = store.begin("app", "job")
    made, _ = reserve(store, signature("c"))
    commit(store, made)
    store.admit([(made.id, "app", 7)], [], 1000, 1.0)
    store.abandon(made.id, "REMOVED")
    for _ in range(5):
        clock.now += 60
        store.heartbeat(run)
        assert store.sweep_dead(0.0) == []


def test_two_writers_of_one_result(store):
    store.begin("app", "job")
    first, _ = reserve(store, signature("c", ("a", "b")))
    assert reserve(store, signature("c", ("a",)))[1] == "PENDING_ELSEWHERE"
    wider, refused = reserve(store, signature("c", ("a", "b", "d")))
    assert refused is None
    commit(store, first)
    commit(store, wider)
    assert states(store) == {wider.id: "committed"}
    assert not local_path(first.location).exists()


def test_the_budget_counts_reservations_and_evicts_the_least_worth(store, clock):
    store.begin("app", "job")
    poor, _ = reserve(store, signature("poor"), size=400, gain=1.0)
    rich, _ = reserve(store, signature("rich"), size=400, gain=9.0)
    assert reserve(store, signature("third"), size=400, gain=5.0)[1] == "OVER_BUDGET"  # nothing is committed yet
    commit(store, poor, 400)
    commit(store, rich, 400)
    third, refused = reserve(store, signature("third"), size=400, gain=5.0)
    assert refused is None
    assert states(store) == {rich.id: "committed", third.id: "pending"}
    assert not local_path(poor.location).exists()
    assert reserve(store, signature("huge"), size=1001, gain=1e9)[1] == "OVER_BUDGET"
    store.admit([(rich.id, "app", 1)], [], 1000, 1.0)
    assert reserve(store, signature("fourth"), size=700, gain=1e9)[1] == "OVER_BUDGET"  # leased and pending ones stay


def test_an_entry_larger_than_its_reservation_is_dropped(store):
    store.begin("app", "job")
    made, _ = reserve(store, signature("c"), size=100, budget=100)
    assert commit(store, made, 101) == "OVER_BUDGET"
    assert states(store) == {}
    assert not local_path(made.location).exists()
    assert store.commit("e" + "0" * 32, 1, 1, 0.1, supersedes) == "ENTRY_MISSING"


def test_a_reservation_is_larger_where_there_is_room_and_what_is_written_takes_its_own_size(store):
    """What outgrows it is thrown away with all the work; what does not gives the room back."""
    store.begin("app", "job")
    made = [store.new_entry(entry("", signature(core), 100)) for core in "ab"]
    none = store.admit([], [(each, lambda known, leased: None) for each in made], 1000, 1.0)
    assert none == (frozenset(), {}, {each.id: 200 for each in made})  # a quarter of 800, for two
    assert {each.bytes for each in admin.list_entries(store)} == {200}
    assert commit(store, made[0], 150) == ""
    _, refused, reserved = store.admit([], [(wide := store.new_entry(entry("", signature("c"), 50)), None)], 5000, 1.0)
    assert (refused, reserved) == ({}, {wide.id: 4 * 50})
    assert commit(store, made[1], 201) == "OVER_BUDGET"


def test_reservations_of_dead_applications_are_swept(store, clock):
    run = store.begin("app", "job")
    mine, _ = reserve(store, signature("c"), application="app")
    orphan, _ = reserve(store, signature("d"), application="never-began")
    files = write_files(store, orphan)
    assert store.sweep_dead(0.0) == [orphan.id]
    assert not files.exists()
    clock.now += 119
    store.heartbeat(run)
    clock.now += 119
    assert store.sweep_dead(0.0) == []
    clock.now += 2
    assert store.sweep_dead(0.0) == [mine.id]


def test_a_dead_process_of_this_machine_is_seen_at_once(store):
    run = store.begin("app", "job")
    reserve(store, signature("c"))
    child = multiprocessing.get_context("fork").Process(target=os._exit, args=(0,))
    child.start()
    child.join()
    change = sa.update(schema.RUN).where(schema.RUN.c.id == run.id).values(owner_pid=child.pid)
    store.catalog.write(lambda connection: connection.execute(change))
    assert len(store.sweep_dead(0.0)) == 1


def test_the_regular_end_gives_everything_back(store):
    run = store.begin("app", "job")
    made, _ = reserve(store, signature("c"))
    store.end(run)
    assert states(store) == {}
    assert made.state == "pending"


def test_leftovers_without_record_go_after_an_hour(store, clock):
    data = store.where.local_data
    old, young, foreign = data / ("e" + "1" * 32), data / ("e" + "2" * 32), data / "mine"
    for each in (old, young, foreign):
        each.mkdir()
    os.utime(old, (clock.now - 3700, clock.now - 3700))
    os.utime(foreign, (clock.now - 9999, clock.now - 9999))
    os.utime(young, (clock.now - 3500, clock.now - 3500))
    assert store.sweep_dead(0.0) == [old.name]
    assert young.exists()
    assert foreign.exists()


def test_deletion_follows_no_link_and_leaves_the_data_directory(tmp_path):
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.mkdir()
    (outside / "precious").write_text("x")
    link = data / ("e" + "a" * 32)
    link.symlink_to(outside)
    inner = data / ("e" + "b" * 32)
    inner.mkdir()
    (inner / "link").symlink_to(outside)
    assert delete_entry(data, link.name)
    assert delete_entry(data, inner.name)
    assert not link.is_symlink()
    assert not inner.exists()
    assert (outside / "precious").exists()
    for name in ("..", "../outside", "e/../../outside", "", "E" + "a" * 32):
        assert not delete_entry(data, name)
    assert (outside / "precious").exists()


def test_ttl_counts_from_the_last_use_and_survives_a_clock_set_back(store, clock):
    store.begin("app", "job")
    made, _ = reserve(store, signature("c"))
    commit(store, made)
    week = 7 * 86400
    clock.now -= 30 * 86400
    assert store.sweep_dead(week) == []
    clock.now += week + 200
    assert store.sweep_dead(week) == [made.id]


def test_beyond_so_many_those_of_least_benefit_per_byte_go(store, monkeypatch):
    store.begin("app", "job")
    made = [reserve(store, signature(f"rows{gain}"), budget=10_000, gain=float(gain))[0] for gain in range(1, 12)]
    for each in made:
        commit(store, each)
    monkeypatch.setattr("spark_regions.store.store.MOST_ENTRIES", 11)
    assert store.sweep_dead(0.0) == []
    monkeypatch.setattr("spark_regions.store.store.MOST_ENTRIES", 10)
    assert set(store.sweep_dead(0.0)) == {made[0].id, made[1].id}


def test_what_was_written_unreserved_is_taken_in_where_there_is_room(store):
    store.begin("app", "job")
    first, second = (replace(entry("", signature(name)), bytes=100, recompute_seconds=1.0) for name in "ab")
    first, second = store.new_entry(first), store.new_entry(second)
    assert store.admit_late(first, 150) == ""
    assert store.admit_late(store.new_entry(first), 10**9) == "PENDING_ELSEWHERE"
    assert store.admit_late(second, 150) == "OVER_BUDGET"
    commit(store, first)
    better = replace(second, recompute_seconds=9.0)
    assert store.admit_late(better, 120) == ""
    assert states(store) == {better.id: "pending"}


def test_written_files_are_found_by_their_listing_and_the_oldest_forgotten(store, clock, monkeypatch):
    first = WrittenFiles("file:/a", ("rows 1",))
    store.wrote("listing 1", first)
    assert store.written(["listing 1", "listing 2"]) == {"listing 1": first}
    known = WrittenFiles("file:/a", ("rows 1",), {"part-0": "bytes"})
    store.wrote("listing 1", known)
    assert store.written(["listing 1"]) == {"listing 1": known}
    monkeypatch.setattr(written, "KEEP_WRITTEN", 2)
    for number in (2, 3):
        clock.now += 1
        store.wrote(f"listing {number}", first)
    store.catalog.write(graph.prune)
    assert set(store.written(["listing 1", "listing 2", "listing 3"])) == {"listing 2", "listing 3"}


def test_relations_are_kept_as_they_were_with_the_files_of_stored_aggregates(store, clock, monkeypatch):
    for number, day in enumerate(("monday", "monday", "tuesday")):
        clock.now += 1
        made, _ = reserve(store, signature(f"c{number}"))
        grown = Growth("identity", {"key": "column", "gone": "nowhere"}, {"facts": (day,)}, {"facts": day, "keys": "k"})
        assert store.commit(made.id, 10, 10, 1.0, lambda *_: False, grown) == ""
    assert store.sources(()) == {}
    kept = store.sources(["facts", "keys", "others"])
    assert {relation: set(each) for relation, each in kept.items()} == {
        "facts": {"monday", "tuesday"},
        "keys": {"k"},
    }
    monkeypatch.setattr(sources, "KEEP_SOURCES", 2)
    store.catalog.write(graph.prune)
    assert store.sources(["facts", "keys"]) == {"facts": ("tuesday",), "keys": ("k",)}


def test_other_schemes_are_named_for_the_driver(tmp_path):
    where = place("hdfs://host/x", "anna", f"sqlite:///{tmp_path}/c.sqlite")
    remote = Store(open_catalog(where), where)
    remote.begin("app", "job")
    made, _ = reserve(remote, signature("c"))
    remote.abandon(made.id, "WRITE_FAILED")
    assert remote.take_sweep() == [f"hdfs://host/x/v1/anna/data/{made.id}"]
    assert remote.take_sweep() == []


def test_unused_answers_are_given_up(store):
    run = store.begin("app", "job")
    kept, _ = reserve(store, signature("kept"), query=2)
    read, _ = reserve(store, signature("read"), query=2)
    made, _ = reserve(store, signature("c"), query=3)
    commit(store, read)
    store.admit([(read.id, "app", 3)], [], 1000, 1.0)
    store.give_up(run, [3])
    assert states(store) == {kept.id: "pending", read.id: "committed"}
    store.abandon(read.id, "REMOVED")
    assert states(store) == {kept.id: "pending"}
    assert made.id not in states(store)


def test_a_busy_catalog_says_so(store):
    def work(_):
        start = time.monotonic()
        with pytest.raises(CatalogBusy):
            store.catalog.write(lambda connection: None, seconds=0.05)
        return time.monotonic() - start

    assert store.catalog.write(work) < 5


def write_edges(directory: str, url: str, number: int) -> None:
    where = place(directory, "anna", url)
    catalog = open_catalog(where, busy_seconds=60)  # others may have both cores
    run = Store(catalog, where).begin(f"app-{number}", "job")
    for _ in range(20):
        batch = graph.Batch(queries=1)
        batch.add_variant(variant(signature("c"), seconds=2.0))
        batch.add_edge("s", "j")
        catalog.write(lambda connection, batch=batch: graph.write_batch(connection, batch, run.id), counted=True)


def test_processes_write_one_catalog_at_once(tmp_path, url):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=write_edges, args=(str(tmp_path), url, number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    catalog = open_catalog(place(str(tmp_path), "anna", url))

    def read(connection):
        runs = graph.window(connection, 20, "job")
        return graph.variants_of(connection, [signature("c").lineage]), graph.edges_of(connection, ["s"], runs)

    variants, edges = catalog.read(read)
    (merged,) = variants[signature("c").lineage]
    assert (merged.executions, merged.seconds.count, merged.seconds.mean) == (60, 60, 2.0)
    assert edges == {"s": {"j": EdgeUse(runs=3, occurrences=60)}}
    catalog.close()


def test_a_fresh_catalog_is_opened_by_many_at_once(tmp_path, url):
    def opened(_):
        started.wait()
        return open_catalog(place(str(tmp_path), "anna", url), busy_seconds=60)

    started = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        catalogs = list(pool.map(opened, range(8)))
    for catalog in catalogs:
        assert catalog.read(catalog.changes) == 0
        catalog.close()


def test_what_the_command_line_uses(store, tmp_path, url):
    run = store.begin("app", "job")
    one, _ = reserve(store, signature("one"))
    two, _ = reserve(store, signature("two"))
    commit(store, one)
    commit(store, two)
    batch = graph.Batch(queries=1)
    batch.add_variant(variant(signature("one"), seconds=2.0))
    batch.add_edge("s", "j")
    store.catalog.write(lambda connection: graph.write_batch(connection, batch, run.id), counted=True)
    for name in ("e", "nothing", ""):
        with pytest.raises(StoreError, match=f"No single entry starts with {name}"):
            admin.remove_entry(store, name)
    admin.remove_entry(store, one.id[:12])
    assert states(store) == {two.id: "committed"}
    found = admin.graph_snapshot(store)
    assert [each["kinds"] for each in found.operators] == [["Op"]]
    assert found.edges == [{"child": "s", "parent": "j", "runs": 1, "occurrences": 1}]
    assert admin.clear(store) == 1
    assert states(store) == {}
    facts = admin.doctor(str(tmp_path / "dir"), "anna", url)
    assert (facts["entries"], facts["operators"], facts["runs"], facts["data_mode"]) == (0, 1, 1, "0o700")
    (tmp_path / "file").write_text("")
    assert "error" in admin.doctor(str(tmp_path / "file"), "anna")


def test_records_survive_the_round_trip(store):
    written = replace(entry("e" + "c" * 32, signature("c", ("a", "b"), ("f",))), uses=3, reason="r", owner_pid=4)
    store.catalog.write(lambda connection: records.insert(connection, written))
    assert store.catalog.read(lambda connection: records.get(connection, written.id)) == written
