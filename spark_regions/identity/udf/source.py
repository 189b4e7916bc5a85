"""Modules of the user's own, that functions are pickled by reference to: read from their source, never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.allowed import allowed
from spark_regions.identity.udf.machine import Machine
from spark_regions.identity.udf.modules import Modules
from spark_regions.identity.udf.proof import Proof
from spark_regions.identity.udf.rules import collect_strings
from spark_regions.identity.udf.values import DATA, Function, Library, UserClass, UserModule, Value

OURS = "spark_regions"
_REFLECTING = frozenset(("globals", "locals", "vars", "exec"))
_SETTING = frozenset(("setattr", "delattr"))
_Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class SourceModules:
    """What the name of a module stands for: source of the user's, an entry of the lists, or the user's own word.

    :param trusted: names of modules that the user vouches for; submodules are included
    """

    def __init__(self, modules: Modules, trusted: Iterable[str] = ()) -> None:
        self.modules = modules
        self.trusted_names = frozenset(trusted)
        self._read: dict[str, SourceModule | None] = {}

    def trusted(self, path: str) -> Value | None:
        parts = path.split(".")
        names = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        return DATA.named(path) if self.trusted_names and self.trusted_names & set(names) else None

    def resolve(self, proof: Proof, name: str) -> Value | None:
        name = proof.allowed.aliases.get(name, name)
        trusted = self.trusted(name)
        if trusted is not None:
            return trusted
        if name != OURS and self.source(name) is not None:
            return Value(name, known=UserModule(name))
        if proof.allowed.has(name):
            return proof.library(name, name)
        return None

    def check(self, name: str) -> None:
        """
        :raises UdfRefused: there is no such module
        """
        self.modules.digest(name)

    def source(self, name: str) -> SourceModule | None:
        if name not in self._read:
            content = self.modules.source(name)
            self._read[name] = None  # a circle of imports ends here
            if content is not None:
                self._read[name] = module = SourceModule(self, name, content, self.modules.is_package(name))
                module.check_patches()
        return self._read[name]

    def attribute(self, proof: Proof, module: str, name: str) -> Value | None:
        """A module's attribute: what its source binds, or a module inside of it."""
        source = self.source(module)
        found = source.lookup(proof, name) if source is not None else None
        if found is None and self.source(f"{module}.{name}") is not None:
            return Value(f"{module}.{name}", known=UserModule(f"{module}.{name}"))
        return found

    def member(self, proof: Proof, owner: Value, name: str) -> Value | None:
        """An attribute of a module or class that is known; None where nothing is known of it."""
        known = owner.known
        if isinstance(known, UserModule):
            return self.attribute(proof, known.name, name)
        if isinstance(known, UserClass):
            return known.attributes.get(name)
        if isinstance(known, Library) and proof.allowed.has(f"{known.path}.{name}"):
            return proof.library(f"{known.path}.{name}")
        if known is None and owner == DATA.named(owner.text):
            return DATA.named(f"{owner.text}.{name}")
        return None


