"""The heaviest keys of a stage that ran, as a sample of its rows told them: kept by the lineage of the rows."""

from __future__ import annotations

import msgspec

from spark_regions.errors import InvalidRequest
from spark_regions.wire.messages import CountedKeys, HeavyKey

MOST_KEYS = 16
LONGEST_KEY = 200


class KeyFrequencies(msgspec.Struct, frozen=True):
    """:param operator: that reads the rows
    :param keys: the heaviest first; none where no key has a hundredth of the rows
    """

    operator: str
    keys: tuple[HeavyKey, ...]

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, body: bytes) -> KeyFrequencies:
        """
        :raises InvalidRequest: these are not the bytes of frequencies
        """
        try:
            return msgspec.json.decode(body, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise InvalidRequest(f"The keys of a stage cannot be read: {problem!r}.") from problem


def key_frequencies(event: CountedKeys) -> KeyFrequencies:
    """What is kept of them. A key is told as people read it, `k = 1`, and redacted as Spark redacts plans."""
    keys = tuple(HeavyKey(each.key[:LONGEST_KEY], each.share, each.error) for each in event.keys[:MOST_KEYS])
    return KeyFrequencies(event.operator[:LONGEST_KEY], keys)
