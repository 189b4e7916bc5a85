"""Digests of real cloudpickle output, made by other interpreters."""

from __future__ import annotations

import base64
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.canonical import canonical_digest
from spark_regions.identity.udf.modules import Modules
from spark_regions.identity.udf.request import OUR_PYTHON
from spark_regions.identity.udf.symbols import read_symbols
from tests.harness.wire import digests

SCRIPT = Path(__file__).with_name("udf_script.py")


def commands(seed="1", script=SCRIPT, **values):
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(values)], capture_output=True, text=True, env=environment, check=True
    )
    return json.loads(done.stdout)


def digest_values(functions, roots=()):
    found = digests(functions, roots)
    assert all("digest" in each for each in found.values()), found
    return {key: each["digest"] for key, each in found.items()}


@pytest.fixture(scope="module")
def plain():
    return commands()


@pytest.fixture(scope="module")
def plain_digests(plain):
    return digest_values(plain)


def test_two_runs_of_one_script_agree_whatever_the_hash_seed(plain, plain_digests):
    other = commands(seed="99")
    assert digest_values(other) == plain_digests
    assert len(set(plain_digests.values())) == len(plain_digests)
    different_bytes = [a["key"] for a, b in zip(plain, other, strict=True) if a["command"] != b["command"]]
    assert different_bytes  # the pickles themselves do differ


def test_a_moved_script_and_moved_lines_agree(tmp_path, plain_digests):
    moved = tmp_path / "elsewhere" / "renamed.py"
    moved.parent.mkdir()
    moved.write_text("# a comment\n\n\n" + SCRIPT.read_text())
    assert digest_values(commands(script=moved)) == plain_digests


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"cap": 4}, {"closure"}),
        ({"cap": 3.0}, {"closure"}),
        ({"default": 3}, {"closure"}),
        ({"limit": 11}, {"closure", "global"}),
        ({"names": ["new"]}, {"closure", "set"}),
        ({"factor": 0.25}, {"instance"}),
        ({"blue": 3}, {"enum"}),
        ({"replacement": "c"}, {"partial"}),
        ({"upper": False}, {"lambda"}),
    ],
)
def test_a_change_of_code_constant_closure_default_or_global_changes_the_digest(plain_digests, change, changed):
    now = digest_values(commands(**change))
    assert {key for key in now if now[key] != plain_digests[key]} == changed


@pytest.fixture
def user_modules(tmp_path):
    root = tmp_path / "root"
    (root / "pack").mkdir(parents=True)
    (root / "usermod.py").write_text("import math\nfrom pack.inner import K\n\ndef work(x):\n    return x + K\n")
    (root / "pack" / "__init__.py").write_text("")
    (root / "pack" / "inner.py").write_text("from . import deep\nK = deep.D\n")
    (root / "pack" / "deep.py").write_text("D = 1\n")
    (root / "pack" / "unused.py").write_text("U = 1\n")
    return root


def by_reference(root, roots=None):
    functions = [f for f in commands(path=[str(root)]) if f["key"] in ("by reference", "calls module")]
    assert len(functions) == 2
    return digests(functions, [root] if roots is None else roots)


def test_user_modules_count_by_the_content_that_they_reach(user_modules):
    before = by_reference(user_modules)
    assert all("digest" in each for each in before.values())
    (user_modules / "pack" / "unused.py").write_text("U = 2\n")
    assert by_reference(user_modules) == before
    (user_modules / "pack" / "deep.py").write_text("D = 2\n")
    after = by_reference(user_modules)
    assert before["by reference"] != after["by reference"]
    assert before["calls module"] != after["calls module"]


def test_a_zip_of_py_files_is_a_root(user_modules, tmp_path):
    before = by_reference(user_modules)
    archive = tmp_path / "files.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for path in user_modules.rglob("*.py"):
            made.write(path, path.relative_to(user_modules))
    functions = [f for f in commands(path=[str(user_modules)]) if f["key"] in before]
    assert digests(functions, [archive]) == before
    archive.write_bytes(b"not a zip")
    assert {each["refusal"]["code"] for each in digests(functions, [archive]).values()} == {"UDF_UNREADABLE"}


def test_modules_that_are_not_found_are_refused(user_modules, tmp_path):
    assert {each["refusal"]["code"] for each in by_reference(user_modules, []).values()} == {"UDF_MODULE_UNKNOWN"}
    (user_modules / "pack" / "deep.py").write_text("import no_such_module_anywhere\nD = 1\n")
    functions = by_reference_commands_without_import(user_modules)
    refusal = digests(functions, [user_modules])["x"]["refusal"]
    assert refusal["code"] == "UDF_MODULE_UNKNOWN"
    assert "no_such_module_anywhere" in refusal["detail"]
    (user_modules / "pack" / "deep.py").write_text(
        "try:\n    import no_such_module_anywhere\nexcept ImportError:\n    D = 1\n"
    )
    assert "digest" in digests(functions, [user_modules])["x"]
    (user_modules / "pack" / "deep.py").write_text("import random\nD = random.random()\n")
    assert digests(functions, [user_modules])["x"]["refusal"]["code"] == "UDF_UNPROVEN"


