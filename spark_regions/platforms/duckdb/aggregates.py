"""Aggregate and window functions.

DuckDB adds integers and decimals up in 128 bits, exactly (sum.cpp). Spark adds up in 64 bits, in a decimal of ten
digits more, or in a double, in an order that is not told: the value is determined where no partial sum can leave the
type, or what a double holds. That is so for any order if the number of rows times the greatest value stays within:
asked of each group, by its own count, minimum and maximum. Floating-point sums depend on the order.
"""

from __future__ import annotations

from spark_regions.platforms.duckdb.comparison import comparable
from spark_regions.platforms.duckdb.decimals import quotient, short_quotient, unscaled, unscaled_short
from spark_regions.platforms.duckdb.text import INT64_DIGITS, INTEGRAL_BOUNDS, cast, constant, narrow, unless, within
from spark_regions.platforms.equivalents import Aggregation, Call, Equivalent, Example, Sql, Unproven
from spark_regions.platforms.typed import FLOATING, INTEGRAL_DIGITS, MAX_PRECISION, Expression, decimal_of, decimal_type

FAMILY = "aggregates"
# So many numbers of 32 bits do not leave 64 bits.
INTEGER_ROWS = 2**32
# Spark gives sums of decimals ten digits more.
SUM_DIGITS = 10
# Half of the whole numbers that doubles hold: doubles compare with it.
EXACT_DOUBLE = 2**52
# More than a group has where the engine is asked.
MANY_ROWS = 10**8


# How a function is called


def _how(call: Call, over: str = "") -> Aggregation:
    """Of an aggregate expression: DISTINCT, FILTER and OVER."""
    call.needs(call.field("mode") == "Complete", f"in mode {call.expression.fields.get('mode')}")
    distinct = call.flag("isDistinct")
    filtered = ""
    if len(call.expression.children) > 1:
        call.needs(call.flag("filter"), "with something else than a filter")
        filtered = f" FILTER (WHERE {call.translate(call.expression.children[1]).text})"
    elif "filter" in call.expression.fields:
        call.needs(not call.flag("filter"), "without its filter")
    call.needs(not (distinct and over), "of distinct values in a window")
    return Aggregation(distinct, filtered + over, over)


def _aggregate(call: Call) -> Sql:
    how = call.aggregation or Aggregation()
    found = call.translate(call.expression.children[0], _how(call, how.over))
    return call.sql(found.text)


def _window(call: Call) -> Sql:
    function, specification = call.expression.children
    over = _over(call, specification, function.kind)
    return call.sql(call.translate(function, Aggregation(after=over, over=over)).text)


RANKS = frozenset({"Rank", "DenseRank"})
WHOLE_PARTITION = ("UnboundedPreceding", "UnboundedFollowing")
UP_TO_PEERS = ("UnboundedPreceding", "CurrentRow")


