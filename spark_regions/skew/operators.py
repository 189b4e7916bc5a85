"""Which rows of which operator may go to several tasks without changing its result (thesis §11.1, §13, table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Operator(StrEnum):
    """What reads the shuffle."""

    INNER_JOIN = "inner_join"
    LEFT_JOIN = "left_join"
    RIGHT_JOIN = "right_join"
    FULL_JOIN = "full_join"
    SEMI_JOIN = "semi_join"
    ANTI_JOIN = "anti_join"
    PARTITION_WINDOW = "partition_window"
    """Scattered state that a second phase merges before anything is output (§13.4)."""
    AGGREGATE = "aggregate"
    WINDOW = "window"
    GROUP_APPLY = "group_apply"
    SORT = "sort"
    REPARTITION = "repartition"
    REDUCE = "reduce"


class Input(StrEnum):
    LEFT = "left"
    RIGHT = "right"

    @property
    def other(self) -> Input:
        return Input.RIGHT if self is Input.LEFT else Input.LEFT


class Spread(StrEnum):
    """How far the rows of one input may be spread over tasks.

    ANY: every row, as long as each task sees all rows of the other input that it may meet.
    MATCHED: every row too, if no task brings out unmatched rows of the other input. A further task does, from the keys
    of all slices; so the join may have no further condition.
    AS_KEYS: no row comes out, only whether a key is there. Each task reads the distinct keys of its part; without a
    further condition, one more task joins with all of them.
    NEVER: the rows of a key stay together.
    """

    ANY = "any"
    MATCHED = "matched"
    AS_KEYS = "as_keys"
    NEVER = "never"


JOINS = frozenset(
    {
        Operator.INNER_JOIN,
        Operator.LEFT_JOIN,
        Operator.RIGHT_JOIN,
        Operator.FULL_JOIN,
        Operator.SEMI_JOIN,
        Operator.ANTI_JOIN,
    }
)

SPREADS: Mapping[tuple[Operator, Input], Spread] = MappingProxyType(
    {
        # The side whose unmatched rows count may be spread: each of its rows still sees every partner.
        (Operator.INNER_JOIN, Input.LEFT): Spread.ANY,
        (Operator.INNER_JOIN, Input.RIGHT): Spread.ANY,
        (Operator.LEFT_JOIN, Input.LEFT): Spread.ANY,
        (Operator.LEFT_JOIN, Input.RIGHT): Spread.MATCHED,
        (Operator.RIGHT_JOIN, Input.LEFT): Spread.MATCHED,
        (Operator.RIGHT_JOIN, Input.RIGHT): Spread.ANY,
        (Operator.FULL_JOIN, Input.LEFT): Spread.MATCHED,
        (Operator.FULL_JOIN, Input.RIGHT): Spread.MATCHED,
        # A row of the left side comes out at most once: its partners may be spread only as keys.
        (Operator.SEMI_JOIN, Input.LEFT): Spread.ANY,
        (Operator.ANTI_JOIN, Input.LEFT): Spread.ANY,
        (Operator.SEMI_JOIN, Input.RIGHT): Spread.AS_KEYS,
        (Operator.ANTI_JOIN, Input.RIGHT): Spread.AS_KEYS,
        (Operator.PARTITION_WINDOW, Input.LEFT): Spread.ANY,
        (Operator.REPARTITION, Input.LEFT): Spread.ANY,
    }
)


def spread(operator: Operator, side: Input) -> Spread:
    """
    >>> spread(Operator.FULL_JOIN, Input.LEFT).value, spread(Operator.GROUP_APPLY, Input.LEFT).value
    ('matched', 'never')
    """
    return SPREADS.get((operator, side), Spread.NEVER)
