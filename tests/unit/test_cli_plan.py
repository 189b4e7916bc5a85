"""`spark-regions plan`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from region_oracle import workflow

from spark_regions.cli.commands import commands
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import Edge, Operator, physical_plan
from spark_regions.regions.drawing import draw

# Pasta, fig. 12.
FIGURE_12 = {
    "operators": [{"id": f"v{number}", "seconds": number} for number in range(1, 6)],
    "edges": [
        {"id": "e1", "source": "v1", "target": "v2", "bytes": 4},
        {"id": "e2", "source": "v1", "target": "v3", "bytes": 5},
        {"id": "e3", "source": "v3", "target": "v4", "bytes": 2},
        {"id": "e4", "source": "v2", "target": "v4", "bytes": 1, "blocking": True},
        {"id": "e5", "source": "v4", "target": "v5", "bytes": 3},
    ],
}


@pytest.fixture
def dag(tmp_path: Path) -> Path:
    file = tmp_path / "figure.json"
    file.write_text(json.dumps(FIGURE_12))
    return file


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(commands, ["plan", *map(str, words)])


@pytest.mark.parametrize(
    ("words", "cost", "proven"),
    [
        ((), 3.0, True),
        (("--method", "top-down"), 3.0, True),
        (("--method", "top-down", "--greedy"), 3.0, False),
        (("--method", "bottom-up", "--without", "chains,clean,hopeless,early-stop"), 3.0, True),
        (("--method", "baseline"), 3.0, False),
        (("--method", "tds"), 15.0, False),
        (("--method", "bus"), None, False),
        (("--method", "maestro"), 3.0, False),
        (("--cost", "seconds"), 7.0, True),
        (("--cost", "first-response", "--method", "exact"), 2.0, True),
        (("--deadline", "0", "--method", "top-down"), 15.0, False),
    ],
)
def test_every_method(dag: Path, words: tuple[str, ...], cost: float | None, proven: bool) -> None:
    result = call(dag, "--json", *words)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["cost"], found["proven"]) == (cost, proven)
    assert found["operators"] == 5


def test_json_holds_regions_ranks_and_materialized_edges(dag: Path) -> None:
    found = json.loads(call(dag, "--json").stdout)
    assert found["materialized"] == ["e3", "e4"]
    assert found["materialized_non_blocking"] == ["e3"]
    assert found["regions"] == [
        {"operators": ["v1", "v2", "v3"], "rank": 1},
        {"operators": ["v4", "v5"], "rank": 2},
    ]
    assert found["ranks"] == 2
    assert found["states"] >= 1
    assert 0 <= found["seconds"] < 5
    assert found["bound"] == 3.0


def test_text(dag: Path) -> None:
    result = call(dag)
    assert "figure: 5 operators, 5 edges, 1 blocking\ncost      3 bytes, proven\n" in result.stdout
    assert "  rank 1    R1: v1, v2, v3\n  rank 2    R2: v4, v5\n" in result.stdout
    assert "  e3: v3 -> v4, 2 bytes\n" in result.stdout


def test_text_of_a_plan_without_an_order(dag: Path) -> None:
    result = call(dag, "--method", "bus")
    assert "cost      infinite, not proven\n" in result.stdout
    assert "regions   1; unschedulable: the region graph has a cycle\n" in result.stdout


def test_text_of_maestros_choices(dag: Path) -> None:
    result = call(dag, "--method", "maestro")
    assert "choices at v4: 2\n" in result.stdout
    assert "  e3: 2 bytes, or 4 s to run again <- materialize\n" in result.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "v5", "target": "v1", "bytes": 1}, "The graph has a cycle: "),
        ({"source": "v5", "target": "v9", "bytes": 1}, "Edge e6 has the target 'v9', which is no operator."),
        ({"source": "v4", "target": "v5", "bytes": -7}, "Found -7 as bytes of edge e6"),
        ({"source": "v4", "target": "v5"}, "Edge e6 has no bytes."),
        ({"id": "e1", "source": "v4", "target": "v5", "bytes": 1}, "Two edges have the id 'e1'."),
    ],
)
def test_a_wrong_workflow_is_one_line_and_exit_2(dag: Path, change: dict[str, object], said: str) -> None:
    dag.write_text(json.dumps(FIGURE_12 | {"edges": [*FIGURE_12["edges"], change]}))
    result = call(dag)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {said}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--cost", "beauty"),
            "error: Found cost 'beauty', expected one of bytes, first-response, seconds or an entry",
        ),
        (("--without", "magic"), "error: Found 'magic', expected one of chains, clean, hopeless, early-stop."),
        (("--svg", "/nowhere/plan.svg"), "error: "),
        (("--method", "maestro", "--svg", "plan.svg"), "error: Found --svg with --method maestro"),
    ],
)
def test_wrong_options_are_one_line_and_exit_2(dag: Path, words: tuple[str, ...], said: str) -> None:
    result = call(dag, *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1


def test_a_missing_file(tmp_path: Path) -> None:
    result = call(tmp_path / "none.json")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "No such file or directory" in result.stderr


SVG = "{http://www.w3.org/2000/svg}"


def test_svg_shows_regions_and_what_is_materialized(dag: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    assert call(dag, "--svg", file).exit_code == 0
    root = ElementTree.fromstring(file.read_text())
    boxes = [rect for rect in root.iter(f"{SVG}rect") if rect.get("fill")]
    assert len(boxes) == 2
    assert len({box.get("fill") for box in boxes}) == 2
    paths = [path.get("class") for path in root.iter(f"{SVG}path") if path.get("class")]
    assert sorted(paths) == ["m", "m b", "p", "p", "p"]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"v1", "v5", "rank 1", "rank 2", "2 B", "1 B"} <= set(texts)


def test_svg_operators_of_a_region_lie_in_its_box_and_do_not_overlap() -> None:
    plan = workflow(*(f"e{place} v{place // 2} v{place + 1} 7{' !' * (place % 3 == 0)}" for place in range(29)))
    root = ElementTree.fromstring(draw(RegionPlan(plan, plan.blocking)))
    operators = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")]
    corners = [(float(rect.get("x", "")), float(rect.get("y", ""))) for rect in operators if rect is not None]
    assert len(corners) == 30
    assert all(
        abs(x1 - x2) >= 86 or abs(y1 - y2) >= 26 for place, (x1, y1) in enumerate(corners) for x2, y2 in corners[:place]
    )


def test_svg_escapes_names() -> None:
    plan = physical_plan([Operator("<a&b>"), Operator('"')], [Edge("<e>", "<a&b>", '"', 1.0)])
    texts = [text.text for text in ElementTree.fromstring(draw(RegionPlan(plan, frozenset()))).iter(f"{SVG}text")]
    assert "<a&b>" in texts


def test_svg_of_an_unschedulable_plan_says_so() -> None:
    plan = workflow("a x y 1", "b y z 1", "c x z 1 !")
    assert "unschedulable" in draw(RegionPlan(plan, plan.blocking))


def test_svg_of_nothing_is_one() -> None:
    assert ElementTree.fromstring(draw(RegionPlan(physical_plan([], []), frozenset()))).tag == f"{SVG}svg"
