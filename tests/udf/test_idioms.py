"""What Python functions have an identity: ordinary pure ones, and none that reads the world or keeps state."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.wire import digests
from tests.udf.cells import by_reference, by_value, cells, files

PURE = cells("pure.txt")
IMPURE = cells("impure.txt")
# Written by somebody who had not seen the rules.
MORE_PURE = cells("more_pure.txt")
MORE_IMPURE = cells("more_impure.txt")
# Pure, and declined: what would have to be followed further.
DECLINED = {
    "flag enum": "members of an enumeration are taken for objects that `|=` changes",
    "trie module level": "a method that fills an object while its module is imported counts at each call",
    "varint": "memoryview is not in the lists",
    "registry by decorator": "a dict that a decorator fills",
    "descriptor of the user": "getattr with a name that is an attribute",
}
# Not pure, and not seen.
UNSEEN = {
    **dict.fromkeys(
        ("pandas comparison with now", "numpy argument may say now", "X pandas replace to words",
         "X pandas truncate words", "X numpy words joined"),
        "the words now and today, where they are computed or come with the data",
    ),
    "X format percent s of a bound method": "the address in the text of a method",
    "X repr of a match free object in an exception": "the address in the text of an error",
    "Y set of functions": "the order of functions in a set",
    "Y set of nans": "NaNs are hashed by where they lie in memory",
}  # fmt: skip
REFUSALS = {"UDF_UNPROVEN", "UDF_MUTABLE_STATE", "UDF_NONDETERMINISTIC", "UDF_SIDE_EFFECT"}


def answer(function: dict[str, str], *roots: Path) -> dict:
    return digests([function], roots)["f"]


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


def expected(found: dict[str, str], titles: dict[str, str]) -> list:
    marks = {title: pytest.mark.xfail(strict=True, reason=why) for title, why in found.items()}
    return [pytest.param(title, marks=marks.get(title, ())) for title in titles]


@pytest.mark.parametrize("title", expected(DECLINED, MORE_PURE))
def test_more_pure(title: str, tmp_path: Path) -> None:
    assert "digest" in in_module(MORE_PURE[title], tmp_path), in_module(MORE_PURE[title], tmp_path)
    try:
        function = by_value(MORE_PURE[title])
    except (TypeError, ValueError, AttributeError, pickle.PicklingError):
        return  # it reaches workers in a module, or not at all
    assert "digest" in answer(function), answer(function)


@pytest.mark.parametrize("title", expected(UNSEEN, MORE_IMPURE))
def test_more_impure(title: str, tmp_path: Path) -> None:
    source, beside = files(MORE_IMPURE[title])
    for name, text in beside.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert in_module(source, tmp_path).get("refusal", {}).get("code", "").startswith("UDF_")
    if beside:
        return
    try:
        function = by_value(source)
    except Exception:
        return  # it reaches workers in a module, or not at all
    assert answer(function).get("refusal", {}).get("code", "").startswith("UDF_")


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
