"""What a breakpoint waits for (Amber §5.1): a row, or how many rows all tasks come to."""

from __future__ import annotations

import re
from typing import NamedTuple

from spark_regions.errors import ControlError

_AGGREGATE = re.compile(r"\s*(count|sum|avg|mean|min|max)\s*\(", re.IGNORECASE)
_COUNT = re.compile(r"\s*count\s*\(\s*(?:\*|1)\s*\)\s*(=|==|>=|>)\s*(\d(?:_?\d){0,18})\s*", re.IGNORECASE)


class Condition(NamedTuple):
    """
    :param sql: of one row (§5.2), over the operator's columns; the driver compiles it
    :param target: or how many rows the operator gives (§5.3, G1)
    """

    sql: str = ""
    target: int = 0


def condition(text: str) -> Condition:
    """
    >>> condition("followers < 0"), condition("COUNT(*) > 9")
    (Condition(sql='followers < 0', target=0), Condition(sql='', target=10))

    :raises ControlError: nothing, an aggregate in another form, or a target that is not from 1 to 2^62
    """
    if not text.strip():
        raise ControlError('Found no condition, expected one. Hint: break_when(operator, "followers < 0")')
    if not _AGGREGATE.match(text):
        return Condition(sql=text.strip())
    counted = _COUNT.fullmatch(text)
    target = int(counted[2]) + (counted[1] == ">") if counted else 0
    if not 0 < target <= 2**62:
        raise ControlError(
            f"Found the condition {text!r}, expected of all rows a count that comes to a number above 0. "
            "Hint: count(*) = 100000"
        )
    return Condition(target=target)
