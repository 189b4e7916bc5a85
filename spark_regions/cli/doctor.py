"""`spark-regions doctor`: everything that has to work, each tried for real."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import click

from spark_regions._version import __version__
from spark_regions.cli.planner_probe import probe
from spark_regions.cli.stores import StoreOptions, at_store
from spark_regions.cli.text import size, with_progress
from spark_regions.errors import RegionsError, StoreError
from spark_regions.progress import bar
from spark_regions.reasons import sentence
from spark_regions.spark.jar import jar_path, jar_version

_HINT_JAVA = "Hint: install a JDK 17 and set JAVA_HOME"


class Check(NamedTuple):
    name: str
    passed: bool
    text: str


@click.command()
@at_store
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@with_progress
def doctor(location: StoreOptions, as_json: bool, progress: bool | None) -> None:
    """Check Python, Java, PySpark, the jar, the planner and the store; exit code 1 if a check fails."""
    checks = list(_watched(run_checks(location), progress))
    if as_json:
        click.echo(json.dumps([check._asdict() for check in checks], indent=2))
    else:
        for check in checks:
            mark = click.style("ok  ", fg="green") if check.passed else click.style("FAIL", fg="red")
            click.echo(f"{mark} {check.name}: {check.text}")
    if not all(check.passed for check in checks):
        sys.exit(1)


def _watched(checks: Iterator[Check], wanted: bool | None) -> Iterator[Check]:
    """The checks behind a bar: starting the planner and measuring the disk take their time."""
    with bar("checking", None, wanted) as moved:
        for check in checks:
            moved(1)
            yield check


def run_checks(location: StoreOptions) -> Iterator[Check]:
    steps: tuple[tuple[str, Callable[[], str]], ...] = (
        ("python", _python),
        ("java", _java),
        ("pyspark", _pyspark),
        ("jar", _jar),
        ("planner", lambda: _planner(location)),
        ("store", lambda: _store(location)),
        ("catalog", lambda: _catalog(location)),
        ("disk", lambda: _disk(location)),
    )
    for name, step in steps:
        try:
            yield Check(name, True, step())
        except RegionsError as error:
            yield Check(name, False, str(error))


def _python() -> str:
    return f"{sys.version.split()[0]} at {sys.executable}"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        raise RegionsError(f"no java at {java or 'any place of PATH'}. {_HINT_JAVA}")
    result = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)[^"]*"', result.stderr + result.stdout)
    if version is None or int(version[1]) < 17:
        raise RegionsError(f"{java} is {version[0] if version else 'no Java'}, 17 or newer is needed. {_HINT_JAVA}")
    return f"{version[0]} at {java}"


def _pyspark() -> str:
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise RegionsError("not installed. Hint: pip install 'pyspark>=4.3,<4.4'") from None
    if not version.startswith("4.3."):
        raise RegionsError(f"{version}, a 4.3 is needed. Hint: pip install 'pyspark>=4.3,<4.4'")
    return version


def _jar() -> str:
    jar = jar_path()
    version = jar_version(jar)
    if version != __version__:
        raise RegionsError(
            f"{jar} is of version {version}, the package of {__version__}. Hint: reinstall, or `make jar`"
        )
    return f"{version} at {jar}"


def _planner(location: StoreOptions) -> str:
    result = probe(location.confs())
    if result.version != __version__:
        raise RegionsError(f"answers as version {result.version}, the package is {__version__}")
    return (
        f"starts in {result.start_milliseconds:.0f} ms, answers in {result.answer_milliseconds:.1f} ms,"
        f" {result.rss_bytes / 2**20:.0f} MiB"
    )


def _store(location: StoreOptions) -> str:
    folder = location.place().local_data
    if folder is None:
        return f"{location.dir} is on another file system; jobs check it when they write"
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise StoreError(
            f"{existing} is not writable ({error.strerror}). Hint: set spark.regions.recycle.dir"
        ) from error
    return f"{folder} is writable" if existing == folder else f"{folder} will be made; {existing} is writable"


def _catalog(location: StoreOptions) -> str:
    from spark_regions.store.admin import doctor as facts_of

    if not location.exists():
        return "none yet; the first job makes it"
    facts = facts_of(location.dir, location.namespace, location.catalog)
    if "error" in facts:
        raise StoreError(f"{facts['catalog']}: {facts['error']}. Hint: move it away; jobs learn anew")
    repaired = "".join(f"; {sentence(code, detail)}" for code, detail in facts["notices"])
    return (
        f"revision {facts['revision']}, {facts['entries']} entries, {size(facts['bytes'])},"
        f" {facts['operators']} operators, {facts['applications_alive']} applications alive{repaired}"
    )


def _disk(location: StoreOptions) -> str:
    folder = location.place().local_data
    if folder is None:
        return "not looked at: the store is on another file system"
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    taken = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0
    text = f"{size(free)} free, {size(taken)} stored, the budget is {size(location.max_bytes)}"
    if free < location.max_bytes - taken:
        raise StoreError(f"{text}. Hint: lower spark.regions.recycle.maxBytes, or put recycle.dir on a larger disk")
    return text
