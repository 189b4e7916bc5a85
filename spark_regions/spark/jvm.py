"""The only file that touches `_jvm`: the way from a user's Python session into the shim."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_API = "org.apache.spark.sql.regions.RegionsApi"


def is_classic(session: object) -> bool:
    """Whether the session has its JVM in reach. A Connect session answers AttributeError for such names."""
    return hasattr(session, "_jsparkSession")


def api(session: SparkSession) -> Any | None:
    """The shim's `RegionsApi`, or None where its jar is not on the driver's class path."""
    from py4j.java_gateway import JavaClass

    found: Any = session.sparkContext._jvm
    for part in _API.split("."):
        found = getattr(found, part)
    # py4j answers a JavaPackage for any name that is not a class.
    return found if isinstance(found, JavaClass) else None


def status_json(session: SparkSession) -> str | None:
    shim = api(session)
    return None if shim is None else str(shim.status(session._jsparkSession))


def decisions_json(session: SparkSession, limit: int) -> str | None:
    shim = api(session)
    return None if shim is None else str(shim.decisions(session._jsparkSession, limit))


def savings_json(session: SparkSession) -> str | None:
    shim = api(session)
    return None if shim is None else str(shim.savings(session._jsparkSession))


def control_json(session: SparkSession, command: str, seconds: float, code: bytes | None = None) -> str | None:
    shim = api(session)
    if shim is None:
        return None
    if code is not None:
        return str(shim.replace(session._jsparkSession, command, code))
    return str(shim.control(session._jsparkSession, command, float(seconds)))


def why_not_json(frame: DataFrame) -> str | None:
    shim = api(frame.sparkSession)
    return None if shim is None else str(shim.whyNot(frame._jdf))


def announce_json(session: SparkSession, frames: Sequence[DataFrame], at_once: int = 0) -> str | None:
    shim = api(session)
    if shim is None:
        return None
    gateway: Any = session.sparkContext._gateway
    listed = gateway.jvm.java.util.ArrayList()
    for frame in frames:
        listed.add(frame._jdf)
    return str(shim.announce(session._jsparkSession, listed, at_once))


def is_worth_keeping(frame: DataFrame) -> bool:
    """Whether its rows are the same each time, and are more than read from where they are."""
    shim = api(frame.sparkSession)
    if shim is not None:
        return bool(shim.worthKeeping(frame._jdf))
    plan = frame._jdf.queryExecution().optimizedPlan()
    return bool(plan.deterministic()) and not plan.children().isEmpty()


def explored(session: SparkSession, told: str, held: Mapping[int, DataFrame]) -> bool:
    """How an exploration stands, as JSON, with what is persisted for its branches; False where nobody listens."""
    shim = api(session)
    if shim is None:
        return False
    gateway: Any = session.sparkContext._gateway
    frames = gateway.jvm.java.util.HashMap()
    for branch, frame in held.items():
        frames.put(branch, frame._jdf)
    return bool(shim.explored(session._jsparkSession, told, frames))


def hold_back_stages(context: SparkContext) -> bool:
    """Spark's progress bar of stages is cleared, and not drawn for half a second; False where Spark has none."""
    stages: Any = context._jsc.sc().progressBar()
    if stages.isEmpty():
        return False
    stages.get().finishAll()
    return True


def jobs(context: SparkContext, tag: str) -> list[int]:
    """Jobs that were started with a tag."""
    tracker: Any = context._jsc.sc().statusTracker()
    return [int(job) for job in tracker.getJobIdsForTag(tag)]


def task_seconds(context: SparkContext, tag: str) -> float:
    """Of all tasks of the jobs with a tag, as far as their stages are known."""
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    stages: set[int] = set()
    for job in jobs(context, tag):
        info = tracker.getJobInfo(job)
        stages.update(info.stageIds if info is not None else ())
    known = [stage for stage in stages if tracker.getStageInfo(stage) is not None]
    return sum(int(store.lastStageAttempt(stage).executorRunTime()) for stage in known) / 1000


def _running_jvm() -> Any | None:
    """The driver's JVM if it runs already: under spark-submit, or left over from a stopped session."""
    from pyspark import SparkContext

    if SparkContext._jvm is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
    return SparkContext._jvm


def submitted_confs() -> dict[str, str]:
    """What spark-submit handed to the running driver JVM; empty where none runs yet."""
    jvm: Any = _running_jvm()
    if jvm is None:
        return {}
    return {pair._1(): pair._2() for pair in jvm.org.apache.spark.SparkConf(True).getAll()}


def add_to_driver_class_path(jar: Path) -> None:
    """Make the jar's classes visible to a driver JVM that runs already: `spark.jars` reaches executors only by then."""
    jvm: Any = _running_jvm()
    if jvm is None:
        return
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    url = jvm.java.io.File(str(jar)).toURI().toURL()
    known = {str(entry) for entry in loader.getURLs()} if hasattr(loader, "getURLs") else set()
    if str(url) not in known:
        loader.addURL(url)
