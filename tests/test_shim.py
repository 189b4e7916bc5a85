"""The shim's own tests, in Scala: one run of Maven; and that it compiles against Spark's other minors."""

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
MAIN = SHIM / "src" / "main"
REPORTS = SHIM / "target" / "surefire-reports"
MINORS = re.findall(r"<id>spark-([\d.]+)</id>", (SHIM / "pom.xml").read_text(encoding="utf-8"))
"""Each has a profile; the first one is what the jar is for."""

# What is not in every minor from 4.0 on, or not in one form, by the minor that has it first as the shim would use it.
DIFFERENT = {
    "4.1": "ArrowAggregatePythonExec LimitAll NumericEvalContext PARQUET_ANNOTATE_VARIANT_LOGICAL_TYPE "
    "SQL_SCALAR_ARROW_UDF StatefulOperator TimeType evalContext getOuterAttrs",
    "4.2": "ConfigBindingPolicy CspNonce containsTag materializedSizeInBytes tooltipSpan withBindingPolicy",
    "4.3": "ignoredPathSegmentRegexPattern markedForSingleTaskExecution parallelListLeafFiles",
}


def maven(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which("mvn")
    if found is None:
        cannot_run("no Maven here: mvn is not on PATH", "apt-get install maven", "shim")
    done = subprocess.run(
        [found, "-q", "-B", "-ntp", *arguments],
        cwd=SHIM,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    missing = re.search(r"(Could not (transfer|find) artifact|could not be resolved:) .{1,200}", done.stdout)
    if done.returncode != 0 and missing:
        cannot_run(f"Maven cannot download: {missing[0]}", "look at the network and ~/.m2/settings.xml", "shim")
    return done


@pytest.mark.shim
def test_the_shim(record_property: Callable[[str, object], None]) -> None:
    jars = subprocess.check_output([sys.executable, ROOT / "hatch_build.py", "--jars-dir"], text=True).strip()
    shutil.rmtree(REPORTS, ignore_errors=True)
    done = maven("test", SPARK_JARS_DIR=jars)
    assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-200:])
    suites = [ElementTree.parse(path).getroot() for path in REPORTS.glob("TEST-*.xml")]
    ran, skipped = (sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped"))
    sources = {path.stem: path.read_text() for path in (SHIM / "src" / "test").rglob("*Suite.scala")}
    written = {name for name, text in sources.items() if re.search(rf"^class {name}\b", text, flags=re.MULTILINE)}
    assert written <= {suite.get("name", "").rpartition(".")[2] for suite in suites}
    assert ran > len(written) and skipped == 0
    record_property(CASES, ran)


@pytest.mark.shim
@pytest.mark.parametrize("minor", MINORS[1:])
def test_the_shim_compiles_against_another_minor(minor: str) -> None:
    done = maven(f"-Pspark-{minor}", "compile")
    assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-60:])
    compiled = SHIM / "target" / f"spark-{minor}" / "classes" / "org" / "apache" / "spark" / "sql" / "regions"
    assert (compiled / "SparkMinor.class").is_file()
    assert f"spark.minor={minor}\n" in (compiled / "shim.properties").read_text(encoding="utf-8")


def test_what_differs_between_minors_stands_behind_the_shims() -> None:
    names = re.compile(rf"\b({'|'.join(' '.join(DIFFERENT.values()).split())})\b")
    found = {path: set(names.findall(path.read_text(encoding="utf-8"))) for path in MAIN.rglob("*.scala")}
    shims = {path: named for path, named in found.items() if not path.is_relative_to(MAIN / "scala")}
    assert {path.name: named for path, named in found.items() if named and path not in shims} == {}
    assert {path.name[:4] for path in shims} == {"Shim"}
    assert set().union(*shims.values()) > {"CspNonce", "LimitAll", "parallelListLeafFiles"}
