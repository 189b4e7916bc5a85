"""The table of equivalents without Spark: what it says of expressions, and what DuckDB makes of that."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import msgspec
import pytest

from spark_regions.platforms import typed
from spark_regions.platforms.duckdb import EQUIVALENTS, TABLE
from spark_regions.platforms.duckdb.text import engine_type
from spark_regions.platforms.equivalents import Sql, Translation, Unproven, subquery

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "platforms" / "expressions.json").read_text())
MADE_BY_CATALYST = {"AtLeastNNonNulls", "KnownNotNull", "KnownNullable"}
RAISED = (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException)
NEVER = {"CollectList", "CollectSet", "First", "Lag", "Last", "Lead", "NTile", "RowNumber"}


def values(found: Sql, case: dict) -> list[str | None]:
    """The text of each value; rows are columns `c1`, `c2` … of the case's types."""
    names = [f"c{at}" for at in range(1, len(case["types"]) + 1)]
    rows = ", ".join(f"({', '.join([*('?' for _ in names), str(n)])})" for n in range(len(case["rows"])))
    casts = ", ".join(f"CAST({c} AS {engine_type(t)}) AS {c}" for c, t in zip(names, case["types"], strict=True))
    table = f"(SELECT {casts}, n FROM (VALUES {rows}) AS v({', '.join(names)}, n))"
    order = "" if case.get("aggregate") else " ORDER BY n"
    asked = f"SELECT CAST({found.text} AS VARCHAR), typeof({found.text}) FROM {table}{order}"
    with duckdb.connect() as engine:
        answer = engine.execute(asked, [value for row in case["rows"] for value in row]).fetchall()
    assert {kind for _, kind in answer} == {engine_type(found.type)}
    return [value for value, _ in answer]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["title"])
def test_an_expression(case: dict) -> None:
    expression = msgspec.convert(case["expression"], typed.Expression)
    scope = {str(at): Sql(f"c{at}", each) for at, each in enumerate(case["types"], 1)}
    if "refused" in case:
        with pytest.raises(Unproven) as refusal:
            Translation(scope, TABLE).of(expression)
        assert refusal.value.code == case["refused"]
        return
    found = Translation(scope, TABLE).of(expression)
    assert found.type == expression.type
    assert found.raises == case.get("raises", False)
    if case.get("error"):
        with pytest.raises(RAISED):
            values(found, case)
    else:
        assert values(found, case) == case["values"]


def test_every_entry_says_why_and_has_examples() -> None:
    assert [each.kind for each in EQUIVALENTS if not (each.why and each.args)] == []
    without = {each.kind for each in EQUIVALENTS if not each.examples} - {"Sum"}
    assert without == MADE_BY_CATALYST | NEVER
    assert sum(map(len, TABLE.values())) == len(EQUIVALENTS)


def test_a_scalar_subquery_is_a_column_of_the_scope() -> None:
    value = typed.Expression("ScalarSubquery", "INT", plan=7)
    column = Sql("(SELECT c3 FROM x)", "INT")
    assert Translation({subquery(7): column}, TABLE).of(value) == column
    with pytest.raises(Unproven):
        Translation({}, TABLE).of(value)


@pytest.mark.parametrize(("kind", "levels"), [("Cast", 60), ("UnaryMinus", 400)])
def test_what_would_grow_without_bounds_is_refused(kind: str, levels: int) -> None:
    inner = typed.Expression("AttributeReference", "BIGINT", fields={"id": "1"})
    for level in range(levels):
        # Each second cast is looked at for an overflow, in words that repeat what is cast.
        data_type = ("INT", "BIGINT")[level % 2] if kind == "Cast" else "BIGINT"
        fields = {"evalMode": "ANSI"} if kind == "Cast" else {"failOnError": "true"}
        inner = typed.Expression(kind, data_type, children=(inner,), fields=fields)
    with pytest.raises(Unproven, match="PLAN_TOO_LARGE"):
        Translation({"1": Sql("c1", "BIGINT")}, TABLE).of(inner)


def test_the_entries_that_were_used_are_told() -> None:
    case = next(each for each in CASES if each["title"] == "a branch guards another")
    translation = Translation({"1": Sql("c1", "INT")}, TABLE)
    translation.of(msgspec.convert(case["expression"], typed.Expression))
    assert {each.kind for each in translation.used} == {"CaseWhen", "EqualTo", "Literal", "Remainder"}


def test_a_typed_plan_that_breaks_the_protocol_is_refused() -> None:
    from spark_regions.errors import InvalidRequest

    with pytest.raises(InvalidRequest, match="kindd"):
        typed.decode('{"nodes":[{"id":0,"operator":"Filter","args":{"condition":{"kindd":"Not","type":"BOOLEAN"}}}]}')
