"""Arithmetic of decimals.

Spark computes with all digits (Decimal.scala: java.math.BigDecimal; products and quotients cut off, not rounded, after
one digit more than any result has) and then rounds half up, away from zero, to the result's scale, raising or giving
null where its precision does not do. DuckDB's decimals are integers of up to 38 digits. Here operands are first given a
type in which DuckDB's result has all digits, so that it is exact or raises (arithmetic.cpp: BindDecimalArithmetic,
BindDecimalMultiply). Of two operands of 64 bits it has 64 bits itself, and raises where a number needs more
(DecimalMultiplyOverflowCheck, DecimalAddOverflowCheck), which few do whose type has the digits. The cast to Spark's
type rounds half up, away from zero, and raises (decimal_cast.cpp: DecimalScaleDownOperator, CanScaleDownDecimal).
"""

from __future__ import annotations

from fractions import Fraction

from spark_regions.platforms.duckdb.arithmetic import divided, is_nonzero
from spark_regions.platforms.duckdb.text import INT64_DIGITS, cast, constant, narrow
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql
from spark_regions.platforms.typed import MAX_PRECISION, decimal_of, decimal_type

FAMILY = "decimals"
MOST_SCALE = 8
"""Fractional digits of what is computed in 64 bits: with ten digits before the point few numbers do not fit."""
STEP = 9
"""Digits of a quotient at a time: a rest of as many times a power of ten has 18."""


def _decimals(call: Call) -> list[tuple[int, int]]:
    """Precision and scale of each argument, and of the result."""
    found = [decimal_of(each) for each in (*call.types, call.type)]
    call.needs(None not in found, f"of {', '.join(call.types)}", "UNPROVEN_TYPE")
    return [each for each in found if each]


def _sum(call: Call) -> Sql:
    (p1, s1), (p2, s2), _ = _decimals(call)
    scale = max(s1, s2)
    exact = max(p1 - s1, p2 - s2) + scale + 1
    common = decimal_type(min(exact, MAX_PRECISION), scale)
    sign = "+" if call.expression.kind == "Add" else "-"
    if (short := _short(call, sign, scale)) and exact > INT64_DIGITS:
        return short
    left, right = (cast(each, common) for each in call.texts)
    return call.sql(cast(f"{left} {sign} {right}", call.type), raises=call.ansi and exact > MAX_PRECISION)


def _short(call: Call, sign: str, scale: int) -> Sql | None:
    """With operands of 64 bits."""
    operands = [narrow(each) for each in call.args]
    if not all(operands) or scale > MOST_SCALE:
        return None
    found = decimal_of(call.type)
    assert found
    if sign != "*":
        operands = [cast(each, decimal_type(INT64_DIGITS, scale)) for each in operands]
    _ = call.ansi
    text = f"({f' {sign} '.join(operands)})"
    return call.sql(cast(text, call.type), narrow=text if found[1] == scale else "")


def widened(text: str, precision: int, scale: int) -> str:
    """A factor such that DuckDB's product has all digits."""
    return cast(text, decimal_type(max(precision, INT64_DIGITS + 1), scale))


def _product(call: Call) -> Sql:
    (p1, s1), (p2, s2), _ = _decimals(call)
    call.needs(s1 + s2 <= MAX_PRECISION, f"with {s1 + s2} fractional digits")
    left, right = call.texts
    if p1 + p2 > INT64_DIGITS:
        if short := _short(call, "*", s1 + s2):
            return short
        left = widened(left, p1, s1)
    return call.sql(cast(f"{left} * {right}", call.type), raises=call.ansi and p1 + p2 > MAX_PRECISION)


def unscaled(text: str, precision: int, scale: int) -> str:
    """All digits of a decimal as a HUGEINT; raises where scale and digits together are more than DuckDB has."""
    if scale == 0:
        return cast(text, "HUGEINT")
    factor = constant("1" + "0" * scale, decimal_type(scale + 1, 0))
    return cast(f"{widened(text, precision, scale)} * {factor}", "HUGEINT")


def unscaled_short(text: str, scale: int) -> str:
    """All digits of a decimal as a BIGINT; raises where twice the scale and the digits are more than 18."""
    short = cast(text, decimal_type(INT64_DIGITS, scale))
    return cast(f"{short} * {constant('1' + '0' * scale, decimal_type(scale + 1, 0))}", "BIGINT")


def short_quotient(call: Call, dividend: str, scale: int, divisor: str, shift: int) -> tuple[str, str] | None:
    """As `quotient`, in 64 bits, which is fifty times as fast; and when these do.

    :param dividend: a decimal with this scale
    :param divisor: a BIGINT, which is positive
    """
    result = decimal_of(call.type)
    assert result
    most = INT64_DIGITS - max(shift, scale)
    if result[1] > INT64_DIGITS or shift < 0 or most < 1:
        return None
    shifted = f"({unscaled_short(dividend, scale)} * {constant('1' + '0' * shift, 'BIGINT')})"
    found = f"{shifted} // {divisor} + {_half(f'({shifted} % {divisor})', divisor)}"
    return _within(dividend, most, scale), _scaled(cast(found, decimal_type(INT64_DIGITS, 0)), result[1], call.type)


