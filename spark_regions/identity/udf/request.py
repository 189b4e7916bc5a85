"""`digest_udf` of docs/protocol.md."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from spark_regions.errors import InvalidRequest, UdfRefused
from spark_regions.identity.udf.canonical import canonical_digest
from spark_regions.identity.udf.modules import Modules
from spark_regions.identity.udf.proving import prove
from spark_regions.identity.udf.symbols import read_symbols

MAX_FUNCTIONS = 1_000
OUR_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def digest_functions(message: Mapping[str, Any], trusted: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
    """A digest or a refusal for every function of the message, by its key.

    :param trusted: modules that the user vouches for (`spark.regions.udf.trustedModules`)

    :raises InvalidRequest: the message breaks the protocol
    """
    functions = message.get("functions")
    roots = message.get("roots") or []
    if not isinstance(functions, list) or len(functions) > MAX_FUNCTIONS or not isinstance(roots, list):
        raise InvalidRequest(f"digest_udf: expected a list of at most {MAX_FUNCTIONS} functions and a list of roots")
    answers: dict[str, dict[str, Any]] = {}
    modules: dict[str, Modules] = {}
    for function in functions:
        if not isinstance(function, Mapping) or "key" not in function:
            raise InvalidRequest("digest_udf: a function without key")
        version = str(function.get("pythonVersion") or OUR_PYTHON)
        if version not in modules:
            modules[version] = Modules(map(str, roots), version)
        try:
            answers[str(function["key"])] = {"digest": digest_function(function, modules[version], trusted)}
        except UdfRefused as refused:
            answers[str(function["key"])] = {"refusal": {"code": refused.code, "detail": refused.detail}}
    return answers


def digest_function(function: Mapping[str, Any], modules: Modules, trusted: Iterable[str] = ()) -> str:
    """Its identity, once it is shown to depend on its arguments alone.

    :raises UdfRefused: no identity
    """
    version = modules.python_version
    if not version.startswith(OUR_PYTHON + ".") and version != OUR_PYTHON:
        # Bytecode is read by the tables of our own Python.
        raise UdfRefused("UDF_UNREADABLE", f"Python {version}, the planner runs {OUR_PYTHON}")
    try:
        command = base64.b64decode(str(function.get("command") or ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise UdfRefused("UDF_UNREADABLE", f"not base64: {error}") from error
    try:
        symbols = read_symbols(command)
        surroundings = prove(symbols, modules, trusted, str(function.get("hashSeed", "0")))
        return canonical_digest(symbols, modules.digest, surroundings)
    except (RecursionError, MemoryError) as error:
        raise UdfRefused("UDF_UNREADABLE", type(error).__name__) from error
