"""Imports run one way: what a room may import stands above it in `ALLOWED`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "spark_regions"

# What a room may import of ours, besides itself and the leaves that everybody may.
LEAVES = frozenset({"wire", "errors", "conf", "reasons", "progress", "_version", "trust"})
LOW = frozenset({"dag", "stats", "costs"})
DECISION = LOW | {"matching", "store", "runs", "platforms", "decision"}
ALLOWED: dict[str, frozenset[str]] = {
    "_version": frozenset(),
    "trust": frozenset(),
    "errors": frozenset(),
    "conf": frozenset(),
    "reasons": frozenset(),
    "progress": frozenset(),
    "wire": frozenset(),
    "dag": frozenset(),
    "identity": frozenset(),
    "stats": frozenset({"dag"}),
    "costs": frozenset({"dag", "stats"}),
    "platforms": frozenset({"dag", "costs"}),
    "regions": LOW,
    "skew": LOW,
    "store": LOW,
    "matching": LOW,
    "runs": LOW | {"matching"},
    "exploration": frozenset(),
    "decision": DECISION,
    # Passes are pure: what has side effects is not in their reach.
    "optimizer": DECISION,
    "effects": DECISION | {"wire"},
    "learn": DECISION | {"wire", "effects"},
    "planner": DECISION | {"wire", "identity", "regions", "skew", "effects", "learn", "optimizer"},
    "reports": frozenset({"costs"}),
    "spark": frozenset({"reports", "exploration"}),
    "cli": DECISION | {"wire", "identity", "regions", "skew", "planner", "reports", "spark"},
    "ml": frozenset({"spark"}),
    "__init__": frozenset({"spark", "exploration"}),
    "__main__": frozenset({"cli"}),
}
NO_LEAVES = frozenset({"_version", "errors", "conf", "progress", "trust"})


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Dotted names of everything that a file imports, also inside functions; relative imports made absolute."""
    here = ("spark_regions", *path.relative_to(PACKAGE).with_suffix("").parts)
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: len(here) - node.level]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            # `from spark_regions import conf` names a room too.
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)} if module else set()
    return names


def rooms_imported(path: Path) -> set[str]:
    parts = (name.split(".") for name in imported(path) if name.startswith("spark_regions."))
    return {second for _, second, *_ in parts if second in ALLOWED}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_one_way(path: Path) -> None:
    here = room(path)
    assert here in ALLOWED, f"{path.relative_to(ROOT)} is in no known room"
    allowed = ALLOWED[here] | {here} | (frozenset() if here in NO_LEAVES else LEAVES)
    assert rooms_imported(path) <= allowed


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_spark_room_imports_pyspark(path: Path) -> None:
    external = {name.split(".")[0] for name in imported(path)}
    assert room(path) == "spark" or not external & {"pyspark", "py4j"}


def test_one_file_touches_the_jvm() -> None:
    def touches(path: Path) -> bool:
        tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        return any(isinstance(node, ast.Attribute) and node.attr in ("_jvm", "_jdf", "_jsparkSession") for node in tree)

    assert [path for path in modules() if touches(path)] == [PACKAGE / "spark" / "jvm.py"]


def test_the_planner_loads_no_pyspark() -> None:
    """The re-exports of `spark_regions` must not bring PySpark into the planner process."""
    import subprocess
    import sys

    code = "import sys, spark_regions; print(sorted({'pyspark', 'py4j', 'pandas', 'networkx'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_region_planning_loads_scipy_only_for_programs() -> None:
    """Also the command itself: most workflows are decided by reductions alone."""
    import subprocess
    import sys

    code = (
        "import sys, spark_regions.cli.commands, spark_regions.cli.plan, spark_regions.regions.planning; "
        "print(sorted({'numpy', 'scipy', 'networkx'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


RATES = PACKAGE / "costs" / "rates.py"
RATE = re.compile(r"per_(second|byte|(source_)?row)|overhead_seconds", re.IGNORECASE)


def rates(path: Path) -> list[str]:
    """Names with a rate's unit that a file gives a number of its own; 0, 1 and what is made of other names are none."""
    given: list[tuple[str, ast.expr]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign):
            given += [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            given.append((node.target.id, node.value))
        elif isinstance(node, ast.arguments):
            names = [each.arg for each in (*node.posonlyargs, *node.args)]
            given += zip(names[len(names) - len(node.defaults) :], node.defaults, strict=True)
            given += [(each.arg, value) for each, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value]
    return [name for name, value in given if RATE.search(name) and is_number(value)]


def is_number(value: ast.expr) -> bool:
    parts = list(ast.walk(value))
    numbers = {each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, int | float)}
    return bool(numbers - {0, 1}) and not any(isinstance(each, ast.Name | ast.Attribute) for each in parts)


@pytest.mark.parametrize("path", [path for path in modules() if path != RATES], ids=lambda path: path.stem)
def test_rates_have_one_home(path: Path) -> None:
    assert rates(path) == []


def test_rates_are_recognised() -> None:
    assert {"READ_BYTES_PER_SECOND", "SECONDS_PER_ROW_OF", "WRITE_OVERHEAD_SECONDS"} < set(rates(RATES))
