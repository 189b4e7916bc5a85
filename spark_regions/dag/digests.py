"""Digests as docs/protocol.md defines them: SHA-256, truncated to 32 hex characters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest(parts: Iterable[str]) -> str:
    """Digest of a sequence of strings; each is length-prefixed, so that no two sequences collide.

    >>> digest(["ab", "c"]) != digest(["a", "bc"])
    True
    >>> len(digest([]))
    32
    """
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()[:32]


def shape(columns: Iterable[str]) -> str:
    """Digest of a set of columns, whatever their order."""
    return digest(sorted(set(columns)))
