"""Hostile values of each type, and tables of them: edges with each other, then random values."""

from __future__ import annotations

import datetime
import itertools
import struct
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from spark_regions.platforms.typed import decimal_of

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
GROUPS = 40
NULLS = 0.1
"""Share of random values."""

DOUBLES = [
    *(0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.0, -1.0, 0.1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e16, 1e-7),
    *(1.005, 127.9, 128.0, -128.9, -129.0, 2.0**31 - 1, 2.0**31, -(2.0**31) - 0.5, 2.0**53 - 1, 2.0**53 + 2),
    *(2.0**63, -(2.0**63), 2.0**63 - 1024, 1.7976931348623157e308, 5e-324, -5e-324, 2.2250738585072014e-308),
]
STRINGS = [
    *("", " ", "  ", "a", "A", "b", "ab", "abc", "  a b  ", "a ", " a", "aa", "aba", "bab", "\ta\t", "\u00a0a\u00a0"),
    *("ä", "aä", "äa", "e\u0301", "ß", "\u0130", "\ufb01", "ς", "Σ", "\u0131", "\U0001f986", "a\U0001f986b", "\uffff"),
    *("\U0010ffff", "%", "_", "\\", "a_b", "aXb", "a\\_b", "a_%b_", "a_xby", "a%xc", "a%_c", "a!%_c", "\n", "a\nb"),
    *("xaYb\n", "0", "-1", "null", "true", "a\0b", "it's", "z" * 60, "bc", "bbc"),
]
DATES = [
    datetime.date(*each)
    for each in (
        *((1, 1, 1), (1, 12, 31), (4, 2, 29), (100, 2, 28), (1582, 10, 4), (1582, 10, 10), (1582, 10, 15)),
        *((1600, 2, 29), (1699, 12, 31), (1900, 2, 28), (1900, 3, 1), (1969, 12, 31), (1970, 1, 1), (1999, 12, 31)),
        *((2000, 1, 31), (2000, 2, 29), (2000, 12, 31), (2016, 1, 3), (2016, 1, 4), (2020, 2, 29), (2021, 1, 1)),
        *((2023, 3, 31), (2024, 2, 29), (2024, 12, 30), (2100, 2, 28), (9999, 1, 1), (9999, 12, 31)),
    )
]
MOMENTS = [
    *(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), datetime.datetime(1970, 1, 1)),
    *(datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(1969, 12, 31)),
    *(datetime.datetime(1582, 10, 9, 5), datetime.datetime(2020, 2, 29, 12, 30, 1, 1)),
    *(datetime.datetime(2021, 3, 28, 2, 30), datetime.datetime(1900, 1, 1, 0, 0, 1)),
]


def as_float(value: float) -> float:
    """The nearest single-precision number."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def edges(data_type: str) -> list[Any]:
    if known := decimal_of(data_type):
        precision, scale = known
        numbers = {0, 1, 5, 10**precision - 1, 10**precision // 2, 10**scale, 10**scale + 5 * 10 ** max(scale - 2, 0)}
        numbers |= {5 * 10 ** max(scale - 1, 0), 10 ** max(precision // 2, 1) + 5}
        signed = sorted({sign * number for number in numbers if number < 10**precision for sign in (1, -1)})
        return [unscaled(number, scale) for number in signed]
    if data_type in BITS:
        most = 2 ** (BITS[data_type] - 1)
        return sorted({0, 1, -1, 2, 3, -3, 7, 100, most - 1, -most, -most + 1, most // 2, *_powers(most)})
    return {
        "BOOLEAN": [True, False],
        "DOUBLE": DOUBLES,
        "FLOAT": [as_float(each) for each in DOUBLES],
        "STRING": STRINGS,
        "DATE": DATES,
        "TIMESTAMP_NTZ": MOMENTS,
        "TIMESTAMP": [each.replace(tzinfo=datetime.UTC) for each in MOMENTS],
    }[data_type]


def _powers(most: int) -> set[int]:
    return {sign * 10**power for power in range(19) if 10**power < most for sign in (1, -1)}


def unscaled(number: int, scale: int) -> Decimal:
    """The decimal with all digits of the number, whatever the precision of the context."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def drawn(data_type: str, random: Random) -> Any:
    """A random value, of a random magnitude."""
    if known := decimal_of(data_type):
        digits = random.choice((1, max(known[0] // 2, 1), known[0]))
        return unscaled(random.choice((1, -1)) * random.randrange(10**digits), known[1])
    if data_type in BITS:
        bits = random.choice((2, BITS[data_type] // 2, BITS[data_type] - 1))
        return random.choice((1, -1)) * random.randrange(2**bits)
    match data_type:
        case "BOOLEAN":
            return random.random() < 0.5
        case "DOUBLE" | "FLOAT":
            wide = random.gauss(0, random.choice((1.0, 1e6, 1e300)))
            value = random.choice((wide, random.randrange(-9, 9)))
            return as_float(value) if data_type == "FLOAT" else float(value)
        case "STRING":
            return "".join(random.choices("aabbc A_%\\!ä\U0001f986", k=random.randrange(7)))
        case "DATE":
            return datetime.date.fromordinal(random.randrange(1, datetime.date.max.toordinal() + 1))
    moment = datetime.datetime(1, 1, 1) + datetime.timedelta(microseconds=random.randrange(315_537_897_600_000_000))
    return moment.replace(tzinfo=datetime.UTC) if data_type == "TIMESTAMP" else moment


def rows(types: tuple[str, ...], count: int, seed: int) -> list[tuple[Any, ...]]:
    """At most half of them edges of the types and nulls with each other, the rest random, edges among them."""
    random = Random(seed)
    known = [[*edges(each), None] for each in types]
    met = list(itertools.product(*known)) if len(types) < 3 else []
    found = met if len(met) <= count // 2 else random.sample(met, count // 2)

    def one(at: int) -> Any:
        lot = random.random()
        if lot < NULLS:
            return None
        return random.choice(known[at]) if lot < 0.4 else drawn(types[at], random)

    while len(found) < count:
        found.append(tuple(map(one, range(len(types)))))
    return found


def arrow_type(data_type: str) -> pa.DataType:
    if known := decimal_of(data_type):
        return pa.decimal128(*known)
    return {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "DATE": pa.date32(),
        "TIMESTAMP_NTZ": pa.timestamp("us"),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    }[data_type]


def small(data_type: str, random: Random) -> Any:
    """A number of which sums do not overflow; of other types a random value."""
    if known := decimal_of(data_type):
        return unscaled(random.choice((1, -1)) * random.randrange(10 ** min(known[0], 3)), known[1])
    return random.randrange(-9, 10) if data_type in BITS else drawn(data_type, random)


def table(types: tuple[str, ...], count: int, seed: int, grouped: bool = False) -> pa.Table:
    """Columns `k`, which numbers the rows, `g` of some groups, and `c0`, `c1` … of the types.

    :param grouped: there are groups of small numbers alone
    """
    found = rows(types, count, seed)
    random = Random(seed + 1)
    groups = [at % GROUPS for at in range(len(found))]
    if grouped:
        for at, group in enumerate(groups):
            if group % 4 == 0:
                found[at] = tuple(None if random.random() < NULLS else small(each, random) for each in types)
    columns = {"k": pa.array(range(len(found)), pa.int32()), "g": pa.array(groups, pa.int32())}
    for at, each in enumerate(types):
        columns[f"c{at}"] = pa.array([row[at] for row in found], arrow_type(each))
    return pa.table(columns)
