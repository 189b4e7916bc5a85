"""The heaviest keys of a stage that ran, as a sample of its rows told them: kept by the lineage of the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spark_regions.errors import InvalidRequest

MOST_KEYS = 16
LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class KeyFrequency:
    """:param key: as people read it, `k = 1`; redacted as Spark redacts plans
    :param share: of the rows; at most `error` off
    """

    key: str
    share: float
    error: float


@dataclass(frozen=True, slots=True)
class KeyFrequencies:
    """:param operator: that reads the rows
    :param keys: the heaviest first; none where no key has a hundredth of the rows
    """

    operator: str
    keys: tuple[KeyFrequency, ...]

    def encode(self) -> bytes:
        return json.dumps({"operator": self.operator, "keys": [asdict(each) for each in self.keys]}).encode()

    @classmethod
    def decode(cls, body: bytes) -> KeyFrequencies:
        """
        :raises InvalidRequest: these are not the bytes of frequencies
        """
        try:
            return key_frequencies(json.loads(body))
        except ValueError as problem:
            raise InvalidRequest(f"The keys of a stage cannot be read: {problem!r}.") from problem


def key_frequencies(record: Mapping[str, Any]) -> KeyFrequencies:
    """Of a `keys` event, or of what was kept of it.

    :raises InvalidRequest: where a field is missing, of another type, or no share
    """
    try:
        keys = tuple(
            KeyFrequency(str(each["key"])[:LONGEST_KEY], float(each["share"]), float(each["error"]))
            for each in record["keys"][:MOST_KEYS]
        )
        if not all(0 <= each.share <= 1 and 0 <= each.error <= 1 for each in keys):
            raise ValueError("a share outside of 0 to 1")
        return KeyFrequencies(str(record["operator"])[:LONGEST_KEY], keys)
    except (KeyError, TypeError, ValueError) as problem:
        raise InvalidRequest(f"The keys of a stage cannot be read: {problem!r}.") from problem
