"""The registry without Spark: values, units, limits, hints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_regions import conf

HERE = Path(conf.__file__).resolve()
ROOT = HERE.parent.parent
PAGE = ROOT / "docs/configuration.md"
SHIM = ROOT / "jvm-shim/src/main/resources/org/apache/spark/sql/regions/confs.json"

VALUES = [
    ("enabled", "true", True),
    ("enabled", " FALSE ", False),
    ("mode", "observe", "observe"),
    ("planner.deadline", "200ms", 200),
    ("planner.deadline", "0", 0),
    ("planner.startupDeadline", "2m", 120_000),
    ("recycle.ttl", "7d", 604_800),
    ("recycle.ttl", "90", 90),
    ("recycle.ttl", "1500ms", 1),
    ("recycle.namespace", "reporting", "reporting"),
    ("mode", "Observe", "observe"),
    ("recycle.maxBytes", "10g", 10 * 1024**3),
    ("recycle.maxBytes", "512MB", 512 * 1024**2),
    ("recycle.maxBytes", "0", 0),
    ("recycle.window", "1", 1),
    ("persist.maxBytes", "", None),
    ("persist.maxBytes", "1k", 1024),
    ("price.coreHour", "", None),
    ("price.coreHour", "0.05", 0.05),
    ("price.gbRead", ".5", 0.5),
]


@pytest.mark.parametrize(("name", "text", "value"), VALUES)
def test_values(name: str, text: str, value: conf.Value) -> None:
    known = conf.find(conf.PREFIX + name)
    assert known is not None
    assert known.parse(text) == value


BAD = [
    (
        "recycle.strategy",
        "markof",
        "one of markov, maxbenefit, latest, always, off, or what an installed package adds",
        "did you mean markov?",
    ),
    ("recycle.maxBytes", "-1", "a size such as 512m or 10g, not negative", "the default is 10g"),
    ("recycle.maxBytes", "10 g", "a size such as 512m or 10g, not negative", "the default is 10g"),
    ("recycle.maxBytes", "10x", "a size such as 512m or 10g, not negative", "the default is 10g"),
    ("recycle.window", "0", "a whole number, above 0", "the default is 20"),
    ("recycle.window", "1.5", "a whole number, above 0", "the default is 20"),
    ("enabled", "yes", "true or false", "the default is false"),
    ("planner.deadline", "soon", "a time such as 200ms, 5s or 7d, not negative", "the default is 200ms"),
    ("mode", "", "one of apply, observe", "the default is apply"),
    ("recycle.namespace", "../root", "a plain folder name", "leave it out for the default"),
    ("price.gbMonth", "-1", "a number such as 0.05, not negative", "leave it out for the default"),
    ("persist.maxBytes", "much", "a size such as 512m or 10g, not negative", "leave it out for the default"),
]


@pytest.mark.parametrize(("name", "text", "expected", "hint"), BAD)
def test_bad_values_say_what_was_expected(name: str, text: str, expected: str, hint: str) -> None:
    (problem,) = conf.validate({conf.PREFIX + name: text})
    assert (problem.found, problem.expected, problem.hint) == (repr(text), expected, hint)


UNKNOWN = [
    ("spark.regions.recycle.maxbyte", "did you mean spark.regions.recycle.maxBytes?"),
    ("spark.regions.enable", "did you mean spark.regions.enabled?"),
    ("spark.regions.recylce.dir", "did you mean spark.regions.recycle.dir?"),
    ("spark.regions.qqqqqqqqqqqqqqqqqq", "`spark-regions conf` lists all keys"),
]


@pytest.mark.parametrize(("key", "hint"), UNKNOWN)
def test_unknown_keys_get_a_suggestion(key: str, hint: str) -> None:
    (problem,) = conf.validate({key: "1"})
    assert problem.hint == hint


def test_other_keys_and_good_values_pass() -> None:
    good = {known.key: known.default for known in conf.CONFS}
    assert conf.validate({**good, "spark.sql.shuffle.partitions": "many"}) == ()


def test_a_strategy_of_an_installed_package_passes() -> None:
    assert conf.validate({"spark.regions.recycle.strategy": "mine"}, strategies=frozenset({"mine"})) == ()


def test_keys_are_unique_and_documented() -> None:
    keys = [name for known in conf.CONFS for name in (known.key, *known.aliases)]
    assert len(keys) == len(set(keys))
    assert all(known.key.startswith(conf.PREFIX) and known.doc.endswith(".") for known in conf.CONFS)


def test_the_shim_registers_the_same_keys() -> None:
    assert SHIM.read_text(encoding="utf-8") == conf.registry(), "run `make jar`"


def test_a_text_stands_on_the_page_and_in_the_shim_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = ("spark_regions", "jvm-shim/src", "docs", "conf", "examples")
    kinds = {".py", ".scala", ".json", ".md", ".conf", ".properties", ".txt"}
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    others = "\n".join(path.read_text(encoding="utf-8") for path in files if path not in (HERE, PAGE, SHIM))
    assert [known.key for known in conf.CONFS if known.doc in others] == []
    changed = replace(conf.CONFS[3], doc="Another text.", default="another")
    monkeypatch.setattr(conf, "CONFS", (*conf.CONFS[:3], changed, *conf.CONFS[4:]))
    for path, text in ((PAGE, conf.markdown()), (SHIM, conf.registry())):
        before = path.read_text(encoding="utf-8").splitlines()
        (line,) = set(text.splitlines()) - set(before)
        assert "Another text." in line and "another" in line and changed.key in line


@pytest.mark.parametrize(
    ("name", "requirement"),
    [
        ("planner.deadline", "must not be negative"),
        ("recycle.window", "must be greater than 0"),
        ("recycle.firstUseOverhead", "must be from 0 to 1"),
        ("recycle.namespace", "must be a plain folder name"),
        ("mode", ""),
    ],
)
def test_what_spark_says_of_values_that_are_not_allowed(name: str, requirement: str) -> None:
    known = conf.find(conf.PREFIX + name)
    assert known is not None
    assert known.requirement == requirement