def _half(rest: str, divisor: str) -> str:
    """What a rest of a division adds to the quotient that is rounded half up, away from zero: 1 or -1, or nothing.
    To divide 128 bits by ten instead, as a cast to a lower scale does, takes longer than all the rest.

    Worked example: 8 = 1 * 5 + 3 adds 6 // 5 = 1, and -7 = -1 * 5 - 2 adds -4 // 5 = 0.
    """
    return f"({rest} * {constant('2', 'BIGINT')}) // {divisor}"


def _point(digits: str, scale: int) -> str:
    """
    >>> _point("9999", 2), _point("1", 3)
    ('99.99', '0.001')
    """
    whole = digits.rjust(scale + 1, "0")
    return f"{whole[: len(whole) - scale]}.{whole[len(whole) - scale :]}".rstrip(".")


def quotient(call: Call, dividend: str, divisor: str, shift: int) -> str:
    """A quotient of HUGEINTs, times ten to the power of `shift`, as the unscaled result. It is had with one digit more
    and rounded half up: DuckDB's division cuts off (hugeint.cpp), and that one digit is all that rounding asks for.

    Worked example, 2.00 / 3.00 as DECIMAL(10,6): 200 · 10^7 // 300 = 6666666, as DECIMAL(38,7) 0.6666666, rounded
    0.666667.
    """
    result = decimal_of(call.type)
    assert result
    scale, shift = result[1] + 1, shift + 1
    call.needs(0 <= shift <= MAX_PRECISION and scale <= MAX_PRECISION, f"with {scale} fractional digits")
    digits = f"({dividend} * {constant('1' + '0' * shift, 'HUGEINT')}) // {divisor}"
    return _scaled(cast(digits, decimal_type(MAX_PRECISION, 0)), scale, call.type)


def _scaled(unscaled: str, scale: int, to: str) -> str:
    """The decimal of a whole one and a scale."""
    return cast(f"{unscaled} * {constant(_point('1', scale), decimal_type(scale, scale))}", to)


def _quotient(call: Call) -> Sql:
    (p1, s1), (p2, s2), (precision, scale) = _decimals(call)
    left, right = call.texts
    overflows = precision - scale < p1 - s1 + s2
    inverse = _inverse(call.literal(1)) if is_nonzero(call.expression.children[1]) else None
    if inverse and s1 + inverse[1] <= MAX_PRECISION:
        factor = constant(_point(str(inverse[0]), inverse[1]), decimal_type(inverse[1] + 1, inverse[1]))
        more = left if p1 + inverse[1] + 1 <= INT64_DIGITS else widened(left, p1, s1)
        return divided(call, cast(f"{more} * {factor}", call.type), overflows)
    shift = scale + s2 - s1
    text = quotient(call, unscaled(left, p1, s1), unscaled(right, p2, s2), shift)
    if max(s1, s2) <= MOST_SCALE and shift >= 0:
        digits = _by_hand(unscaled_short(left, s1), unscaled_short(right, s2), shift)
        few = f"{_within(left, INT64_DIGITS - s1, s1)} AND {_within(right, STEP, s2)}"
        by_hand = _scaled(cast(digits, decimal_type(MAX_PRECISION, 0)), scale, call.type)
        text = f"CASE WHEN {few} THEN {by_hand} ELSE {text} END"
    return divided(call, text, overflows)


def _inverse(literal: str) -> tuple[int, int] | None:
    """Digits of 1 / `literal` and how many of them stand after the point, where it ends: to divide by 2 is to multiply
    by 0.5, which is exact. None of numbers that are negative, below 1 or above 10^8.

    >>> _inverse("2"), _inverse("40.0"), _inverse("3")
    ((5, 1), (25, 3), None)
    """
    scale = next((n for n in range(MOST_SCALE + 1) if (10**n / Fraction(literal)).denominator == 1), None)
    return None if scale is None or Fraction(literal) < 1 else (int(10**scale / Fraction(literal)), scale)


def _within(text: str, digits: int, scale: int) -> str:
    """Whether a decimal has at most so many digits."""
    bound = constant(_point("9" * digits, scale), decimal_type(max(digits, scale), scale))
    return f"{text} BETWEEN - {bound} AND {bound}"


def _by_hand(dividend: str, divisor: str, shift: int) -> str:
    """The quotient of BIGINTs times ten to the power of `shift`, rounded half up, as a HUGEINT: some digits at a time,
    of what is left over, which is in 64 bits a hundred times as fast. The divisor has at most as many digits as a step.

    >>> _by_hand("7", "3", 0)
    "(CAST(7 // 3 AS HUGEINT) + ((7 % 3) * CAST('2' AS BIGINT)) // 3)"
    """
    found, rest = cast(f"{dividend} // {divisor}", "HUGEINT"), f"({dividend} % {divisor})"
    for done in range(0, shift, STEP):
        ten = constant("1" + "0" * min(STEP, shift - done), "BIGINT")
        found = f"({found} * {ten} + ({rest} * {ten}) // {divisor})"
        rest = f"(({rest} * {ten}) % {divisor})"
    return f"({found} + {_half(rest, divisor)})"


