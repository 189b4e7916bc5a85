"""One function for each operator: it adds a frame, mostly made of the last one."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.fuzz import schemas
from tests.fuzz.expressions import EXACT, ORDERABLE, ROUNDED, Column, exact, predicate, total_order, value
from tests.fuzz.programs import MAX_ROWS, Builder, Frame
from tests.fuzz.templates import LITERALS

KEYS = ("INT", "BIGINT", "STRING", "DATE", "BOOLEAN", "DECIMAL", "DOUBLE", "LCASE", "CI", "TIMESTAMP", "BINARY")
DISTINCT_VALUES = 4
"""Of a column, at least: what an equi-join on it divides the product of both sides by."""


def strings(texts: list[str]) -> str:
    return ", ".join(map(repr, texts))


def _select(b: Builder) -> None:
    frame = b.frame()
    kept = b.some(frame.columns, 1, 6)
    columns, texts = list(kept), [column.name for column in kept]
    for _ in range(b.draw(st.integers(1, 3))):
        kind = b.choose(sorted({column.kind for column in frame.columns}))
        column = b.column(kind)
        columns.append(column)
        texts.append(f"{value(b.draw, frame.columns, kind)} AS {column.name}")
    b.make("select", f"{frame.name}.selectExpr({strings(texts)})", columns, frame.rows)


def _with_column(b: Builder) -> None:
    frame = b.frame()
    kind = b.choose(sorted({column.kind for column in frame.columns} | {"INT", "STRING"}))
    column = b.column(kind)
    text = value(b.draw, frame.columns, kind)
    b.make(
        "select", f"{frame.name}.withColumn({column.name!r}, F.expr({text!r}))", [*frame.columns, column], frame.rows
    )


def _where(b: Builder) -> None:
    frame = b.frame()
    b.make("where", f"{frame.name}.where({b.filtered(frame)!r})", frame.columns, frame.rows)


def _pairs(left: Frame, right: Frame) -> list[tuple[Column, Column]]:
    return [
        (one, other)
        for one in left.columns
        for other in right.columns
        if one.kind == other.kind and one.kind in KEYS and one.kind not in ("LCASE", "CI")
    ]


def _renamed(b: Builder, left: list[Column], right: list[Column]) -> tuple[list[Column], list[str]]:
    columns, texts = [], []
    for side, taken in (("l", left), ("r", right)):
        for column in taken:
            columns.append(b.column(column.kind))
            texts.append(f"{side}.{column.name} AS {columns[-1].name}")
    return columns, texts


def _join(b: Builder) -> None:
    left, right = b.frame(), b.choose(b.frames)
    pairs = _pairs(left, right)
    rows = left.rows * right.rows
    how = b.choose(("inner", "left", "right", "full", "left_semi", "left_anti", "cross"))
    if not pairs or rows // DISTINCT_VALUES > MAX_ROWS:
        return _group(b)
    one, other = b.choose(pairs)
    on = f"l.{one.name} {b.choose(('=', '=', '=', '<=>'))} r.{other.name}"
    if rows < MAX_ROWS and b.chance(6):
        on = f"l.{one.name} {b.choose(('<', '>='))} r.{other.name}"
    else:
        rows //= DISTINCT_VALUES
    if b.chance(3):
        one, other = b.choose(pairs)
        on += f" AND l.{one.name} {b.choose(('<', '<>', '='))} r.{other.name}"
    kept = b.some(left.columns, 1, 5)
    joined = f"{left.name}.alias('l').join({right.name}.alias('r'), F.expr({on!r}), {how!r})"
    if how in ("left_semi", "left_anti"):
        columns, texts = _renamed(b, kept, [])
        rows = left.rows
    else:
        columns, texts = _renamed(b, kept, b.some(right.columns, 1, 4))
        if how == "cross":
            if left.rows * right.rows > MAX_ROWS:
                return _group(b)
            joined, rows = f"{left.name}.alias('l').crossJoin({right.name}.alias('r'))", left.rows * right.rows
    b.make(f"{how} join", f"{joined}.selectExpr({strings(texts)})", columns, rows)
    return None


def _grouping(b: Builder, frame: Frame, most: int = 2) -> tuple[list[Column], list[str]]:
    """Keys and their texts: of values that are equal one and the same is shown."""
    usable = [column for column in frame.columns if column.kind in KEYS]
    columns, texts = [], []
    for column in b.some(usable, 1, most) if usable else []:
        columns.append(b.column("STRING" if column.kind in ("LCASE", "CI") else column.kind))
        texts.append(exact(column))
    return columns, texts


def aggregates(b: Builder, frame: Frame, distinct: bool = True) -> list[tuple[str, str]]:
    """Aggregates whose result no order of the rows can change, but for the last digits of doubles: text and kind."""
    found = [("count(*)", "BIGINT")]
    for column in frame.columns:
        name = column.name
        found.append((f"count({name})", "BIGINT"))
        if column.kind in ("INT", "DECIMAL"):
            found.append((f"sum({name})", "BIGINT" if column.kind == "INT" else "DECIMAL"))
        if column.kind in EXACT and column.kind not in ("STRUCT", "ARRAY"):
            found += [(f"max({name})", column.kind), (f"min({name})", column.kind)]
            if distinct:
                found.append((f"count(DISTINCT {name})", "BIGINT"))
        if column.kind in ("DOUBLE", "FLOAT"):
            # Of one sign: where numbers cancel out, any digit may be among the last.
            found += [(f"max({name}) + 0", column.kind), (f"sum(abs({name}))", ROUNDED), (f"avg(abs({name}))", ROUNDED)]
        if column.kind == "INT":
            found += [
                (f"var_pop({name})", ROUNDED),
                (f"avg(CAST({name} AS BIGINT))", ROUNDED),
                (f"avg(CAST({name} AS DECIMAL(12,2)))", "DECIMAL"),
                (f"sort_array(collect_list({name}))", "ARRAY"),
                (f"sort_array(collect_set({name}))", "ARRAY"),
                (f"sum({name}) FILTER (WHERE {predicate(b.draw, frame.columns)})", "BIGINT"),
            ]
        if column.kind == "BOOLEAN":
            found.append((f"bool_or({name})", "BOOLEAN"))
        if column.kind == "BIGINT":
            found += [(f"bit_xor({name})", "BIGINT"), (f"try_sum({name} % 1000)", "BIGINT")]
    return [b.choose(found) for _ in range(b.draw(st.integers(1, 3)))]


def _named(b: Builder, found: list[tuple[str, str]]) -> tuple[list[Column], list[str]]:
    columns = [b.column(kind) for _, kind in found]
    return columns, [f"{text} AS {column.name}" for (text, _), column in zip(found, columns, strict=True)]


def _group(b: Builder) -> None:
    frame = b.frame()
    keys, texts = _grouping(b, frame)
    columns, listed = _named(b, aggregates(b, frame))
    how = b.choose(("groupBy", "groupBy", "groupBy", "rollup", "cube")) if keys else "groupBy"
    by = ", ".join(f"F.expr({text!r}).alias({key.name!r})" for text, key in zip(texts, keys, strict=True))
    exprs = ", ".join(f"F.expr({text!r})" for text in listed)
    b.make(how, f"{frame.name}.{how}({by}).agg({exprs})", [*keys, *columns], frame.rows // 2)


def _grouping_sets(b: Builder) -> None:
    frame = b.frame()
    keys, texts = _grouping(b, frame, 3)
    if len(keys) < 2:
        return _group(b)
    columns, listed = _named(b, aggregates(b, frame, distinct=False))
    names = [key.name for key in keys]
    sets = b.choose((f"({', '.join(names)}), ({names[0]}), ()", f"({names[0]}), ({names[1]})", f"({names[-1]}), ()"))
    inner = ", ".join(["*", *(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))])
    query = (
        f"SELECT {', '.join([*names, *listed])} FROM (SELECT {inner} FROM {b.view(frame)})"
        f" GROUP BY GROUPING SETS ({sets})"
    )
    b.make("grouping sets", f"spark.sql({query!r})", [*keys, *columns], frame.rows)
    return None


def _window(b: Builder) -> None:
    frame = b.frame()
    order = total_order([c for c in frame.columns if c.kind in ORDERABLE])
    parts = [column.name for column in frame.columns if column.kind in KEYS]
    ints = [column.name for column in frame.columns if column.kind in ("INT", "DECIMAL")]
    if order is None or not order or not parts or any(c.kind not in ORDERABLE for c in frame.columns):
        return _where(b)
    part, key = b.choose(parts), b.choose(parts)
    any_of = b.choose([c for c in frame.columns if c.kind in ORDERABLE])
    options = [
        (f"row_number() OVER (PARTITION BY {part} ORDER BY {order})", "INT"),
        (f"rank() OVER (PARTITION BY {part} ORDER BY {key} DESC NULLS LAST)", "INT"),
        (f"dense_rank() OVER (ORDER BY {key})", "INT"),
        (f"count(*) OVER (PARTITION BY {part})", "BIGINT"),
        (f"lag({any_of.name}) OVER (PARTITION BY {part} ORDER BY {order})", any_of.kind),
        (
            f"count({key}) OVER (PARTITION BY {part} ORDER BY {order} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
            "BIGINT",
        ),
    ]
    options += [(f"sum(abs({c.name})) OVER (PARTITION BY {part})", ROUNDED) for c in frame.of("DOUBLE")]
    if ints:
        options.append((f"max({b.choose(ints)}) OVER (PARTITION BY {part} ORDER BY {key})", "DECIMAL"))
    columns, listed = _named(b, [b.choose(options) for _ in range(b.draw(st.integers(1, 2)))])
    b.make("window", f"{frame.name}.selectExpr({strings(['*', *listed])})", [*frame.columns, *columns], frame.rows)
    if b.chance(2):
        limit = f"{columns[0].name} <= 2" if columns[0].kind in ("INT", "BIGINT") else f"{columns[0].name} IS NOT NULL"
        b.make("where", f"{b.frames[-1].name}.where({limit!r})", b.frames[-1].columns, frame.rows)
    return None


def _set_operation(b: Builder) -> None:
    left, right = b.frame(), b.choose(b.frames)
    method, distinct = b.choose(
        (
            ("unionAll", False),
            ("union", False),
            ("intersect", True),
            ("subtract", True),
            ("exceptAll", True),
            ("intersectAll", True),
            ("unionDistinct", True),
        )
    )
    usable = [column for column in left.columns if not distinct or column.kind in EXACT]
    kinds = [column.kind for column in b.some(usable, 1, 3)] if usable else []
    if not kinds or left.rows + right.rows > MAX_ROWS:
        return _group(b)
    columns = [b.column(kind) for kind in kinds]
    sides = []
    for frame in (left, right):
        texts = []
        for column in columns:
            text = value(b.draw, frame.columns, column.kind)
            # Decimals of any precision meet in one that holds both.
            texts.append(
                f"{text} AS {column.name}"
                if frame.of(column.kind)
                else f"{b.choose(LITERALS[column.kind])} AS {column.name}"
            )
        sides.append(f"{frame.name}.selectExpr({strings(texts)})")
    call = (
        f"{sides[0]}.union({sides[1]}).distinct()" if method == "unionDistinct" else f"{sides[0]}.{method}({sides[1]})"
    )
    b.make(method, call, columns, left.rows + right.rows)
    return None


def _distinct(b: Builder) -> None:
    frame = b.frame()
    usable = [column for column in frame.columns if column.kind in EXACT or column.kind == "DOUBLE"]
    if not usable:
        return _where(b)
    kept = b.some(usable, 1, 4)
    names = ", ".join(repr(column.name) for column in kept)
    b.make("distinct", f"{frame.name}.select({names}).distinct()", kept, frame.rows)
    return None


def _sort(b: Builder) -> None:
    frame = b.frame()
    usable = [column for column in frame.columns if column.kind in EXACT]
    if not usable:
        return _where(b)
    keys = [f"F.{b.choose(('asc', 'desc', 'asc_nulls_last'))}({column.name!r})" for column in b.some(usable, 1, 2)]
    b.make("sort", f"{frame.name}.orderBy({', '.join(keys)})", frame.columns, frame.rows)
    return None


def _top(b: Builder) -> None:
    frame = b.frame()
    usable = [column for column in frame.columns if column.kind in ORDERABLE]
    order = total_order(b.some(usable, 1, 8)) if usable else None
    if order is None:
        return _where(b)
    kept = [column for column in usable if column.name in {key.split(" ")[0] for key in order.split(", ")}]
    names = ", ".join(column.name for column in kept)
    count = b.draw(st.integers(0, 12))
    offset = f" OFFSET {b.draw(st.integers(1, 4))}" if b.chance(4) else ""
    query = f"SELECT {names} FROM {b.view(frame)} ORDER BY {order} LIMIT {count}{offset}"
    b.make("top", f"spark.sql({query!r})", kept, count)
    return None


def _explode(b: Builder) -> None:
    frame = b.frame()
    arrays, maps = frame.of("ARRAY"), frame.of("MAP")
    if (not arrays and not maps) or frame.rows * 2 > MAX_ROWS:
        return _with_column(b)
    column = b.choose([*arrays, *maps])
    kept = [each for each in frame.columns if each is not column]
    how = b.choose(("explode", "explode_outer"))
    if column.kind == "MAP":
        made = [b.column("STRING"), b.column("INT")]
        text = f"{how}({column.name}) AS ({made[0].name}, {made[1].name})"
    else:
        made = [b.column("INT")]
        text = f"{how}({column.name}) AS {made[0].name}"
    b.make(
        "explode",
        f"{frame.name}.selectExpr({strings([*(c.name for c in kept), text])})",
        [*kept, *made],
        frame.rows * 2,
    )
    return None


def _pivot(b: Builder) -> None:
    frame = b.frame()
    ints = frame.of("INT")
    keys, texts = _grouping(b, frame, 1)
    if not ints or not keys:
        return _group(b)
    by, summed = b.choose(ints), b.choose(ints)
    made = [b.column("BIGINT") for _ in range(2)]
    grouped = f"{frame.name}.groupBy(F.expr({texts[0]!r}).alias({keys[0].name!r})).pivot({by.name!r}, [1, 7])"
    b.make(
        "pivot",
        f"{grouped}.agg(F.sum({summed.name!r})).toDF({strings([c.name for c in (keys[0], *made)])})",
        [keys[0], *made],
        frame.rows,
    )
    return None


def _through_files(b: Builder) -> None:
    frame = b.frame()
    columns, by = frame.columns, ""
    spread = schemas.spread_over_files(column.kind for column in columns)
    fmt = "parquet" if spread else b.choose(("parquet", "parquet", "orc"))
    keys = frame.of("INT")
    if keys and len(columns) > 1 and b.chance(3):
        key = b.choose(keys)
        columns, by = [*(column for column in columns if column != key), key], f", {key.name!r}"
    b.make("files", f"inputs.through_files({frame.name}, {fmt!r}{by})", columns, frame.rows)


def _operators() -> tuple[Callable[[Builder], None], ...]:
    from tests.fuzz.functions import PYTHON
    from tests.fuzz.subqueries import SUBQUERIES

    relational = (_select, _with_column, _where, _where, _join, _join, _join, _group, _group, _window, _set_operation)
    rest = (_grouping_sets, _distinct, _sort, _top, _explode, _pivot, _through_files, _through_files)
    return (*relational, *rest, *SUBQUERIES, *PYTHON)


OPERATORS = _operators()
