"""Runs in Python workers, around a job's own functions: a row that fails is reported instead of ending the task.

The shim sends this text along with each function, so that workers need nothing installed. It must stand alone.
Reports go to a file of the task on the executor's disk, which the shim looks at with every row that comes back. Its
first 8 bytes say up to where it is written (little-endian); they change before the row's batch is sent.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Function = Callable[..., Any]

MOST = 2000
"""Characters of a value or of a trace that are kept."""

_BY_ROW = """
def wrapped(function, failed):
    row = 0
    def call({parameters}):
        nonlocal row
        row += 1
        try:
            return function({parameters})
        except MemoryError:
            raise
        except Exception as error:
            failed(row, error, ({values}))
    return call
"""


def wrap(command: bytes, settings: str) -> tuple[Any, ...]:
    """What the worker gets in the place of a function: the same, but that rows which fail give None.

    :param command: the function and what belongs to it, pickled by PySpark
    :param settings: JSON: `operator` and `function` by name, `column` (which of the operator's results it is
        for), `kind`, `arity` (-1 where not only positional), `hidden` (how many last arguments are not shown)
    """
    given = json.loads(settings)
    told = pickle.loads(command)
    if type(told).__name__ == "Broadcast":
        told = pickle.loads(told.value)
    function, *rest = told
    failed = Reports(given["operator"], given["function"], given["column"])
    if given["kind"] == "row":
        return by_row(function, failed, given["arity"], given["hidden"]), *rest
    if given["kind"] == "map":
        return by_batch_of_table(function, failed), *rest
    return by_batch(function, failed, getattr(rest[0], "names", None), given["hidden"]), *rest


class Reports:
    """Rows of a task on which a function failed."""

    def __init__(self, operator: str, function: str, column: int) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        folder = Path(os.environ["SPARK_LOCAL_DIRS"].split(",")[0])
        self.path = folder / f"spark-regions-bad-rows-{context.taskAttemptId()}-{operator}"
        self.function = function
        self.column = column

    def __call__(self, row: int, error: BaseException, values: Any) -> None:
        """:param row: which of the operator's rows of this task, from 1"""
        named = values if isinstance(values, dict) else {str(i): value for i, value in enumerate(values)}
        report = {
            "row": row,
            "column": self.column,
            "function": self.function,
            "error": f"{type(error).__name__}: {text_of(error, str)}"[:MOST],
            "trace": "".join(traceback.format_exception(error))[-MOST:],
            "values": {str(name): text_of(value, repr) for name, value in named.items()},
        }
        text = json.dumps(report).encode()
        file = os.open(self.path, os.O_RDWR)
        try:
            end = os.lseek(file, 0, os.SEEK_END)
            written = struct.pack("<i", len(text)) + text
            os.pwrite(file, written, end)
            os.pwrite(file, struct.pack("<q", end + len(written)), 0)
        finally:
            os.close(file)


def text_of(value: Any, by: Callable[[Any], str]) -> str:
    """A value's own text, if it has one: it may be why the function failed."""
    try:
        return by(value)[:MOST]
    except Exception as error:
        return f"<{type(value).__name__}, which has no text: {type(error).__name__}>"


def by_row(function: Function, failed: Function, arity: int, hidden: int = 0) -> Function:
    """Called once a row, in order.

    >>> call = by_row(lambda text: int(text), print, 1)
    >>> [call(text) for text in ("1", "x", "3")]
    2 invalid literal for int() with base 10: 'x' ('x',)
    [1, None, 3]
    """
    parameters = "".join(f"a{i}, " for i in range(arity)) if arity >= 0 else "*args, **kwargs"
    values = "".join(f"a{i}, " for i in range(arity - hidden)) if arity >= 0 else "*args, *kwargs.values()"
    scope: dict[str, Any] = {}
    exec(_BY_ROW.format(parameters=parameters, values=values), scope)
    wrapped: Function = scope["wrapped"](function, failed)
    return wrapped


def size(batch: Any) -> int:
    """Rows of a pandas or Arrow value."""
    return int(getattr(batch, "num_rows", None) or len(batch))


def part(batch: Any, start: int, stop: int) -> Any:
    """Some rows of a pandas or Arrow value."""
    return batch.iloc[start:stop] if hasattr(batch, "iloc") else batch.slice(start, stop - start)


