"""Whether filters imply others, against each value one by one, compared as Spark does."""

from __future__ import annotations

import math
import operator
from decimal import Decimal

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from spark_regions.matching.implies import implied
from spark_regions.wire.messages import Comparison, Predicate

FLOATS = [-math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan]
VALUES = {
    "int": [-(2**31), -3, -2, -1, 0, 1, 2, 3, 4, 2**31 - 1],
    "decimal(5,2)": [Decimal(each) / 100 for each in (-99999, -101, -100, -1, 0, 1, 99, 100, 101, 99999)],
    "double": FLOATS,
    "string": [
        *(each.encode() for each in ("", "\0", "a", "a\0", "ab", "abz", "ac", "b", "ä", "äb", "é", "日", "😀")),
        *(b"\xff", b"a\xff", b"\xff\xff"),
    ],
}
OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "prefix": lambda value, prefix: value.startswith(prefix),
}


def literal(value):
    return value.hex() if isinstance(value, bytes) else f"{value:.2f}" if isinstance(value, Decimal) else str(value)


def comparable(value):
    """Not a number is equal to itself and above all others."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def passes(filters, value):
    """Whether all of the filters are true for the value; each is a list of branches of (operator, literal)."""
    return all(
        any(all(OPERATORS[sign](comparable(value), comparable(of)) for sign, of in branch) for branch in branches)
        for branches in filters
    )


@st.composite
def questions(draw):
    kind = draw(st.sampled_from(sorted(VALUES)))
    signs = sorted(OPERATORS if kind == "string" else OPERATORS.keys() - {"prefix"})
    comparison = st.tuples(st.sampled_from(signs), st.sampled_from(VALUES[kind]))
    a_filter = st.lists(st.lists(comparison, max_size=2), min_size=1, max_size=3)
    return kind, draw(a_filter), draw(st.lists(a_filter, min_size=1, max_size=2))


def predicate(name, kind, branches):
    told = tuple(tuple(Comparison(sign, literal(of)) for sign, of in branch) for branch in branches)
    return Predicate(name, "x", kind, told)


@settings(max_examples=3000, deadline=None)
@given(questions())
@example(("double", [[(">=", 0.0)]], [[[("=", -0.0)]]]))
@example(("double", [[(">", math.inf)]], [[[("=", math.nan)]]]))
@example(("string", [[("prefix", b"a")]], [[[(">=", b"a"), ("<", b"b")]]]))
@example(("int", [[("=", 1)], [("=", 2)]], [[[(">", 0)]], [[("<", 3)]]]))
def test_what_is_implied_is_true_wherever_the_filters_are(question):
    kind, stored, filters = question
    found = implied(predicate("s", kind, stored), [predicate(str(n), kind, f) for n, f in enumerate(filters)])
    event(f"{kind} {found}")
    if found:
        assert [value for value in VALUES[kind] if passes(filters, value) and not passes([stored], value)] == []


@given(questions())
def test_every_filter_implies_itself_and_that_there_is_a_value(question):
    kind, stored, _ = question
    asked = predicate("s", kind, stored)
    assert implied(asked, [asked])
    assert implied(Predicate("n", "x", kind, ((),)), [asked])
    assert not implied(asked, [])
    assert not implied(asked, [Predicate("o", "other", kind, asked.any)])
