"""Arithmetic of integers and floating-point numbers.

Integers: both are two's complement; DuckDB's `+ - *` and `abs` check for overflow in each type (add.cpp, multiply.cpp)
and raise, as Spark does in ANSI mode. In the other mode Spark keeps the lowest bits: there DuckDB raises, and Spark
runs. Floating point: single IEEE operations, which both round to nearest (arithmetic.cpp without checks; `%` is fmod in
both).
"""

from __future__ import annotations

from spark_regions.platforms.duckdb.text import INTEGRAL_BOUNDS, cast, engine_type, raising
from spark_regions.platforms.equivalents import Call, Equivalent, Example, Sql
from spark_regions.platforms.typed import FLOATING, INTEGRAL_DIGITS, Expression, decimal_of

FAMILY = "arithmetic"
NUMBERS = frozenset(INTEGRAL_DIGITS) | FLOATING
OPERATORS = {"Add": "+", "Subtract": "-", "Multiply": "*"}
# The same functions by other names: DuckDB's optimizer moves constants over a comparison with the operators of integers
# (move_constants.cpp) or out of a sum (sum_rewriter.cpp), and what overflows there is not seen any more.
FUNCTIONS = {"Add": "add", "Subtract": "subtract", "Multiply": "multiply"}
NEGATED_DIGITS = 34
"""Of more, Spark's `-` and `abs` round decimals or raise: Scala's BigDecimal negates in a context of 34 digits."""
BITS = {"BitwiseAnd": "&", "BitwiseOr": "|"}


def _same_types(call: Call) -> None:
    call.needs_types(NUMBERS)
    call.needs(set(call.types) == {call.type}, f"of {', '.join(call.types)}", "UNPROVEN_TYPE")


def _plain(call: Call) -> Sql:
    _same_types(call)
    left, right = call.texts
    raises = call.ansi and call.type in INTEGRAL_DIGITS and most(call.expression) is None
    if call.type in FLOATING:
        return call.sql(f"({left} {OPERATORS[call.expression.kind]} {right})")
    return call.sql(f"{FUNCTIONS[call.expression.kind]}({left}, {right})", raises)


def most(expression: Expression) -> int | None:
    """The greatest value of what is some bits, as `grouping` of a column is, or their sum; None of anything else, and
    of what may not fit.

    >>> one = Expression("Literal", "BIGINT", fields={"value": "1"})
    >>> bit = Expression("BitwiseAnd", "BIGINT", children=(Expression("ShiftRight", "BIGINT"), one))
    >>> most(Expression("Add", "BIGINT", children=(bit, bit)))
    2
    """
    found: int | None = None
    if expression.kind == "BitwiseAnd":
        masks = [each.fields.get("value", "") for each in expression.children if each.kind == "Literal"]
        found = min((int(mask) for mask in masks if mask.isdecimal()), default=None)
    elif expression.kind in ("Cast", "Add") and expression.children:
        parts = [most(each) for each in expression.children]
        found = None if None in parts else sum(each for each in parts if each is not None)
    bound = INTEGRAL_BOUNDS.get(expression.type, (0, -1))[1]
    return found if found is not None and found <= bound else None


def divided(call: Call, text: str, overflows: bool = False) -> Sql:
    """`text` where the divisor is not 0; null or an error where it is, as Spark evaluates (`DivModLike`): a null on a
    side gives null before the divisor is compared with 0, and -0.0 is 0.

    :param overflows: in ANSI mode Spark may raise on another divisor
    """
    left, right = call.texts
    if is_nonzero(call.expression.children[1]):
        return call.sql(f"({text})", raises=call.ansi and overflows)
    zero = f"CASE WHEN {left} IS NOT NULL THEN {raising('division by zero', engine_type(call.type))} END"
    return call.sql(f"(CASE WHEN {right} = 0 THEN {zero if call.ansi else 'NULL'} ELSE {text} END)", raises=call.ansi)


def is_nonzero(expression: Expression) -> bool:
    return expression.kind == "Literal" and bool(set(expression.fields.get("value", "")) & set("123456789"))


def _divide(call: Call) -> Sql:
    call.needs_types({"DOUBLE"})
    left, right = call.texts
    return divided(call, f"{left} / {right}")


def _integral_divide(call: Call) -> Sql:
    call.needs_types({"BIGINT"})
    left, right = call.texts
    return divided(call, f"{left} // {right}", overflows=call.expression.children[1].fields.get("value") == "-1")


def _remainder(call: Call) -> Sql:
    _same_types(call)
    left, right = call.texts
    return divided(call, f"{left} % {right}")


def _positive_remainder(call: Call) -> Sql:
    _same_types(call)
    left, right = call.texts
    rest = f"{left} % {right}"
    return divided(call, f"CASE WHEN {rest} < 0 THEN ({rest} + {right}) % {right} ELSE {rest} END")


def _of_number(call: Call, text: str) -> Sql:
    if known := decimal_of(call.type):
        call.needs(known[0] <= NEGATED_DIGITS, f"of {call.type}", "UNPROVEN_TYPE")
    else:
        call.needs_types(NUMBERS)
    return call.sql(text, call.ansi and call.type in INTEGRAL_DIGITS)


def _minus(call: Call) -> Sql:
    return _of_number(call, f"(- {call.texts[0]})")


