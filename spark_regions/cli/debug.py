"""`debug`: a terminal for what runs in an application, through its Spark UI."""

from __future__ import annotations

import getpass
import json
import shlex
import socket
import time
import urllib.error
import urllib.request
from typing import Any

import click

from spark_regions.errors import ControlError
from spark_regions.spark.running_job import RunningJob

PORTS = range(4040, 4056)
ANSWER_SECONDS = 30.0
WATCH_SECONDS = 1.0
HELP = """list                          operators of running queries, with their rows
pause                         all tasks stand
resume                        they go on; rows at breakpoints pass unless answered, bad rows need an answer
inspect                       sizes of operators; what each task does, its next row and its memory
break OPERATOR CONDITION [skip|fail]
                              stop at a row, at count(*) = N rows, or at sum(EXPRESSION) >= N
clear NUMBER                  remove a breakpoint
rows                          rows that wait, at breakpoints or bad ones
skip ROW, fail ROW            what becomes of one, once resumed
null ROW, fix ROW VALUE       the same of what failed on a bad row
fix ROW COLUMN=VALUE ...      the same of a line of CSV or JSON, by column
answers                       what became of rows so far
params                        values that can be changed
set NAME VALUE                change one, for the rows to come
changes                       at which row each task took a value
watch [SECONDS]               list, again and again
take-over                     from who is in control
leave                         let others"""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("application")
@click.argument("command", nargs=-1)
def debug(application: str, command: tuple[str, ...]) -> None:
    """Pause, look into and stop the queries of a running APPLICATION.

    APPLICATION is the URL of its Spark UI, or its id or name if that is on this machine. Without COMMAND, commands are
    read line by line; `help` lists them. The application needs spark.regions.control.enabled=true.
    """
    url = found(application)
    job = RunningJob(lambda asked, seconds: posted(url, asked, seconds), f"{getpass.getuser()}@{socket.gethostname()}")
    if command:
        done(job, list(command))
        return
    click.echo(f"{url}: help lists commands, quit ends")
    while (line := _line()) not in ("quit", "exit"):
        try:
            done(job, shlex.split(line))
        except (ControlError, ValueError) as error:
            click.echo(f"error: {error}", err=True)


def _line() -> str:
    try:
        return str(click.prompt("debug", prompt_suffix="> ", default="", show_default=False)).strip()
    except click.Abort:
        return "quit"


def done(job: RunningJob, words: list[str]) -> None:
    """One command; prints what it gives."""
    match words:
        case []:
            pass
        case ["help"]:
            click.echo(HELP)
        case ["list"]:
            click.echo(listed(job))
        case ["pause"]:
            click.echo(str(job.pause()))
        case ["resume"]:
            job.resume()
            click.echo("resumed")
        case ["inspect"]:
            click.echo(inspected(job))
        case ["break", operator, condition, *then] if len(then) <= 1:
            click.echo(f"breakpoint {job.break_when(operator, condition, *then)}")
        case ["clear", number] if number.isdigit():
            job.clear(int(number))
            click.echo(f"breakpoint {number} is gone")
        case ["rows"]:
            click.echo("\n".join(_row(row) for row in job.rows) or "no row waits")
        case ["skip" | "null" | "fail" as action, row]:
            {"skip": job.skip, "null": job.null, "fail": job.fail}[action](row)
            click.echo(f"{row}: {action}, once resumed")
        case ["fix", row, *values] if values:
            job.fix(row, _values(job, row, values))
            click.echo(f"{row}: fix, once resumed")
        case ["answers"]:
            click.echo("\n".join(f"{_row(row)}\n  {_became(row)}" for row in job.answers) or "no row went on")
        case ["params"]:
            click.echo("\n".join(f"{name} = {value}" for name, value in job.params.items()) or "no query has any")
        case ["set", name, value]:
            job.set(name, value)
            click.echo(f"{name} = {job.params[name]}")
        case ["changes"]:
            click.echo("\n".join(map(_change, job.changes)) or "no task took another value")
        case ["watch", *seconds] if len(seconds) <= 1:
            _watch(job, float(seconds[0]) if seconds else WATCH_SECONDS)
        case ["take-over"]:
            job.take_over()
            click.echo(f"{job.by} is in control")
        case ["leave"]:
            job.leave()
            click.echo("nobody is in control")
        case _:
            raise ControlError(f"Found {shlex.join(words)!r}, expected a command. Hint: help lists them")


