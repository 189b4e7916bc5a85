"""How many helpers a skewed worker gets (thesis §14.2), and whether moving pays at all (§14.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def moving_pays(migration_seconds: float, left_seconds: float) -> bool:
    """§14.1: state that takes longer to move than the execution has left is not moved."""
    return migration_seconds < left_seconds


def load_reduction(skewed: float, together: float, helpers: int, total: float) -> float:
    """LR_max = (f_S - Σ f_w / (n + 1)) · T, the sum over the skewed worker and its n helpers together (§14.2).

    With one helper it is D / 2 (eq. 4).

    >>> load_reduction(0.26, 0.33, 1, 100.0)
    9.5
    """
    return (skewed - together / (helpers + 1)) * total


def number_of_helpers(
    skewed: float,
    candidates: Sequence[float],
    total: float,
    future: float,
    rate: float,
    migration_seconds: Callable[[int], float],
) -> int:
    """The helpers chosen right before χ = min(LR_max, F) starts to decrease, F = (L - M · t) · f̂_S (§14.2).

    0 where not even one helper reduces the load, or where its migration takes longer than what is left (§14.1).
    Worked example: f_S = 0.6 on 4 workers, the others 0.1333 each, T = L = 100, t = 4, M(n) = 2n seconds. χ: 23.3 with
    one helper (F = 55.2), 31.1 with two (F = 50.4), 35.0 with three (F = 45.6): three.

    :param skewed: share of the load; :param candidates: shares of possible helpers, any order
    :param total: T, tuples or seconds of work in the whole execution; :param future: L, of them still to come
    :param rate: t, tuples or seconds of work that the operator does in a second
    :param migration_seconds: M as a function of the number of helpers
    """
    best, chosen, together = 0.0, 0, skewed
    for number, share in enumerate(sorted(candidates), start=1):
        move = migration_seconds(number)
        together += share
        if not moving_pays(move, future / rate):
            break
        gain = min(load_reduction(skewed, together, number, total), (future - move * rate) * skewed)
        if gain <= best:
            break
        best, chosen = gain, number
    return chosen
