"""What became of the branches of an exploration: a list, with a table for terminals and notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from reprlib import Repr
from typing import Any

from spark_regions.exploration.choose import DISCARDED, FAILED, KEPT, OPEN, PRUNED, RUNNING, STOPPED

ROWS_SHOWN = 200
STATES = (KEPT, RUNNING, FAILED, STOPPED, DISCARDED, OPEN, PRUNED)
"""Those that are shown first, where not all are."""
_COLUMNS = ("branch", "parameters", "score", "seconds", "state", "why")
_FIGURES = ("branch", "score", "seconds")
_WIDEST = 100
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 40
_STYLE = "text-align:left;vertical-align:top;max-width:40em;overflow-wrap:anywhere"
_FIGURE = "text-align:right;vertical-align:top;white-space:nowrap"


@dataclass(frozen=True, slots=True)
class Branch:
    """What became of one branch.

    :param score: None where it was never scored
    :param seconds: it ran; 0 where it did not
    :param state: kept, discarded, pruned, stopped or failed; running or waiting while `choose` runs
    :param why: of that state, in words
    """

    number: int
    parameters: Mapping[str, Any]
    score: float | None
    seconds: float
    state: str
    why: str = ""
    error: BaseException | None = None

    def cells(self) -> tuple[str, ...]:
        """As text, by `_COLUMNS`."""
        given = ", ".join(f"{name}={value}" for name, value in self.given().items())
        score = "" if self.score is None else f"{self.score:.6g}"
        return str(self.number), given, score, f"{self.seconds:.2f}", self.state, self.why

    def given(self) -> dict[str, str]:
        """The parameters as short texts of one line."""
        return {name: cut(_SHORT.repr(value), 60) for name, value in self.parameters.items()}


class Branches(list[Branch]):
    """In the order of the space; a terminal and a notebook show a table."""

    def __repr__(self) -> str:
        shown, left = self._shown()
        rows = [_COLUMNS, *(tuple(cut(cell, _WIDEST) for cell in each.cells()) for each in shown)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
        lines = []
        for row in rows:
            cells = zip(_COLUMNS, row, widths, strict=True)
            lines.append("  ".join(c.rjust(w) if name in _FIGURES else c.ljust(w) for name, c, w in cells).rstrip())
        return "\n".join([*lines, *left])

    def _repr_html_(self) -> str:
        shown, left = self._shown()
        head = "".join(f'<th scope="col" style="{_style(name)}">{name}</th>' for name in _COLUMNS)
        rows = []
        for each in shown:
            cells = zip(_COLUMNS, each.cells(), strict=True)
            row = "".join(f'<td style="{_style(name)}">{escape(cell)}</td>' for name, cell in cells)
            rows.append(f'<tr style="font-weight:bold">{row}</tr>' if each.state == KEPT else f"<tr>{row}</tr>")
        below = "".join(f"<p>{line}</p>" for line in (*left, told(Counter(each.state for each in self))))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{below}"

    def _shown(self) -> tuple[list[Branch], list[str]]:
        """Not more than can be read, and what is left out."""
        if len(self) <= ROWS_SHOWN:
            return self, []
        ranked = sorted(self, key=lambda each: STATES.index(each.state))
        left = Counter(each.state for each in ranked[ROWS_SHOWN:])
        return sorted(ranked[:ROWS_SHOWN], key=lambda each: each.number), [f"and {told(left)}"]


def told(states: Counter[str]) -> str:
    """
    >>> told(Counter({"pruned": 20, "kept": 1}))
    '21 branches: 1 kept, 20 pruned'
    """
    parts = ", ".join(f"{states[state]:,} {state}" for state in STATES if states[state])
    return f"{states.total():,} branch{'' if states.total() == 1 else 'es'}: {parts}"


def cut(text: str, longest: int) -> str:
    """On one line, and not longer.

    >>> cut("array([1,\\n       2])", 40), cut("abcdefgh", 6)
    ('array([1, 2])', 'abc...')
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def _style(column: str) -> str:
    return _FIGURE if column in _FIGURES else _STYLE
