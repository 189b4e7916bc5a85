"""Pages that say what the code says: run by `make docs`, compared by the tests.

python docs/generate.py [FOLDER]
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from spark_regions import conf
from spark_regions.cli.commands import commands
from spark_regions.platforms import duckdb
from spark_regions.platforms.duckdb.operators import OPERATORS
from spark_regions.reasons import SECTIONS

HERE = Path(__file__).resolve().parent


def pages() -> dict[str, str]:
    """Each generated page by its file name."""
    return {
        "configuration.md": conf.markdown(),
        "cli.md": cli(),
        "refusals.md": refusals(),
        "operators.md": operators(),
        "platforms.md": platforms(),
    }


def cli() -> str:
    """Every command with its help, arguments and options."""
    parts = [
        "# Command line\n\nGenerated from the commands themselves; do not edit. `python -m spark_regions` is the same "
        "as `spark-regions`.\n"
    ]
    return "\n".join([*parts, *walk("spark-regions", commands)])


def walk(name: str, command: click.Command) -> Iterator[str]:
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    usage = " ".join([name, *((argument.name or "").upper() for argument in arguments)])
    mark = "#" * (name.count(" ") + 2)
    yield f"{mark} {name}\n\n`{usage}`\n\n{inspect.cleandoc(command.help or '')}\n"
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        yield "| option | meaning |\n|---|---|\n" + "".join(map(row, options))
    if isinstance(command, click.Group):
        for each in sorted(command.commands):
            yield from walk(f"{name} {each}", command.commands[each])


def row(option: click.Option) -> str:
    names = ", ".join(f"`{each}`" for each in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" {option.type.name.upper()}" if not choices(option) else f" {choices(option)}"
    default = f" Default: `{option.default}`." if option.show_default else ""
    return f"| {names}{value} | {option.help or ''}{default} |\n".replace("|  |", "| |")


def choices(option: click.Option) -> str:
    found = option.type
    return " ".join(f"`{each}`" for each in found.choices) if isinstance(found, click.Choice) else ""


def refusals() -> str:
    """What is never done, and every reason code with its sentence."""
    rows = [
        f"## {title}\n\n| code | meaning |\n|---|---|\n"
        + "".join(f"| `{code}` | {text} |\n" for code, text in codes.items())
        for title, codes in SECTIONS.items()
    ]
    return "\n".join([(HERE / "never.txt").read_text(encoding="utf-8"), *rows])


def operators() -> str:
    """What data science asks of Spark, by the cells that the tests run: a title, and a code where it is refused."""
    cells = ("\n" + (HERE.parent / "tests" / "fixtures" / "operators.txt").read_text(encoding="utf-8")).split("\n%% ")[
        1:
    ]
    rows = []
    for cell in cells:
        title, _, source = cell.partition("\n")
        refused = source.partition('\nrefused = "')[2].partition('"')[0]
        rows.append(f"| {title} | {f'refused: `{refused}`' if refused else 'yes'} |\n")
    return (HERE / "operators.txt").read_text(encoding="utf-8") + "".join(rows)


def platforms() -> str:
    """What another engine has of Spark's operators and expressions."""
    rows = [
        f"| `{each.kind}` | {each.family} | {_cell(each.args)} | {_cell(each.why)} |\n" for each in duckdb.EQUIVALENTS
    ]
    operators = f"Operators: {', '.join(f'`{each}`' for each in sorted(OPERATORS))}.\n\n"
    head = "| expression | family | of | why it is equal |\n|---|---|---|---|\n"
    return "".join([(HERE / "platforms.txt").read_text(encoding="utf-8"), operators, head, *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(folder: Path = HERE) -> None:
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
