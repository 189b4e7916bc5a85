"""The command tree. Each command's work is in a file of its own, loaded when it runs."""

from __future__ import annotations

import json
import sys

import click

from spark_regions import conf
from spark_regions._version import __version__
from spark_regions.cli.advise import advise
from spark_regions.cli.cache import cache
from spark_regions.cli.calibrate import calibrate
from spark_regions.cli.debug import debug
from spark_regions.cli.doctor import doctor
from spark_regions.cli.graph import graph
from spark_regions.cli.plan import plan
from spark_regions.cli.platforms import platforms
from spark_regions.cli.report import report
from spark_regions.cli.skew import skew
from spark_regions.errors import RegionsError
from spark_regions.spark.jar import jar_path


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spark-regions")
def commands() -> None:
    """Stores and reuses intermediate results of unchanged Spark jobs."""


@commands.command()
def jar() -> None:
    """Print the path of the shim's jar, and nothing else."""
    click.echo(jar_path())


@commands.command("conf")
@click.option("--markdown", is_flag=True, help="The page docs/configuration.md.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def show_confs(markdown: bool, as_json: bool) -> None:
    """All spark.regions.* keys."""
    if markdown:
        click.echo(conf.markdown(), nl=False)
    elif as_json:
        fields = ("key", "kind", "default", "when", "doc")
        click.echo(json.dumps([{field: getattr(known, field) for field in fields} for known in conf.CONFS], indent=2))
    else:
        for known in conf.CONFS:
            click.echo(f"{known.key} = {known.default or '(empty)'}  [{known.expected}; {known.when}]\n    {known.doc}")


commands.add_command(advise)
commands.add_command(cache)
commands.add_command(calibrate)
commands.add_command(debug)
commands.add_command(doctor)
commands.add_command(graph)
commands.add_command(plan)
commands.add_command(platforms)
commands.add_command(report)
commands.add_command(skew)


def main() -> None:
    try:
        commands(prog_name="spark-regions")
    except RegionsError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
