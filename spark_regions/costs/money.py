"""What a choice is worth: seconds of the application, or money where prices are given (Piglet §4.2, §7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from spark_regions import conf
from spark_regions.errors import ConfError
from spark_regions.stats.frequency import HALF_LIFE_SECONDS

HELD_DAYS = HALF_LIFE_SECONDS / log(2) / 86_400
"""For so long a result is held for the uses that are expected of it."""
GIGABYTE = 1e9
_MONTH_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class Prices:
    """In any currency; 0 costs nothing.

    :param gb_month: of holding 10^9 bytes
    :param gb_read: of reading 10^9 bytes of the store
    """

    core_hour: float = 0.0
    gb_month: float = 0.0
    gb_read: float = 0.0

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Prices:
        """From `spark.regions.price.*`.

        :raises ConfError: one is no number, or negative
        """
        return cls(*(_price(settings, name) for name in ("coreHour", "gbMonth", "gbRead")))

    @property
    def given(self) -> bool:
        """Storage alone has no price to be weighed against: without one of computing, seconds count."""
        return self.core_hour > 0

    def computing(self, seconds: float, cores: int) -> float:
        """Of all cores for so many wall seconds; the seconds themselves without prices."""
        return seconds * cores / 3600 * self.core_hour if self.given else seconds

    def reading(self, size_bytes: float) -> float:
        return size_bytes / GIGABYTE * self.gb_read if self.given else 0.0

    def holding(self, size_bytes: float, days: float = HELD_DAYS) -> float:
        """
        >>> round(Prices(1.0, gb_month=0.3).holding(10e9, 15), 6)
        1.5
        """
        return size_bytes / GIGABYTE * self.gb_month * days / _MONTH_DAYS if self.given else 0.0

    def seconds(self, money: float, cores: int) -> float:
        """Wall seconds of all cores that cost as much.

        >>> Prices(0.5).seconds(1.0, 2)
        3600.0
        """
        return money * 3600 / (cores * self.core_hour) if self.given else 0.0


NO_PRICES = Prices()


def _price(settings: Mapping[str, str], name: str) -> float:
    try:
        return float(conf.value_of(f"price.{name}", settings) or 0.0)
    except ValueError as error:
        key = f"{conf.PREFIX}price.{name}"
        raise ConfError(
            f"{key}: found {settings[key]!r}, expected {error}. Hint: leave it out where it costs nothing."
        ) from error
