"""The comparison itself: it must see what differs and forgive only ties."""

from dataclasses import replace

from tests.tpc import rows
from tests.tpc.rows import Key, Outcome, Sorting, digest

SCHEMA = (("k", "int"), ("v", "string"))


def of(*rows: Key, sorting: Sorting | None = None, error: str | None = None) -> Outcome:
    return Outcome(SCHEMA, rows, error, sorting)


def difference(expected: Outcome, found: Outcome) -> str | None:
    """As `rows.difference`; the digests must agree with it. Both are of one query, hence sorted alike."""
    found_by_rows = rows.difference(expected, found)
    assert (digest(expected) == digest(replace(found, sorting=expected.sorting))) == (found_by_rows is None)
    return found_by_rows


def test_order_does_not_matter_without_order_by() -> None:
    assert difference(of((1, "a"), (2, "b")), of((2, "b"), (1, "a"))) is None


def test_multiplicity_matters() -> None:
    assert difference(of((1, "a"), (1, "a"), (2, "b")), of((1, "a"), (2, "b"), (2, "b"))) is not None


def test_ties_may_change_places_but_keys_may_not() -> None:
    by_key = Sorting((0,), cut=False)
    expected = of((1, "a"), (1, "b"), (2, "c"), sorting=by_key)
    assert difference(expected, of((1, "b"), (1, "a"), (2, "c"))) is None
    assert difference(expected, of((2, "c"), (1, "a"), (1, "b"))) is not None
    assert difference(expected, of((1, "a"), (1, "x"), (2, "c"))) is not None


def test_only_the_last_tie_of_a_limit_may_hold_other_rows() -> None:
    by_key = Sorting((0,), cut=True)
    expected = of((1, "a"), (2, "b"), sorting=by_key)
    assert difference(expected, of((1, "a"), (2, "other"))) is None
    assert difference(expected, of((1, "other"), (2, "b"))) is not None


def test_error_class_and_schema_are_results() -> None:
    assert difference(of(error="DIVIDE_BY_ZERO"), of(error="DIVIDE_BY_ZERO")) is None
    assert difference(of(error="DIVIDE_BY_ZERO"), of((1, "a"))) is not None
    assert difference(of((1, "a")), Outcome((("k", "bigint"), ("v", "string")), ((1, "a"),), None, None)) is not None
