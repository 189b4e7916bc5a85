from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import spark_regions.reasons
from spark_regions.reasons import REASONS, sentence

PACKAGE = Path(spark_regions.reasons.__file__).parent
NO_CODES = ("cli", "reports", "spark", "regions")
ROOMS = sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - set(NO_CODES))
SHIM = PACKAGE.parent / "jvm-shim" / "src" / "main"
# Names of instructions are spelled like codes.
INSTRUCTIONS = ("machine.py", "instructions.py")
SOURCES = [path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]


PROCESSES = ("PLANNER", "ENGINE")
PROCESS_CODES = {"GAVE_UP", "NOT_STARTABLE", "VERSION_MISMATCH"}
"""What can become of any process; its name stands before it."""


def shim_codes() -> set[str]:
    """First arguments of Refusal, Refused and their helper, and whatever else is spelled like a code."""
    refusal = re.compile(r"\b(?:Refusal|Refused|refuse)\(\s*\"([A-Z][A-Z0-9_]*)\"")
    spelled = re.compile(r"\"([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)\"")
    protocol = {"BAD_TOKEN", "PROTOCOL_MISMATCH"}
    other = {"MEMORY_AND_DISK", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "TIMESTAMP_MICROS"}
    sparks = {"INCONSISTENT_BEHAVIOR", "MALFORMED_RECORD_IN_PARSING", "PYTHON_EXCEPTION"}
    other |= PROCESS_CODES | sparks
    texts = [path.read_text() for path in SHIM.rglob("*.scala")]
    refusals = {code for text in texts for code in refusal.findall(text)}
    return refusals | {code for text in texts for code in spelled.findall(text)} - protocol - other


def test_codes_and_sentences_are_regular():
    for code, text in REASONS.items():
        assert re.fullmatch(r"[A-Z][A-Z0-9_]*", code)
        assert text[0].isupper() or text.startswith("spark_regions")
        assert not text.endswith(".")
    assert sentence("NEWER_THAN_US", "x") == "NEWER_THAN_US (x)."


def test_every_code_in_the_sources_is_in_the_table():
    literal = re.compile(r"\"([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)\"")
    protocol = {
        "BAD_TOKEN",
        "BAD_HELLO",
        "BAD_GREETING",
        "PROTOCOL_MISMATCH",
        "NO_PORT",
        "UNKNOWN_TYPE",
        "TYPE_CHECKING",
    }
    other = {"MEMORY_AND_DISK", "IMPORT_NAME", "EXTENDED_ARG", "SC_PAGE_SIZE", "TIMESTAMP_NTZ"}
    for path in (each for each in SOURCES if each.name not in INSTRUCTIONS):
        for code in literal.findall(path.read_text()):
            assert code in REASONS or code in protocol | other, f"{path.name}: {code}"


def test_every_code_of_the_shim_is_in_the_table():
    emitted = shim_codes()
    assert {"INPUT_CHANGED", "UNKNOWN_SOURCE", "OPAQUE_PYTHON", "SOURCE", "PARTIAL_CONSUMPTION"} <= emitted
    assert emitted - REASONS.keys() == set()


def test_every_code_of_the_table_is_emitted():
    literal = re.compile(r"\"([A-Z][A-Z0-9_]+)\"")
    python = {code for path in SOURCES for code in literal.findall(path.read_text())}
    scala = {code for path in SHIM.rglob("*.scala") for code in literal.findall(path.read_text())}
    processes = {f"{name}_{code}" for name in PROCESSES for code in scala}
    assert REASONS.keys() - python - scala - processes == set()


@pytest.mark.parametrize(
    "path", [p for p in [*SOURCES, PACKAGE / "reasons.py"] if ">>>" in p.read_text()], ids=lambda p: p.stem
)
def test_doctests(path):
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_the_shim_shows_the_same_sentences() -> None:
    """`make docs` writes the file that the pages of the tab read."""
    found = PACKAGE.parent / "jvm-shim/src/main/resources/org/apache/spark/sql/regions/ui/reasons.properties"
    assert found.read_text(encoding="utf-8") == spark_regions.reasons.properties()
