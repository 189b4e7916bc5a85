"""What a call gives, and what it tells of the parameters of the function that is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any

from spark_regions.identity.udf import rules
from spark_regions.identity.udf.instructions import Instructions
from spark_regions.identity.udf.machine import Machine
from spark_regions.identity.udf.values import (
    CLASS,
    DATA,
    ITERATOR,
    MAKING,
    NOTHING,
    SHOWING,
    UNPROVEN,
    Checked,
    Function,
    Guarded,
    Instance,
    Library,
    Marker,
    Method,
    UserClass,
    Value,
    is_enum,
    is_mutable,
    joined,
    mixed,
    receiver,
    shows_address,
)

if TYPE_CHECKING:
    from spark_regions.identity.udf.proof import Proof


def call(
    proof: Proof, machine: Instructions, callee: Value, arguments: list[Value], keywords: Mapping[str, Value] | None
) -> Value:
    """What a call returns.

    :param keywords: None where the arguments are not told apart: `f(*args, **kwargs)`
    """
    given = [*arguments, *(keywords or {}).values()]
    known = callee.known
    if isinstance(known, Checked):
        return rules.checked(proof, machine, callee, known, arguments, keywords)
    if isinstance(known, Marker):
        if known.kind == "build class":
            return _class(proof, machine, arguments, keywords)
        if known.kind == "class":
            for value in given:
                proof.consumed(machine, value)
            some = [_instance(proof, machine, each, arguments, keywords) for each in list(proof.classes)]
            return joined(some, f"{callee.text}(…)")
        raise proof.refused(machine, UNPROVEN, callee.text)
    if isinstance(known, Library):
        return _call_library(proof, machine, known, callee, arguments, keywords)
    for value in given:
        proof.consumed(machine, value)
    if isinstance(known, Function):
        proof.reach(known)
        bind(proof, known, arguments, keywords or {}, spread=keywords is None)
        if machine.importing and not known.at_import:
            known.at_import = True
            proof.changed = True
        return _returned(proof, machine, known)
    if isinstance(known, UserClass):
        return _instance(proof, machine, known, arguments, keywords)
    if isinstance(known, Method):
        return _call_method(proof, machine, callee, known, arguments, keywords)
    if any(each.shared or each.inner for each in given):
        _share_arguments(proof)
    proof.marks.add("unknown call")
    for method in proof.use("__call__", callee):
        bind(proof, method, [*receiver(method, callee), *arguments], keywords or {}, spread=keywords is None)
    escaped = [each.returned for each in proof.functions if each.escaped]
    made = mixed([*given, *escaped, replace(callee.part(), address=0)], f"{callee.text}(…)")
    return proof.hooked(replace(made, shared=made.inner or machine.importing, taken=True, literal=False))


def _call_library(
    proof: Proof, machine: Instructions, known: Library, callee: Value, arguments: list[Value], keywords: Any
) -> Value:
    given = [*arguments, *(keywords or {}).values()]
    special = rules.CALLS.get(known.path)
    if special is not None:
        found: Value | None = special(proof, machine, callee, arguments, keywords)
        if found is not None:
            return found
    if known.path in proof.allowed.changes:
        every = known.path.rpartition(".")[2] in rules.CHANGING_ARGUMENTS
        for value in given if every else given[:1]:
            proof.put(machine, value, [], f"{callee.text}({value.text}) changes it")
    changing_keywords(proof, machine, None, keywords)
    for each in arguments[proof.allowed.inputs.get(known.path, len(arguments)) :]:
        proof.put(machine, each, [], f"{callee.text}(…) writes into {each.text}")
    if any(rules.makes_text(each) for each in given):
        for value in given:
            proof.shown(machine, value.part() if value.known == ITERATOR else value)
    functions = any(isinstance(each.known, Function | Method) for each in given)
    if functions and any(each.shared or each.inner for each in given):
        _share_arguments(proof)
    if functions and any(each.address for each in given):
        proof.opaque_arguments = True
    for value in given:
        proof.consumed(machine, value)
    made = mixed(given, f"{callee.text}(…)")
    if functions:
        escaped = mixed([each.returned for each in proof.functions if each.escaped])
        made = replace(made, inner=made.inner or escaped.inner, address=made.address | escaped.address)
    if known.path.startswith(rules.ARRAYS):
        proof.marks.add("dates")
        proof.arrays = proof.arrays or machine.importing or machine.function.at_import
    if known.path in proof.allowed.guarded:
        return Value(made.text, known=Guarded(known.path))
    if known.path in proof.allowed.iterators:
        return replace(made, known=ITERATOR, shared=False, address=made.address & ~1)
    if known.path in proof.allowed.scalars:
        return Value(made.text)
    if known.path in proof.allowed.passes:
        return proof.hooked(replace(made, shared=made.inner, taken=True, literal=False))
    if known.path == "functools.partial":
        made = replace(made, address=made.address | 1)
    lasting = machine.importing and known.path not in proof.allowed.immutable
    inner = made.inner or (lasting and known.path.startswith(rules.ARRAYS))
    type_ = proof.allowed.returns.get(known.path)
    return replace(made, known=Instance(type_) if type_ else None, shared=lasting, inner=inner, literal=False)


def _call_method(
    proof: Proof, machine: Instructions, callee: Value, known: Method, arguments: list[Value], keywords: Any
) -> Value:
    given = [*arguments, *(keywords or {}).values()]
    if known.name in proof.allowed.changes:
        for each in (known.owner, *(given if known.name in rules.CHANGING_ARGUMENTS else ())):
            proof.put(machine, each, [], f"{callee.text}(…) changes {each.text}")
        proof.leak(given)
    changing_keywords(proof, machine, known.owner, keywords)
    if any(each.shared or each.inner for each in given):
        _share_arguments(proof)
    methods = proof.use(known.name, known.owner)
    for method in methods:
        bind(proof, method, [*receiver(method, known.owner), *arguments], keywords or {}, spread=keywords is None)
    found = [_returned(proof, machine, each) for each in methods]
    if known.name in SHOWING or known.name in rules.FORMATTING:
        rules.check_template(proof, machine, known)
        for each in given:
            proof.shown(machine, each)
    if known.name in rules.WRITING and known.owner.address:
        raise proof.refused(machine, UNPROVEN, f"the text of {known.owner.text} shows where it lies in memory")
    if known.name in rules.HASHING:
        rules.check_hashed(machine, given)
    passed = given if known.name in proof.allowed.passes else []
    made = mixed([*given, *found, known.owner.part(), replace(callee.part(), address=0)], f"{callee.text}(…)")
    return replace(
        made,
        shared=known.owner.inner or any(each.shared for each in [*found, *passed]) or machine.importing,
        taken=True,
        literal=False,
    )


def changing_keywords(
    proof: Proof, machine: Instructions, owner: Value | None, keywords: Mapping[str, Value] | None
) -> None:
    """`out=` and `inplace=` make a pure function one that changes an argument."""
    for name, value in (keywords or {}).items():
        if name == "out" and value.const is not None:
            for each in (value, value.part()):
                proof.put(machine, each, [], f"out={value.text} changes it")
        if name == "inplace" and value.const is not False and owner is not None:
            proof.put(machine, owner, [], f"inplace changes {owner.text}")


def _share_arguments(proof: Proof) -> None:
    if not proof.shared_arguments:
        proof.shared_arguments = proof.changed = True


def _returned(proof: Proof, machine: Instructions, function: Function) -> Value:
    found = function.returned
    if function.cached and found.const is NOTHING:
        if function.is_generator:
            raise proof.refused(machine, "UDF_MUTABLE_STATE", f"{function.name}, an iterator that is cached")
        found = replace(found, shared=True, inner=True, taken=True)
    if function.is_generator:
        held = mixed([found])
        return replace(held, text=f"{function.name}(…)", known=ITERATOR, address=held.address & ~1, literal=False)
    if machine.importing and found.const is NOTHING:
        lasting = is_mutable(found)
        found = replace(lasting, inner=lasting.inner or lasting.shared)
    return found.named(f"{function.name}(…)")


def _instance(proof: Proof, machine: Instructions, found: UserClass, arguments: list[Value], keywords: Any) -> Value:
    proof.add_class(found)
    if machine.importing or machine.function.at_import:
        proof.keep(found)
        proof.arrays = True
    given = [*arguments, *(keywords or {}).values()]
    made = mixed(given, f"{found.name}(…)")
    made = replace(made, address=(made.address & ~1) | found.shows_address)
    proof.leak([value for value in given if value.shared])
    returned = []
    for name in MAKING:
        value = found.method(name)
        if value is not None:
            proof.reach(value)
            more = [] if name == "__post_init__" else arguments
            bind(proof, value, [*receiver(value, made), *more], keywords or {}, spread=keywords is None)
            if name == "__new__":
                returned.append(value.returned)
    lasting = machine.importing or found.is_enum or any(each.shared for each in returned)
    inner = made.inner or lasting or any(each.inner for each in returned)
    return replace(made, shared=lasting, inner=inner, taken=lasting, literal=False)


def bind(
    proof: Proof, function: Function, arguments: list[Value], keywords: Mapping[str, Value], spread: bool = False
) -> None:
    """The function is called with these arguments; `spread`: they may be any of its parameters'."""
    code = function.code
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    plain = code.co_varnames[: code.co_argcount]
    count = len(named)
    rest = code.co_varnames[count : count + bool(code.co_flags & 0x04)]
    options = code.co_varnames[count + len(rest) : count + len(rest) + bool(code.co_flags & 0x08)]
    lost = DATA
    if function.escaped and not function.by_spark:
        kept = proof.shared_arguments
        lost = Value(shared=kept, inner=kept, address=3 if proof.opaque_arguments else 0)
    values: dict[str, list[Value]] = {name: [lost] for name in named} if function.escaped or spread else {}
    if spread:
        first = plain[:1] if arguments else ()
        for name in first:
            values[name].append(arguments[0])
        for name in named[len(first) :]:
            values[name].extend(arguments[1:])
    else:
        for name, value in zip(plain, arguments, strict=False):
            values.setdefault(name, []).append(value)
        for name, value in keywords.items():
            if name in named:
                values.setdefault(name, []).append(value)
    if function.kind == "class" and plain:
        values[plain[0]] = [CLASS]
    for name in named:
        has_default = function.defaulted is None or name in function.defaulted
        if name not in values or (has_default and function.default != DATA):
            values.setdefault(name, []).append((function.default if has_default else DATA).named(name))
    more = [*arguments[len(plain) :], *(value for name, value in keywords.items() if name not in named), lost]
    for name in (*rest, *options):
        values[name] = [mixed(more, name)]
    for name, found in values.items():
        known = joined([replace(each, literal=False) for each in found])
        if known.known is None:
            for each in found:
                proof.escape(None, each)
        before = function.locals.get(name)
        after = known if before is None else joined((before, known))
        if after != before:
            if before is not None and after.known is None:
                proof.escape(None, before)
            function.locals[name] = after.named(name) if after.known is None else after
            proof.changed = True


