"""Anticipatory memory management: algorithm 2 of Meta-Dataflows §4.3."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spark_regions.errors import ExploreError
from spark_regions.explore.select import number


@dataclass(frozen=True, slots=True)
class Dataset:
    """
    :param uses: stages that will still read it: acc(d)
    :param bytes: in memory: δ(n, d)
    """

    name: str
    uses: int
    bytes: float


def alpha(write_disk: float, write_memory: float, read_disk: float, read_memory: float) -> float:
    """The paper's ratio w_d · r_m / (w_m · r_d), of four times for the same amount of data.

    It is the same for all datasets of a node, hence orders none of them: it compares nodes, or levels.

    >>> alpha(write_disk=4.0, write_memory=1.0, read_disk=2.0, read_memory=1.0)
    2.0

    :raises ExploreError: a time is not above zero, or is no finite number
    """
    given = {"write_disk": write_disk, "write_memory": write_memory, "read_disk": read_disk, "read_memory": read_memory}
    for name, value in given.items():
        if not 0 < number(value, name) < float("inf"):
            raise ExploreError(f"Found {name}={value}, expected seconds above zero. Hint: measure more data.")
    return write_disk * read_memory / (write_memory * read_disk)


def preference(uses: int, bytes: float, alpha: float) -> float:  # noqa: A002
    """To stay in memory: acc(d) · δ(n, d) · alpha.

    >>> preference(uses=3, bytes=100, alpha=2.0)
    600.0
    """
    return uses * bytes * alpha


def leaves(datasets: Iterable[Dataset], needed_bytes: float, alpha: float) -> tuple[str, ...]:
    """What leaves memory, in this order, until so many bytes are free; all of it if that is not enough.

    The lowest preference goes first, hence what has no use left; of equal ones the larger, then by name. 60 bytes:

    >>> leaves([Dataset("a", 2, 50), Dataset("b", 1, 40), Dataset("c", 0, 30)], 60, alpha=1.0)
    ('c', 'b')
    """
    going = []
    ranked = sorted(datasets, key=lambda each: (preference(each.uses, each.bytes, alpha), -each.bytes, each.name))
    for each in ranked:
        if needed_bytes <= 0:
            break
        going.append(each.name)
        needed_bytes -= each.bytes
    return tuple(going)
