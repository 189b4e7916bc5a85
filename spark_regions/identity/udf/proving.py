"""The proof of one function that came in a pickle."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.allowed import allowed
from spark_regions.identity.udf.modules import Modules
from spark_regions.identity.udf.pickled import Pickled
from spark_regions.identity.udf.proof import Proof
from spark_regions.identity.udf.source import SourceModules
from spark_regions.identity.udf.symbols import Symbols
from spark_regions.identity.udf.values import Function

_ZONE_FILES = ("/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo/tzdata.zi")


def prove(symbols: Symbols, modules: Modules, trusted: Iterable[str] = (), hash_seed: str = "0") -> list[str]:
    """What a function depends on beside its arguments and its own code: the machine's time zone, the order of sets.

    :param hash_seed: PYTHONHASHSEED of the workers; "" or "random" where it is not fixed
    :raises UdfRefused: it is not shown to depend on its arguments alone
    """
    if symbols.effects:
        raise UdfRefused("UDF_UNPROVEN", "a call when the function is read")
    sources = SourceModules(modules, trusted)
    proof = Proof(allowed(), sources)
    pickled = Pickled(proof)
    root = pickled.value(symbols.root, "the function")
    # PySpark sends a function and its return type.
    sent = symbols.root[0] if isinstance(symbols.root, tuple) and symbols.root else symbols.root
    known = pickled.value(sent).known
    if isinstance(known, Function):
        known.by_spark = True
    proof.escape(None, root)
    proof.use("__call__", root if root.shared else root.part())
    proof.settle()
    found = [local_zone()] if "zone" in proof.marks else []
    if "sets" in proof.marks:
        if not hash_seed.isdecimal():
            raise UdfRefused("UDF_NONDETERMINISTIC", "the order of a set: PYTHONHASHSEED is not fixed")
        found.append(f"hash seed {hash_seed}")
    return found


def local_zone() -> str:
    """The time zone of this machine and the version of its zone data, as far as they can be told apart."""
    state = hashlib.sha256(repr((os.environ.get("TZ"), time.tzname, time.timezone)).encode())
    for name in _ZONE_FILES:
        try:
            state.update(Path(name).read_bytes())
        except OSError:
            state.update(b"none")
    return f"zone {state.hexdigest()[:32]}"
