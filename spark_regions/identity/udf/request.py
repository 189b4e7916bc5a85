"""`digest_udf` of docs/protocol.md."""

from __future__ import annotations

import base64
import binascii
import functools
import importlib.metadata
import sys
from collections.abc import Iterable

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.canonical import canonical_digest
from spark_regions.identity.udf.modules import Modules
from spark_regions.identity.udf.proving import prove
from spark_regions.identity.udf.symbols import read_symbols
from spark_regions.wire.messages import DigestFunctions, FunctionDigest, PickledFunction, Why

OUR_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
GIVEN = ("numpy", "pandas", "pyarrow")
"""Libraries whose values a function may be given, and so use without naming them."""


def digest_functions(asked: DigestFunctions, trusted: Iterable[str] = ()) -> dict[str, FunctionDigest]:
    """A digest or a refusal for every function of the request, by its key.

    :param trusted: modules that the user vouches for (`spark.regions.udf.trustedModules`)
    """
    answers: dict[str, FunctionDigest] = {}
    modules: dict[str, Modules] = {}
    for function in asked.functions:
        version = function.python_version or OUR_PYTHON
        if version not in modules:
            modules[version] = Modules(asked.roots, version)
        try:
            answers[function.key] = FunctionDigest(digest_function(function, modules[version], trusted))
        except UdfRefused as refused:
            answers[function.key] = FunctionDigest(refusal=Why(refused.code, refused.detail))
    return answers


def digest_function(function: PickledFunction, modules: Modules, trusted: Iterable[str] = ()) -> str:
    """Its identity, once it is shown to depend on its arguments alone.

    :raises UdfRefused: no identity
    """
    version = modules.python_version
    if not version.startswith(OUR_PYTHON + ".") and version != OUR_PYTHON:
        # Bytecode is read by the tables of our own Python.
        raise UdfRefused("UDF_UNREADABLE", f"Python {version}, the planner runs {OUR_PYTHON}")
    try:
        command = base64.b64decode(function.command, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UdfRefused("UDF_UNREADABLE", f"not base64: {error}") from error
    try:
        symbols = read_symbols(command)
        surroundings = [*prove(symbols, modules, trusted, function.hash_seed), *given()]
        return canonical_digest(symbols, modules.digest, surroundings)
    except (RecursionError, MemoryError) as error:
        raise UdfRefused("UDF_UNREADABLE", type(error).__name__) from error


@functools.cache
def given() -> tuple[str, ...]:
    """Versions of the libraries whose values a function may be given."""
    return tuple(f"{name} {_version(name)}" for name in GIVEN)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