def made(proof: Proof, machine: Instructions, code: CodeType, defaults: list[Value]) -> Value:
    """A function, from its code."""
    parent = machine.function
    found = parent.made.get(machine.offset)
    if found is None:
        found = Function(code, parent.names, dict(parent.cells), parent, at_import=False)
        parent.made[machine.offset] = found
    for value in defaults:
        _default(proof, machine, found, value)
    return Value(found.name, known=found, literal=True)


def _default(proof: Proof, machine: Instructions, function: Function, value: Value) -> None:
    part = value.part() if value.const is NOTHING else DATA
    if machine.importing or machine.namespace is not None or machine.function.at_import:
        part = replace(part, shared=part.shared or value.const is NOTHING)
    function.default = joined((function.default, part))


def add_defaults(proof: Proof, function: Value, value: Value) -> None:
    if isinstance(function.known, Function):
        part = value.part() if value.const is NOTHING else DATA
        function.known.default = joined((function.known.default, part))


def _class(proof: Proof, machine: Instructions, arguments: list[Value], keywords: Any) -> Value:
    body, bases = arguments[0], arguments[2:]
    if not isinstance(body.known, Function) or keywords is None or set(keywords) - {"metaclass"}:
        raise proof.refused(machine, UNPROVEN, "a class that is made in an unusual way")
    function = machine.function
    key = -1 - machine.offset
    found = function.made.get(key)
    namespace: dict[str, Value] = {} if found is None else found.attributes
    inner = Machine(proof, body.known, namespace)
    inner.importing = machine.importing
    inner.run()
    if found is None:
        found = function.made[key] = UserClass(str(arguments[1].const), bases, namespace)
        found.shows_address = shows_address(found)
        found.is_enum = is_enum(found)
    for base in bases:
        proof.consumed(machine, base)
    proof.add_class(found)
    return Value(found.name, known=found, literal=True)
