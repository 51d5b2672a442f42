"""Call the row detectors of a config package: `detect_<rule>(row)` of `row_types/<type>.py`.

A detector's score is added to what the default model says about the row: 1 decides for the row
type, -1 against it, 0.1 is a hint, 0 or None changes nothing. A detector may also return a mapping
of row type to score. Detectors of `header` see only the rows where a table may begin; detectors of
other row types see every row that is not blank, which costs one call per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ade_engine.sheets.cells import CellKind
from ade_engine.tables.looks import LOOK_OF_KIND, CellLook, look_of_text
from ade_engine.tables.regions import RowKind
from ade_engine.tables.sample import SheetCells

WINDOW_ROWS = 4096  # fetched together
WINDOWS_KEPT = 3

Window = dict[int, tuple[tuple[object, ...], tuple[CellKind, ...]]]


class SheetRows:
    """Random access to the rows of a sheet, which are fetched in windows."""

    def __init__(self, sheet: SheetCells, width: int) -> None:
        self._sheet = sheet
        self.width = width
        self.height = sheet.height
        self._window = lru_cache(maxsize=WINDOWS_KEPT)(self._fetch)

    def row(self, number: int) -> SheetRow | None:
        """Return a row, or None outside the sheet."""
        if not 1 <= number <= self.height:
            return None
        values, kinds = self._window((number - 1) // WINDOW_ROWS).get(number, ((), ()))
        missing = self.width - len(values)
        return SheetRow(
            self, number, values + (None,) * missing, kinds + (CellKind.EMPTY,) * missing
        )

    def _fetch(self, window: int) -> Window:
        first = window * WINDOW_ROWS + 1
        found: Window = {}
        for block in self._sheet.blocks(first, first + WINDOW_ROWS - 1):
            numbers = range(1, self.width + 1)
            columns = [block.column(number) for number in numbers]
            values = zip(*(column.values() for column in columns), strict=True)
            kinds = zip(*(map(CellKind, column.kinds.tolist()) for column in columns), strict=True)
            for number, pair in enumerate(zip(values, kinds, strict=True), block.first_row):
                found[number] = pair
        return found


class SheetRow:
    """One row, and through it the rows around it: the `row` that row detectors receive.

    `number` is the row's number in the sheet, 1-based. `values` holds the cells' values from column
    A to the sheet's last used column, and `kinds` their kinds.
    """

    def __init__(
        self,
        rows: SheetRows,
        number: int,
        values: tuple[object, ...],
        kinds: tuple[CellKind, ...],
    ) -> None:
        self._rows = rows
        self.number = number
        self.values = values
        self.kinds = kinds

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return the texts of the cells that hold text, stripped."""
        return tuple(
            value.strip() for value in self.values if isinstance(value, str) and value.strip()
        )

    @cached_property
    def _looks(self) -> tuple[CellLook, ...]:
        looks = (
            look_of_text(value) if isinstance(value, str) else LOOK_OF_KIND[kind]
            for value, kind in zip(self.values, self.kinds, strict=True)
        )
        return tuple(look for look in looks if look != CellLook.NOTHING)

    @property
    def filled(self) -> int:
        """Count the cells that are not empty."""
        return len(self._looks)

    @property
    def fill(self) -> float:
        """Return the share of the sheet's columns that are not empty in this row."""
        return self.filled / max(self._rows.width, 1)

    @property
    def text_share(self) -> float:
        """Return the share of text among the cells that are not empty."""
        return self._share(CellLook.WORDS)

    @property
    def number_share(self) -> float:
        """Return the share of numbers and dates, also those written as text, likewise."""
        return self._share(CellLook.NUMBER, CellLook.YEAR, CellLook.DATE)

    def _share(self, *looks: CellLook) -> float:
        return sum(look in looks for look in self._looks) / max(self.filled, 1)

    def above(self, distance: int = 1) -> SheetRow | None:
        """Return the row that many rows further up, or None above the first row."""
        return self._rows.row(self.number - distance)

    def below(self, distance: int = 1) -> SheetRow | None:
        """Return the row that many rows further down, or None below the last row."""
        return self._rows.row(self.number + distance)


@dataclass(frozen=True)
class RowScorer:
    """One row detector: its row type, its name in explanations, and the function to call.

    An exception of the function reaches the caller of `find_tables` unchanged.
    """

    row_type: str
    name: str
    score: Callable[[SheetRow], float | Mapping[str, float] | None]


def score_rows(
    sheet: SheetCells,
    width: int,
    rules: Sequence[RowScorer],
    seen: Iterable[int],
    unseen: Iterable[int],
) -> dict[int, dict[str, dict[str, float]]]:
    """Call the detectors for rows; those of `header` only for rows in the sample."""
    rows = SheetRows(sheet, width)
    others = [rule for rule in rules if rule.row_type != RowKind.HEADER]
    scores: dict[int, dict[str, dict[str, float]]] = {}
    for detectors, numbers in ((rules, seen), (others, unseen)):
        for number in numbers if detectors else ():
            row = rows.row(number)
            answers = _scores_of_row(row, detectors) if row is not None and row.filled else {}
            if answers:
                scores[number] = answers
    return scores


def _scores_of_row(row: SheetRow, rules: Iterable[RowScorer]) -> dict[str, dict[str, float]]:
    answers: dict[str, dict[str, float]] = {}
    for rule in rules:
        answer = rule.score(row)
        scores = answer if isinstance(answer, Mapping) else {rule.row_type: answer or 0.0}
        for row_type, score in scores.items():
            if score:
                answers.setdefault(row_type, {})[rule.name] = float(score)
    return answers
