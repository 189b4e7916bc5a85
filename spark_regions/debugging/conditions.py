"""What a breakpoint waits for (Amber §5.1): a row, or how many rows all tasks come to."""

from __future__ import annotations

import re
from typing import NamedTuple

from spark_regions.errors import ControlError

MOST = 2**53
"""What a double has exactly."""
_AGGREGATE = re.compile(r"\s*(count|sum|avg|mean|min|max)\s*\(", re.IGNORECASE)
_NUMBER = r"(\d(?:_?\d){0,18})\s*"
_COUNT = re.compile(rf"\s*count\s*\(\s*(?:\*|1)\s*\)\s*(=|==|>=|>)\s*{_NUMBER}", re.IGNORECASE)
_SUM = re.compile(rf"\s*sum\s*\((.+)\)\s*(?:=|==|>=)\s*{_NUMBER}", re.IGNORECASE | re.DOTALL)


class Condition(NamedTuple):
    """
    :param sql: of one row (§5.2), over the operator's columns; the driver compiles it
    :param target: or how many rows the operator gives, without `sql` (§5.3, G1); or what the sum of `sql` over its rows
        comes to (G2)
    """

    sql: str = ""
    target: int = 0


def condition(text: str) -> Condition:
    """
    >>> condition("followers < 0"), condition("COUNT(*) > 9")
    (Condition(sql='followers < 0', target=0), Condition(sql='', target=10))
    >>> condition("sum(likes + 1) >= 500")
    Condition(sql='likes + 1', target=500)

    :raises ControlError: nothing, an aggregate in another form, or a target that is not from 1 to 2^53
    """
    if not text.strip():
        raise ControlError('Found no condition, expected one. Hint: break_when(operator, "followers < 0")')
    if not _AGGREGATE.match(text):
        return Condition(sql=text.strip())
    counted, summed = _COUNT.fullmatch(text), _SUM.fullmatch(text)
    target = int(counted[2]) + (counted[1] == ">") if counted else int(summed[2]) if summed else 0
    if not 0 < target <= MOST:
        raise ControlError(
            f"Found the condition {text!r}, expected of all rows a count or sum that comes to a whole number above 0. "
            "Hint: count(*) = 100000, or sum(likes) >= 500"
        )
    return Condition(summed[1].strip() if summed else "", target)