def listed(job: RunningJob) -> str:
    state = job.state
    lines = ["paused" if state.get("paused") else "running"]
    lines += [f"  {state['note']}"] if state["note"] else []
    lines += [f"  query {each.query}  {each}" for each in job.operators()] or ["  no query runs"]
    for point in state.get("breakpoints", ()):
        sql, target = point.get("sql", ""), point.get("target", 0)
        condition = sql if not target else f"sum({sql}) >= {target}" if sql else f"count(*) = {target}"
        lines.append(f"  breakpoint {point['number']}: {point['operator']} when {condition}, then {point['action']}")
    waiting = len(job.rows)
    lines += [f"  rows that wait: {waiting}"] if waiting else []
    return "\n".join(lines)


def inspected(job: RunningJob) -> str:
    lines: list[str] = []
    operators = job.operators(sizes=True)
    for each in operators:
        known = ", ".join(f"{name} {size}" for name, size in sorted(each.sizes.items()))
        lines += [f"{each.name} of query {each.query}: {known}"] if known else []
    tasks = {task.attempt: task for each in operators for task in each.tasks}
    for task in sorted(tasks.values(), key=lambda each: each.attempt):
        place = f"before a row of {task.at}" if task.row else f"at {task.at}" if task.at else "between operators"
        what = f"stands {place}" if task.stands else f"runs: {next(iter(task.stack), '')}"
        lines.append(
            f"stage {task.stage}, partition {task.partition}, attempt {task.attempt}, executor {task.executor}: {what}"
        )
        lines += [f"  {column} = {value}" for column, value in task.row.items()]
        lines += [f"  {size:,} bytes in {holder}" for holder, size in task.memory.items()]
    for executor, workers in job.python_workers().items():
        lines += [f"Python worker {pid} of {executor}: {'stopped' if on else 'runs'}" for pid, on in workers.items()]
    return "\n".join(lines) or "no task runs"


def _row(row: dict[str, Any]) -> str:
    values = "".join(f"\n  {column} = {value}" for column, value in row["values"].items())
    kind = "bad row" if row["error"] else "row"
    error = f": {row['error']}" if row["error"] else ""
    return f"{row['name']}: {kind} {row['ordinal']:,} of {row['operator']}, {row['why']}{error}{values}"


def _became(row: dict[str, Any]) -> str:
    fixed = [f"{name} = {'NULL' if value is None else value}" for name, value in row["fixed"].items()]
    return f"{row['answer']}: {', '.join(fixed)}" if fixed else str(row["answer"])


def _values(job: RunningJob, row: str, words: list[str]) -> Any:
    """One value, or values by column where the row has columns of such names; `COLUMN=NULL` is no value."""
    types: dict[str, str] = next((each["types"] for each in job.rows if each["name"] == row), {})
    named = [word.partition("=") for word in words]
    if len(words) == 1 and named[0][0] not in types:
        return words[0]
    return {name: None if value == "NULL" else value for name, _, value in named}


def _change(change: dict[str, Any]) -> str:
    how = ", as an earlier attempt did" if change["replayed"] else ""
    why = f" ({change['reason']})" if change["reason"] else ""
    return (
        f"stage {change['stage']}, partition {change['partition']}, attempt {change['attempt']}: "
        f"{change['name']} = {change['value']} from row {change['row']:,} on{how}{why}"
    )


def _watch(job: RunningJob, seconds: float) -> None:
    """Until Ctrl-C."""
    try:
        while True:
            click.echo(listed(job))
            time.sleep(seconds)
    except KeyboardInterrupt:
        click.echo("")


def found(application: str) -> str:
    """The URL of an application's UI."""
    if "://" in application:
        return application.rstrip("/")
    known: dict[str, str] = {}
    for port in PORTS:
        url = f"http://localhost:{port}"
        try:
            with urllib.request.urlopen(f"{url}/api/v1/applications", timeout=2) as answer:
                for each in json.load(answer):
                    known |= {each["id"]: url, each["name"]: url}
        except (OSError, ValueError):
            continue
    if application not in known:
        raise ControlError(
            f"Found no application {application!r} on this machine, expected one of {', '.join(known) or 'none'}. "
            "Hint: give the URL of its Spark UI, such as http://host:4040"
        )
    return known[application]


def posted(url: str, command: dict[str, Any], seconds: float) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{url}/regions/control/?seconds={seconds}",
        data=json.dumps(command).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds + ANSWER_SECONDS) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode(errors="replace")
        # Nothing is there, or pages of ours that only show.
        if error.code in (404, 405):
            raise ControlError(
                f"Found no control at {url}, expected spark.regions.control.enabled=true. Hint: --conf "
                "spark.regions.control.enabled=true when the application starts"
            ) from None
        try:
            return dict(json.loads(text))
        except ValueError:
            raise ControlError(f"Found HTTP {error.code} at {url}, expected an answer. Hint: {text[:200]}") from None
    except (OSError, ValueError) as error:
        raise ControlError(
            f"Found nobody at {url} ({error}), expected the Spark UI of a running application. Hint: it may have ended"
        ) from None
