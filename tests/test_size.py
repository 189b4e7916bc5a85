"""How large the package and the shim are: a change that raises the ceiling says in the changelog why."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CEILING = 65_000
MADE = ("Messages.scala", "Policy.scala")
"""By the build, of `spark_regions/wire` and `spark_regions/costs/policy.py`."""
SIZE = {"spark_regions": ("*.py", "*.js"), "jvm-shim/src/main": ("*.scala", "*.js")}


def test_package_and_shim_stay_within_the_ceiling() -> None:
    files = [path for folder, kinds in SIZE.items() for kind in kinds for path in (ROOT / folder).rglob(kind)]
    files = [path for path in files if path.name not in MADE]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    print(f"{lines} lines in {len(files)} files")
    assert len(files) > 300
    assert CEILING - 500 < lines <= CEILING, "a ceiling far above is none: lower it"
