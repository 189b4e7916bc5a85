"""Runs every cell of `impure.txt` twice in one of two worlds, and prints what came out.

python -m tests.udf.world A|B FOLDER: the folder's files hold the letter.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import sqlite3
import sys
import time
import warnings
import zipfile
from pathlib import Path

from tests.udf.cells import cells, space_of


def furnish(letter: str) -> None:
    """Files of the working directory: the same names in both worlds, with other content."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    number = ord(letter)
    Path("data.txt").write_text(letter * (number - 60))
    Path("data.csv").write_text(f"a,b\n{number},1\n")
    Path("data.json").write_text(json.dumps({"limit": number}))
    Path("data.xml").write_text(f"<r k='{letter}'/>")
    Path("data.ini").write_text(f"[a]\nx = {letter}\n")
    Path("data.pkl").write_bytes(pickle.dumps(letter))
    Path("data.gz").write_bytes(gzip.compress(letter.encode()))
    with zipfile.ZipFile("data.zip", "w") as archive:
        archive.writestr("a", letter)
    with sqlite3.connect("data.db") as database:
        database.execute("create table t (a text)")
        database.execute("insert into t values (?)", (letter,))
    numpy.save("data.npy", numpy.array([number]))
    pyarrow.parquet.write_table(pyarrow.table({"a": [number]}), "data.parquet")
    script = Path(f"only-in-{letter}")
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)


def twice(source: str) -> list[str]:
    space = space_of(source)
    found = []
    for _ in range(2):
        try:
            found.append(repr(space["f"](*space["args"])))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def main(letter: str, folder: str) -> None:
    os.chdir(folder)
    furnish(letter)
    warnings.simplefilter("ignore")
    found = {title: twice(source) for title, source in cells("impure.txt").items()}
    # What was done within one tick of a clock is done again after it.
    time.sleep(1.2)
    print(json.dumps({title: [*results, *twice(cells("impure.txt")[title])] for title, results in found.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
