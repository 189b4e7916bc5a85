"""Python and pandas functions; what they do is in the prelude."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.fuzz.expressions import Column
from tests.fuzz.programs import Builder


def _scalar(b: Builder) -> None:
    frame = b.frame()
    ints, texts = frame.of("INT"), frame.of("STRING")
    made = b.column("INT")
    if not ints:
        return
    one = b.choose(ints).name
    call = f"plain_udf({b.draw(st.integers(1, 3))})({one!r})"
    match b.draw(st.integers(0, 3)):
        case 1 if texts:
            made, call = Column(made.name, "STRING"), f"tagged({b.choose(texts).name!r}, {one!r})"
        case 2:
            made, call = Column(made.name, "ARRAY"), f"digits({one!r})"
        case 3:
            made, call = Column(made.name, "BIGINT"), f"halved({one!r})"
    b.make("udf", f"{frame.name}.withColumn({made.name!r}, {call})", [*frame.columns, made], frame.rows)
    return


def _pandas(b: Builder) -> None:
    frame = b.frame()
    ints = frame.of("INT")
    if not ints:
        return
    key, other = b.choose(ints).name, b.choose(ints).name
    first, second = b.column("INT"), b.column("BIGINT")
    pair = f"{frame.name}.selectExpr({f'{key} AS {first.name}'!r}, {f'CAST({other} AS BIGINT) AS {second.name}'!r})"
    match b.draw(st.integers(0, 2)):
        case 0:
            call = f"{pair}.groupBy({first.name!r}).agg(spread({second.name!r}).alias({second.name!r}))"
            b.make("pandas aggregate", call, [first, second], frame.rows)
        case 1:
            third = b.column("BIGINT")
            schema = f"{first.name} INT, {second.name} BIGINT, {third.name} BIGINT"
            call = f"{pair}.groupBy({first.name!r}).applyInPandas(counted, {schema!r})"
            b.make("grouped map", call, [first, second, third], frame.rows)
        case _:
            call = f"{pair}.mapInPandas(even_only, {f'{first.name} INT, {second.name} BIGINT'!r})"
            b.make("map in pandas", call, [first, second], frame.rows)
    return


PYTHON: tuple[Callable[[Builder], None], ...] = (_scalar, _pandas)