def _abs(call: Call) -> Sql:
    return _of_number(call, f"abs({call.texts[0]})")


def _bits(call: Call) -> Sql:
    call.ignore("evalMode")
    call.needs_types(INTEGRAL_DIGITS)
    call.needs(set(call.types) == {call.type}, f"of {', '.join(call.types)}", "UNPROVEN_TYPE")
    left, right = call.texts
    return call.sql(f"({left} {BITS[call.expression.kind]} {right})")


def _shift(call: Call) -> Sql:
    call.needs_types({"INT", "BIGINT"}, {"INT"})
    places = int(call.literal(1))
    # DuckDB shifts by the width or more to 0, Java by the rest of it.
    call.needs(0 <= places < 32, f"by {places}")
    return call.sql(f"({call.texts[0]} >> {cast(str(places), engine_type(call.type))})")


def _whole(call: Call) -> Sql:
    name = call.expression.kind.lower()
    raises = "failOnError" in call.expression.fields and call.flag("failOnError")
    text = call.texts[0]
    if call.types == ("BIGINT",):
        return call.sql(text)
    if decimal_of(call.types[0]):
        return call.sql(cast(f"{name}({text})", call.type))
    call.needs_types({"DOUBLE"})
    return call.sql(cast(f"{name}({text})", "BIGINT"), raises)


def _examples(*forms: str, types: tuple[str, ...] = ("INT", "BIGINT", "DOUBLE")) -> tuple[Example, ...]:
    return tuple(Example(form, (each,) * (1 + ("{1}" in form))) for form in forms for each in types)


_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")

EQUIVALENTS = (
    *(
        Equivalent(
            kind,
            FAMILY,
            "two integers or two floating-point numbers of one type",
            "Spark: MathUtils.addExact and its like, or the JVM's operator; DuckDB: AddOperatorOverflowCheck and its "
            "like, or C++'s operator on float and double",
            (*_examples(f"{{0}} {sign} {{1}}", types=_NUMBERS), Example(f"{{0}} {sign} 2 > 5", ("INT",))),
            _plain,
        )
        for kind, sign in OPERATORS.items()
    ),
    Equivalent(
        "Divide",
        FAMILY,
        "two doubles",
        "IEEE division in both; DuckDB would give infinity for a divisor of 0, so that is asked first",
        _examples("{0} / {1}", "{0} / 4.0D", types=("DOUBLE",)),
        _divide,
    ),
    Equivalent(
        "IntegralDivide",
        FAMILY,
        "two bigints",
        "the quotient without its fraction in both (JVM and C++); the least number by -1 raises in DuckDB, and in "
        "Spark in ANSI mode; a divisor of 0, which gives null in DuckDB, is asked first",
        _examples("{0} div {1}", "{0} div 7", "{0} div -1", types=("BIGINT",)),
        _integral_divide,
    ),
    Equivalent(
        "Remainder",
        FAMILY,
        "two integers or two floating-point numbers of one type",
        "the sign is the dividend's in both; the least number by -1 raises in DuckDB; a divisor of 0, which gives "
        "null in DuckDB, is asked first",
        (*_examples("{0} % {1}"), Example("{0} % -7", ("INT",))),
        _remainder,
    ),
    Equivalent(
        "Pmod",
        FAMILY,
        "two integers or two floating-point numbers of one type",
        "Spark's own formula, in the remainders that are equal; a sum that overflows raises in DuckDB",
        _examples("pmod({0}, {1})"),
        _positive_remainder,
    ),
    Equivalent(
        "UnaryMinus",
        FAMILY,
        "a number",
        "NegateOperator raises for the least integer; the sign of 0.0 changes in both; a decimal of up to 34 digits "
        "keeps them and its type in both",
        _examples("-{0}", types=(*_NUMBERS, "DECIMAL(7,2)", "DECIMAL(34,10)")),
        _minus,
    ),
    Equivalent(
        "Abs",
        FAMILY,
        "a number",
        "TryAbsOperator raises for the least integer; fabs and Math.abs clear the sign; a decimal of up to 34 digits "
        "keeps them and its type in both",
        _examples("abs({0})", types=(*_NUMBERS, "DECIMAL(7,2)", "DECIMAL(34,10)")),
        _abs,
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "two integers of one type",
            "bit by bit of two's complement",
            _examples(f"{{0}} {sign} {{1}}", types=("TINYINT", "INT", "BIGINT")),
            _bits,
        )
        for kind, sign in BITS.items()
    ),
    Equivalent(
        "ShiftRight",
        FAMILY,
        "an int or a bigint, a literal from 0 to 31",
        "the sign moves in from the left in both (Java's >>, and C++'s of signed numbers)",
        _examples("shiftright({0}, 3)", types=("INT", "BIGINT")),
        _shift,
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "a bigint, a double or a decimal",
            "a double's ceiling or floor is exact, and a bigint as long as it fits, else DuckDB raises; of a decimal "
            "both divide the unscaled number (CeilDecimalOperator, FloorDecimalOperator; Decimal.ceil, floor)",
            _examples(f"{kind.lower()}({{0}})", types=("BIGINT", "DOUBLE", "DECIMAL(7,2)", "DECIMAL(38,10)")),
            _whole,
        )
        for kind in ("Ceil", "Floor")
    ),
)
