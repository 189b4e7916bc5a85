"""Everything that this package raises.

```
RegionsError
├── ConfError        an unknown key, a bad value, or a key set where it cannot act
├── JarError         no shim jar for this Spark, or not the one of this version
├── NotActiveError   a session that runs without the plugin
├── PlannerError     the planner process cannot start or answer
└── StoreError       the store or its catalog cannot be used
```
"""

from __future__ import annotations


class RegionsError(Exception):
    """Base of all; the message says what was found, what was expected, then `Hint:`."""


class ConfError(RegionsError):
    """An unknown key, a bad value, or a key set where it cannot act."""


class JarError(RegionsError):
    """No shim jar for this Spark, or not the one of this version."""


class NotActiveError(RegionsError):
    """A session that runs without the plugin."""


class PlannerError(RegionsError):
    """The planner process cannot start or answer."""


class StoreError(RegionsError):
    """The store or its catalog cannot be used."""