def by_reference_commands_without_import(root):
    # GLOBAL usermod.work, as pickle writes it for a function of a module.
    return [{"key": "x", "command": base64.b64encode(b"cusermod\nwork\n.").decode(), "pythonVersion": OUR_PYTHON}]


def refusal(function, version=OUR_PYTHON):
    from pyspark.cloudpickle import dumps

    command = base64.b64encode(dumps(function)).decode()
    found = digests([{"key": "x", "command": command, "pythonVersion": version}])["x"]
    return found.get("refusal", {}).get("code")


def local(source):
    """A function of no module, so that it is pickled by value."""
    space: dict = {"__name__": "__main__"}
    exec(source, space)
    return space["f"]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import math\nf = lambda x: math.sin(x)", None),
        ("import json, datetime\ndef f(x):\n    import decimal\n    return json.dumps(str(decimal.Decimal(x)))", None),
        ("import numpy as np, pandas as pd\nf = lambda s: pd.Series(np.log(s))", None),
        ("import random\nf = lambda x: random.random()", "UDF_UNPROVEN"),
        ("def f(x):\n    import uuid\n    return str(uuid.uuid4())", "UDF_UNPROVEN"),
        ("import datetime\nf = lambda x: datetime.datetime.now()", "UDF_UNPROVEN"),
        ("f = lambda path: open(path).read()", "UDF_UNPROVEN"),
        ("def f(x):\n    import no_such_module\n    return x", "UDF_MODULE_UNKNOWN"),
        ("f = [1, {'a': (2.5, None)}, b'x', frozenset({1, 2})]", None),
        ("f = 1\nfor _ in range(100): f = [f]", None),
        ("f = []\nf.append(f)", None),
    ],
)
def test_what_is_refused(source, code):
    assert refusal(local(source)) == code


def test_another_python_is_refused():
    assert refusal(len, "2.7") == "UDF_UNREADABLE"
    assert refusal(len, OUR_PYTHON + ".4") is None


def test_accumulators_and_broadcasts_are_side_effects():
    for command in (
        b"cpyspark.accumulators\n_deserialize_accumulator\n(I1\nI0\nNtR.",
        b"cpyspark.core.broadcast\n_from_id\n(I1\ntR.",
    ):
        with pytest.raises(UdfRefused) as refused:
            canonical_digest(read_symbols(command), Modules([], OUR_PYTHON).digest)
        assert refused.value.code == "UDF_SIDE_EFFECT"


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch " + os.environ.get("BOMB", "/nonexistent/x"),))


def test_nothing_is_executed(tmp_path, monkeypatch):
    target = tmp_path / "exploded"
    monkeypatch.setenv("BOMB", str(target))
    data = pickle.dumps(Bomb())
    canonical_digest(read_symbols(data), Modules([], OUR_PYTHON).digest)
    assert not target.exists()
    marker = tmp_path / "imported"
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    canonical_digest(read_symbols(b"cevil\nthing\n."), Modules([str(tmp_path)], OUR_PYTHON).digest)
    assert not marker.exists()
    assert "evil" not in sys.modules


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"\x80\x04", b"\x80\x04]", b"(lp0\n", b"cmodule\n", b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
     b"Ppersistent\n.", b"\x82\x01.", b"I1\nb.", b"I1\nI2\na.", b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."],
)  # fmt: skip
def test_unreadable_pickles(data):
    with pytest.raises(UdfRefused) as refused:
        read_symbols(data)
    assert refused.value.code == "UDF_UNREADABLE"


def test_a_pickle_that_grows_without_end_is_refused():
    # Lists of the list before, twice each: 2^60 objects by value.
    value: list = []
    for _ in range(60):
        value = [value, value]
    assert len(canonical_digest(read_symbols(pickle.dumps(value)), Modules([], OUR_PYTHON).digest)) == 32
    with pytest.raises(UdfRefused):
        read_symbols(b"0" * 20_000_000)
    cycle: list = []
    others: list = [cycle]
    for _ in range(40):
        others = [others, others, cycle]
    cycle.append(others)
    with pytest.raises(UdfRefused, match="objects"):
        canonical_digest(read_symbols(pickle.dumps(cycle)), Modules([], OUR_PYTHON).digest)


def test_not_base64_is_refused():
    found = digests([{"key": "x", "command": "%%%"}])
    assert found["x"]["refusal"]["code"] == "UDF_UNREADABLE"


def test_over_the_wire(tmp_path, plain, plain_digests):
    from wire_client import PlannerProcess

    with PlannerProcess(tmp_path) as planner:
        wire = planner.connect()
        answer = wire.ask({"type": "digest_udf", "functions": plain, "roots": [str(SCRIPT.parent)]})
    assert {key: each["digest"] for key, each in answer["digests"].items()} == plain_digests
    shutil.rmtree(tmp_path)
