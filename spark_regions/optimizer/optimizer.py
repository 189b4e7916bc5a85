"""One decision: passes over a question, in a fixed order, each with the draft of those before it.

A new kind of alternative is one more file with one function here, and an applier of its action in the shim.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline
from spark_regions.optimizer.account import account
from spark_regions.optimizer.candidates import candidates
from spark_regions.optimizer.charge import charge
from spark_regions.optimizer.choose import choose
from spark_regions.optimizer.estimate import estimate
from spark_regions.optimizer.first_use import first_use
from spark_regions.optimizer.fit import fit
from spark_regions.optimizer.follow import follow
from spark_regions.optimizer.invariants import violation
from spark_regions.optimizer.keep import keep
from spark_regions.optimizer.match import match
from spark_regions.optimizer.number_regions import number_regions
from spark_regions.optimizer.persist import persist
from spark_regions.optimizer.price import price
from spark_regions.optimizer.prune import prune
from spark_regions.optimizer.refresh import refresh
from spark_regions.optimizer.renew import renew
from spark_regions.optimizer.roll_up import roll_up
from spark_regions.optimizer.route import route
from spark_regions.optimizer.share import share
from spark_regions.optimizer.small_result import small_result
from spark_regions.optimizer.sweep import sweep
from spark_regions.optimizer.widen import widen
from spark_regions.optimizer.withdraw import withdraw

log = logging.getLogger("spark_regions.planner")

Pass = Callable[[Question, Draft], Draft]

PASSES: tuple[Pass, ...] = (
    follow,
    estimate,
    match,
    roll_up,
    refresh,
    price,
    candidates,
    widen,
    sweep,
    charge,
    fit,
    choose,
    renew,
    first_use,
    small_result,
    account,
    prune,
    keep,
    persist,
    share,
    route,
    withdraw,
    number_regions,
)
"""Each file says why its pass stands where it stands."""
CHOICES = PASSES[:-1]
"""Without the picture, which is drawn once, of what could be carried out."""
FAILED = "INTERNAL_ERROR"


def optimize(
    question: Question, passes: Sequence[Pass] = PASSES, strict: bool = False, draft: Draft | None = None
) -> Draft:
    """What to do for a query. No side effects.

    A pass that fails, or after which an invariant does not hold, loses its own change only, and the draft declines it
    at the root by its name.

    :param strict: for tests: raise instead
    :param draft: of the passes before
    """
    draft = draft or Draft()
    for each in passes:
        try:
            after = each(question, draft)
            wrong = violation(question, after) if after is not draft else None
            if wrong is not None:
                raise AssertionError(wrong)
        except Exception as error:
            if strict:
                raise
            log.exception("pass %s", each.__name__)
            detail = f"pass {each.__name__}: {type(error).__name__}: {error}"[:500]
            draft = draft.declined(Decline(question.plan.root, FAILED, detail))
        else:
            draft = after
    return draft
