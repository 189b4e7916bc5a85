"""A program as Python: what the oracle executes, and the script of a failing one for people to run."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from types import CodeType

from tests.fuzz import schemas
from tests.fuzz.programs import Program

_PRELUDE = Path(__file__).with_name("prelude.py")

_HEAD = '''"""{reason}

`python {name}` runs it with plain Spark, `python {name} plugin` with spark_regions: three times, the last time in
another session. It prints what each of its actions gives.
"""
'''

_TAIL = """
SPECS = {specs}
COLUMNS = {columns}
CONFS = {confs}


def program(spark, inputs, act):
{body}


def main():
    import sys
    import tempfile

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.files.openCostInBytes", "1").config("spark.sql.files.maxPartitionBytes", "4k")
    folder = Path(tempfile.mkdtemp())
    plugin = sys.argv[1:] == ["plugin"]
    if plugin:
        import spark_regions

        builder = builder.config("spark.regions.recycle.strategy", "always")
        builder = spark_regions.configure(builder, recycle_dir=folder / "store", planner_deadline="10s")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    library = {{name: folder / "library" / name for name in SPECS}}
    for name, spec in SPECS.items():
        write_data(spark, COLUMNS[name], {files}, {rows}, library[name], spec)
    for session in [spark, spark, spark.newSession()] if plugin else [spark]:
        if plugin:
            session.conf.set("spark.regions.recycle.strategy", "always")
        for key, value in CONFS.items():
            session.conf.set(key, value)
        print("=" * 40)
        inputs = Inputs(session, folder, library, SPECS)
        inputs.start()
        program(session, inputs, shown)
        session.catalog.clearCache()
    spark.stop()


def shown(build):
    try:
        rows = build().collect()
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
    else:
        print(len(rows), "rows:", *sorted(map(str, rows)), sep="\\n  ")


main()
"""


@functools.cache
def prelude() -> CodeType:
    return compile(_PRELUDE.read_text(encoding="utf-8"), "prelude.py", "exec")


def lines(program: Program) -> str:
    return "\n".join(step["code"] for step in program["steps"])


def body(program: Program) -> CodeType:
    return compile(lines(program), "program.py", "exec")


def script(program: Program, reason: str, name: str) -> str:
    """A program that stands alone."""
    specs = {key: {**spec, "ddl": schemas.declared(spec["schema"])} for key, spec in program["inputs"].items()}
    columns = {key: schemas.selected(spec["schema"]) for key, spec in specs.items()}
    text = _PRELUDE.read_text(encoding="utf-8").split('"""', 2)[2]
    tail = _TAIL.format(
        specs=repr(specs),
        columns=repr(columns),
        confs=repr(program["confs"]),
        body="\n".join(f"    {line}" for line in lines(program).splitlines()),
        files=schemas.FILES,
        rows=schemas.ROWS_PER_FILE,
    )
    return _HEAD.format(reason=reason.replace('"""', "'''"), name=name) + text + tail


def save(program: Program, reason: str, folder: Path, name: str) -> Path:
    """As a fixture: the program and why it is one."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}.json"
    target.write_text(json.dumps({"reason": reason, **program}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return target


def load(path: Path) -> Program:
    found: Program = json.loads(path.read_text(encoding="utf-8"))
    return found
