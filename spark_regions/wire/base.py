"""What every record of the wire is made of."""

from __future__ import annotations

from typing import Annotated

import msgspec

Long = Annotated[int, msgspec.Meta(extra_json_schema={"format": "int64"})]
"""Where 32 bits would not do."""


class Record(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """A field with a default may be absent; one that is not known is refused, with its name.

    What is read of a message leads nowhere back, so that the collector need not walk it.
    """
