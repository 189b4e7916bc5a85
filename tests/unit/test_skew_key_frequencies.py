"""The heaviest keys of a stage are kept by the lineage of its rows."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from click.testing import CliRunner
from test_planner_skew import MB
from test_skew_history import asked, opened, ran

from spark_regions.cli.commands import commands
from spark_regions.errors import InvalidRequest
from spark_regions.planner.service import Service
from spark_regions.skew.key_frequencies import MOST_KEYS, KeyFrequencies, key_frequencies
from spark_regions.wire.frames import Unreadable
from spark_regions.wire.messages import HeavyKey
from tests.harness.wire import handled, read

ONE = {"key": "k = 1", "share": 0.6, "error": 0.01}
SKEWED = [100 * MB] * 39 + [300 * MB]
"""Also on 16 cores the last one is better started first."""


@pytest.fixture
def service(tmp_path: Any) -> Service:
    return opened(tmp_path, "app-1")


def counted(*keys: Any, lineage: str | None = "rows of today") -> dict[str, Any]:
    told = {"type": "keys", "query": 1, "shape": "s", "lineage": lineage}
    return told | {"operator": "SortMergeJoin FullOuter", "keys": list(keys)}


def answer(service: Service, sizes: list[int] = SKEWED, **more: Any) -> dict[str, Any]:
    found = handled(service, asked(sizes, strategy="always", **more))
    assert found is not None
    return found


def listed(folder: Any, *words: str) -> str:
    call = [*("skew", "--dir", str(folder), "--namespace", "tests"), *words]
    return CliRunner().invoke(commands, call, catch_exceptions=False).stdout


def test_keys_of_the_same_rows_are_told_before_and_after_they_are_written(service: Service) -> None:
    assert answer(service)["spec"]["kind"] != "none" and answer(service)["keys"] is None
    handled(service, counted(ONE))
    for _ in range(2):
        assert answer(service)["keys"] == [ONE]
        assert answer(service, lineage="rows of tomorrow")["keys"] is None
        assert answer(service, lineage=None)["keys"] is None
        assert answer(service, shape="another")["keys"] is None
        time.sleep(0.5)  # written behind


def test_that_no_key_is_heavy_is_known_too(service: Service) -> None:
    handled(service, counted())
    assert answer(service)["keys"] == []


def test_a_stage_that_is_left_alone_needs_none(service: Service) -> None:
    handled(service, counted(ONE))
    found = answer(service, [MB] * 8)
    assert found["spec"]["kind"] == "none" and found["keys"] is None


def test_rows_of_no_lineage_are_never_taken_for_others(service: Service) -> None:
    handled(service, counted(ONE, lineage=None))
    assert answer(service, lineage=None)["keys"] is None


@pytest.mark.parametrize(
    "keys", [3, [{"key": "k"}], [ONE | {"share": "x"}], [ONE | {"share": 1.5}], [ONE | {"error": -1}], [3]]
)
def test_events_that_cannot_be_read(keys: Any) -> None:
    with pytest.raises(Unreadable, match=r"keys: .* at `\$\.keys"):
        read(counted() | {"keys": keys})


def test_kept_as_bytes() -> None:
    found = key_frequencies(read(counted(*[ONE] * 50)))
    assert found.keys == (HeavyKey("k = 1", 0.6, 0.01),) * MOST_KEYS
    assert KeyFrequencies.decode(found.encode()) == found
    for broken in (b"{", b"[]", b"\xff", b'{"keys": []}'):
        with pytest.raises(InvalidRequest):
            KeyFrequencies.decode(broken)


def test_what_cannot_be_read_any_more_is_counted_again(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    assert service.session
    service.session.graph.record_stage_keys("s", "rows of today", b"{")
    assert answer(service)["keys"] is None
    assert "counted again" in caplog.text


def test_the_command_lists_them(service: Service, tmp_path: Any) -> None:
    handled(service, ran())
    handled(service, counted(ONE))
    handled(service, counted(lineage="rows of tomorrow"))
    handled(service, {"type": "end"})
    text = listed(tmp_path)
    assert re.search(
        r"SortMergeJoin FullOuter, \d+ s ago, 13.0 task-seconds in 6 partitions, 62% of it in the longest\n", text
    )
    assert "    k = 1: 60.0% of the rows (± 1.0%)\n" in text
    assert "    no key with a hundredth of the rows\n" in text
    first, second = json.loads(listed(tmp_path, "--json"))
    assert {len(first["keys"]), len(second["keys"])} == {0, 1}
    assert "and 1 more; --limit shows them" in listed(tmp_path, "--limit", "1")


def test_the_command_names_what_it_cannot_read(service: Service, tmp_path: Any) -> None:
    assert service.session
    service.session.graph.record_stage_keys("s", "rows of today", b"{")
    handled(service, {"type": "end"})
    assert "The keys of a stage cannot be read" in listed(tmp_path)


def test_of_no_store_the_command_says_so(tmp_path: Any) -> None:
    assert "No keys were counted yet" in listed(tmp_path)
    assert json.loads(listed(tmp_path, "--json")) == []
