"""Confs that reach a driver from outside of its builder: spark-defaults.conf and PYSPARK_SUBMIT_ARGS."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path


def defaults_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The spark-defaults.conf that spark-submit would read."""
    folders = []
    if explicit := environ.get("SPARK_CONF_DIR"):
        folders.append(Path(explicit))
    else:
        from pyspark.find_spark_home import _find_spark_home

        folders.append(Path(_find_spark_home()) / "conf")
    return next((path for folder in folders if (path := folder / "spark-defaults.conf").is_file()), None)


def read_properties(text: str) -> dict[str, str]:
    """Keys and values of a properties file in the forms that spark-defaults.conf uses.

    >>> read_properties("# comment\\nspark.jars  a.jar,b.jar\\nspark.ui.enabled=false")
    {'spark.jars': 'a.jar,b.jar', 'spark.ui.enabled': 'false'}
    """
    pairs = (re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1) for line in text.replace("\\\n", "").splitlines())
    return {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs if pair[0] and pair[0][0] not in "#!"}


def submit_args(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Confs in PYSPARK_SUBMIT_ARGS, with `--jars` as `spark.jars`.

    >>> submit_args({"PYSPARK_SUBMIT_ARGS": "--conf spark.sql.extensions=A --jars a.jar pyspark-shell"})
    {'spark.sql.extensions': 'A', 'spark.jars': 'a.jar'}
    """
    words = shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", ""))
    confs: dict[str, str] = {}
    for word, argument in zip(words, words[1:], strict=False):
        if word in ("--conf", "-c") and "=" in argument:
            key, value = argument.split("=", 1)
            confs[key] = value
    for word, argument in zip(words, words[1:], strict=False):
        if word == "--jars":
            confs["spark.jars"] = argument
    return confs


def with_jars(arguments: str, jars: str) -> str:
    """`arguments` with the value of `--jars` replaced; it would win over any `spark.jars` of the builder's.

    >>> with_jars("--jars a.jar pyspark-shell", "a.jar,b.jar")
    '--jars a.jar,b.jar pyspark-shell'
    """
    words = shlex.split(arguments)
    for index, word in enumerate(words[:-1]):
        if word == "--jars":
            words[index + 1] = jars
        if word in ("--conf", "-c") and words[index + 1].startswith("spark.jars="):
            words[index + 1] = f"spark.jars={jars}"
    return shlex.join(words)


def outside_confs(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """All of the above, in Spark's order of precedence."""
    path = defaults_file(environ)
    defaults = read_properties(path.read_text(encoding="utf-8")) if path else {}
    return {**defaults, **submit_args(environ)}
