"""Build hook: compiles the Scala shim with Maven and puts its jar into the package.

Also a script: `python hatch_build.py` builds the jar, `--generate` only writes the files that the shim reads of the
package's tables, and `--jars-dir` prints Spark's jar folder.
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
SHIM = ROOT / "jvm-shim"
VIEW = ROOT / "spark_regions" / "reports" / "view"
WORKERS = ROOT / "spark_regions" / "spark"
SPARK_MINOR = "4.3"
JAR = ROOT / "spark_regions" / "jars" / SPARK_MINOR / "spark-regions-shim.jar"
MINIMUM_JAVA = 17
RESOURCES = SHIM / "src" / "main" / "resources" / "org" / "apache" / "spark" / "sql" / "regions"
SCALA = SHIM / "src" / "main" / "scala" / "org" / "apache" / "spark" / "sql" / "regions"
GENERATED = {
    RESOURCES / "confs.json": ("conf.py", "registry"),
    RESOURCES / "ui" / "reasons.properties": ("reasons.py", "properties"),
    SCALA / "Policy.scala": ("costs/policy.py", "scala"),
    SCALA / "wire" / "Messages.scala": ("wire/scala.py", "messages"),
}
"""Files of the shim, each with the module and its function that makes the text. They import nothing of ours."""


class BuildError(Exception):
    """What is missing and what to do, in one line."""


def spark_jars_dir() -> Path:
    """The folder of Spark's own jars: SPARK_JARS_DIR, else the installed PySpark, else SPARK_HOME/jars."""
    candidates = []
    if explicit := os.environ.get("SPARK_JARS_DIR"):
        candidates.append(Path(explicit))
    else:
        spec = importlib.util.find_spec("pyspark")
        if spec is not None and spec.origin is not None:
            candidates.append(Path(spec.origin).parent / "jars")
        if home := os.environ.get("SPARK_HOME"):
            candidates.append(Path(home) / "jars")
    for folder in candidates:
        if any(folder.glob(f"spark-core_2.13-{SPARK_MINOR}.*.jar")):
            return folder.resolve()
    found = ", ".join(map(str, candidates)) or "no PySpark in this environment, no SPARK_HOME"
    raise BuildError(
        f"Spark {SPARK_MINOR}'s jars not found ({found}). "
        f"Hint: pip install 'pyspark>=4.3,<4.4', or set SPARK_JARS_DIR to the jars folder of a Spark {SPARK_MINOR}."
    )


def generate() -> None:
    """Write the generated files, none whose text stays: its time counts for the jar's."""
    for path, (module, function) in GENERATED.items():
        text = runpy.run_path(str(ROOT / "spark_regions" / module), run_name=module)[function]()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def sources() -> list[Path]:
    # Folders count too: removing a source changes the time of its folder only.
    return [SHIM / "pom.xml", *(SHIM / "src" / "main").rglob("*"), VIEW, *VIEW.iterdir(), *WORKERS.glob("*_worker.py")]


def is_fresh() -> bool:
    """The jar is newer than the pom and every main source."""
    return JAR.is_file() and JAR.stat().st_mtime > max(path.stat().st_mtime for path in sources())


def check_tools() -> str:
    """Maven's path, after checking the Java that Maven itself will run with."""
    maven = shutil.which("mvn")
    if maven is None:
        raise BuildError("Maven (mvn) not found on PATH. Hint: install Maven 3.8 or newer.")
    result = subprocess.run([maven, "-B", "-v"], capture_output=True, text=True, check=False)
    version = re.search(r"Java version: (\d+)", result.stdout)
    if version is None or int(version[1]) < MINIMUM_JAVA:
        found = f"Maven runs with Java {version[1]}" if version else "Maven finds no Java"
        raise BuildError(f"{found}, a JDK {MINIMUM_JAVA} or newer is needed. Hint: install one and set JAVA_HOME.")
    return maven


def build_jar() -> Path:
    """Build the shim unless the jar is newer than its sources.

    Errors: `BuildError` when Maven, a JDK or Spark's jars are missing, or when the build fails.
    """
    if not (SHIM / "pom.xml").is_file():
        if JAR.is_file():
            return JAR
        raise BuildError(f"Neither {SHIM} nor {JAR} exists. Hint: build from a full checkout.")
    generate()
    if is_fresh():
        return JAR
    jars_dir = spark_jars_dir()
    maven = check_tools()
    # No `clean`: the incremental compiler removes the classes of removed sources itself. An old jar would stay.
    for stale in (SHIM / "target").glob("spark-regions-shim_*.jar"):
        stale.unlink()
    command = [maven, "-q", "-B", "-ntp", "-Dmaven.test.skip=true", "package"]
    result = subprocess.run(
        command,
        cwd=SHIM,
        env={**os.environ, "SPARK_JARS_DIR": str(jars_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    built = sorted((SHIM / "target").glob("spark-regions-shim_*.jar"))
    if result.returncode != 0 or not built:
        sys.stderr.write(result.stdout + result.stderr)
        raise BuildError(f"`{' '.join(command)}` in {SHIM} failed with code {result.returncode}; its output is above.")
    JAR.parent.mkdir(parents=True, exist_ok=True)
    # A running driver may have the old jar mapped: replace the file, never write into it.
    fresh = JAR.with_suffix(".jar.new")
    shutil.copyfile(built[0], fresh)
    fresh.replace(JAR)
    return JAR


def main(arguments: list[str]) -> int:
    if arguments == ["--generate"]:
        generate()
        return 0
    try:
        print(spark_jars_dir() if arguments == ["--jars-dir"] else build_jar())
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # as a script, outside a build environment
    pass
else:

    class ShimBuildHook(BuildHookInterface):  # type: ignore[type-arg]
        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            try:
                build_jar()
            except BuildError as error:
                self.app.abort(f"error: {error}")
