"""A mixed-integer program of named variables between 0 and 1, solved by HiGHS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_regions.runs.program import GAP


class Var(NamedTuple):
    """A variable: of query `i`, a node of it, a result and a level, as far as they matter."""

    kind: str
    i: int
    node: int = -1
    result: int = -1
    level: str = ""


@dataclass(slots=True)
class Program:
    """Columns by name, and rows as sparse triplets: Σ value · variable >= lower."""

    names: dict[Var, int] = field(default_factory=dict)
    by_query: dict[int, list[Var]] = field(default_factory=dict)
    costs: list[float] = field(default_factory=list)
    binary: list[bool] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)

    def add(self, name: Var, cost: float = 0.0, binary: bool = False) -> None:
        self.names[name] = len(self.costs)
        self.by_query.setdefault(name.i, []).append(name)
        self.costs.append(cost)
        self.binary.append(binary)

    def at_least(self, lower: float, terms: Mapping[Var, float]) -> None:
        row = len(self.lower)
        self.lower.append(lower)
        self.entries += [(row, self.names[name], value) for name, value in terms.items() if name in self.names]


def solved(program: Program, seconds: float) -> tuple[Sequence[float] | None, bool]:
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    rows, columns, values = zip(*program.entries, strict=True)
    shape = (len(program.lower), len(program.costs))
    matrix = coo_array((values, (rows, columns)), shape=shape).tocsr()
    answer = milp(
        np.array(program.costs),
        integrality=np.array(program.binary, dtype=int),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, np.array(program.lower), np.inf),
        options={"time_limit": seconds, "mip_rel_gap": GAP},
    )
    return (None, False) if answer.x is None else (answer.x, answer.status == 0)