def _remainder(call: Call) -> Sql:
    (p1, s1), (p2, s2), (_, scale) = _decimals(call)
    digits = max(p1 - s1, p2 - s2) + max(s1, s2)
    # Beyond, DuckDB computes with doubles, and Java finds no quotient.
    call.needs(digits <= MAX_PRECISION and p1 - s1 + s2 <= MAX_PRECISION, f"with {digits} digits")
    call.needs(scale == max(s1, s2), "with rounding")
    left, right = (cast(each, decimal_type(digits, scale)) for each in call.texts)
    return divided(call, cast(f"{left} % {right}", call.type))


def _round(call: Call) -> Sql:
    _ = call.ansi
    (p1, s1), (precision, scale) = _decimals_of_first(call)
    digits = int(call.literal(1))
    call.needs(digits >= 0 and scale == min(digits, s1), f"to {digits} digits")
    return call.sql(cast(call.texts[0], call.type), raises=call.ansi and precision - scale <= p1 - s1 and scale < s1)


def _decimals_of_first(call: Call) -> tuple[tuple[int, int], tuple[int, int]]:
    first, result = decimal_of(call.types[0]), decimal_of(call.type)
    call.needs(bool(first and result), f"of {call.types[0]}", "UNPROVEN_TYPE")
    assert first and result
    return first, result


def _round_integer(call: Call) -> Sql:
    call.ignore("ansiEnabled")
    call.needs_types({"TINYINT", "SMALLINT", "INT", "BIGINT"}, {"INT"})
    call.needs(int(call.literal(1)) >= 0, "before the point")
    return call.sql(call.texts[0])


_PAIRS = (
    ("DECIMAL(7,2)", "DECIMAL(7,2)"),
    ("DECIMAL(15,2)", "DECIMAL(16,4)"),
    ("DECIMAL(18,0)", "DECIMAL(18,18)"),
    ("DECIMAL(17,2)", "DECIMAL(17,2)"),
    ("DECIMAL(27,2)", "DECIMAL(27,2)"),
    ("DECIMAL(38,2)", "DECIMAL(5,4)"),
    ("DECIMAL(38,10)", "DECIMAL(38,10)"),
)


def _examples(form: str) -> tuple[Example, ...]:
    return tuple(Example(form, pair) for pair in _PAIRS)


EQUIVALENTS = (
    *(
        Equivalent(
            kind,
            FAMILY,
            "two decimals",
            "with a digit more than the wider operand, or with 18, the sum is exact, or DuckDB raises "
            "(DecimalAddOverflowCheck)",
            _examples(f"{{0}} {sign} {{1}}"),
            _sum,
        )
        for kind, sign in (("Add", "+"), ("Subtract", "-"))
    ),
    Equivalent(
        "Multiply",
        FAMILY,
        "two decimals with at most 38 fractional digits together",
        "a factor of 19 digits or more makes DuckDB keep all digits of the product, up to 38, beyond which it raises; "
        "two of 18 digits have 18, and raise where those do not do",
        _examples("{0} * {1}"),
        _product,
    ),
    Equivalent(
        "Divide",
        FAMILY,
        "two decimals",
        "Spark divides to 39 fractional digits, cut off, then rounds half up; here one digit more than the result's "
        "is cut off, and rounded half up: a digit further on never decides. HUGEINT operations raise where 38 digits "
        "do not do; numbers of few digits are divided by hand, nine digits at a time, and rounded by twice the rest; "
        "by a literal whose inverse ends, such as 2, by multiplying with that",
        (
            *_examples("{0} / {1}"),
            *(
                Example(f"{{0}} / {n}", (each,))
                for n in ("2", "3", "-2", "0.5BD", "40.0BD", "256")
                for each in ("DECIMAL(7,2)", "DECIMAL(17,2)", "DECIMAL(18,18)", "DECIMAL(38,10)")
            ),
        ),
        _quotient,
    ),
    Equivalent(
        "Remainder",
        FAMILY,
        "two decimals that have a common type of at most 38 digits",
        "the remainder of integers of one scale in both, with the dividend's sign",
        tuple(each for each in _examples("{0} % {1}") if each.types[1] != "DECIMAL(5,4)"),
        _remainder,
    ),
    Equivalent(
        "Round",
        FAMILY,
        "a decimal, and a literal of at least 0",
        "half up, away from zero, in both; Spark's type of the result has a digit for the carry",
        tuple(Example(f"round({{0}}, {n})", (each,)) for n in (0, 1, 3) for each in ("DECIMAL(7,2)", "DECIMAL(38,10)")),
        _round,
    ),
    Equivalent(
        "Round",
        FAMILY,
        "an integer, and a literal of at least 0",
        "the integer itself (RoundBase)",
        (Example("round({0}, 2)", ("INT",)),),
        _round_integer,
    ),
)
