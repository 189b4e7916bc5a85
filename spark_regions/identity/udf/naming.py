"""What a name, an attribute or an item is: looked up in the lists, in the user's code, or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spark_regions.identity.udf import rules
from spark_regions.identity.udf.instructions import Instructions
from spark_regions.identity.udf.values import (
    CLASS,
    DATA,
    ITERATOR,
    NOTHING,
    SHOWING,
    UNPROVEN,
    Checked,
    Function,
    Guarded,
    Instance,
    Library,
    Method,
    UserClass,
    UserModule,
    Value,
    is_dunder,
    is_mutable,
    joined,
    mixed,
)

if TYPE_CHECKING:
    from spark_regions.identity.udf.proof import Proof

_HOOKS = ("__getattr__", "__getattribute__", "__get__")
_NAMES_OF_FUNCTIONS = frozenset(("__name__", "__qualname__", "__doc__", "__module__", "__call__"))
_CLASS_PARTS = frozenset(("__class__", "__mro__", "__bases__", "__func__", "__self__", "__wrapped__", "__members__"))


def global_name(proof: Proof, machine: Instructions, name: str) -> Value:
    found: Value | None = machine.function.names.lookup(proof, name)
    if found is not None:
        if found.known == ITERATOR:
            raise proof.refused(machine, "UDF_MUTABLE_STATE", f"{name}, which iterating over uses up")
        return found.named(name) if found.known is None else found
    path = f"builtins.{name}"
    if not proof.allowed.has(path):
        raise proof.refused(machine, UNPROVEN, f"{name}")
    return library(proof, path, name)


def library(proof: Proof, path: str, text: str = "", owner: Value = DATA) -> Value:
    """What the lists say of a dotted name that they have."""
    rule = proof.allowed.rule(path)
    if path in proof.allowed.constants:
        return DATA.named(text or path)
    if rule:
        return Value(text or path, known=Checked(f"{rule} {path}", owner))
    return Value(text or path, known=Library(path), literal=True)


def imported(proof: Proof, machine: Instructions, name: str, level: int, whole: bool) -> Value:
    if level:
        name = machine.function.names.absolute(name, level)
    found: Value | None = None
    for each in (name, name.split(".")[0] if whole else name):
        found = proof.modules.resolve(proof, each)
        if found is None:
            proof.modules.check(each)
            raise proof.refused(machine, UNPROVEN, f"the module {each}")
    return found or DATA


def attribute(proof: Proof, machine: Instructions, owner: Value, name: str) -> Value:
    text = f"{owner.text}.{name}"
    known = owner.known
    if isinstance(known, Library):
        return _of_library(proof, machine, owner, known, name, text)
    if isinstance(known, UserModule):
        found: Value | None = proof.modules.attribute(proof, known.name, name)
        if found is None:
            raise proof.refused(machine, UNPROVEN, text)
        if found.known == ITERATOR:
            raise proof.refused(machine, "UDF_MUTABLE_STATE", f"{text}, which iterating over uses up")
        return found if found.known is not None else found.named(text)
    if isinstance(known, UserClass) and name in known.attributes:
        value = known.attributes[name]
        proof.add_class(known)
        if known.is_enum and value.known is None:
            return replace(mixed([is_mutable(value)], text), shared=True, taken=True)
        if isinstance(value.known, Function) and value.known.kind == "class":
            return Value(text, known=Method(name, CLASS))
        return value.named(text) if value.known is None else value
    if isinstance(known, Instance) and proof.allowed.rule(f"{known.type}.{name}") == "":
        return owner.part(text)
    if isinstance(known, Guarded):
        if name not in proof.allowed.guarded.get(known.type, ()):
            raise proof.refused(machine, UNPROVEN, text)
        return Value(text, known=Guarded(known.type) if name in rules.STAY_GUARDED else None)
    if isinstance(known, Checked):
        return _of_library(proof, machine, owner, Library(known.rule.partition(" ")[2]), name, text)
    if isinstance(known, Function) and name not in _NAMES_OF_FUNCTIONS:
        if name in proof.allowed.unproven or (is_dunder(name) and name not in proof.allowed.every):
            raise proof.refused(machine, UNPROVEN, text)
        # What was set on a function is there at the next call.
        return Value(text, shared=True, inner=True, taken=True)
    return _of_unknown(proof, machine, owner, name, text)


def _of_library(proof: Proof, machine: Instructions, owner: Value, known: Library, name: str, text: str) -> Value:
    path = f"{known.path}.{name}"
    if proof.allowed.has(path):
        return library(proof, path, text)
    trusted: Value | None = proof.modules.trusted(path)
    if trusted is not None:
        return trusted
    if name in proof.allowed.every and known.path not in proof.allowed.modules:
        return replace(DATA.named(text), shared=name == "__dict__")
    raise proof.refused(machine, UNPROVEN, text)


def _of_unknown(proof: Proof, machine: Instructions, owner: Value, name: str, text: str) -> Value:
    methods = proof.use(name, owner)
    plain = [
        is_mutable(each.attributes[name])
        for each in proof.classes
        if name in each.attributes and not isinstance(each.attributes[name].known, Function | Instance)
    ]
    if name in SHOWING:
        proof.shown(machine, owner)
    elif name in proof.allowed.changing_every or (name in proof.allowed.changes and name not in proof.allowed.rules):
        proof.put(machine, owner, [], f"{text}(…) changes it")
    elif name.startswith("__") and name.endswith("__"):
        if name not in proof.allowed.every and not methods and not plain:
            raise proof.refused(machine, UNPROVEN, text)
    elif name in proof.allowed.rules and name not in proof.allowed.unproven:
        if name in proof.allowed.changes:
            proof.put(machine, owner, [], f"{text}(…) changes it")
        return Value(text, known=Checked(f"{proof.allowed.rules[name]} .{name}", owner))
    elif not proof.allowed.is_pure_on_all(name) and not (
        proof.allowed.may_be_a_field(name) or (name not in proof.allowed.unproven and _is_private(proof, name))
    ):
        raise proof.refused(machine, UNPROVEN, text)
    found = [each.returned for each in methods]
    for each in proof.classes:
        found += [hook.returned for hook in map(each.method, _HOOKS) if hook is not None]
    if any(isinstance(each.attributes.get(name, DATA).known, Instance) for each in proof.classes):
        # A field with a factory: what functions give that are not seen to be called.
        found += [each.returned for each in proof.functions if each.escaped]
    shared = owner.inner or any(each.shared for each in [*plain, *found])
    return Value(
        text,
        known=Method(name, replace(owner, known=None)),
        shared=shared or name in _CLASS_PARTS or (name == "__dict__" and owner.shared),
        inner=owner.inner or name in _CLASS_PARTS or any(each.inner or each.shared for each in [*plain, *found]),
        taken=True,
        address=joined([owner.part(), *found]).address,
    )


def _is_private(proof: Proof, name: str) -> bool:
    """A name with an underscore that the user's own classes have, or that a named tuple has."""
    return name in rules.NAMED_TUPLE or bool(proof.classes)


def item(proof: Proof, machine: Instructions, owner: Value) -> Value:
    if isinstance(owner.known, UserClass):
        proof.add_class(owner.known)
        kept = owner.known.is_enum
        return Value(f"{owner.text}[…]", shared=kept, inner=kept, taken=True)
    if isinstance(owner.known, Library):
        return DATA.named(f"{owner.text}[…]")
    proof.consumed(machine, owner)
    if isinstance(owner.known, Instance) and owner.known.type == "collections.defaultdict":
        proof.put(machine, owner, [], f"{owner.text}[…] may add to it")
    return proof.hooked(owner.part())


def entered(proof: Proof, machine: Instructions, owner: Value) -> Value:
    """What `with owner as …` gives."""
    proof.consumed(machine, owner)
    return proof.hooked(replace(owner, known=None, const=NOTHING, shared=owner.shared or owner.inner))
