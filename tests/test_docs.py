"""What the documents say runs: doctests, README's blocks, links, and the generated page."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import spark_regions
from spark_regions import conf
from spark_regions.spark.environment import read_properties
from tests.harness.homes import at_home

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def modules() -> list[str]:
    names = (module.name for module in pkgutil.walk_packages(spark_regions.__path__, "spark_regions."))
    return sorted(name for name in names if not name.endswith("__main__"))


@pytest.mark.parametrize("name", modules())
def test_doctests(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_configuration_page_is_generated() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == conf.markdown(), "run `make docs`"


def test_the_annotated_defaults_use_known_keys() -> None:
    text = (ROOT / "conf" / "spark-defaults.conf").read_text(encoding="utf-8")
    settings = read_properties(re.sub(r"^# (?=spark\.)", "", text, flags=re.MULTILINE))
    assert any(key.startswith(conf.PREFIX) for key in settings)
    assert conf.validate(settings) == ()


def test_keys_in_the_readme_exist() -> None:
    keys = set(re.findall(r"spark\.regions\.[A-Za-z.]*[A-Za-z]", README))
    assert keys
    assert {key for key in keys if conf.find(key) is None} == set()


def test_links_lead_somewhere() -> None:
    for page in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8"))
        missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
        assert missing == [], page


def test_make_targets_of_the_readme_exist() -> None:
    named = set(re.findall(r"\bmake ([a-z]+)", "\n".join(blocks("bash"))))
    assert named
    assert named <= set(re.findall(r"^([a-z]+):", MAKEFILE, flags=re.MULTILINE))


CONSOLE = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("command", [line for line in CONSOLE if not line.startswith("pip ")])
def test_console_lines_run(command: str, tmp_path: Path) -> None:
    environment = at_home(tmp_path)
    words = shlex.split(command)
    prefix = {"python": [sys.executable], "spark-regions": [sys.executable, "-m", "spark_regions"]}[words[0]]
    result = subprocess.run(
        [*prefix, *words[1:]], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout


@pytest.mark.spark
def test_python_blocks_run(tmp_path: Path) -> None:
    (block,) = blocks("python")
    environment = at_home(tmp_path)
    result = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "active: true" in result.stdout
    assert "[Row(count(1)=334)]" in result.stdout


@pytest.mark.parametrize("block", blocks("bash"))
def test_bash_blocks_parse(block: str) -> None:
    result = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
