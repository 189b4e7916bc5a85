"""Programs as data: inputs, settings, and steps, each a line of Python. Hypothesis draws and shrinks them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.fuzz import schemas
from tests.fuzz.expressions import ROUNDED, ROUNDED_PREFIX, Column, Draw, kind_of, predicate, shown, value

OPERATORS_OF_A_PROGRAM = (2, 1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 9, 15)
"""Planning is what a tiny query costs, and grows faster than the plan: few programs are long."""
MAX_ROWS = 2500
"""Of a frame, as estimated: cross joins and joins on few keys multiply."""

Program = dict[str, Any]
"""`{"inputs": {name: spec}, "confs": {key: value}, "steps": [{"op", "as", "code"}]}`: as JSON has it."""

CONFS = {
    "spark.sql.ansi.enabled": ("true", "true", "false"),
    "spark.sql.session.timeZone": ("UTC", "Asia/Kolkata", "America/St_Johns"),
    "spark.sql.caseSensitive": ("false", "false", "true"),
    "spark.sql.shuffle.partitions": ("2", "1", "1", "3"),
    "spark.sql.adaptive.enabled": ("true", "true", "false"),
    "spark.sql.autoBroadcastJoinThreshold": ("-1", "10485760"),
    "spark.sql.codegen.wholeStage": ("false", "false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "NO_CODEGEN", "FALLBACK"),
}
"""What a program starts with; the first is the simplest."""


_NAME = re.compile(r"\b[dt]\d+\b")


@dataclass(frozen=True)
class Frame:
    name: str
    columns: list[Column]
    rows: int

    def of(self, *kinds: str) -> list[Column]:
        return [column for column in self.columns if column.kind in kinds]


@dataclass
class Builder:
    """A program under construction, and what is known of its frames."""

    draw: Draw
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    filters: dict[str, list[str]] = field(default_factory=dict)
    viewed: set[str] = field(default_factory=set)
    names: int = 0
    persisted: list[str] = field(default_factory=list)

    def chance(self, of: int) -> bool:
        """One time in `of`; never in the simplest program."""
        return bool(self.draw(st.integers(0, of - 1)) == of - 1)

    def choose(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def some(self, options: Any, least: int = 1, most: int = 4) -> list[Any]:
        listed = list(options)
        return list(
            self.draw(st.lists(st.sampled_from(listed), min_size=min(least, len(listed)), max_size=most, unique=True))
        )

    def fresh(self, prefix: str = "c") -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def column(self, kind: str) -> Column:
        """A new column; what may differ in its last digits is known by its name to whoever compares rows."""
        return Column(self.fresh(ROUNDED_PREFIX if kind == ROUNDED else "c"), kind)

    def frame(self) -> Frame:
        """More often the last one, so that programs get deep."""
        return self.frames[-1] if not self.chance(3) else self.choose(self.frames)

    def do(self, op: str, code: str) -> None:
        self.steps.append({"op": op, "as": None, "code": code})

    def make(self, op: str, code: str, columns: list[Column], rows: int) -> Frame:
        made = Frame(self.fresh("d"), columns, max(rows, 1))
        self.steps.append({"op": op, "as": made.name, "code": f"{made.name} = {code}"})
        self.frames.append(made)
        return made

    def view(self, frame: Frame) -> str:
        """The frame's name in SQL."""
        if frame.name not in self.viewed:
            self.viewed.add(frame.name)
            code = f"{frame.name}.createOrReplaceTempView({frame.name!r})"
            self.steps.append({"op": "view", "as": frame.name, "code": code})
        return frame.name

    def filtered(self, frame: Frame) -> str:
        """A condition on the frame: often one that another variant of it has, too, and something more."""
        known = self.filters.setdefault(frame.name, [])
        condition = predicate(self.draw, frame.columns)
        if known and self.chance(2):
            condition = f"{self.choose(known)} AND {condition}"
        known.append(condition)
        return condition

    def again(self) -> None:
        """Builds every frame anew, as a program does that runs again: it lists the files again."""
        self.steps += [step for step in self.steps if step["as"]]


