"""Identity of modules that functions are pickled by reference to. Nothing is imported."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from spark_regions._version import __version__
from spark_regions.errors import UdfRefused

MAX_MODULES = 2_000
MAX_SOURCE_BYTES = 16 * 1024 * 1024
_distributions: dict[str, str | None] = {}


class Modules:
    """Modules as the driver would find them: below `roots` first, then the standard library and what is installed.

    :param roots: directories, zip files, or single files, in the order of the driver's sys.path
    :param python_version: of the functions, such as "3.11"
    """

    def __init__(self, roots: Iterable[str], python_version: str) -> None:
        self.roots = [Path(root) for root in roots if root]
        self.python_version = python_version
        self._digests: dict[str, str] = {}
        self._sources: dict[str, bytes | None] = {}

    def digest(self, module: str) -> str:
        """What the module is: its version, or the content of its files and of the user's modules that it imports.

        :raises UdfRefused: not found, or it cannot be read
        """
        found = self._digests.get(module)
        if found is None:
            found = self._digests[module] = self._find(module)
        return found

    def _find(self, module: str) -> str:
        if self.source(module) is not None:
            return self._content(module)
        fixed = self._version(module)
        if fixed is None:
            raise UdfRefused("UDF_MODULE_UNKNOWN", module)
        return fixed

    def _version(self, module: str) -> str | None:
        top = module.split(".")[0]
        if module == "spark_regions":
            return f"spark_regions {__version__}"
        if top in sys.stdlib_module_names or top in ("builtins", "__builtin__", "copy_reg"):
            return f"python {self.python_version}"
        return distribution(top)

    def _content(self, start: str) -> str:
        """Digest of the files that `start` consists of and reaches by imports."""
        state = hashlib.sha256()
        waiting = [start]
        seen: set[str] = set()
        parts: dict[str, bytes] = {}
        while waiting:
            module = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            if len(seen) > MAX_MODULES:
                raise UdfRefused("UDF_UNREADABLE", f"{start} imports more than {MAX_MODULES} modules")
            source = self.source(module)
            if source is None:
                continue
            parts[module] = source
            waiting.extend(_parents(module))
            for name, required in _imported(module, source, self.is_package(module)):
                waiting.extend(self._imported_module(start, name, required, parts))
        for module in sorted(parts):
            state.update(module.encode() + b"\0" + hashlib.sha256(parts[module]).digest())
        return f"source {state.hexdigest()}"

    def _imported_module(self, start: str, name: str, required: bool, parts: dict[str, bytes]) -> list[str]:
        if self.source(name) is not None:
            return [name]
        fixed = self._version(name)
        if fixed is not None:
            parts["=" + name.split(".")[0]] = fixed.encode()
            return []
        # `from package import name`: the name may be an attribute of a module that is known.
        parent = name.rpartition(".")[0]
        if parent and self.source(parent) is not None:
            return [parent]
        if required:
            raise UdfRefused("UDF_MODULE_UNKNOWN", f"{name}, imported by {start}")
        parts["?" + name] = b"missing"
        return []

    def source(self, module: str) -> bytes | None:
        if module not in self._sources:
            self._sources[module] = self._read(module)[0]
        return self._sources[module]

    def is_package(self, module: str) -> bool:
        return self._read(module)[1]

    def _read(self, module: str) -> tuple[bytes | None, bool]:
        """Content of the module's file, and whether it is a package's."""
        if not all(part.isidentifier() for part in module.split(".")):
            return None, False
        inner = module.replace(".", "/")
        for root in self.roots:
            if root.suffix in (".zip", ".egg", ".whl", ".jar") and root.is_file():
                for name, package in ((f"{inner}/__init__.py", True), (f"{inner}.py", False)):
                    content = _from_zip(root, name)
                    if content is not None:
                        return content, package
            elif root.suffix == ".py" and root.stem == module:
                return _from_file(root), False
            elif root.is_dir():
                for path, package in _candidates(root / inner):
                    if path.is_file():
                        return _from_file(path), package
        return None, False


def distribution(top: str) -> str | None:
    """Name and version of the installed distribution that has the top-level module; None if there is none."""
    if top not in _distributions:
        _distributions[top] = _lookup(top)
    return _distributions[top]


def _lookup(top: str) -> str | None:
    try:
        same_name = importlib.metadata.distribution(top)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        same_name = None
    if same_name is not None and _has_module(same_name, top):
        return _named(same_name)
    names = _distributions_of_modules().get(top)
    if not names:
        return None
    found = [_named(importlib.metadata.distribution(name)) for name in sorted(set(names))]
    return None if any(each is None for each in found) else " ".join(each for each in found if each)


@functools.cache
def _distributions_of_modules() -> Mapping[str, list[str]]:
    """Reads the list of files of all that is installed."""
    return importlib.metadata.packages_distributions()


def _named(found: importlib.metadata.Distribution) -> str | None:
    """None for an editable install: its files change and its version does not."""
    direct = found.read_text("direct_url.json")
    if direct and json.loads(direct).get("dir_info", {}).get("editable"):
        return None
    return f"{found.metadata['Name']} {found.version}"


def _has_module(found: importlib.metadata.Distribution, top: str) -> bool:
    listed = found.read_text("top_level.txt")
    if listed is not None:
        return top in listed.split()
    return any(path.parts[0] in (top, f"{top}.py") for path in found.files or ())


def _candidates(base: Path) -> Iterator[tuple[Path, bool]]:
    yield base / "__init__.py", True
    yield base.with_name(base.name + ".py"), False
    # Compiled modules: their content is their identity, and what they import is unknown but rarely the user's.
    yield from ((path, False) for path in sorted(base.parent.glob(f"{base.name}.*.so")))


def _from_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_SOURCE_BYTES:
            raise UdfRefused("UDF_UNREADABLE", f"{path.name} is larger than {MAX_SOURCE_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise UdfRefused("UDF_UNREADABLE", f"{path.name}: {error.strerror}") from error


def _from_zip(archive: Path, name: str) -> bytes | None:
    try:
        with zipfile.ZipFile(archive) as opened:
            try:
                info = opened.getinfo(name)
            except KeyError:
                return None
            if info.file_size > MAX_SOURCE_BYTES:
                raise UdfRefused("UDF_UNREADABLE", f"{name} is larger than {MAX_SOURCE_BYTES} bytes")
            return opened.read(info)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise UdfRefused("UDF_UNREADABLE", f"{archive.name}: {error}") from error


def _parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _imported(module: str, source: bytes, package: bool) -> Iterator[tuple[str, bool]]:
    """Modules that a source names in imports, anywhere in it; and whether it cannot do without (outside of `try`)."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    optional = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for inner in ast.walk(node)
    }
    base = module.split(".") if package else module.split(".")[:-1]
    for node in ast.walk(tree):
        required = id(node) not in optional
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, required
        elif isinstance(node, ast.ImportFrom):
            above = base[: len(base) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            if origin:
                yield origin, required
            for alias in node.names:
                if alias.name != "*" and origin:
                    yield f"{origin}.{alias.name}", False
