"""TPC-H as its throughput test has it: streams of the 22 queries with parameters drawn from their official ranges.

python -m benchmarks.tpch_streams [--scale 1] [--rounds 10]

A round is a stream. Each draws the parameters of its queries anew (TPC-H specification, 2.4.x.3) and has them in an
order of its own; plain Spark and the plugin, one application each, take turns query by query. Both are warm by the same
queries on a hundredth of the data; the plugin's store is empty before the first stream.
"""

from __future__ import annotations

import itertools
import json
import sys
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from random import Random
from typing import Any

from benchmarks.measure import Options, benchmark_main
from benchmarks.queries import DRIVER_MEMORY, OFF, ON, PAIR, WARM_SCALE
from benchmarks.turns import asked, differing, sides, texts, values
from examples import data

SEED = 20_101
SYLLABLES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
SHIP_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("INDIA", "INDONESIA", "JAPAN", "CHINA", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
COLOURS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse "
    "chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted "
    "gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen "
    "magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach "
    "peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow "
    "spring steel tan thistle tomato turquoise violet wheat white yellow"
)
COMMENTS = (("special", "pending", "unusual", "express"), ("packages", "requests", "accounts", "deposits"))

Replacements = list[tuple[str, str]]


def months_later(day: date, months: int) -> date:
    """The same day of a later month, or its last one.

    >>> months_later(date(1993, 11, 1), 3)
    datetime.date(1994, 2, 1)
    """
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def parameters(random: Random, scale: float) -> dict[int, Replacements]:
    """By query: literals of the text in `examples.data`, each with what stands in its place.

    Of literals that occur in others, the longer one comes first.
    """

    def month(first: date, last: date) -> date:
        return months_later(first, random.randint(0, (last.year - first.year) * 12 + last.month - first.month))

    def years() -> tuple[str, str]:
        year = random.randint(1993, 1997)
        return f"{year}-01-01", f"{year + 1}-01-01"

    def brand() -> str:
        return f"Brand#{random.randint(1, 5)}{random.randint(1, 5)}"

    pick: Callable[..., str] = random.choice
    nation = lambda: pick(tuple(itertools.chain(*NATIONS.values())))  # noqa: E731
    shipped = date(1998, 12, 1) - timedelta(days=random.randint(60, 120))
    q3 = f"1995-03-{random.randint(1, 31):02d}"
    q4, q10 = month(date(1993, 1, 1), date(1997, 10, 1)), month(date(1993, 2, 1), date(1995, 1, 1))
    q14, q15 = month(date(1993, 1, 1), date(1997, 12, 1)), month(date(1993, 1, 1), date(1997, 10, 1))
    (q5, q5_end), (q6, q6_end), (q12, q12_end), (q20, q20_end) = years(), years(), years(), years()
    discount = random.randint(2, 9)
    one, other = random.sample(tuple(itertools.chain(*NATIONS.values())), 2)
    region = pick(tuple(NATIONS))
    modes = random.sample(SHIP_MODES, 2)
    sizes = random.sample(range(1, 51), 8)
    quantities = (random.randint(1, 10), random.randint(10, 20), random.randint(20, 30))
    codes = random.sample(range(10, 35), 7)
    return {
        1: [("1998-09-02", str(shipped))],
        2: [
            ("p_size = 15", f"p_size = {random.randint(1, 50)}"),
            ("BRASS", pick(SYLLABLES[2])),
            ("EUROPE", pick(tuple(NATIONS))),
        ],
        3: [("BUILDING", pick(SEGMENTS)), ("1995-03-15", q3)],
        4: [("1993-07-01", str(q4)), ("1993-10-01", str(months_later(q4, 3)))],
        5: [("ASIA", pick(tuple(NATIONS))), ("1994-01-01", q5), ("1995-01-01", q5_end)],
        6: [
            ("1994-01-01", q6),
            ("1995-01-01", q6_end),
            ("0.05", f"0.{discount - 1:02d}"),
            ("0.07", f"0.{discount + 1:02d}"),
            ("l_quantity < 24", f"l_quantity < {random.randint(24, 25)}"),
        ],
        7: [("FRANCE", one), ("GERMANY", other)],
        8: [
            ("BRAZIL", pick(NATIONS[region])),
            ("AMERICA", region),
            ("ECONOMY ANODIZED STEEL", " ".join(map(pick, SYLLABLES))),
        ],
        9: [("green", pick(COLOURS.split()))],
        10: [("1993-10-01", str(q10)), ("1994-01-01", str(months_later(q10, 3)))],
        11: [("GERMANY", nation()), ("0.0001000000", f"{0.0001 / scale:.10f}")],
        12: [("'MAIL', 'SHIP'", f"'{modes[0]}', '{modes[1]}'"), ("1994-01-01", q12), ("1995-01-01", q12_end)],
        13: [("special", pick(COMMENTS[0])), ("requests", pick(COMMENTS[1]))],
        14: [("1995-09-01", str(q14)), ("1995-10-01", str(months_later(q14, 1)))],
        15: [("1996-01-01", str(q15)), ("1996-04-01", str(months_later(q15, 3)))],
        16: [
            ("Brand#45", brand()),
            ("MEDIUM POLISHED", f"{pick(SYLLABLES[0])} {pick(SYLLABLES[1])}"),
            ("49, 14, 23, 45, 19, 3, 36, 9", ", ".join(map(str, sizes))),
        ],
        17: [("Brand#23", brand()), ("MED BOX", " ".join(map(pick, CONTAINERS)))],
        18: [("> 300", f"> {random.randint(312, 315)}")],
        19: [("Brand#12", brand()), ("Brand#23", brand()), ("Brand#34", brand())]
        + [
            (text.format(was), text.format(now))
            for was, now in zip((1, 10, 20), quantities, strict=True)
            for text in ("l_quantity >= {}\n", "l_quantity <= {} + 10")
        ],
        20: [
            ("'forest%'", f"'{pick(COLOURS.split())}%'"),
            ("1994-01-01", q20),
            ("1995-01-01", q20_end),
            ("CANADA", nation()),
        ],
        21: [("SAUDI ARABIA", nation())],
        22: [("'13', '31', '23', '29', '30', '18', '17'", ", ".join(f"'{code}'" for code in codes))],
    }


