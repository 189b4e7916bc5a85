"""The lists of what is pure: each entry exists, is accepted, and each class of theirs is reviewed as a whole."""

from __future__ import annotations

import base64
import importlib
import keyword
import sys
import warnings
from typing import Any

import pytest

from spark_regions.identity.udf import rules
from spark_regions.identity.udf.allowed import LISTS, allowed, sections
from tests.harness.wire import digests

KEYS = {"pure", "changes", "passes", "iterators", "immutable", "unproven", "pickles", "constants", "aliases", "scalars",
        "dispatched"}  # fmt: skip
SECTIONS = [
    (path.name, kind, name, names)
    for path in sorted(LISTS.glob("*.txt"))
    for kind, name, names in sections(path.read_text(encoding="utf-8"))
    if kind not in ("library", "every")
]
# Since which Python the library has the name, where that is not the oldest one.
NEWER = {"math.cbrt": 11, "math.exp2": 11, "math.sumprod": 12, "itertools.batched": 12, "typing.override": 12,
         "random.Random.binomialvariate": 12, "pathlib.PurePosixPath.with_segments": 12, "array": 0,
         "builtins.int.is_integer": 12, "builtins.PythonFinalizationError": 13}  # fmt: skip


def found(path: str) -> Any:
    """What a dotted name stands for; the longest module first."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise AssertionError(f"{path} is nowhere")


@pytest.mark.parametrize(("file", "kind", "name", "names"), SECTIONS, ids=[f"{s[0]}:{s[2]}" for s in SECTIONS])
def test_a_section_is_well_formed_and_its_entries_exist(file: str, kind: str, name: str, names: dict) -> None:
    assert kind in ("module", "class", "guarded")
    for key, listed in names.items():
        rule = key.removeprefix("rule ")
        assert key in KEYS or rule in rules._RULES or key.startswith(("returns ", "inputs ")), key
        assert len(listed) == len(set(listed)), f"{key} of {name} names something twice"
        if key in ("pickles", "aliases", "dispatched") or kind == "class":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            missing = [each for each in listed if not _has(name, each)]
        assert missing == [], f"{name} has no such names"


def _has(name: str, each: str) -> bool:
    minor = NEWER.get(f"{name}.{each}", 11)
    if sys.version_info < (3, minor):
        return True
    try:
        found(f"{name}.{each}")
    except (AttributeError, AssertionError):
        return each.startswith("_") or name in ("pyspark.sql.types", "typing", "numpy", "typing_extensions")
    return True


# A class of which only the data model's own names are listed has the others from a base class that is reviewed.
CLASSES = [
    (name, names)
    for _, kind, name, names in SECTIONS
    if kind == "class" and not all(each.startswith("__") for listed in names.values() for each in listed)
]


@pytest.mark.parametrize(("name", "names"), CLASSES, ids=[each[0] for each in CLASSES])
def test_every_public_attribute_of_a_class_is_reviewed(name: str, names: dict) -> None:
    """Else one that is not pure would count as a field of the user's own."""
    listed = {each for each_list in names.values() for each in each_list}
    try:
        known = found(name)
    except AttributeError:
        pytest.fail(f"{name} is nowhere")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        public = {each for each in dir(known) if not each.startswith("_")}
    assert public - listed == set()


def entries() -> list[tuple[str, str]]:
    return sorted(
        (path, rule)
        for path, rule in allowed().names.items()
        if not path.rpartition(".")[2].startswith("_") and "." in path
    )


@pytest.mark.parametrize("top", sorted({path.split(".")[0] for path, _ in entries()}))
def test_every_entry_of_a_module_is_accepted(top: str) -> None:
    """A function that names it has an identity; one that calls it as the rule forbids has none."""
    from pyspark.cloudpickle import dumps

    classes = {name for _, kind, name, _ in SECTIONS if kind == "class"}
    declined = {}
    for path, rule in entries():
        module, _, name = path.rpartition(".")
        if (
            path.split(".")[0] != top
            or module == "__future__"
            or module in classes
            or module in allowed().guarded
            or rule
            or keyword.iskeyword(name)
        ):
            continue
        if path in allowed().changes or path in allowed().modules or path in allowed().guarded:
            continue
        source = f"import {module}\ndef f(x):\n    from {module} import {name} as g\n    return [g, x]\n"
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(source.partition("\n")[2], space)
        command = base64.b64encode(dumps(space["f"])).decode()
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        asked = {"key": "f", "command": command, "pythonVersion": version}
        answer = digests([asked])["f"]
        if "digest" not in answer:
            declined[path] = answer["refusal"]
    assert declined == {}


def test_every_attribute_is_accepted_on_its_own_class_or_declined_for_a_reason() -> None:
    """Names that are pure on one class and not on another are declined on a value of unknown type, and only those."""
    known = allowed()
    assert known.attributes
    for name in sorted(known.attributes):
        assert known.is_pure_on_all(name)
    assert not known.attributes & known.unproven


@pytest.mark.parametrize("alias", sorted(allowed().aliases))
def test_an_alias_has_the_same_things_under_the_same_names(alias: str) -> None:
    module = allowed().aliases[alias]
    try:
        other = importlib.import_module(alias)
    except ImportError:
        pytest.fail(f"{alias} is no module")
    shared = [
        path.rpartition(".")[2]
        for path in allowed().names
        if path.rpartition(".")[0] == module and hasattr(other, path.rpartition(".")[2])
    ]
    here = importlib.import_module(module)
    assert [each for each in shared if hasattr(here, each) and getattr(other, each) is not getattr(here, each)] == []
