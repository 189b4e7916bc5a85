"""The public names, the versions, and what the package carries."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import types
from pathlib import Path
from xml.etree import ElementTree

import pytest

import spark_regions
from spark_regions import _version
from spark_regions.errors import JarError
from spark_regions.spark import jar

ROOT = Path(__file__).resolve().parent.parent


def test_all_is_sorted_and_complete() -> None:
    public = {
        name
        for name, value in vars(spark_regions).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"
    }
    assert list(spark_regions.__all__) == sorted(spark_regions.__all__)
    assert set(spark_regions.__all__) == public | {"__version__"}


def test_every_public_name_has_a_docstring() -> None:
    undocumented = [name for name in spark_regions.__all__ if not getattr(spark_regions, name).__doc__]
    assert undocumented == []


def test_one_version_everywhere() -> None:
    pom = ElementTree.parse(ROOT / "jvm-shim" / "pom.xml").getroot()
    assert pom.findtext("{http://maven.apache.org/POM/4.0.0}version") == _version.__version__
    assert f"## {_version.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert jar.jar_version(spark_regions.jar_path()) == _version.__version__


def test_scalafmt_has_one_version() -> None:
    pom = (ROOT / "jvm-shim" / "pom.xml").read_text(encoding="utf-8")
    settings = (ROOT / "jvm-shim" / ".scalafmt.conf").read_text(encoding="utf-8")
    (version,) = [line.split("=")[1].strip() for line in settings.splitlines() if line.startswith("version")]
    assert f"<scalafmt>\n              <version>{version}</version>" in pom


def test_the_jar_command_prints_the_path_and_nothing_else() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "spark_regions", "jar"], capture_output=True, text=True, check=True, cwd="/"
    )
    assert result.stdout == f"{spark_regions.jar_path()}\n"
    assert result.stderr == ""


def test_no_jar_for_another_spark() -> None:
    with pytest.raises(JarError, match=r"No shim jar for Spark 3\.5; there is one for 4\.3\. Hint: pip install"):
        spark_regions.jar_path("3.5")


def test_a_missing_jar_raises_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jar, "JARS", tmp_path)
    with pytest.raises(JarError, match=r"No shim jar under .*Hint: run `make jar`"):
        spark_regions.jar_path()


def test_a_damaged_jar_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "shim.jar"
    damaged.write_bytes(b"no zip")
    with pytest.raises(JarError, match="not a readable jar"):
        jar.jar_version(damaged)


def test_entry_points_resolve() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    from importlib import import_module

    for group in project["entry-points"].values():
        for target in group.values():
            module, _, attribute = target.partition(":")
            assert not attribute or hasattr(import_module(module), attribute)
            assert import_module(module)
