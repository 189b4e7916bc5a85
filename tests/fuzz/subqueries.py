"""SQL with subqueries and common table expressions."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.expressions import Column, predicate
from tests.fuzz.programs import MAX_ROWS, Builder, Frame


def _sides(b: Builder) -> tuple[Frame, Frame, str, str] | None:
    """Two frames, and a column of the same whole-number kind in each."""
    left, right = b.frame(), b.choose(b.frames)
    mine, others = left.of("INT"), right.of("INT")
    if not mine or not others or left.rows * right.rows > 20 * MAX_ROWS:
        return None
    return left, right, b.choose(mine).name, b.choose(others).name


def _query(b: Builder, op: str, frame: Frame, text: str, extra: list[Column] | None = None) -> None:
    b.make(op, f"spark.sql({text!r})", [*frame.columns, *(extra or [])], frame.rows)


def _plain(b: Builder) -> None:
    frame = b.frame()
    _query(b, "sql", frame, f"SELECT * FROM {b.view(frame)} WHERE {b.filtered(frame)}")


def _scalar(b: Builder) -> None:
    found = _sides(b)
    if found is None:
        return _plain(b)
    left, right, mine, other = found
    inner_view, outer_view = b.view(right), b.view(left)
    column, only = b.column("INT"), predicate(b.draw, right.columns)
    inner = f"SELECT {b.choose(('max', 'min', 'count'))}({other}) FROM {inner_view} WHERE {only}"
    text = f"SELECT *, CAST(({inner}) AS INT) AS {column.name} FROM {outer_view}"
    if b.chance(2):
        text = f"SELECT *, {mine} AS {column.name} FROM {outer_view} WHERE {mine} <= ({inner})"
    return _query(b, "scalar subquery", left, text, [column])


def _correlated(b: Builder) -> None:
    found = _sides(b)
    if found is None:
        return _plain(b)
    left, right, mine, other = found
    column = b.column("BIGINT")
    inner = f"SELECT count(*) FROM {b.view(right)} r WHERE r.{other} = l.{mine}"
    text = f"SELECT l.*, ({inner}) AS {column.name} FROM {b.view(left)} l"
    return _query(b, "correlated subquery", left, text, [column])


def _exists(b: Builder) -> None:
    found = _sides(b)
    if found is None:
        return _plain(b)
    left, right, mine, other = found
    sign = b.choose(("EXISTS", "NOT EXISTS"))
    more = b.choose(("", f" AND r.{other} > 1", f" AND r.{other} < l.{mine} + 3L"))
    inner = f"SELECT 1 FROM {b.view(right)} r WHERE r.{other} = l.{mine}{more}"
    text = f"SELECT * FROM {b.view(left)} l WHERE {sign} ({inner})"
    return _query(b, "exists", left, text)


def _in(b: Builder) -> None:
    found = _sides(b)
    if found is None:
        return _plain(b)
    left, right, mine, other = found
    sign = b.choose(("IN", "NOT IN"))
    inner = f"SELECT {other} FROM {b.view(right)} WHERE {predicate(b.draw, right.columns)}"
    either = f" OR {mine} = 7" if b.chance(4) else ""
    return _query(b, "in subquery", left, f"SELECT * FROM {b.view(left)} WHERE {mine} {sign} ({inner}){either}")


def _common(b: Builder) -> None:
    """A common table expression that is used twice."""
    frame = b.frame()
    ints = frame.of("INT")
    if not ints:
        return _plain(b)
    key, summed = b.choose(ints).name, b.choose(ints).name
    columns = [b.column("INT"), b.column("BIGINT"), b.column("BIGINT")]
    names = [column.name for column in columns]
    text = (
        f"WITH q AS (SELECT {key} AS g, sum({summed}) AS s, count(*) AS n FROM {b.view(frame)} GROUP BY {key})"
        f" SELECT a.g AS {names[0]}, a.s AS {names[1]}, b.n AS {names[2]} FROM q a"
        f" {b.choose(('JOIN', 'LEFT JOIN', 'FULL JOIN'))} q b ON a.g = b.g + 1L"
        f" WHERE {b.choose(('true', 'b.n > 1', 'a.s > 0'))}"
    )
    b.make("cte", f"spark.sql({text!r})", columns, frame.rows)
    return None


SUBQUERIES: tuple[Callable[[Builder], None], ...] = (_plain, _scalar, _correlated, _exists, _in, _common)