def replaced(text: str, replacements: Iterable[tuple[str, str]]) -> str:
    """Each literal replaced, at once, so that what was put in is not replaced again.

    >>> replaced("a = 1 AND b = 2", [("1", "2"), ("2", "3")])
    'a = 2 AND b = 3'
    """
    marks = list(replacements)
    for number, (literal, _) in enumerate(marks):
        if literal not in text:
            raise ValueError(f"{literal!r} is not in the query: {text}")
        text = text.replace(literal, f"\0{number}\0")
    for number, (_, value) in enumerate(marks):
        text = text.replace(f"\0{number}\0", value)
    return text


def tpch_streams(options: Options) -> dict[str, Any]:
    """Seconds of the streams so far over plain Spark's, and how many reads came by which reason and rule."""
    random = Random(SEED)
    queries = data.tpch_queries()
    by_stream: list[tuple[float, float]] = []
    seconds: dict[str, dict[str, float]] = {}
    did: Counter[str] = Counter()
    wrong: list[str] = []
    tables, small = data.tpch(options.scale, options.data), data.tpch(WARM_SCALE, options.data)
    with sides(PAIR, small, DRIVER_MEMORY) as pair:
        pair["plugin"].set(OFF)
        asked(pair, queries, 1, texts("query", queries))
        pair["plugin"].set(ON)
        for driver in pair.values():
            driver.register(tables)
        for stream in range(options.rounds):
            drawn = parameters(random, options.scale)
            order = random.sample(sorted(queries), len(queries))
            asks = {f"stream {stream + 1} query {n}": replaced(queries[n], drawn[n]) for n in order}
            answers = asked(
                pair, asks, 1, texts("query", asks), after=lambda: {"did": pair["plugin"].ask("last_decision")}
            )
            wrong += differing(answers, ties=True)
            for item in asks:
                seconds[item] = {side: values(answers, item, side)[0] for side in PAIR}
                for each in values(answers, item, "plugin", "did")[0].get("actions", ()):
                    rule = each["detail"] if each["kind"] in ("load", "recall") else ""
                    did[f"{each['kind']} {each['reason']} {rule}".rstrip()] += 1
            by_stream.append(
                (sum(seconds[item]["plugin"] for item in asks), sum(seconds[item]["plain"] for item in asks))
            )
            print(json.dumps({"stream": stream + 1, "seconds": by_stream[-1]}), file=sys.stderr, flush=True)
    ours, plain = (list(itertools.accumulate(each)) for each in zip(*by_stream, strict=True))
    return {
        "cumulative_over_plain": ours[-1] / plain[-1],
        "over_plain_by_stream": [round(one / two, 3) for one, two in by_stream],
        "cumulative_by_stream": [round(one / two, 3) for one, two in zip(ours, plain, strict=True)],
        "differing": wrong,
        "actions": dict(did.most_common()),
        "queries_beyond_1.05_plus_50_ms": [
            item for item, each in seconds.items() if each["plugin"] > 1.05 * each["plain"] + 0.05
        ],
        "seconds": seconds,
    }


if __name__ == "__main__":
    benchmark_main("tpch_streams", tpch_streams, 10)