def _over(call: Call, specification: Expression, function: str) -> str:
    call.needs(specification.kind == "WindowSpecDefinition" and bool(specification.children), "without a specification")
    call.needs(not any(each.unknown for each in (specification, *specification.children)), "with unknown arguments")
    *inputs, frame = specification.children
    keys = [each for each in inputs if each.kind == "SortOrder"]
    partition = [each for each in inputs if each.kind != "SortOrder"]
    parts = []
    if partition:
        parts.append(f"PARTITION BY {', '.join(_key(call, each) for each in partition)}")
    if keys:
        parts.append(f"ORDER BY {', '.join(_sort_key(call, each) for each in keys)}")
    call.needs(frame.kind == "SpecifiedWindowFrame" and len(frame.children) == 2, "without a frame")
    bounds = tuple(each.kind.removesuffix("$") for each in frame.children)
    kind = frame.fields.get("frameType", "").removesuffix("$")
    if bounds == WHOLE_PARTITION and function not in RANKS:
        parts.append("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
    elif bounds == UP_TO_PEERS and kind == "RangeFrame" and function not in RANKS:
        parts.append("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    else:
        # Which rows are in another frame depends on the order of rows with equal keys; a rank does not look at it.
        call.needs(bounds == UP_TO_PEERS and function in RANKS, f"over {kind} {' to '.join(bounds)}", "UNDETERMINED")
    return f" OVER ({' '.join(parts)})"


def _key(call: Call, expression: Expression) -> str:
    call.needs(expression.type not in FLOATING, f"by {expression.type}", "UNPROVEN_TYPE")
    return call.translate(expression).text


def _sort_key(call: Call, order: Expression) -> str:
    direction, nulls = (order.fields.get(name, "").removesuffix("$") for name in ("direction", "nullOrdering"))
    known = direction in ("Ascending", "Descending") and nulls in ("NullsFirst", "NullsLast")
    call.needs(known, f"ordered {direction} {nulls}")
    way = "ASC" if direction == "Ascending" else "DESC"
    return f"{_key(call, order.children[0])} {way} {'NULLS FIRST' if nulls == 'NullsFirst' else 'NULLS LAST'}"


def _rank(call: Call) -> Sql:
    name = {"Rank": "rank", "DenseRank": "dense_rank"}[call.expression.kind]
    call.needs(bool(call.how.over), "outside of a window")
    return call.sql(cast(f"{name}(){call.how.over}", "INTEGER"))


def _undetermined(call: Call) -> Sql:
    raise Unproven("UNDETERMINED", f"{call.expression.kind} of {', '.join(call.types) or 'rows with equal keys'}")


# Counts and extremes


def _count(call: Call) -> Sql:
    children = call.expression.children
    call.needs(bool(children), "of nothing")
    how = call.how
    if all(each.kind == "Literal" and "value" in each.fields for each in children):
        call.needs(not how.distinct, "of a distinct constant")
        return call.sql(f"count(*){how.after}")
    texts = call.texts
    if how.distinct:
        # Zeros of both signs are one value where Spark groups by them.
        call.needs(not FLOATING & set(call.types), f"of distinct {', '.join(call.types)}", "UNPROVEN_TYPE")
    if len(texts) == 1:
        return call.sql(call.aggregate("count", texts[0]))
    # A row counts where all are there.
    there = " AND ".join(f"{text} IS NOT NULL" for text in texts)
    row = f"row({', '.join(texts)})" if how.distinct else "1"
    return call.sql(call.aggregate("count", f"CASE WHEN {there} THEN {row} END"))


def _extreme(call: Call) -> Sql:
    comparable(call)
    found = call.aggregate(call.expression.kind.lower(), call.texts[0])
    if call.type not in FLOATING:
        return call.sql(found)
    # Zeros of both signs are equal: which one it is depends on the order.
    negative = call.aggregate("bool_or", f"{call.texts[0]} = 0 AND signbit({call.texts[0]})")
    return call.sql(unless(f"{found} = 0 AND {negative}", "negative zero", found, call.type))


# Sums


def _rows(call: Call) -> str:
    """Number of rows, those of nulls and filtered ones included: one count for all functions of a group."""
    return f"count(*){call.how.over}"


def _greatest(call: Call, text: str) -> str:
    """Greatest absolute value, as a double; null of no value."""
    lowest, highest = (cast(call.aggregate(name, text), "DOUBLE") for name in ("min", "max"))
    return f"greatest(- {lowest}, {highest})"


def _beyond(call: Call, text: str, bound: str) -> str:
    """Whether rows times the greatest value, in doubles, reaches a bound."""
    return f"{cast(_rows(call), 'DOUBLE')} * {_greatest(call, text)} >= {constant(bound, 'DOUBLE')}"


def _not_exact(call: Call, text: str, greatest: int, scale: int = 0) -> str:
    """Whether a sum in doubles may leave the whole numbers that they hold: by the number of rows alone where that does,
    as extremes of each column take longer than its sum.

    :param greatest: that the type has, as a whole number
    :param scale: of decimals
    """
    if (most := EXACT_DOUBLE // greatest) >= MANY_ROWS:
        return f"{_rows(call)} > {most}"
    return _beyond(call, text, f"{EXACT_DOUBLE}e-{scale}" if scale else str(EXACT_DOUBLE))


def _integer_sum(call: Call) -> Sql:
    call.needs_types(INTEGRAL_DIGITS)
    text = call.texts[0]
    total = call.aggregate("sum", text)
    if not call.ansi:
        # Sums modulo 2^64: the order does not matter, and where the exact sum does not fit DuckDB raises.
        return call.sql(within(total, INTEGRAL_BOUNDS["BIGINT"], "HUGEINT", "BIGINT"))
    found = cast(total, "BIGINT")
    if call.types == ("BIGINT",):
        condition = _beyond(call, text, str(2**62))
        return call.sql(unless(condition, "large sum", found, "BIGINT"), raises=True)
    return call.sql(unless(f"{_rows(call)} > {INTEGER_ROWS}", "many rows", found, "BIGINT"))


def decimal_sum(call: Call, value: Sql, precision: int, scale: int, to: str) -> tuple[str, bool]:
    """A sum of decimals, and whether Spark may raise."""
    text = narrow(value) or value.text
    found = cast(call.aggregate("sum", text), to)
    if precision + SUM_DIGITS <= MAX_PRECISION or narrow(value):
        return unless(f"{_rows(call)} > {10**SUM_DIGITS}", "many rows", found, to), False
    condition = _beyond(call, text, f"1e{MAX_PRECISION - 1 - scale}")
    return unless(condition, "large sum", found, to), call.ansi


def _decimal_sum(call: Call) -> Sql:
    known = decimal_of(call.types[0])
    call.needs(known is not None, f"of {call.types[0]}", "UNPROVEN_TYPE")
    assert known
    _ = call.ansi
    found, raises = decimal_sum(call, call.args[0], *known, call.type)
    return call.sql(found, raises)


def _make_decimal(call: Call) -> Sql:
    """A sum of unscaled numbers made a decimal (Catalyst's DecimalAggregates) is the sum of the decimals."""
    call.ignore("nullOnOverflow")
    child = call.expression.children[0]
    over = ""
    if child.kind == "WindowExpression":
        function, specification = child.children
        over = _over(call, specification, function.kind)
        child = function
    call.needs(child.kind == "AggregateExpression", f"of {child.kind}")
    summed = child.children[0]
    call.needs(summed.kind == "Sum" and summed.children[0].kind == "UnscaledValue", f"of {summed.kind}")
    value = summed.children[0].children[0]
    known = decimal_of(value.type)
    result = (int(call.field("precision")), int(call.field("scale")))
    call.needs(known is not None, f"of {value.type}", "UNPROVEN_TYPE")
    assert known
    call.needs(result == (known[0] + SUM_DIGITS, known[1]) and result[0] <= INT64_DIGITS, f"with digits {result}")
    inner = Call(child, call.translation)
    how = _how(inner, over)
    inner.check(Sql("", child.type))
    call.read += inner.read
    call.aggregation = how
    found, _ = decimal_sum(call, call.translate(value), *known, call.type)
    return call.sql(found)


# Averages


def _average_parts(call: Call) -> tuple[str, str]:
    """Sum and count as Spark's function has them before it divides: of integers a double, of decimals a decimal."""
    _ = call.ansi
    child = call.expression.children[0]
    if child.kind == "UnscaledValue":
        return _unscaled_parts(call, child.children[0])
    (value,) = call.args
    text = narrow(value) or value.text
    count = call.aggregate("count", text)
    if known := decimal_of(child.type):
        to = decimal_type(min(known[0] + SUM_DIGITS, MAX_PRECISION), known[1])
        return decimal_sum(call, value, *known, to)[0], count
    call.needs(child.type in INTEGRAL_DIGITS, f"of {child.type}", "UNDETERMINED")
    found = cast(call.aggregate("sum", text), "DOUBLE")
    condition = _not_exact(call, text, -INTEGRAL_BOUNDS[child.type][0])
    return unless(condition, "large sum", found, "DOUBLE"), count


def _unscaled_parts(call: Call, value: Expression) -> tuple[str, str]:
    known = decimal_of(value.type)
    call.needs(known is not None, f"of {value.type}", "UNPROVEN_TYPE")
    assert known
    text = call.translate(value).text
    total = call.aggregate("sum", text)
    # The bound on it has 16 digits.
    short = 16 + known[1] <= INT64_DIGITS
    found = unscaled_short(total, known[1]) if short else unscaled(total, MAX_PRECISION, known[1])
    found = cast(found, "DOUBLE")
    condition = _not_exact(call, text, 10 ** known[0], known[1])
    return unless(condition, "large sum", found, "DOUBLE"), call.aggregate("count", text)


def _average(call: Call) -> Sql:
    total, count = _average_parts(call)
    call.needs(call.type == "DOUBLE", f"is {call.type}", "UNPROVEN_TYPE")
    return call.sql(f"({total} / {cast(count, 'DOUBLE')})")


def _decimal_average(call: Call) -> Sql:
    known, result = decimal_of(call.types[0]), decimal_of(call.type)
    call.needs(bool(known and result), f"of {call.types[0]}", "UNPROVEN_TYPE")
    assert known and result
    (precision, scale), (_, digits) = known, result
    total, count = _average_parts(call)
    shift = digits - scale
    dividend = unscaled(total, min(precision + SUM_DIGITS, MAX_PRECISION), scale)
    text = quotient(call, dividend, cast(count, "HUGEINT"), shift)
    if short := short_quotient(call, total, scale, count, shift):
        text = f"(CASE WHEN {short[0]} THEN {short[1]} ELSE {text} END)"
    raises = call.ansi and precision + SUM_DIGITS > MAX_PRECISION and not narrow(call.args[0])
    return call.sql(text, raises)


def _grouped(*forms: str, types: tuple[str, ...]) -> tuple[Example, ...]:
    return tuple(Example(form, (each,), grouped=True) for form in forms for each in types)


_ORDERED = ("BOOLEAN", "INT", "BIGINT", "STRING", "DATE", "TIMESTAMP_NTZ", "DECIMAL(7,2)", "DECIMAL(38,10)")

EQUIVALENTS = (
    Equivalent(
        "AggregateExpression",
        FAMILY,
        "a function over all rows, maybe distinct values, maybe filtered",
        "a row whose condition is not true is left out in both",
        _grouped("sum({0}) FILTER (WHERE {0} > 0)", "sum(DISTINCT {0})", types=("INT", "DECIMAL(17,2)")),
        _aggregate,
    ),
    Equivalent(
        "WindowExpression",
        FAMILY,
        "a function over the whole partition, or over all rows up to the last with equal keys, or up to this one where "
        "no two rows have equal keys",
        "the rows of both frames do not depend on the order of rows with equal keys",
        (
            Example("sum({0}) OVER (PARTITION BY {1})", ("INT", "TINYINT")),
            Example("sum({0}) OVER (PARTITION BY {1} ORDER BY {2} DESC)", ("DECIMAL(17,2)", "TINYINT", "STRING")),
            Example("max({0}) OVER (ORDER BY {1} NULLS LAST)", ("DATE", "INT")),
        ),
        _window,
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "in a window",
            "counts rows before, or keys before: equal for equal keys",
            (Example(f"{name}() OVER (PARTITION BY {{0}} ORDER BY {{1}} DESC, {{2}})", ("TINYINT", "STRING", "INT")),),
            _rank,
        )
        for kind, name in (("Rank", "rank"), ("DenseRank", "dense_rank"))
    ),
    *(
        Equivalent(kind, FAMILY, "nothing", "never: it depends on the order of rows with equal keys", (), _undetermined)
        for kind in ("RowNumber", "First", "Last", "CollectList", "CollectSet", "Lead", "Lag", "NTile")
    ),
    Equivalent(
        "Count",
        FAMILY,
        "values, or a constant for rows",
        "rows in which all values are there; distinct ones by the equality of their type",
        (
            *_grouped("count({0})", "count(DISTINCT {0})", "count(1)", types=("INT", "STRING", "DECIMAL(7,2)")),
            Example("count({0}, {1})", ("INT", "STRING"), grouped=True),
            Example("count(DISTINCT {0}, {1})", ("TINYINT", "STRING"), grouped=True),
        ),
        _count,
    ),
    *(
        Equivalent(
            kind,
            FAMILY,
            "a value whose order both know",
            "the same order, NaN above all; nulls are passed over; a zero where there are negative zeros raises in "
            "DuckDB",
            _grouped(f"{kind.lower()}({{0}})", types=(*_ORDERED, "DOUBLE", "FLOAT")),
            _extreme,
        )
        for kind in ("Min", "Max")
    ),
    Equivalent(
        "Sum",
        FAMILY,
        "an integer",
        "the exact sum, a bigint; groups in which a partial sum might not fit raise in DuckDB",
        _grouped("sum({0})", types=("TINYINT", "INT", "BIGINT")),
        _integer_sum,
    ),
    Equivalent(
        "Sum",
        FAMILY,
        "a decimal",
        "the exact sum; ten digits more hold it for 10^10 rows; groups in which they might not raise in DuckDB",
        _grouped("sum({0})", types=("DECIMAL(17,2)", "DECIMAL(28,2)", "DECIMAL(38,10)")),
        _decimal_sum,
    ),
    Equivalent("Sum", FAMILY, "nothing else", "never: a floating-point sum depends on the order", (), _undetermined),
    Equivalent(
        "MakeDecimal",
        FAMILY,
        "a sum of unscaled numbers",
        "the sum of the decimals: of up to 18 digits, which 10^10 rows of up to 8 digits do not exceed",
        (
            *_grouped("sum({0})", "sum(DISTINCT {0})", types=("DECIMAL(7,2)",)),
            Example("sum({0}) OVER (PARTITION BY {1})", ("DECIMAL(7,2)", "TINYINT")),
        ),
        _make_decimal,
    ),
    Equivalent(
        "Average",
        FAMILY,
        "an integer, or the unscaled number of a decimal",
        "Spark adds up doubles: exact, whatever the order, while all partial sums are below 2^53; groups in which "
        "they might not be raise in DuckDB. Then one division of doubles, of null by 0 where there is no value",
        _grouped("avg({0})", types=("TINYINT", "INT", "BIGINT")),
        _average,
    ),
    Equivalent(
        "Average",
        FAMILY,
        "a decimal",
        "the exact sum, divided by the count as decimals are; half up",
        _grouped("avg({0})", types=("DECIMAL(12,4)", "DECIMAL(15,2)", "DECIMAL(27,6)", "DECIMAL(38,10)")),
        _decimal_average,
    ),
)
