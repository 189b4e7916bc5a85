"""What storing and reading cost beside time, where prices are given."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question


def charge(question: Question, draft: Draft) -> Draft:
    """After all that finds what could be read and stored, before what chooses: money counts as the seconds of all cores
    that cost as much, so that strategies need not know of prices.

    Worked example: a core-hour costs 0.09, and reading 10^9 bytes 0.01: on two cores, 200 s. A result of 10^8 bytes
    that saves 15 s of time is not read for 20 s of money.
    """
    prices, cores = question.prices, question.cores
    if not prices.given or not (draft.matches or draft.candidates):
        return draft
    candidates = tuple(
        replace(
            each,
            read_seconds=each.read_seconds + prices.seconds(prices.reading(each.bytes), cores),
            extra_seconds=each.extra_seconds + prices.seconds(prices.holding(each.bytes), cores),
        )
        for each in draft.candidates
    )
    least = {
        number: draft.least_gains.get(number, draft.gains[number])
        - prices.seconds(prices.reading(match.read_bytes), cores)
        for number, match in draft.matches.items()
    }
    return replace(draft, candidates=candidates, least_gains=least)
