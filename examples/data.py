"""TPC-H and TPC-DS data as Parquet files, and the text of their queries for Spark.

Data are generated once per scale factor and kept; a folder that exists is complete, because it is made beside its place
and renamed when finished.

Run as a script: ``python examples/data.py tpch --scale 1``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp

import duckdb

DATA = Path(__file__).resolve().parent.parent / "data"

TPCH_TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def tpch(scale: float, root: Path = DATA) -> Path:
    """The folder of the TPC-H tables, one Parquet file each; generated on first use."""
    return finished(root / f"tpch-sf{scale:g}", lambda folder: _tpchgen(scale, folder))


def tpcds(scale: float, root: Path = DATA) -> Path:
    """The folder of the TPC-DS tables, one Parquet file each; generated on first use."""
    return finished(root / f"tpcds-sf{scale:g}", lambda folder: _dsdgen(scale, folder))


def tables(folder: Path) -> dict[str, Path]:
    """Table name to Parquet file."""
    return {file.stem: file for file in sorted(folder.glob("*.parquet"))}


def tpch_queries() -> dict[int, str]:
    """The 22 TPC-H queries in Spark's SQL, by number."""
    return _queries("tpch")


def tpcds_queries() -> dict[int, str]:
    """The 99 TPC-DS queries in Spark's SQL, by number."""
    return _queries("tpcds")


def spark_sql(text: str) -> str:
    """ANSI identifiers in Spark's quotes.

    >>> spark_sql('''SELECT 'a "b"' AS "order count"''')
    'SELECT \\'a "b"\\' AS `order count`'
    """
    quoted = re.compile(r"""('(?:[^']|'')*')|"([^"]*)\"""")
    return quoted.sub(lambda match: match[1] or f"`{match[2]}`", text).strip().rstrip(";")


def finished(folder: Path, generate: Callable[[Path], None]) -> Path:
    """The folder, filled by `generate` where it is missing; what was interrupted is made again."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        generate(unfinished)
        unfinished.chmod(0o755)
        os.rename(unfinished, folder)
    except OSError:
        # Another process may have finished the same folder first; a rename onto a folder that is not empty fails.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _tpchgen(scale: float, folder: Path) -> None:
    command = shutil.which("tpchgen-cli", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if command is None:
        raise FileNotFoundError("tpchgen-cli was not found. Hint: pip install tpchgen-cli")
    subprocess.run([command, "parquet", "-q", "-s", f"{scale:g}", f"--output-dir={folder}"], check=True)


def _dsdgen(scale: float, folder: Path) -> None:
    with _duckdb("tpcds") as connection:
        connection.execute(f"CALL dsdgen(sf = {scale:g})")
        names = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
        for name in names:
            connection.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet)")


def _queries(suite: str) -> dict[int, str]:
    with _duckdb(suite) as connection:
        rows = connection.execute(f"SELECT query_nr, query FROM {suite}_queries() ORDER BY query_nr").fetchall()
    return {number: spark_sql(text) for number, text in rows}


def _duckdb(extension: str) -> duckdb.DuckDBPyConnection:
    """A connection with the extension's binary from its own package: nothing is downloaded."""
    package = Path(str(import_module(f"duckdb_extension_{extension}").__file__)).parent
    binary = package / "extensions" / f"v{duckdb.__version__}" / f"{extension}.duckdb_extension"
    if not binary.is_file():
        raise FileNotFoundError(
            f"{binary} was not found. Hint: duckdb and duckdb-extension-{extension} must have the same version"
        )
    connection = duckdb.connect()
    connection.execute(f"LOAD '{binary}'")
    return connection


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Generate TPC-H or TPC-DS data as Parquet files.")
    parser.add_argument("suite", choices=("tpch", "tpcds"))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--root", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    print((tpch if options.suite == "tpch" else tpcds)(options.scale, options.root))


if __name__ == "__main__":
    main()
