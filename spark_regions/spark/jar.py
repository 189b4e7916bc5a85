"""Where the shim's jar is."""

from __future__ import annotations

import zipfile
from importlib import metadata
from pathlib import Path

from spark_regions.errors import JarError

JARS = Path(__file__).resolve().parent.parent / "jars"
JAR_NAME = "spark-regions-shim.jar"


def spark_minor() -> str | None:
    """Minor version of the installed PySpark, such as `4.3`; None where there is none."""
    for distribution in ("pyspark", "pyspark-client"):
        try:
            return ".".join(metadata.version(distribution).split(".")[:2])
        except metadata.PackageNotFoundError:
            continue
    return None


def jar_path(minor: str | None = None) -> Path:
    """Path of the shim's jar for a Spark minor version, by default the installed PySpark's.

    Errors: `JarError` where there is none.
    """
    available = sorted(folder.name for folder in JARS.glob("*") if (folder / JAR_NAME).is_file())
    wanted = minor or spark_minor() or (available[-1] if available else None)
    if wanted in available:
        return JARS / str(wanted) / JAR_NAME
    if not available:
        raise JarError(
            f"No shim jar under {JARS}; expected {wanted or '<spark minor>'}/{JAR_NAME}. "
            "Hint: run `make jar` in a checkout, or reinstall the spark-regions wheel."
        )
    raise JarError(
        f"No shim jar for Spark {wanted}; there is one for {', '.join(available)}. "
        f"Hint: pip install 'pyspark=={available[-1]}.*'."
    )


def jar_version(jar: Path) -> str | None:
    """The version that the jar says it has; None if it does not say.

    Errors: `JarError` where the file is not a jar.
    """
    try:
        with zipfile.ZipFile(jar) as archive:
            poms = [name for name in archive.namelist() if name.endswith("/spark-regions-shim/pom.properties")]
            properties = archive.read(poms[0]).decode() if poms else ""
    except (OSError, zipfile.BadZipFile) as error:
        raise JarError(
            f"{jar} is not a readable jar ({error}). Hint: run `make jar`, or reinstall the wheel."
        ) from error
    return dict(line.split("=", 1) for line in properties.splitlines() if "=" in line).get("version")