def _input(builder: Builder, number: int) -> None:
    draw = builder.draw
    schema = draw(st.sampled_from(sorted(schemas.SCHEMAS, key=lambda name: name != "simple")))
    fmt = draw(st.sampled_from(schemas.FORMATS.get(schema, ("parquet",)) if builder.chance(3) else ("parquet",)))
    table = schema in schemas.TABLES_ONLY or (fmt == "parquet" and builder.chance(4))
    partitioned = schema in schemas.PARTITIONED and builder.chance(4)
    name = f"t{number}"
    builder.inputs[name] = {
        "schema": schema,
        "format": fmt,
        "partitioned": partitioned,
        "table": table,
        "files": draw(st.integers(2, schemas.INITIAL)),
    }
    columns = [Column(column, kind_of(declared)) for column, declared in schemas.columns(schema)]
    rows = builder.inputs[name]["files"] * schemas.ROWS_PER_FILE
    builder.steps.append({"op": "read", "as": name, "code": f"{name} = inputs.read({name!r})"})
    builder.frames.append(Frame(name, columns, rows))


def _whole(builder: Builder) -> None:
    """All of the last frame, and then a part of its rows: what is stored of the one serves the other."""
    frame = builder.frames[-1]
    listed = ", ".join(repr(shown(column)) for column in frame.columns)
    for code in (frame.name, f"{frame.name}.where({builder.filtered(frame)!r})"):
        builder.do("collect", f"act(lambda: {code}.selectExpr({listed}))")


def _act(builder: Builder) -> None:
    """An action on a frame, or on a variant of it with other columns and filters."""
    frame = builder.frame()
    code = frame.name
    columns = frame.columns
    if builder.chance(2):
        code += f".where({builder.filtered(frame)!r})"
    if builder.chance(2):
        columns = builder.some(columns)
    extra = []
    if builder.chance(3):
        kind = builder.choose(sorted({column.kind for column in columns}))
        name = builder.fresh()
        extra = [f"{value(builder.draw, columns, kind)} AS {name}"]
        code += f".selectExpr({', '.join(map(repr, ['*', *extra]))})"
        columns = [*columns, Column(name, kind)]
    listed = ", ".join(repr(shown(column)) for column in columns)
    kind = builder.choose(("collect", "collect", "collect", "count", "write"))
    if kind == "write":
        # The columns as they are: what is written keeps its types.
        kept = ", ".join(repr(column.name) for column in columns)
        builder.do("write", f"act(lambda: inputs.written({code}.select({kept})).selectExpr({listed}))")
    elif kind == "count":
        builder.do("count", f"act(lambda: {code}.groupBy().count())")
    else:
        builder.do("collect", f"act(lambda: {code}.selectExpr({listed}))")


@st.composite
def programs(draw: Draw) -> Program:
    from tests.fuzz.changes import CHANGES
    from tests.fuzz.operators import OPERATORS

    builder = Builder(draw)
    confs = {key: draw(st.sampled_from(values)) for key, values in CONFS.items()}
    for number in range(draw(st.integers(1, 2))):
        _input(builder, number)
    for _ in range(draw(st.sampled_from(OPERATORS_OF_A_PROGRAM))):
        operator: Callable[[Builder], None] = draw(st.sampled_from(OPERATORS))
        operator(builder)
        if builder.chance(10):
            _act(builder)
        if builder.chance(10):
            draw(st.sampled_from(CHANGES))(builder)
    if builder.chance(4):
        draw(st.sampled_from(CHANGES))(builder)
    if builder.chance(2):
        _whole(builder)
    else:
        _act(builder)
    if builder.chance(3):
        _act(builder)
    return {"inputs": builder.inputs, "confs": confs, "steps": _needed(builder.steps)}


def names_below(steps: list[dict[str, Any]], code: str) -> set[str]:
    """Frames and inputs that a line is built on."""
    needed = set(_NAME.findall(code))
    for step in reversed(steps):
        if step["as"] in needed:
            needed.update(_NAME.findall(step["code"]))
    return needed


def _needed(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without frames that no action is built on."""
    needed = names_below(steps, " ".join(step["code"] for step in steps if not step["as"]))
    return [step for step in steps if not step["as"] or step["as"] in needed]
