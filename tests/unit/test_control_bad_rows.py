"""Bad rows: what becomes of each; by chance, that exactly those of the last committed attempts count."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, get_args

import pytest

from spark_regions.debugging.bad_rows import BadRows, OnBadRow
from spark_regions.debugging.rows import Attempt
from spark_regions.errors import ControlError
from tests.harness import chance

CASES = 10_000
FIRST, AGAIN = Attempt(0, 0, 1), Attempt(0, 0, 2)


@pytest.mark.parametrize("policy", get_args(OnBadRow))
def test_a_row_meets_the_policy(policy: OnBadRow) -> None:
    bad = BadRows(policy)
    assert bad.found(FIRST, 1) == policy
    assert bad.altered == (policy != "fail")
    assert bad.committed(FIRST) == "" and bad.total == (policy != "fail")


def test_an_attempt_that_alone_has_too_many_fails_at_the_row() -> None:
    bad = BadRows("null", most=2)
    assert [bad.found(FIRST, nth) for nth in (1, 2, 3, 3, 2)] == ["null", "null", "fail", "fail", "null"]
    bad.lost(FIRST)
    assert bad.committed(AGAIN) == "" and bad.total == 0


def test_no_bad_row_may_be() -> None:
    bad = BadRows("skip", most=0)
    assert bad.found(FIRST, 1) == "fail" and not bad.altered and bad.committed(FIRST) == ""


def test_an_output_that_is_lost_and_made_again_counts_once() -> None:
    bad = BadRows("quarantine", most=3)
    for nth in (1, 2):
        bad.found(FIRST, nth)
    assert bad.committed(FIRST) == "" == bad.committed(FIRST) and bad.counts(FIRST)
    bad.lost(FIRST)
    bad.found(AGAIN, 1)
    assert bad.total == 2 and bad.committed(AGAIN) == "" and bad.total == 1
    assert bad.counts(AGAIN) and not bad.counts(FIRST)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: BadRows("ignore"), "Found onBadRow='ignore', expected one of fail, null, skip"),  # type: ignore[arg-type]
        (lambda: BadRows("skip", most=-1), "Found maxBadRows=-1, expected a number from 0"),
        (lambda: BadRows("skip").found(FIRST, 0), "Found bad row 0 of stage 0, partition 0, attempt 1"),
    ],
)
def test_what_is_refused(make: Callable[[], Any], found: str) -> None:
    with pytest.raises(ControlError, match=found) as raised:
        make()
    assert "Hint: " in str(raised.value)


def test_only_committed_attempts_count() -> None:
    """Against a count of what is in the output, with messages that come twice."""
    for seed in chance.seeds("control_bad_rows", CASES, 0):
        with chance.trying("control_bad_rows", seed):
            draw = random.Random(seed)
            most = draw.choice((None, 0, 1, 3, 9))
            bad, output = BadRows("skip", most), dict[tuple[int, int], int]()
            for number in range(draw.randrange(12)):
                attempt = Attempt(0, draw.randrange(4), number)
                rows, failed = 0, False
                for nth in range(1, draw.choice((0, 1, 4)) + 1):
                    answers = {bad.found(attempt, nth) for _ in range(draw.choice((1, 1, 2)))}
                    assert answers == ({"fail"} if most is not None and nth > most else {"skip"})
                    failed = answers == {"fail"}
                    if failed:
                        break
                    rows = nth
                if failed or draw.random() < 0.3:
                    bad.lost(attempt)
                    continue
                output[attempt.task] = rows
                for _ in range(draw.choice((1, 1, 2))):
                    ends = bad.committed(attempt)
                assert bad.total == sum(output.values())
                assert bool(ends) == (most is not None and bad.total > most)
