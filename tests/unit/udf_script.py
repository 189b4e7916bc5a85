"""Functions as a user's script has them; prints their commands as PySpark pickles them.

Argument: a JSON object of values."""

import base64
import collections
import dataclasses
import enum
import functools
import json
import math
import re
import sys

VALUES = json.loads(sys.argv[1])
sys.path[:0] = VALUES.get("path", [])
LIMIT = VALUES.get("limit", 10)
NAMES = {"x", "yy", "zzz", "wwww", *VALUES.get("names", [])}


class Colour(enum.Enum):
    RED = 1
    BLUE = VALUES.get("blue", 2)


@dataclasses.dataclass
class Rate:
    factor: float
    seen: frozenset = frozenset(("a", "b", "c"))

    def of(self, value):
        return value * self.factor


def scaled(value):
    return value * LIMIT


def factorial(number):
    return 1 if number < 2 else number * factorial(number - 1)


def even(number):
    return number == 0 or odd(number - 1)


def odd(number):
    return number != 0 and even(number - 1)


EXTRA = VALUES.get("default", 2)


def with_closure(cap):
    def inner(value, extra=EXTRA, *, key=None):
        if value in {"a", "b", "c"}:
            return 1
        try:
            return scaled(value) + cap + math.sqrt(extra) + len(NAMES)
        except ValueError:
            return None

    return inner


rate = Rate(VALUES.get("factor", 0.5))
functions = {
    "closure": with_closure(VALUES.get("cap", 3)),
    "global": scaled,
    "set": lambda text: text in NAMES,
    "instance": lambda value: rate.of(value),
    "enum": lambda value: Colour.RED if value else Colour.BLUE,
    "recursive": factorial,
    "mutual": even,
    "partial": functools.partial(re.sub, "a", VALUES.get("replacement", "b")),
    "lambda": lambda text: text.upper(),
    "ordered": lambda value: collections.OrderedDict(a=value),
}
if VALUES.get("upper") is False:
    functions["lambda"] = lambda text: text.lower()
if VALUES.get("path"):
    import usermod

    functions["by reference"] = usermod.work
    functions["calls module"] = lambda value: usermod.work(value)

if __name__ == "__main__":
    from pyspark.cloudpickle import dumps
    from pyspark.sql.types import StringType

    print(
        json.dumps(
            [
                {
                    "key": key,
                    "command": base64.b64encode(dumps((function, StringType()))).decode(),
                    "pythonVersion": f"{sys.version_info[0]}.{sys.version_info[1]}",
                }
                for key, function in functions.items()
            ]
        )
    )
