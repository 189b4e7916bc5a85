"""What would be done, where the mode is `observe`."""

from __future__ import annotations

from spark_regions.decision.draft import Draft
from spark_regions.decision.values import Decline
from spark_regions.reasons import would_save


def observed_draft(draft: Draft) -> list[Decline]:
    """What would be done, as declines, then what would not."""
    would = [("load", node, draft.saved[node]) for node in sorted(draft.loads)]
    would += [("store", candidate.node, max(candidate.benefit, 0.0)) for candidate, _ in draft.stores]
    would += [("share", share.nodes[0], share.saving) for share in draft.shares]
    would += [("route", route.node, route.saving) for route in draft.routes]
    return [Decline(node, "OBSERVE_ONLY", would_save(kind, saving)) for kind, node, saving in would] + [*draft.declines]
