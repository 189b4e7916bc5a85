"""What is compared of rows, in processes that need not have Spark."""

from __future__ import annotations

import hashlib
from typing import Any


def digest(rows: list[Any]) -> str:
    """Of the multiset of rows. Floats to nine digits: the order in which Spark adds them is not fixed.

    >>> digest([(1, 0.1 + 0.2), (2, None)]) == digest([(2, None), (1, 0.3)])
    True
    """
    texts = sorted("|".join(f"{v:.9g}" if isinstance(v, float) else repr(v) for v in row) for row in rows)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