def by_batch(function: Function, failed: Function, names: list[str] | None, hidden: int = 0) -> Function:
    """Called with columns of many rows. Of a batch that fails, halves are tried, until single rows are left over.

    :param names: of the fields, where the result is a struct
    """
    before = 0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal before
        rows = size(args[0] if args else next(iter(kwargs.values())))
        before += rows
        try:
            return function(*args, **kwargs)
        except MemoryError:
            raise
        except Exception as error:
            if rows == 0:
                raise
            return joined(list(halves(args, kwargs, error, 0, rows, before - rows)), names)

    def halves(args: Any, kwargs: Any, error: Exception, start: int, stop: int, first: int) -> Iterator[Any]:
        if stop - start == 1:
            shown = (*args[: len(args) - hidden], *kwargs.values())
            values = [part(each, start, stop) for each in shown]
            failed(first + stop, error, [list(one) if not hasattr(one, "columns") else one for one in values])
            yield None
            return
        middle = (start + stop) // 2
        for low, high in ((start, middle), (middle, stop)):
            few = [part(each, low, high) for each in args]
            named = {name: part(each, low, high) for name, each in kwargs.items()}
            try:
                yield function(*few, **named)
            except MemoryError:
                raise
            except Exception as inner:
                yield from halves(args, kwargs, inner, low, high, first)

    return call


def joined(parts: list[Any], names: list[str] | None) -> Any:
    """One value of the results of parts, where None stands for one row without a value."""
    found = [each for each in parts if each is not None]
    if found and hasattr(found[0], "type"):
        import pyarrow

        kind = found[0].type
        return pyarrow.concat_arrays([pyarrow.nulls(1, kind) if each is None else each for each in parts])
    import pandas

    known = (pandas.Series, pandas.DataFrame)
    found = [each if isinstance(each, known) else pandas.Series(each) for each in found]
    if names is None:
        nothing: Any = missing(found[0]) if found else pandas.Series([None], dtype=object)
    elif found:
        nothing = pandas.DataFrame({name: missing(found[0][name]) for name in found[0].columns})
    else:
        nothing = pandas.DataFrame([[None] * len(names)], columns=names, dtype=object)
    each = iter(found)
    return pandas.concat([nothing if one is None else next(each) for one in parts], ignore_index=True)


def missing(column: Any) -> Any:
    """One row without a value, of the type of a column: a time must stay one, and a number keep its digits."""
    one = column.iloc[:1].reset_index(drop=True)
    return (one.astype(object) if one.dtype.kind in "iub" else one).reindex([1])


def by_batch_of_table(function: Function, failed: Function) -> Function:
    """Called with an iterator of batches. After one that fails it is called anew, for parts of that, then for the rest.

    What came of a batch is held until the batch is known to be whole.
    """

    def call(batches: Iterable[Any]) -> Iterator[Any]:
        source = iter(batches)
        waiting: list[Any] = []
        while True:
            current: Any = None
            broken = False

            def feed() -> Iterator[Any]:
                nonlocal current, broken
                while True:
                    try:
                        current = waiting.pop() if waiting else next(source)
                    except StopIteration:
                        current = None
                        return
                    except BaseException:
                        broken = True
                        raise
                    yield current

            held: list[Any] = []
            of: Any = None
            try:
                for result in function(feed()):
                    if of is not current:
                        yield from held
                        held.clear()
                    of = current
                    held.append(result)
                yield from held
                return
            except MemoryError:
                raise
            except Exception as error:
                if broken or current is None or size(current) == 0:
                    raise
                if of is not current:
                    yield from held
                yield from halves(current, error, 0, size(current))
            following = next(source, None)
            if following is None:
                return
            waiting.append(following)

    def halves(batch: Any, error: Exception, start: int, stop: int) -> Iterator[Any]:
        if stop - start == 1:
            one = part(batch, start, stop)
            rows = one.to_dict("records") if hasattr(one, "iloc") else one.to_pylist()
            failed(0, error, rows[0])
            return
        middle = (start + stop) // 2
        for low, high in ((start, middle), (middle, stop)):
            try:
                results = list(function(iter([part(batch, low, high)])))
            except MemoryError:
                raise
            except Exception as inner:
                yield from halves(batch, inner, low, high)
            else:
                yield from results

    return call
