"""The branches of an exploration, as points of a space of choices (Meta-Dataflows §3.1)."""

from __future__ import annotations

import itertools
import keyword
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from spark_regions.errors import ExploreError

Point = Mapping[str, Any]


def product(choices: Mapping[str, Iterable[Any]]) -> tuple[Point, ...]:
    """All combinations of the values; those of the last name vary fastest.

    >>> [tuple(point.values()) for point in product({"t": [1.5, 2.0], "k": ["gauss", "tophat"]})]
    [(1.5, 'gauss'), (1.5, 'tophat'), (2.0, 'gauss'), (2.0, 'tophat')]

    :raises ExploreError: no choice, a choice without values or with one of them twice, text in place of values, or a
        name that is no identifier
    """
    values = {name: _values(name, given) for name, given in choices.items()}
    return points(dict(zip(values, each, strict=True)) for each in itertools.product(*values.values()))


def points(given: Iterable[Point]) -> tuple[Point, ...]:
    """Points one by one, each with a value of every choice; names stand as in the first.

    :raises ExploreError: no point or choice, points with different names, a name that is no identifier, a point twice
    """
    found = list(given)
    wrong = next((each for each in found if not isinstance(each, Mapping)), None)
    if wrong is not None:
        raise ExploreError(f"Found the point {reprlib.repr(wrong)}, expected a dictionary. Hint: points([dict(t=1.5)])")
    if not found or not found[0]:
        raise ExploreError("No choices were found, expected at least one. Hint: explore(t=[1.5, 2.0])")
    names = tuple(found[0])
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ExploreError(f"Found the choice {name!r}, expected an identifier. Hint: it names an argument.")
    seen = set()
    for point in found:
        if set(point) != set(names):
            raise ExploreError(
                f"Found a point with the names {[*point]} beside one with {[*names]}, expected the same. Hint: give "
                "each point a value of every choice."
            )
        key = tuple(_key(point[name]) for name in names)
        if key in seen:
            raise ExploreError(f"Found {label(point)} twice, expected each point and value once. Hint: leave one out.")
        seen.add(key)
    return tuple({name: point[name] for name in names} for point in found)


def label(point: Point) -> str:
    """How messages name a branch.

    >>> label({"t": 1.5, "k": "gauss"})
    "t=1.5, k='gauss'"
    """
    return ", ".join(f"{name}={reprlib.repr(value)}" for name, value in point.items())


class Space:
    """Branches are numbered as the points are given, from zero.

    :param given: points, as `product` or `points` returns them
    :raises ExploreError: as `points` does
    """

    def __init__(self, given: Iterable[Point]) -> None:
        self.points = points(given)
        self.names = tuple(self.points[0])
        columns = {name: [point[name] for point in self.points] for name in self.names}
        self.numeric = frozenset(name for name, column in columns.items() if all(map(_is_number, column)))
        """Choices whose values are all numbers."""
        self.positions = {name: _positions(column, name in self.numeric) for name, column in columns.items()}
        """Of each branch along each choice: numbers in their order, other values as first given.

        >>> Space(product({"t": [10, 2.5], "k": ["tophat", "gauss"]})).positions
        {'t': (1, 1, 0, 0), 'k': (0, 1, 0, 1)}
        """

    def __len__(self) -> int:
        return len(self.points)

    def label(self, branch: int) -> str:
        return label(self.points[branch])

    def lines(self, choice: str) -> tuple[tuple[int, ...], ...]:
        """Groups of branches that differ in this choice alone, each ordered by its position; each branch is in one.

        >>> Space(product({"t": [10, 2.5], "k": ["tophat", "gauss"]})).lines("t")
        ((2, 0), (3, 1))
        """
        others = [self.positions[name] for name in self.names if name != choice]
        groups: dict[tuple[int, ...], list[int]] = {}
        for branch in range(len(self)):
            groups.setdefault(tuple(each[branch] for each in others), []).append(branch)
        return tuple(tuple(sorted(group, key=self.positions[choice].__getitem__)) for group in groups.values())


def _values(name: str, given: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ExploreError(
            f"Found {name}={reprlib.repr(given)}, expected a list of values. Hint: {name}=[{reprlib.repr(given)}]"
        )
    values = tuple(given)
    if not values:
        raise ExploreError(f"Found no values of {name!r}, expected at least one. Hint: leave {name!r} out.")
    return values


def _key(value: Any) -> Any:
    """Equal for equal values. Of what has no hash, such as arrays and frames, for the same object only."""
    try:
        hash(value)
    except TypeError:
        return (object, id(value))
    return value


def _is_number(value: Any) -> bool:
    """NaN has no place in an order, hence is none."""
    return isinstance(value, Real) and value is not True and value is not False and bool(value == value)


def _positions(column: Sequence[Any], numeric: bool) -> tuple[int, ...]:
    keys = list(map(_key, column))
    distinct = dict.fromkeys(keys)
    place = {key: position for position, key in enumerate(sorted(distinct) if numeric else distinct)}
    return tuple(place[key] for key in keys)