class SourceModule:
    """One module's top level. A name is what the statements that bind it give; they are followed when it is asked."""

    def __init__(self, modules: SourceModules, name: str, content: bytes, package: bool) -> None:
        self.modules = modules
        self.name = name
        self.package = package
        self._values: dict[str, Value | None] = {}
        try:
            self.tree = ast.parse(content)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise UdfRefused("UDF_UNREADABLE", f"{name} cannot be parsed") from error
        self._statements = [part for each in self.tree.body for part in _unless_main(each)]
        self._check_reflection()

    def absolute(self, name: str, level: int) -> str:
        parts = self.name.split(".") if self.package else self.name.split(".")[:-1]
        above = parts[: len(parts) - level + 1]
        return ".".join([*above, *([name] if name else [])])

    def check_patches(self) -> None:
        """
        :raises UdfRefused: the module, or one of the user's that it imports, sets an attribute of another module
        """
        modules: set[str] = set()
        users: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names = {(each.asname or each.name).split(".")[0]: each.name for each in node.names}
                modules.update(names)
            elif isinstance(node, ast.ImportFrom):
                origin = self.absolute(node.module or "", node.level) if node.level else node.module or ""
                names = {each.asname or each.name: origin for each in node.names}
                modules.update(name for name in names if self.modules.source(f"{origin}.{name}") is not None)
            else:
                continue
            users.update(name for name, origin in names.items() if self.modules.source(origin) is not None)
        for statement in ast.walk(self.tree):
            if isinstance(statement, ast.stmt):
                modules |= _renames(statement, modules) if isinstance(statement, ast.Assign) else set()
                users |= _renames(statement, users) if isinstance(statement, ast.Assign) else set()
        for node in ast.walk(self.tree):
            line = _patched(node, modules, users)
            if line:
                where = f"{self.name}, line {line}"
                raise UdfRefused("UDF_MUTABLE_STATE", f"what another module holds is changed ({where})")

    def _check_reflection(self) -> None:
        """
        :raises UdfRefused: the module may set names that no statement of it binds
        """
        for node in ast.walk(self.tree):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if called in _REFLECTING or (isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.modules"):
                where = f"{self.name}, line {node.lineno}"  # type: ignore[attr-defined]
                raise UdfRefused("UDF_UNPROVEN", f"{called or 'sys.modules'} in a module ({where})")
        for statement in self._statements:
            for node in _outside_functions(statement):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SETTING:
                    where = f"{self.name}, line {node.lineno}"
                    raise UdfRefused("UDF_UNPROVEN", f"{node.func.id} while the module is imported ({where})")

    def lookup(self, proof: Proof, name: str) -> Value | None:
        if name == "__name__":
            return DATA.named("__name__")
        if name not in self._values:
            self._values[name] = DATA.named(name)  # what it refers to while it is made
            self._values[name] = self._bound(proof, name)
        return self._values[name]

    def _bound(self, proof: Proof, name: str) -> Value | None:
        binding = [each for each in self._statements if name in _binds(each)]
        if not binding:
            return self._starred(proof, name)
        if any(_deletes(each, name) for each in self._statements):
            raise UdfRefused("UDF_UNPROVEN", f"{self.name}.{name}, which is deleted")
        aliases = self._aliases(name)
        touching = [
            each for each in self._statements if each not in binding and any(_touches(each, alias) for alias in aliases)
        ]
        ordered = [each for each in self._statements if each in binding or each in touching]
        namespace: dict[str, Value] = {}
        for statement in ordered:
            code = compile(ast.Module([statement], []), f"{self.name}.py", "exec", dont_inherit=True)
            function = Function(code.replace(co_name=self.name), self, at_import=True)
            collect_strings(proof, code)
            Machine(proof, function, namespace).run()
        found = namespace.get(name)
        mutable = found is not None and not isinstance(found.known, Function | UserClass | UserModule | Library)
        for alias in aliases if mutable else {name}:
            self._check_writers(alias, mutable)
        return found

    def _aliases(self, name: str) -> set[str]:
        """Names at the top level that may stand for the same object, or for something that holds it."""
        found = {name}
        while True:
            more = {bound for each in self._statements for bound in _renames(each, found)} - found
            if not more:
                return found
            found |= more

    def _starred(self, proof: Proof, name: str) -> Value | None:
        for statement in self._statements:
            if isinstance(statement, ast.ImportFrom) and any(each.name == "*" for each in statement.names):
                origin = self.absolute(statement.module or "", statement.level)
                origin = origin if statement.level else statement.module or ""
                owner = self.modules.resolve(proof, origin)
                found = self.modules.member(proof, owner, name) if owner is not None else None
                if found is not None:
                    return found
        return None

    def _check_writers(self, name: str, mutable: bool) -> None:
        for function in _functions(self.tree):
            line = _written(function, name, mutable)
            if line:
                raise UdfRefused("UDF_MUTABLE_STATE", f"{self.name}.{name} is written in line {line} of the module")


def _unless_main(statement: ast.stmt) -> list[ast.stmt]:
    """What of a statement runs in a module that is imported."""
    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare):
        test = statement.test
        sides = [ast.unparse(each) for each in (test.left, *test.comparators)]
        if len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq) and sorted(sides) == ["'__main__'", "__name__"]:
            return statement.orelse
    return [statement]


def _binds(statement: ast.AST) -> set[str]:
    """Names that a statement at the top level binds, blocks inside of it included."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    found: set[str] = set()
    for node in _outside_functions(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update((each.asname or each.name).split(".")[0] for each in node.names)
    return found


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Scope):
            yield child
        else:
            yield from _outside_functions(child)


def _touches(statement: ast.stmt, name: str) -> bool:
    """Whether a statement may change what the name stands for: a call on it, an item or attribute of it that is set."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        return False
    plain = isinstance(statement, ast.Assign) and all(isinstance(each, ast.Name) for each in statement.targets)
    return not plain and any(isinstance(node, ast.Name) and node.id == name for node in _outside_functions(statement))


def _functions(tree: ast.AST) -> Iterator[ast.AST]:
    return (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def _patched(node: ast.AST, modules: set[str], users: set[str]) -> int:
    """The line in which an attribute of a module is set, or what a module of the user's holds is changed; 0 if none."""
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.lineno if _root(node) in (users | modules if isinstance(node, ast.Attribute) else users) else 0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in allowed().changes:
        return node.lineno if _root(node.func) in users else 0
    return 0


def _deletes(statement: ast.stmt, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del)
        for node in _outside_functions(statement)
    )


def _renames(statement: ast.stmt, names: set[str]) -> set[str]:
    """What a statement gives an object to that one of the names stands for: other names, and receivers of calls."""
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        if _mentions(statement.value, names):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return {node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name)}
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if any(_mentions(each, names) for each in call.args) and isinstance(call.func, ast.Attribute):
            return {_root(call.func)} - {""}
    return set()


def _mentions(node: ast.AST, names: set[str]) -> bool:
    """Whether one of the names stands in it, but for what is only called or called with."""
    if isinstance(node, ast.Call | ast.Lambda):
        return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(_mentions(child, names) for child in ast.iter_child_nodes(node))


def _written(function: ast.AST, name: str, mutable: bool) -> int:
    """The line in which a function writes the global, or changes what it stands for; 0 if none."""
    declared = any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(function))
    local = not declared and any(
        (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.arg) and node.arg == name)
        for node in ast.walk(function)
    )
    if local:
        return 0
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and declared and not isinstance(node.ctx, ast.Load):
            return node.lineno
        if not mutable:
            continue
        stored = node if isinstance(node, ast.Subscript | ast.Attribute) else None
        if stored is not None and not isinstance(stored.ctx, ast.Load) and _root(stored) == name:
            return stored.lineno
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in allowed().changes and _root(called) == name:
            return called.lineno
    return 0


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
