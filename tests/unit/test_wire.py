"""The messages: one fixture set through either side's codec (the shim's in `WireSuite`); nobody else names fields."""

from __future__ import annotations

import ast
import json
import re
import runpy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spark_regions.wire import engine, frames, messages, schema
from tests.harness.wire import written

ROOT = Path(__file__).resolve().parents[2]
FIXTURES: dict[str, list[dict[str, Any]]] = json.loads(
    (ROOT / "tests" / "fixtures" / "wire" / "messages.json").read_text(encoding="utf-8")
)
KINDS: dict[str, Any] = {name: getattr(messages, name, None) or getattr(engine, name) for name in FIXTURES}
CASES = [pytest.param(name, each, id=each.get("type", name)) for name, samples in FIXTURES.items() for each in samples]
SHIM = ROOT / "jvm-shim" / "src" / "main" / "scala" / "org" / "apache" / "spark" / "sql" / "regions"


def without_number(message: Any) -> Any:
    """The number of a request is the connection's."""
    if isinstance(message, list):
        return [without_number(each) for each in message]
    if isinstance(message, dict):
        return {name: without_number(each) for name, each in message.items() if name != "seq"}
    return message


@pytest.mark.parametrize(("kind", "message"), CASES)
def test_a_message_is_the_same_once_it_was_read_and_written(kind: str, message: dict[str, Any]) -> None:
    read = msgspec.json.decode(json.dumps(message), type=KINDS[kind])
    assert without_number(written(read)) == message


def test_every_field_of_every_message_is_in_the_fixtures_and_has_another_value_than_its_default() -> None:
    records = schema.schema()["records"]
    seen: dict[str, set[str]] = {}

    def look(value: Any) -> None:
        if isinstance(value, msgspec.Struct):
            name = type(value).__name__
            for field, info in zip(msgspec.structs.fields(value), msgspec.structs.fields(type(value)), strict=True):
                found = getattr(value, field.name)
                if found != info.default:
                    seen.setdefault(name, set()).add(field.encode_name)
                look(found)
        elif isinstance(value, (tuple, list)):
            for each in value:
                look(each)
        elif isinstance(value, dict):
            for each in value.values():
                look(each)

    for kind, samples in FIXTURES.items():
        for each in samples:
            look(msgspec.json.decode(json.dumps(each), type=KINDS[kind]))
    wanted = {name: set(record["properties"]) - {"type", "kind", "seq"} for name, record in records.items()}
    wanted["SkewPlan"].add("kind")
    wanted["SkewDecline"].add("kind")
    assert {
        name: fields - seen.get(name, set()) for name, fields in wanted.items() if fields - seen.get(name, set())
    } == {}


@pytest.mark.parametrize(("kind", "message"), CASES)
def test_a_renamed_field_is_refused_with_its_name(kind: str, message: dict[str, Any]) -> None:
    for name in message.keys() - {"type"}:
        broken = {key + "X" if key == name else key: value for key, value in message.items()}
        with pytest.raises(msgspec.ValidationError, match=f"`{name}X?`"):
            msgspec.json.decode(json.dumps(broken), type=KINDS[kind])


def test_the_schema_is_that_of_the_messages_and_the_shims_classes_are_made_of_it() -> None:
    """The build fails where Scala code names a field that is not there."""
    assert schema.FILE.read_text(encoding="utf-8") == schema.text(), "run python -m spark_regions.wire.schema"
    made = runpy.run_path(str(ROOT / "spark_regions" / "wire" / "scala.py"))["messages"]()
    assert (SHIM / "wire" / "Messages.scala").read_text(encoding="utf-8") == made


def test_numbers_of_a_solver_are_written() -> None:
    numpy = pytest.importorskip("numpy")
    plan = messages.BatchPlan(chosen_seconds=numpy.float64(1.5), kept=numpy.int64(2))
    assert (written(plan)["chosenSeconds"], written(plan)["kept"]) == (1.5, 2)
    with pytest.raises(NotImplementedError, match="object"):
        frames.encode(object())


def fields() -> set[str]:
    return {name for record in schema.schema()["records"].values() for name in record["properties"]}


def test_nobody_else_reads_or_writes_a_field_of_a_message_by_its_name() -> None:
    """In the rooms that messages reach; pages and reports have JSON of their own."""
    rooms = ("planner", "learn", "effects", "optimizer", "decision", "matching", "runs", "skew", "dag", "identity")
    found = []
    for path in (each for room in rooms for each in (ROOT / "spark_regions" / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            key = None
            if isinstance(node, ast.Subscript):
                key = node.slice
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                key = node.args[0] if node.args else None
            if isinstance(key, ast.Constant) and key.value in fields():
                found.append(f"{path.name}:{node.lineno} {key.value}")
    assert [each for each in found if not each.startswith(OWN)] == []


OWN = ("workflow.py", "history.py", "solve.py")
"""Files with keys of their own: a workflow that a user wrote, what the catalog keeps of a stage, a solver's program."""


def test_nor_does_the_shim() -> None:
    call = re.compile(r"\.(?:path|get|has|hasNonNull|put|set)\(\"(\w+)\"")
    found = []
    for path in SHIM.rglob("*.scala"):
        if path.relative_to(SHIM).parts[0] not in ("wire", "ui"):
            for line in path.read_text(encoding="utf-8").splitlines():
                found += [f"{path.name} {name}" for name in call.findall(line) if name in fields()]
    assert [each for each in found if each.split()[0] not in MANIFESTS] == []


MANIFESTS = (
    "Manifest.scala",
    "TeeWriter.scala",
    "RegionsApi.scala",
    "WhyNot.scala",
    "RegionsConf.scala",
    "SourceDigest.scala",
    "TypedExpression.scala",
    "WorkerReports.scala",
    "BadRowsRule.scala",
    "BadRowSink.scala",
)
"""Files with keys of their own: what lies beside a stored result, what Python calls, confs, options of a source, and
what an expression was made with, and what is told of bad rows."""
