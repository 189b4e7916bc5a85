"""What each instruction of Python's bytecode does to the stack of values."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.values import (
    BUILD_CLASS,
    DATA,
    NOTHING,
    NULL,
    Function,
    Guarded,
    Library,
    Method,
    UserClass,
    Value,
    constant,
    is_mutable,
    joined,
    mixed,
)

if TYPE_CHECKING:
    from spark_regions.identity.udf.proof import Proof

_VERSION = sys.version_info[:2]
Stack = list[Value]
_NUMBERS = (int, float, complex)


class Instructions:
    """An instruction is a method: `op_` and its name. The ones that jump are `Machine`'s."""

    proof: Proof
    function: Function
    namespace: dict[str, Value] | None
    importing: bool
    line: int
    offset: int
    keywords: tuple[str, ...]
    returns: list[Value]

    def refused(self, code: str, detail: str) -> UdfRefused:
        where = f"{self.function.name}, line {self.line}"
        return UdfRefused(code, f"{detail} ({where})")

    def either(self, old: Value, new: Value) -> Value:
        """One of two values."""
        both = joined((old, new))
        if both.known is None:
            self.proof.escape(self, old)
            self.proof.escape(self, new)
        return both

    # ---- Names -------------------------------------------------------------------------------------------------------

    def op_LOAD_CONST(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        value = instruction.argval
        if isinstance(value, frozenset):
            self.proof.marks.add("sets")
        stack.append(Value("code", const=value) if isinstance(value, CodeType) else constant(value))

    op_LOAD_SMALL_INT = op_LOAD_CONST  # noqa: N815

    def op_LOAD_COMMON_CONSTANT(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.append(self.proof.global_name(self, instruction.argval.__name__))

    def op_LOAD_FAST(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        names = instruction.argval
        for name in names if isinstance(names, tuple) else (names,):
            stack.append(self.variable(name))

    op_LOAD_FAST_CHECK = op_LOAD_FAST_LOAD_FAST = op_LOAD_FAST_AND_CLEAR = op_LOAD_FAST  # noqa: N815
    op_LOAD_FAST_BORROW = op_LOAD_FAST_BORROW_LOAD_FAST_BORROW = op_LOAD_FAST  # noqa: N815

    def op_STORE_FAST(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        names = instruction.argval
        for name in names if isinstance(names, tuple) else (names,):
            self.store(name, stack.pop())

    op_STORE_FAST_STORE_FAST = op_STORE_FAST_MAYBE_NULL = op_STORE_FAST  # noqa: N815

    def op_STORE_FAST_LOAD_FAST(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stored, loaded = instruction.argval
        self.store(stored, stack.pop())
        stack.append(self.variable(loaded))

    def op_LOAD_CLOSURE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.append(DATA)

    def op_LOAD_DEREF(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.append(self.cell(instruction.argval))

    def op_LOAD_CLASSDEREF(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        name = instruction.argval
        stack.append(self.namespace[name] if self.namespace and name in self.namespace else self.cell(name))

    def op_LOAD_FROM_DICT_OR_DEREF(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.pop()
        self.op_LOAD_CLASSDEREF(stack, instruction)

    def op_LOAD_FROM_DICT_OR_GLOBALS(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.pop()
        self.op_LOAD_NAME(stack, instruction)

    def op_STORE_DEREF(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        name = instruction.argval
        value = stack.pop()
        if name not in self.function.code.co_freevars:
            self.store(name, value)
            return
        owner = self.function.owner_of(name)
        if owner is None or owner.at_import:
            raise self.refused("UDF_MUTABLE_STATE", f"{name} is written, and kept from call to call")
        self.proof.store(self, owner, name, value)

    def op_DELETE_DEREF(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        if instruction.argval in self.function.code.co_freevars:
            raise self.refused("UDF_MUTABLE_STATE", f"{instruction.argval} is deleted, and kept from call to call")

    def op_LOAD_GLOBAL(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        value = self.proof.global_name(self, instruction.argval)
        null = [NULL] if instruction.arg & 1 else []
        stack.extend([value, *null] if _VERSION >= (3, 13) else [*null, value])

    def op_LOAD_NAME(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        name = instruction.argval
        if self.namespace is not None and (name in self.namespace or name == "__name__"):
            stack.append(self.namespace.get(name, DATA.named(name)))
        else:
            stack.append(self.proof.global_name(self, name))

    def op_STORE_NAME(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        value = stack.pop()
        if self.namespace is None:
            raise self.refused("UDF_UNREADABLE", "it stores a name outside of a class")
        name = instruction.argval
        if isinstance(value.known, Method):
            self.proof.escape(self, value)
        known = self.namespace.get(name)
        self.namespace[name] = value if known is None or known == value else self.either(known, value)

    def op_SETUP_ANNOTATIONS(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        if self.namespace is not None:
            self.namespace["__annotations__"] = DATA

    def op_DELETE_NAME(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        if self.namespace is not None:
            self.namespace.pop(instruction.argval, None)

    def op_STORE_GLOBAL(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        raise self.refused("UDF_MUTABLE_STATE", f"the global {instruction.argval} is written")

    op_DELETE_GLOBAL = op_STORE_GLOBAL  # noqa: N815

    def op_LOAD_BUILD_CLASS(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.append(BUILD_CLASS)

    def op_IMPORT_NAME(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        names, level = stack.pop(), stack.pop()
        whole = names.const is None
        stack.append(self.proof.imported(self, instruction.argval, int(level.const), whole))

    def op_IMPORT_FROM(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.append(self.proof.attribute(self, stack[-1], instruction.argval))

    def variable(self, name: str) -> Value:
        return self.function.locals.get(name, DATA.named(name))

    def cell(self, name: str) -> Value:
        if name not in self.function.code.co_freevars:
            return self.variable(name)
        owner = self.function.owner_of(name)
        if owner is not None:
            value = owner.locals.get(name, DATA.named(name))
            return is_mutable(value) if owner.at_import else value
        return self.function.cells.get(name, DATA.named(name))

    def store(self, name: str, value: Value) -> None:
        self.proof.store(self, self.function, name, value)

    # ---- Attributes and items ----------------------------------------------------------------------------------------

    def op_LOAD_ATTR(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        value = self.proof.attribute(self, stack.pop(), instruction.argval)
        method = _VERSION >= (3, 12) and instruction.arg & 1
        stack.extend([NULL, value] if method else [value])

    def op_LOAD_METHOD(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.extend([NULL, self.proof.attribute(self, stack.pop(), instruction.argval)])

    def op_LOAD_SUPER_ATTR(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self_value = stack.pop()
        del stack[-2:]
        value = self.proof.attribute(self, replace(self_value, known=None), instruction.argval)
        stack.extend([NULL, value] if instruction.arg & 1 else [value])

    def op_LOAD_SPECIAL(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        owner = stack.pop()
        stack.extend([self.proof.entered(self, owner), NULL])

    def op_STORE_ATTR(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        owner, value = stack.pop(), stack.pop()
        self.proof.put(self, owner, [value], f"{owner.text}.{instruction.argval} is set")
        if instruction.argval in ("__dict__", "__class__"):
            raise self.refused("UDF_UNPROVEN", f"{owner.text}.{instruction.argval} is set")
        if isinstance(owner.known, UserClass):
            owner.known.attributes[instruction.argval] = is_mutable(value)

    def op_DELETE_ATTR(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        owner = stack.pop()
        self.proof.put(self, owner, [], f"{owner.text}.{instruction.argval} is deleted")

    def op_BINARY_SUBSCR(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        key, owner = stack.pop(), stack.pop()
        self.proof.consumed(self, key)
        if not isinstance(owner.known, Library | UserClass):
            self.proof.leak([key])  # it goes into the KeyError
        stack.append(self.proof.item(self, owner))

    def op_BINARY_SLICE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        del stack[-2:]
        # A slice of an array looks into the array itself.
        owner = stack.pop()
        stack.append(replace(self.proof.item(self, owner), shared=owner.shared or owner.inner, inner=owner.inner))

    def op_STORE_SUBSCR(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        key, owner, value = stack.pop(), stack.pop(), stack.pop()
        self.proof.put(self, owner, [key, value], f"an item of {owner.text} is set")

    def op_STORE_SLICE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        del stack[-2:]
        owner, value = stack.pop(), stack.pop()
        self.proof.put(self, owner, [value], f"a slice of {owner.text} is set")

    def op_DELETE_SUBSCR(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.pop()
        owner = stack.pop()
        self.proof.put(self, owner, [], f"an item of {owner.text} is deleted")

    def op_BINARY_OP(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        right, left = stack.pop(), stack.pop()
        operation = instruction.argrepr
        if operation == "[]":  # since 3.14
            self.proof.consumed(self, right)
            stack.append(self.proof.item(self, left))
            return
        if operation.endswith("="):
            number = right.const is not NOTHING and isinstance(right.const, _NUMBERS) and operation != "*="
            self.proof.put(self, left, [right], f"{left.text} {operation} changes it", by_number=number)
        if operation == "%" and right.opaque:
            self.proof.shown(self, right)
        if isinstance(left.known, Guarded):
            self.proof.consumed(self, right)
            stack.append(left)
            return
        self.proof.consumed(self, left)
        self.proof.consumed(self, right)
        stack.append(self.proof.hooked(mixed((left, right), f"{left.text} {operation} …")))

    def op_UNPACK_SEQUENCE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        owner = stack.pop()
        self.proof.consumed(self, owner)
        stack.extend([owner.part()] * instruction.arg)

    def op_UNPACK_EX(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        owner = stack.pop()
        before, behind = instruction.arg & 0xFF, instruction.arg >> 8
        rest = Value(f"*{owner.text}", inner=owner.inner, address=owner.address)
        stack.extend([*[owner.part()] * behind, rest, *[owner.part()] * before])

    def op_LIST_EXTEND(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._extend(stack, instruction.arg, [stack.pop().part()])

    op_SET_UPDATE = op_DICT_UPDATE = op_DICT_MERGE = op_LIST_EXTEND  # noqa: N815

    def op_LIST_APPEND(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._extend(stack, instruction.arg, [stack.pop()])

    def op_SET_ADD(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self.proof.marks.add("sets")
        self.proof.hashed(self, stack[-1:])
        self._extend(stack, instruction.arg, [stack.pop()])

    def op_MAP_ADD(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._extend(stack, instruction.arg, [stack.pop(), stack.pop()])

    def _extend(self, stack: Stack, position: int, values: list[Value]) -> None:
        for value in values:
            self.proof.consumed(self, value)
        held = mixed(values, stack[-position].text)
        if any(isinstance(each.known, Function) for each in values):
            held = replace(held, address=held.address | 3)
        stack[-position] = joined([stack[-position], held])

    def op_GET_ITER(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        owner = stack.pop()
        self.proof.consumed(self, owner)
        kept = owner.inner or isinstance(owner.known, UserClass)
        stack.append(replace(owner, known=None, const=NOTHING, shared=kept, inner=kept))

    op_GET_YIELD_FROM_ITER = op_GET_ITER  # noqa: N815

    def _build(self, stack: Stack, count: int, text: str) -> None:
        taken = [stack.pop() for _ in range(count)]
        for value in taken:
            self.proof.consumed(self, value)
        made = mixed(taken, text)
        if any(isinstance(each.known, Function) or self.proof.is_method(each) for each in taken):
            made = replace(made, address=made.address | 3)
        if not taken:
            made = replace(made, literal=True)
        stack.append(replace(made, shared=True) if self.importing and text != "(…)" else made)

    def op_BUILD_TUPLE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._build(stack, instruction.arg, "(…)")

    def op_BUILD_LIST(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._build(stack, instruction.arg, "[…]")

    def op_BUILD_SET(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self.proof.marks.add("sets")
        self.proof.hashed(self, stack[len(stack) - instruction.arg :])
        self._build(stack, instruction.arg, "{…}")

    def op_BUILD_MAP(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._build(stack, 2 * instruction.arg, "{…}")

    def op_BUILD_CONST_KEY_MAP(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._build(stack, instruction.arg + 1, "{…}")

    def op_BUILD_SLICE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._build(stack, instruction.arg, "(…)")

    def op_BUILD_STRING(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        taken = [stack.pop() for _ in range(instruction.arg)]
        stack.append(Value("f'…'", literal=all(each.literal for each in taken)))

    # ---- Text --------------------------------------------------------------------------------------------------------

    def op_FORMAT_VALUE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        if instruction.arg & 0x04:
            stack.pop()
        self.op_FORMAT_SIMPLE(stack, instruction)

    def op_FORMAT_SIMPLE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        value = stack.pop()
        self.proof.shown(self, value)
        stack.append(Value(value.text, literal=value.literal))

    op_CONVERT_VALUE = op_FORMAT_SIMPLE  # noqa: N815

    def op_FORMAT_WITH_SPEC(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.pop()
        self.op_FORMAT_SIMPLE(stack, instruction)

    # ---- Calls -------------------------------------------------------------------------------------------------------

    def op_KW_NAMES(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self.keywords = self.function.code.co_consts[instruction.arg]

    def op_CALL(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        names, self.keywords = self.keywords, ()
        self._call(stack, instruction.arg, names)

    def op_CALL_KW(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        self._call(stack, instruction.arg, stack.pop().const)

    def _call(self, stack: Stack, count: int, names: tuple[str, ...]) -> None:
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        second, first = stack.pop(), stack.pop()
        if first is NULL:
            callee = second
        elif second is NULL:
            callee = first
        else:
            callee, arguments = first, [second, *arguments]
        plain = len(arguments) - len(names)
        keywords = dict(zip(names, arguments[plain:], strict=True))
        stack.append(self.proof.call(self, callee, arguments[:plain], keywords))

    def op_CALL_FUNCTION_EX(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        keywords = stack.pop() if instruction.arg & 1 or _VERSION >= (3, 14) else NULL
        positional = stack.pop()
        second, first = stack.pop(), stack.pop()
        callee = second if first is NULL else first
        every = [each.part() for each in (positional, keywords) if each is not NULL]
        stack.append(self.proof.call(self, callee, every, None))

    def op_CALL_INTRINSIC_1(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        if instruction.argrepr in ("INTRINSIC_IMPORT_STAR", "INTRINSIC_PRINT", "INTRINSIC_ASYNC_GEN_WRAP"):
            raise self.refused("UDF_UNPROVEN", instruction.argrepr)

    def op_CALL_INTRINSIC_2(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        del stack[-1:]

    def op_MAKE_FUNCTION(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        code = stack.pop().const
        flags = instruction.arg or 0 if _VERSION < (3, 13) else 0
        if flags & 0x08:
            stack.pop()
        if flags & 0x04:
            stack.pop()
        defaults = [stack.pop() for bit in (0x02, 0x01) if flags & bit]
        stack.append(self.proof.made(self, code, defaults))

    def op_SET_FUNCTION_ATTRIBUTE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        function, value = stack.pop(), stack.pop()
        if instruction.arg in (1, 2):
            self.proof.add_defaults(function, value)
        stack.append(function)

    def op_BEFORE_WITH(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        owner = stack.pop()
        stack.extend([DATA, self.proof.entered(self, owner)])

    def op_MATCH_CLASS(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        names, kind, subject = stack.pop(), stack.pop(), stack.pop()
        self.proof.consumed(self, kind)
        found = [self.proof.attribute(self, subject, str(name)) for name in names.const or ()]
        stack.append(mixed([subject.part(), *found]))

    def op_MATCH_KEYS(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.append(mixed([stack[-2].part()]))

    def op_END_SEND(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        del stack[-2]

    def op_SWAP(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack[-1], stack[-instruction.arg] = stack[-instruction.arg], stack[-1]

    def op_COPY(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.append(stack[-instruction.arg])

    def op_YIELD_VALUE(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        value = stack.pop()
        self.proof.consumed(self, value)
        self.returns.append(value)
        stack.append(replace(DATA, taken=True))

    def op_POP_TOP(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.pop()

    op_POP_ITER = op_POP_TOP  # noqa: N815

    def op_END_FOR(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        del stack[-2 if _VERSION < (3, 13) else -1 :]

    def op_PUSH_NULL(self, stack: Stack, instruction: Any) -> None:  # noqa: N802
        stack.append(NULL)
