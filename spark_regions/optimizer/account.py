"""What is said of eligible nodes that nothing is known of."""

from __future__ import annotations

from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline


def account(question: Question, draft: Draft) -> Draft:
    """After the last pass that stores at such a node: under an action nothing else about a node matters."""
    covered = question.plan.under((*draft.loads, *draft.stored))
    return draft.declined(*(Decline(number, "NO_HISTORY") for number in draft.unknown if number not in covered))
