"""Follow the values through a function's bytecode, without running it (Python 3.11 to 3.14).

The stack is followed along every path, local variables by name. An instruction that is not known here ends in a
refusal, as does a stack whose height cannot be told: what was not followed is not proven.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_regions.errors import UdfRefused
from spark_regions.identity.udf.instructions import Instructions
from spark_regions.identity.udf.values import (
    DATA,
    Function,
    Value,
    constant,
    joined,
    mixed,
)

if TYPE_CHECKING:
    from spark_regions.identity.udf.proof import Proof

CAUGHT = Value("an error", taken=True)
MAX_PASSES = 60
_VERSION = sys.version_info[:2]
Stack = list[Value]
_NUMBERS = (int, float, complex)


class Machine(Instructions):
    """One function's code.

    :param proof: decides what attributes, globals and calls are
    :param namespace: where the names of a class body or of a module's statement go; None for a function
    """

    def __init__(self, proof: Proof, function: Function, namespace: dict[str, Value] | None = None) -> None:
        self.proof = proof
        self.function = function
        self.namespace = namespace
        self.importing = namespace is not None and function.at_import
        self.line = function.code.co_firstlineno
        self.keywords: tuple[str, ...] = ()
        self.offset = 0
        self.caught = False
        self.returns: list[Value] = []

    # ---- Running -----------------------------------------------------------------------------------------------------

    def run(self) -> Value:
        """What the function returns or yields.

        :raises UdfRefused: something in it is not proven
        """
        code = self.function.code
        instructions = {each.offset: each for each in dis.get_instructions(code)}
        order = sorted(instructions)
        following = dict(zip(order, order[1:], strict=False))
        handlers = dis._parse_exception_table(code)  # type: ignore[attr-defined]
        for _ in range(MAX_PASSES):
            before = dict(self.function.locals)
            self._pass(instructions, following, handlers)
            if self.function.locals == before:
                return joined(self.returns) if self.returns else DATA
        raise self.refused("UDF_UNREADABLE", "its values do not settle")

    def _pass(self, instructions: Mapping[int, Any], following: Mapping[int, int], handlers: list[Any]) -> None:
        states: dict[int, Stack] = {0: []}
        waiting = [0]
        self.returns = []
        steps = 0
        while waiting:
            steps += 1
            if steps > 50 * len(instructions) + 1000:
                raise self.refused("UDF_UNREADABLE", "its paths do not settle")
            offset = waiting.pop()
            instruction = instructions[offset]
            stack = list(states[offset])
            self.offset = offset
            line = instruction.positions.lineno if instruction.positions else None
            self.line = line or self.line
            self.caught = False
            for handler in handlers:
                if handler.start <= offset < handler.end:
                    entry = stack[: handler.depth] + [CAUGHT] * (2 if handler.lasti else 1)
                    self._merge(states, waiting, handler.target, entry)
                    self.caught = True
            for target, after in self._step(instruction, stack, following.get(offset)):
                self._merge(states, waiting, target, after)

    def _merge(self, states: dict[int, Stack], waiting: list[int], target: int | None, stack: Stack) -> None:
        if target is None:
            raise self.refused("UDF_UNREADABLE", "its code has no end")
        known = states.get(target)
        if known is None:
            states[target] = list(stack)
        else:
            if len(known) != len(stack):
                raise self.refused("UDF_UNREADABLE", "its stack cannot be followed")
            merged = [self.either(old, new) for old, new in zip(known, stack, strict=True)]
            if merged == known:
                return
            states[target] = merged
        if target not in waiting:
            waiting.append(target)

    def _step(self, instruction: Any, stack: Stack, after: int | None) -> list[tuple[int | None, Stack]]:
        name = instruction.opname
        if name in _ENDS:
            self._end(name, stack)
            return []
        if name in _JUMPS:
            return [(instruction.argval, stack)]
        if name in _BRANCHES:
            condition = stack.pop()
            self.proof.consumed(self, condition)
            return [(after, stack), (instruction.argval, list(stack))]
        if name in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
            return [(after, stack[:-1]), (instruction.argval, stack)]
        if name == "FOR_ITER":
            element = self.proof.hooked(stack[-1].part())
            ended = stack[:-1] if _VERSION < (3, 12) else [*stack, DATA]
            return [(after, [*stack, element]), (instruction.argval, ended)]
        if name == "SEND":
            ended = [*stack[:-2], stack[-2].part()] if _VERSION < (3, 12) else [*stack[:-1], stack[-2].part()]
            self.returns.append(stack[-2].part())
            return [(after, [*stack[:-1], DATA]), (instruction.argval, ended)]
        if name == "RETURN_CONST":
            self.returns.append(constant(instruction.argval))
            return []
        if name == "RETURN_VALUE":
            value = stack.pop()
            if value.known is not None:
                self.proof.consumed(self, value)
            if self.function.is_generator:
                self.proof.leak([value])  # it goes into the StopIteration
            self.returns.append(value)
            return []
        special = getattr(self, "op_" + name, None)
        if special is not None:
            try:
                special(stack, instruction)
            except UdfRefused as refused:
                if name == "IMPORT_NAME" and refused.code == "UDF_MODULE_UNKNOWN" and self.caught:
                    return []  # it raises, and the code says what then
                raise
            return [(after, stack)]
        effect = _EFFECTS.get(name)
        if effect is None:
            raise self.refused("UDF_UNREADABLE", f"the instruction {name} is not known")
        pops, pushes = effect
        taken = [stack.pop() for _ in range(pops)]
        for value in taken:
            self.proof.consumed(self, value)
        given = DATA if name in _TESTS else mixed(taken)
        stack.extend([given] * pushes)
        return [(after, stack)]

    def _end(self, name: str, stack: Stack) -> None:
        if stack and name == "RAISE_VARARGS":
            self.proof.consumed(self, stack[-1])
            self.proof.leak(stack)


_ENDS = frozenset(("RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"))
_JUMPS = frozenset(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"))
_BRANCHES = frozenset(
    f"POP_JUMP_{way}IF_{what}"
    for way in ("", "FORWARD_", "BACKWARD_")
    for what in ("TRUE", "FALSE", "NONE", "NOT_NONE")
)
_TESTS = frozenset(("COMPARE_OP", "IS_OP", "CONTAINS_OP", "UNARY_NOT", "TO_BOOL", "CHECK_EXC_MATCH", "GET_LEN"))
# Instructions whose result holds what they take, and nothing else: (taken, given).
_EFFECTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        ("RESUME", "NOP", "CACHE", "PRECALL", "MAKE_CELL", "COPY_FREE_VARS", "EXTENDED_ARG",
         "NOT_TAKEN", "DELETE_FAST"),
        (0, 0),
    ),
    **dict.fromkeys(("RETURN_GENERATOR", "LOAD_ASSERTION_ERROR", "LOAD_LOCALS"), (0, 1)),
    **dict.fromkeys(
        ("UNARY_POSITIVE", "UNARY_NEGATIVE", "UNARY_NOT", "UNARY_INVERT", "LIST_TO_TUPLE", "TO_BOOL"), (1, 1)
    ),
    **dict.fromkeys(("COMPARE_OP", "IS_OP", "CONTAINS_OP", "PREP_RERAISE_STAR"), (2, 1)),
    **dict.fromkeys(("GET_LEN", "MATCH_MAPPING", "MATCH_SEQUENCE", "PUSH_EXC_INFO", "WITH_EXCEPT_START"), (0, 1)),
    **dict.fromkeys(("CHECK_EXC_MATCH", "CHECK_EG_MATCH"), (1, 1)),
    "POP_EXCEPT": (1, 0),
    "CLEANUP_THROW": (3, 2),
}  # fmt: skip
