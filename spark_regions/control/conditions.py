"""What a breakpoint waits for (Amber §5.1): a row, or how much the rows of all tasks come to."""

from __future__ import annotations

import math
import re

import msgspec

from spark_regions.errors import ControlError

Number = int | float

_AGGREGATE = re.compile(r"\s*(count|sum|avg|mean|min|max)\s*\(", re.IGNORECASE)
_COUNT = re.compile(r"\s*count\s*\(\s*(?:\*|1)\s*\)\s*(=|==|>=|>)\s*([\d_]+)\s*", re.IGNORECASE)
_SUM = re.compile(r"\s*sum\s*\((.+)\)\s*>=\s*([\d_]+(?:\.\d+)?(?:e[+-]?\d+)?)\s*", re.IGNORECASE | re.DOTALL)


class Local(msgspec.Struct, frozen=True, tag="local"):
    """Of one row (§5.2): SQL over the operator's columns, which the driver compiles."""

    sql: str


class Count(msgspec.Struct, frozen=True, tag="count"):
    """The operator has given so many rows (§5.3, G1)."""

    target: int


class Sum(msgspec.Struct, frozen=True, tag="sum"):
    """A column's values in the operator's rows have come to at least so much (§5.3, G2); null and NaN count as 0."""

    sql: str
    target: Number


Condition = Local | Count | Sum


def condition(text: str) -> Condition:
    """
    >>> condition("followers < 0"), condition("COUNT(*) > 9"), condition("sum(a + b) >= 90")
    (Local(sql='followers < 0'), Count(target=10), Sum(sql='a + b', target=90))

    :raises ControlError: nothing, an aggregate in another form, or a target that is not above 0 and finite
    """
    if not text.strip():
        raise ControlError('Found no condition, expected one. Hint: break_when(operator, "followers < 0")')
    if not _AGGREGATE.match(text):
        return Local(text.strip())
    counted, summed = _COUNT.fullmatch(text), _SUM.fullmatch(text)
    try:
        if counted:
            target: Number = int(counted[2]) + (counted[1] == ">")
        elif summed:
            target = int(summed[2]) if summed[2].replace("_", "").isdigit() else float(summed[2])
        else:
            raise ValueError
        if not 0 < float(target) < math.inf:
            raise ValueError
    except (ValueError, OverflowError):
        raise ControlError(
            f"Found the condition {text!r}, expected of all rows a count or a sum that comes to a finite number above "
            "0. Hint: count(*) = 100000, or sum(followers) >= 90"
        ) from None
    return Count(int(target)) if counted else Sum(summed[1].strip(), target) if summed else Local(text)
