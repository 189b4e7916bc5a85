"""The table of branches as text and as HTML, and where it is shown."""

from __future__ import annotations

from xml.etree import ElementTree

from spark_regions.spark.branch_table import ROWS_SHOWN, Branch, Branches
from spark_regions.spark.watch import in_kernel

EVIL = "</td><img src=x onerror=alert(1)>"


def table() -> Branches:
    return Branches(
        [
            Branch(0, {"t": 1.5, "k": "gauss"}, 10.0, 0.25, "discarded"),
            Branch(1, {"t": 1.5, "k": EVIL}, 123456.789, 12.5, "kept"),
            Branch(2, {"t": [[1, 2]] * 50, "k": "a\nb" * 100}, None, 0.0, "failed", "ValueError: " + "w" * 300),
        ]
    )


def test_figures_stand_below_each_other_and_rows_stay_lines() -> None:
    head, first, second, third = repr(table()).splitlines()
    assert first.split()[0] == "0" and first.split()[-2:] == ["0.25", "discarded"]
    at = head.index("score") + len("score")
    assert first[:at].endswith(" 10") and second[:at].endswith(" 123457")
    assert "..." in third and len(third) < 300


def test_the_html_has_the_same_and_text_stays_text() -> None:
    html = table()._repr_html_()
    assert "<img" not in html
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    cells = [[cell.text or "" for cell in row] for row in tree.iter("tr")]
    assert cells[0] == ["branch", "parameters", "score", "seconds", "state", "why"]
    assert cells[2][2:5] == ["123457", "12.50", "kept"] and EVIL[:20] in cells[2][1]
    assert "w" * 300 in cells[3][5], "HTML has all of it"
    assert [p.text for p in tree.iter("p")] == ["3 branches: 1 kept, 1 failed, 1 discarded"]


def test_of_very_many_branches_the_kept_ones_are_shown_and_the_rest_is_told() -> None:
    many = Branches(Branch(n, {"x": n}, 1.0, 0.0, "kept" if n == 900 else "pruned") for n in range(1000))
    lines = repr(many).splitlines()
    assert len(lines) == ROWS_SHOWN + 2
    assert lines[-2].split()[0] == "900"
    assert lines[-1] == "and 800 branches: 800 pruned"
    assert "<p>and 800 branches: 800 pruned</p><p>1,000 branches: 1 kept, 999 pruned</p>" in many._repr_html_()


def test_no_notebook_shows_what_a_test_displays() -> None:
    assert in_kernel() is False
