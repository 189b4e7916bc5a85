"""Everything that this package raises.

```
RegionsError
├── ConfError              an unknown key, a bad value, or a key set where it cannot act
│   └── StrategyUnknown    no built-in strategy or entry point of that name
├── JarError               no shim jar for this Spark, or not the one of this version
├── NotActiveError         a session that runs without the plugin
├── BatchError             something given to `run` that is no action
├── PlannerError           the planner process cannot start or answer
├── EventLogError          a file that is no event log of Spark, or cannot be read
├── InvalidRequest         a message of the driver that breaks docs/protocol.md
├── InvalidWorkflow        a physical plan that cannot be read, or breaks docs/regions.md
├── CostModelError         no cost model of that name, or one that cannot answer what was asked
├── ExploreError           choices, a selection, a shape or a score that an exploration cannot work with
├── ControlError           a command, condition or message that control of a running job cannot follow
├── StoreError
│   ├── StoreUnwritable    the store's directory or catalog cannot be used
│   ├── CatalogCorrupt     the catalog file is not a database any more
│   ├── CatalogOlder       written by an earlier version of spark_regions
│   ├── CatalogNewer       written by a later version of spark_regions
│   └── CatalogBusy        another process held the catalog's lock for too long
└── UdfRefused             a Python function has no identity; carries a reason code
```
"""


class RegionsError(Exception):
    """Base of all; the message says what was found, what was expected, then `Hint:`."""


class ConfError(RegionsError):
    """An unknown key, a bad value, or a key set where it cannot act."""


class StrategyUnknown(ConfError):
    """No strategy of that name."""


class JarError(RegionsError):
    """No shim jar for this Spark, or not the one of this version."""


class NotActiveError(RegionsError):
    """A session that runs without the plugin."""


class BatchError(RegionsError):
    """Something given to `run` that is no action."""


class PlannerError(RegionsError):
    """The planner process cannot start or answer."""


class EventLogError(RegionsError):
    """A file that is no event log of Spark, or cannot be read."""


class InvalidRequest(RegionsError):
    """A message that breaks the protocol."""


class InvalidWorkflow(RegionsError):
    """A physical plan that cannot be read, has a cycle, unknown ends, duplicate ids or impossible numbers."""


class CostModelError(RegionsError):
    """No cost model of that name, or one that lacks what a method needs."""


class ExploreError(RegionsError):
    """Choices, a selection, a shape, an order or a score that an exploration cannot work with."""


class ControlError(RegionsError):
    """A command, condition or message that control of a running job cannot follow."""


class StoreError(RegionsError):
    """The store or its catalog cannot be used."""


class StoreUnwritable(StoreError):
    """The store's directory or catalog cannot be written."""


class CatalogCorrupt(StoreError):
    """The catalog file is damaged."""


class CatalogOlder(StoreError):
    """The catalog was written by an earlier version."""


class CatalogNewer(StoreError):
    """The catalog was written by a later version."""


class CatalogBusy(StoreError):
    """The catalog's lock was not free in time."""


class WithReason(Exception):
    """What is given up, and why.

    :param code: one of `spark_regions.reasons.REASONS`
    :param detail: the argument of the code
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class UdfRefused(WithReason, RegionsError):
    """A Python function that gets no digest."""
