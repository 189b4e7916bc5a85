"""`control`: pause what runs, look into it, and stop it at breakpoints."""

from __future__ import annotations

import getpass
import inspect
import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from spark_regions.errors import ControlError, NotActiveError
from spark_regions.spark import jvm
from spark_regions.spark.session import ABSENT, ABSENT_HINT

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

WAIT_SECONDS = 5.0


def myself() -> str:
    """Who gives commands, where no name is given."""
    return f"{getpass.getuser()}@{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class PausedTasks:
    """`standing`: tasks that stand. `running`: those that do not stand yet, with what each does."""

    standing: int
    running: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        lines = [f"{self.standing} tasks stand"]
        lines += [
            f"stage {task['stage']}, partition {task['partition']}, attempt {task['attempt']} still runs: {task['why']}"
            for task in self.running
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TaskRows:
    """One task at an operator.

    `stands`: it does nothing. `at`: the operator before whose next row it stands. `row`: that row, as Spark shows
    values, redacted. `memory`: bytes of what holds rows in the task.
    """

    stage: int
    partition: int
    attempt: int
    executor: str
    rows: int
    stands: bool
    at: str
    row: dict[str, str]
    memory: dict[str, int]
    stack: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunningOperator:
    """An operator of a query that runs.

    `rows`: that it has given, in tasks that have ended well and in those that run. `rows_in`: that it was given, where
    the operators below are counted; None where none is. `columns`: name and type of what it gives. `sizes`: if asked
    for, of all its tasks, such as `peak memory`, `spill size`, `data size` and `size of files read`, as Spark has them
    from the last heartbeat of each executor; some are told once an operator has all of its rows.
    """

    name: str
    query: int
    detail: str
    rows: int
    rows_in: int | None
    columns: dict[str, str]
    sizes: dict[str, str]
    tasks: tuple[TaskRows, ...]

    def __str__(self) -> str:
        came = "" if self.rows_in is None else f" of {self.rows_in:,}"
        return f"{self.name}: {self.rows:,}{came} rows, {len(self.tasks)} tasks  {self.detail[:100]}"


class RunningJob:
    """What runs in an application: all of its queries.

    Commands raise `ControlError` where they cannot be done, with what was expected. The first who commands is in
    control; others are refused until they `take_over`.
    """

    def __init__(self, ask: Callable[[dict[str, Any], float], dict[str, Any]], by: str) -> None:
        self._ask = ask
        self.by = by

    def _answer(self, command: str, seconds: float = WAIT_SECONDS, **fields: Any) -> dict[str, Any]:
        answer = self._ask({"command": command, "by": self.by} | fields, seconds)
        if "error" in answer:
            raise ControlError(answer["error"])
        return answer

    def pause(self, seconds: float = WAIT_SECONDS) -> PausedTasks:
        """Returns once every running task stands, or after `seconds`; tasks that start meanwhile stand at once.

        What goes on after `spark.regions.control.pauseTimeout` goes on by itself.
        """
        answer = self._answer("pause", seconds)
        return PausedTasks(answer["standing"], tuple(answer["running"]))

    def resume(self) -> None:
        """Rows at breakpoints pass, but those that were answered; bad rows need an answer."""
        self._answer("resume")

    @property
    def state(self) -> dict[str, Any]:
        """`paused`, `breakpoints`, `held` (rows that wait), `controller`, and in `note` why it was paused."""
        answer = self._answer("state")
        return {**answer["state"], "note": answer["note"]}

    @property
    def paused(self) -> bool:
        return bool(self.state.get("paused", False))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows at which tasks stand: at breakpoints, or bad ones under `spark.regions.control.onBadRow=pause`.

        Each has the `name` that answers take, `operator`, `why` and `values`; a bad one has its `error`. `types` are
        those of what can be fixed, and `nullable` says whether `null` is an answer.
        """
        return [_row(row) for row in self.state.get("held", ()) if not row.get("going", False)]

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The latest rows that went on, as in `rows`, with the `answer` and the values that were `fixed`."""
        return [
            _row(row) | {"answer": row["answer"], "fixed": row.get("fixed", {})}
            for row in self.state.get("answered", ())
        ]

    def operators(self, sizes: bool = False) -> list[RunningOperator]:
        """What each operator of the running queries has given so far, and what its tasks do.

        :param sizes: also asks Spark for the bytes that the operators read, hold and spill
        """
        answer, held = self._answer("operators"), self._answer("sizes")["sizes"] if sizes else {}
        tasks, found = answer["tasks"], answer["operators"]
        rows = {each["id"]: each["passed"] + _passed(tasks, each["id"]) for each in found}
        return [
            RunningOperator(
                name=each["name"],
                query=each["query"],
                detail=each["detail"],
                rows=rows[each["id"]],
                rows_in=sum(rows[below] for below in each["inputs"]) if each["inputs"] else None,
                columns=dict(each["columns"]),
                sizes=dict(held.get(str(each["id"]), {})),
                tasks=tuple(_task(task, each["id"]) for task in tasks if str(each["id"]) in task["rows"]),
            )
            for each in found
        ]

    def python_workers(self) -> dict[str, dict[int, bool]]:
        """By executor, processes of Python workers, and whether each is stopped."""
        found = self._answer("operators")["python"]
        return {
            executor: {int(pid): bool(stopped) for pid, stopped in each.items()} for executor, each in found.items()
        }

    def break_when(self, operator: str, condition: str, then: str = "ask") -> int:
        """Stop at rows of an operator, from now on; returns the breakpoint's number.

        :param operator: a name of `operators()`
        :param condition: SQL over its columns, for each row; or `count(*) = 1000` or `sum(likes) >= 500`, of all its
            rows together: then everything stands before the next one
        :param then: `ask` (everything stands until `resume`), `skip` the row, or `fail` the query
        """
        state = self._answer("break", operator=operator, condition=condition, action=then)["state"]
        return max(int(each["number"]) for each in state["breakpoints"])

    def clear(self, number: int) -> None:
        """Remove a breakpoint."""
        self._answer("clear", number=number)

    def skip(self, row: str) -> None:
        """Leave out a row that waits, once resumed. Nothing that is computed after that is stored for others."""
        self._answer("answer", row=row, action="skip")

    def null(self, row: str) -> None:
        """Let what failed on a bad row be null, once resumed. Nothing computed after that is stored for others."""
        self._answer("answer", row=row, action="null")

    def fix(self, row: str, value: Any) -> None:
        """Give what failed on a bad row another value, once resumed. Nothing after that is stored for others.

        :param value: of its type in `rows`, or its text in SQL; None is NULL. Of a line of CSV or JSON values by
            column, as `{"followers": 0}`
        """
        values = value if isinstance(value, dict) else {"": value}
        texts = {name: None if each is None else _text(each) for name, each in values.items()}
        self._answer("answer", row=row, action="fix", values=texts)

    def fail(self, row: str) -> None:
        """End the query at a row that waits, once resumed; a bad one with its error, as plain Spark."""
        self._answer("answer", row=row, action="fail")

    def set(self, name: str, value: Any) -> None:
        """Compute the rows to come with another value of a parameter. Nothing after that is stored for others.

        :param name: of a `param`
        """
        self._answer("set", name=name, value=_text(value))

    @property
    def params(self) -> dict[str, str]:
        """Values of all `param`s of the application's queries so far, as Spark shows them."""
        return {name: each["value"] for name, each in self._answer("state")["params"].items()}

    def replace(self, name: str, function: Callable[..., Any]) -> None:
        """Compute the rows to come with another Python function; columns of many rows from each task's next batch on.
        Nothing after that is stored for others.

        It has to give what the other one gives, of the same type. Workers get it pickled, as Spark's own. For the
        driver's own program: the permission to end queries in the UI is none to run code. Queries that started with
        `spark.regions.control.replaceFunctions=true` follow.

        :param name: of a function of `functions`
        """
        from pyspark import cloudpickle

        other = getattr(function, "func", function)
        if not callable(other):
            raise ControlError(f"Found {function!r}, expected a function in the place of {name}.")
        expected = self.functions.get(name)
        if expected is not None:
            try:
                inspect.signature(other).bind(*range(expected))
            except TypeError as error:
                raise ControlError(
                    f"Found a function that cannot be called with {expected} arguments ({error}), expected one in the "
                    f"place of {name}."
                ) from None
            except ValueError:  # one that has no signature
                pass
        try:
            code = cloudpickle.dumps(other)  # type: ignore[no-untyped-call]
        except Exception as error:
            raise ControlError(f"Found a function that cannot be sent to workers: {error}") from error
        self._answer("replace", name=name, code=code)

    @property
    def functions(self) -> dict[str, int]:
        """Python functions of the application's queries so far that can be replaced, with the number of arguments."""
        return dict(self._answer("state")["functions"])

    @property
    def changes(self) -> list[dict[str, Any]]:
        """From which `row` on, of those that it computes with the parameter, each task took which `value`; of a
        function, whose `name` ends with `()`, which replacement.

        `replayed`: there an earlier attempt of the task took it. `reason`: why an attempt takes what holds from its
        first row on, and not what an earlier one took.
        """
        return list(self._answer("state")["changes"])

    def take_over(self) -> None:
        """Who was in control is refused from now on."""
        self._answer("takeover")

    def leave(self) -> None:
        """Anybody may command next."""
        self._answer("leave")


def control(spark: SparkSession, name: str | None = None) -> RunningJob:
    """What runs in the application of `spark`; give commands from another thread than the one that runs the query.

    :param name: of who gives commands, for messages to others

    Errors: `NotActiveError` where the session runs without the plugin, `ControlError` for Spark Connect.
    """
    if not jvm.is_classic(spark):
        raise ControlError(
            "Found a Spark Connect session, expected one of the driver's own process. Hint: spark-regions debug URL"
        )

    def ask(command: dict[str, Any], seconds: float) -> dict[str, Any]:
        if spark.sparkContext._jsc is None:
            raise ControlError("Found an application that has ended, expected one that runs. Hint: start it again.")
        code = command.pop("code", None)
        answer = jvm.control_json(spark, json.dumps(command), seconds, code)
        if answer is None:
            raise NotActiveError(f"{ABSENT} Hint: {ABSENT_HINT}")
        return dict(json.loads(answer))

    return RunningJob(ask, name or myself())


def param(name: str, default: bool | int | float | str | Decimal | date) -> Column:
    """A value that `control(spark).set` changes while queries run; else, and where the plugin is off, the default.

    A filter on it reads all rows: it is neither pushed into scans nor used to leave out partitions. A join's condition
    cannot have one. In SQL, also of Spark Connect: `spark_regions_param('name', 0.8D)`.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = SparkSession.active()
    if not jvm.is_classic(spark) or jvm.api(spark) is None:
        return F.lit(default)
    return F.call_function("spark_regions_param", F.lit(name), F.lit(default)).alias(name)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    attempt = row["attempt"]
    return {
        "name": f"{attempt['stage']}.{attempt['partition']}.{attempt['number']}",
        **{key: row[key] for key in ("operator", "ordinal", "why", "values")},
        **{key: row.get(key, empty) for key, empty in (("error", ""), ("types", {}), ("nullable", False))},
    }


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:f}" if isinstance(value, Decimal) else str(value)


def _passed(tasks: list[dict[str, Any]], probe: int) -> int:
    return sum(int(task["rows"].get(str(probe), 0)) for task in tasks)


def _task(task: dict[str, Any], probe: int) -> TaskRows:
    return TaskRows(
        stage=task["stage"],
        partition=task["partition"],
        attempt=task["attempt"],
        executor=task["executor"],
        rows=int(task["rows"][str(probe)]),
        stands=task["stands"],
        at=task["at"],
        row=dict(task["row"]),
        memory=dict(task["memory"]),
        stack=tuple(task["stack"]),
    )
