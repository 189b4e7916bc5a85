"""What Python functions have an identity: ordinary pure ones, and none that reads the world or keeps state."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark_regions.identity.udf.request import digest_functions
from tests.udf.cells import by_reference, by_value, cells

PURE = cells("pure.txt")
IMPURE = cells("impure.txt")
REFUSALS = {"UDF_UNPROVEN", "UDF_MUTABLE_STATE", "UDF_NONDETERMINISTIC", "UDF_SIDE_EFFECT"}


def answer(function: dict[str, str], *roots: Path) -> dict:
    return digest_functions({"functions": [function], "roots": [str(root) for root in roots]})["f"]


def in_module(source: str, folder: Path) -> dict:
    (folder / "module_of_the_user.py").write_text(source)
    return answer(by_reference("module_of_the_user"), folder)


def test_there_are_enough() -> None:
    assert len(PURE) >= 150
    assert len(IMPURE) >= 150


@pytest.mark.parametrize("title", PURE)
def test_pure(title: str, tmp_path: Path) -> None:
    assert "digest" in answer(by_value(PURE[title])), answer(by_value(PURE[title]))
    assert "digest" in in_module(PURE[title], tmp_path), in_module(PURE[title], tmp_path)


@pytest.mark.parametrize("title", IMPURE)
def test_impure(title: str, tmp_path: Path) -> None:
    for found in (answer(by_value(IMPURE[title])), in_module(IMPURE[title], tmp_path)):
        assert found.get("refusal", {}).get("code") in REFUSALS, found
        assert re.search(r"\w", found["refusal"]["detail"])


def test_pure_functions_do_what_they_say() -> None:
    from tests.udf.cells import space_of

    for title, source in PURE.items():
        space = space_of(source)
        space["f"](*space["args"])  # a cell that cannot run would show nothing
        assert callable(space["f"]), title


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[str]]]:
    found = []
    for letter, seed, zone in (("A", "1", "Etc/GMT-14"), ("B", "2", "Etc/GMT+12")):
        folder = tmp_path_factory.mktemp(letter)
        environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "WORLD": letter, "HOME": str(folder)}
        environment |= {
            "LOGNAME": f"user {letter}",
            "PYTHONPATH": f"{Path(__file__).parents[2]}:{folder}",
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.udf.world", letter, str(folder)],
            capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def test_impure_functions_differ(worlds: list[dict[str, list[str]]]) -> None:
    """Between two runs, or between two calls of one run, or by the time."""
    same = [title for title in IMPURE if len({*worlds[0][title], *worlds[1][title]}) == 1]
    assert same == []


@pytest.mark.parametrize(
    ("title", "detail"),
    [
        ("open in a helper", r"open \(load, line 2\)"),
        ("counter in a dict", r"an item of STATE is set, and kept from call to call \(f, line 3\)"),
        ("localtime", r"time\.localtime \(<lambda>, line 2\)"),
        ("getenv by a computed name", r"getattr with a computed name \(<lambda>, line 2\)"),
    ],
)
def test_a_refusal_names_the_expression_and_the_line(title: str, detail: str) -> None:
    assert re.fullmatch(detail, answer(by_value(IMPURE[title]))["refusal"]["detail"])
