"""Whether a filter lets nothing pass that a stored one kept out (docs/containment.md).

A simple filter is true where a value lies in a set: ranges in the order of the value's type, as Spark compares it. One
filter implies another on the same value if its set lies within the other's; of several on one value, the common part
counts. Sound since a filter keeps the rows for which it is true, and the sets are exactly those of true.

Each range is half-open, from its first key to the first beyond it, since each key has a next one: a number the next
number, bytes themselves with a zero behind them. So `x > 3` of an integer is the set of `x >= 4`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache, reduce

from spark_regions.errors import InvalidRequest
from spark_regions.wire.messages import Comparison, Predicate

Key = int | bytes
Bound = tuple[int, Key] | tuple[int]
"""A key, marked 0, or what is below or above all of them."""
Range = tuple[Bound, Bound]
Ranges = tuple[Range, ...]

LOWEST: Bound = (-1,)
HIGHEST: Bound = (1,)
INTEGRAL = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz"})
FLOATING = frozenset({"float", "double"})
BYTES = frozenset({"string", "binary"})


def implied(stored: Predicate, given: Iterable[Predicate]) -> bool:
    """Whether `stored` is true wherever all of `given` are.

    >>> above = [Predicate(str(n), "x", "int", ((Comparison(">", str(n)),),)) for n in (3, 5)]
    >>> implied(above[0], above[1:]), implied(above[1], above[:1])
    (True, False)
    """
    same = [each for each in given if (each.column, each.data_type) == (stored.column, stored.data_type)]
    if not same:
        return False
    common = reduce(_common, map(ranges, same))
    allowed = ranges(stored)
    return all(any(low <= first and beyond <= high for low, high in allowed) for first, beyond in common)


@lru_cache(maxsize=4096)
def ranges(predicate: Predicate) -> Ranges:
    """The values for which a filter is true: ranges in ascending order, with gaps between them.

    :raises InvalidRequest: the order of its type is not known here, or a literal is none of that type
    """
    everything: Ranges = ((LOWEST, HIGHEST),)
    branches = (
        reduce(_common, (_compared(each, predicate.data_type) for each in branch), everything)
        for branch in predicate.any
    )
    merged: list[Range] = []
    for low, high in sorted(each for branch in branches for each in branch):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _common(one: Ranges, other: Ranges) -> Ranges:
    both = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return tuple(sorted(each for each in both if each[0] < each[1]))


def _compared(comparison: Comparison, data_type: str) -> Ranges:
    key = _key(comparison.literal, data_type)
    at: Bound = (0, key)
    beyond: Bound = (0, key + 1 if isinstance(key, int) else key + b"\0")
    match comparison.operator:
        case "=":
            return ((at, beyond),)
        case "!=":
            return ((LOWEST, at), (beyond, HIGHEST))
        case "<":
            return ((LOWEST, at),)
        case "<=":
            return ((LOWEST, beyond),)
        case ">":
            return ((beyond, HIGHEST),)
        case ">=":
            return ((at, HIGHEST),)
        case "prefix" if isinstance(key, bytes):
            return ((at, _beyond_prefix(key)),)
    raise InvalidRequest(f"plan: no comparison {comparison.operator!r} of {data_type}")


def _key(literal: str, data_type: str) -> Key:
    """What sorts as Spark sorts values of the type; equal for equal ones."""
    try:
        if data_type in INTEGRAL:
            return int(literal)
        if data_type.startswith("decimal("):
            # With all digits of the scale: the unscaled number.
            return int(literal.replace(".", ""))
        if data_type in FLOATING:
            return _float_key(float(literal))
        if data_type in BYTES:
            return bytes.fromhex(literal)
    except ValueError as error:
        raise InvalidRequest(f"plan: {literal!r} is no {data_type}") from error
    raise InvalidRequest(f"plan: the order of {data_type} is not known")


def _float_key(value: float) -> int:
    """Spark's order of floating-point numbers: zeros of both signs are equal, and not a number is above all others.

    >>> _float_key(-0.0) == _float_key(0.0) < _float_key(5e-324) < _float_key(float("inf")) < _float_key(float("nan"))
    True
    """
    if value != value:
        return 1 << 63
    (bits,) = struct.unpack(">q", struct.pack(">d", value + 0.0))
    # Negative numbers have the greater bits the smaller they are.
    return int(bits) if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _beyond_prefix(prefix: bytes) -> Bound:
    """The first bytes after all that begin so.

    >>> _beyond_prefix(b"ab"), _beyond_prefix(bytes([97, 255]))
    ((0, b'ac'), (0, b'b'))
    """
    kept = prefix.rstrip(b"\xff")
    return (0, kept[:-1] + bytes([kept[-1] + 1])) if kept else HIGHEST
