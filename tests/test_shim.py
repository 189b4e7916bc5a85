"""The shim's own tests, in Scala: one run of Maven."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.harness.suites import CASES, cannot_run

ROOT = Path(__file__).resolve().parent.parent
SHIM = ROOT / "jvm-shim"
REPORTS = SHIM / "target" / "surefire-reports"


@pytest.mark.shim
def test_the_shim(record_property: Callable[[str, object], None]) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        cannot_run("no Maven here: mvn is not on PATH", "apt-get install maven", "shim")
    jars = subprocess.check_output([sys.executable, ROOT / "hatch_build.py", "--jars-dir"], text=True).strip()
    shutil.rmtree(REPORTS, ignore_errors=True)
    done = subprocess.run(
        [maven, "-q", "-B", "-ntp", "test"],
        cwd=SHIM,
        env=os.environ | {"SPARK_JARS_DIR": jars},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-200:])
    suites = [ElementTree.parse(path).getroot() for path in REPORTS.glob("TEST-*.xml")]
    ran, skipped = (sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped"))
    sources = {path.stem: path.read_text() for path in (SHIM / "src" / "test").rglob("*Suite.scala")}
    written = {name for name, text in sources.items() if re.search(rf"^class {name}\b", text, flags=re.MULTILINE)}
    assert written <= {suite.get("name", "").rpartition(".")[2] for suite in suites}
    assert ran > len(written) and skipped == 0
    record_property(CASES, ran)
