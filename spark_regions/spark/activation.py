"""`configure`: activation from Python."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

from spark_regions import conf
from spark_regions.errors import ConfError
from spark_regions.spark import environment, jvm
from spark_regions.spark.jar import jar_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    Builder = TypeVar("Builder", bound=SparkSession.Builder)

EXTENSIONS = "org.apache.spark.sql.regions.RegionsExtensions"


def configure(builder: Builder, **options: object) -> Builder:
    """Make the sessions of `builder` run with the plugin; call it last, just before `getOrCreate`.

    Appends to the user's `spark.jars` and `spark.sql.extensions`, wherever they were set, and never replaces them.
    `options` are `spark.regions.*` keys in snake case: `recycle_dir="/data/store"`, `recycle_max_bytes="2g"`.

    Errors: `ConfError` for an unknown option, a bad value, a Connect builder (its server has to be configured) or a
    session that runs already; `JarError` where the jar is missing.
    """
    given: dict[str, str] = {key: str(value) for key, value in builder._options.items()}
    settings = {
        "spark.regions.enabled": "true",
        "spark.regions.planner.python": sys.executable,
        **{key: value for key, value in given.items() if key.startswith(conf.PREFIX)},
        **_settings(options),
    }
    problems = conf.validate(settings, strategies=_strategies())
    if problems:
        raise ConfError("\n".join(map(str, problems)))
    _refuse_remote(given)
    _refuse_running()
    jar = jar_path()
    outside = {**environment.outside_confs(), **jvm.submitted_confs()}
    effective = {**outside, **given}
    settings["spark.jars"] = _append(effective.get("spark.jars", ""), str(jar))
    settings["spark.sql.extensions"] = _append(effective.get("spark.sql.extensions", ""), EXTENSIONS)
    if "spark.jars" in environment.submit_args():
        arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        os.environ["PYSPARK_SUBMIT_ARGS"] = environment.with_jars(arguments, settings["spark.jars"])
    jvm.add_to_driver_class_path(jar)
    builder.config(map=dict[str, Any](settings))
    return builder


def _settings(options: Mapping[str, object]) -> dict[str, str]:
    names = {known.name.replace(".", "").lower(): known.key for known in conf.CONFS}
    settings = {}
    for option, value in options.items():
        key = names.get(option.replace("_", "").lower())
        # An unknown option stays under its own spelling, for `validate` to name it and the closest key.
        settings[key or conf.PREFIX + option.replace("_", ".")] = _text(value)
    return settings


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _strategies() -> frozenset[str]:
    return frozenset(entry.name for entry in metadata.entry_points(group="spark_regions.strategies"))


def _append(listed: str, item: str) -> str:
    items = [part.strip() for part in listed.split(",") if part.strip()]
    return ",".join(items if item in items else [*items, item])


def _refuse_remote(given: Mapping[str, str]) -> None:
    remote = given.get("spark.remote") or os.environ.get("SPARK_REMOTE", "")
    if remote.startswith("sc://"):
        raise ConfError(
            f"The builder connects to {remote}; a client cannot change what a running Spark Connect server loads. "
            "Hint: start the server with --jars $(python -m spark_regions jar) --conf spark.regions.enabled=true."
        )


def _refuse_running() -> None:
    from pyspark import SparkContext

    running = SparkContext._active_spark_context
    if running is not None and not _is_listed(running.getConf().get("spark.sql.extensions", "") or ""):
        raise ConfError(
            f"A Spark application runs already ({running.applicationId}); extensions are read when it starts. "
            "Hint: call spark.stop() first, or pass the confs to spark-submit."
        )


def _is_listed(extensions: str) -> bool:
    return EXTENSIONS in [part.strip() for part in extensions.split(",")]
