"""`why_not`: what stands against storing and loading each node of a DataFrame's plan."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_regions.errors import NotActiveError
from spark_regions.reasons import sentence
from spark_regions.spark import jvm
from spark_regions.spark.session import ABSENT, ABSENT_HINT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """One node of the plan. `code` is None where nothing stands against it."""

    node: int
    operator: str
    depth: int
    code: str | None
    sentence: str

    def __str__(self) -> str:
        verdict = "can be stored" if self.code is None else f"{self.code}: {self.sentence}"
        return f"{'  ' * self.depth}({self.node}) {self.operator}: {verdict}"


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Every node of a plan in pre-order, with the reason why it cannot be stored, if any."""

    nodes: tuple[NodeAnswer, ...]

    @property
    def refused(self) -> tuple[NodeAnswer, ...]:
        return tuple(node for node in self.nodes if node.code is not None)

    def __str__(self) -> str:
        return "\n".join(map(str, self.nodes))


def why_not(frame: DataFrame) -> WhyNot:
    """Why the plan's nodes are not stored or loaded, node by node. Plans the query, but does not run it.

    Errors: `NotActiveError` for a session without the plugin, and for a Connect session, whose plans are at the server.
    """
    session = frame.sparkSession
    if not jvm.is_classic(session):
        raise NotActiveError(
            "why_not needs the driver's JVM, and this is a Spark Connect session. "
            "Hint: frame.explain(), or SELECT * FROM spark_regions_decisions() after the query."
        )
    answer = jvm.why_not_json(frame)
    if answer is None:
        raise NotActiveError(f"{ABSENT} Hint: {ABSENT_HINT}")
    return read_answer(answer)


def read_answer(answer: str) -> WhyNot:
    """Read the shim's JSON: nodes in pre-order: `id`, `operator`, `children`, and a refusal's `code` and `detail`."""
    nodes = json.loads(answer)["nodes"]
    depths = {node["id"]: 0 for node in nodes}
    for node in nodes:
        depths |= dict.fromkeys(node.get("children", []), depths[node["id"]] + 1)
    return WhyNot(
        tuple(
            NodeAnswer(
                node=node["id"],
                operator=node["operator"],
                depth=depths[node["id"]],
                code=node.get("code"),
                sentence=sentence(node["code"], node.get("detail") or "") if node.get("code") else "",
            )
            for node in nodes
        )
    )
