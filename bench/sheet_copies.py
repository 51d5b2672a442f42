"""Change labelled sheets in ways that leave their labels true, to train on more than they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ade_engine.tables.grid import Grid
from ade_engine.tables.looks import CellLook, look_of_text, number_of_text
from bench.labelled_sheets import LabelledSheet

COPY_ROWS_MAX = 400
UNITS_SHARE, NUMBERS_SHARE, STUB_SHARE = 0.3, 0.12, 0.2
UNITS = (
    ("(EUR)", "(USD)", "(kg)", "(%)", "(no.)"),
    ("EUR", "USD", "kg", "%", "pcs"),
    ("$", "$", "%", "kWh", "h"),
    ("(1,000)", "(mil. dol.)", "(percent)", "(1,000)", "(number)"),
    ("Number", "Percent", "Number", "Rate", "Thousands"),
    ("mm", "t", "m2", "km", "l"),
    ("[m]", "[s]", "[kg]", "[V]", "[A]"),
)

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Labels = tuple[str, ...]


def copies(
    sheet: LabelledSheet, others: Sequence[LabelledSheet], chance: np.random.Generator
) -> Iterator[tuple[Grid, Labels]]:
    """Cut a sheet, and stack it with another, in ways that leave the labels true."""
    if not sheet.header:
        return
    width = sheet.grid.width
    narrow = int(chance.integers(3, width)) if width > 4 and chance.random() < 0.7 else width
    yield _part(sheet, _rows_from_header(sheet, chance), np.arange(width))
    yield _part(sheet, _fewer_rows(sheet, chance), np.arange(narrow))
    yield _part(sheet, _rows_without_header(sheet, chance), np.arange(width))
    changed = _with_last_header_row(sheet, chance)
    if changed is not None:
        yield changed
    same_set = [other for other in others if other.set == sheet.set and other.header]
    other = sheet if chance.random() < 0.4 else same_set[int(chance.integers(len(same_set)))]
    yield _stacked(
        _part(sheet, _fewer_rows(sheet, chance), np.arange(narrow)),
        _part(other, _rows_from_header(other, chance), np.arange(other.grid.width)),
        blank_rows=int(chance.choice([0, 1, 1, 2, 3])),
    )


def _rows_from_header(sheet: LabelledSheet, chance: np.random.Generator) -> Places:
    labels = _grid_labels(sheet)
    keep = (sheet.grid.rows >= sheet.header[0]) & _head(labels, chance, 15)
    if chance.random() < 0.5:
        keep &= labels != "empty"
    return np.flatnonzero(keep)


def _rows_without_header(sheet: LabelledSheet, chance: np.random.Generator) -> Places:
    labels = _grid_labels(sheet)
    return np.flatnonzero((sheet.grid.rows > sheet.header[-1]) & _head(labels, chance, 40))


def _fewer_rows(sheet: LabelledSheet, chance: np.random.Generator) -> Places:
    labels = _grid_labels(sheet)
    keep = _head(labels, chance, 40)
    for left_out in (("empty",), ("notes", "derived")):
        if chance.random() < 0.5:
            keep &= ~np.isin(labels, left_out)
    return np.flatnonzero(keep)


def _head(labels: npt.NDArray[Any], chance: np.random.Generator, rows_max: int) -> Mask:
    """Mark a number of rows from the top: half of the time few of the data."""
    data = np.flatnonzero(labels == "data")
    rows = int(chance.integers(2, rows_max))
    end = data[rows] if len(data) > rows and chance.random() < 0.5 else COPY_ROWS_MAX
    head: Mask = np.arange(len(labels)) < end
    return head


def _grid_labels(sheet: LabelledSheet) -> npt.NDArray[Any]:
    return np.array([sheet.labels[row - 1] for row in sheet.grid.rows.tolist()])


def _part(sheet: LabelledSheet, places: Places, columns: Places) -> tuple[Grid, Labels]:
    """Cut rows and columns out of a sheet; the rows are numbered anew."""
    grid = sheet.grid
    cells = np.ix_(places, columns)
    cut = Grid(
        np.arange(1, len(places) + 1),
        tuple(grid.columns[column] for column in columns.tolist()),
        grid.looks[cells],
        grid.texts[cells],
        grid.numbers[cells],
    )
    return cut, tuple(_grid_labels(sheet)[places].tolist())


def _stacked(
    above: tuple[Grid, Labels], below: tuple[Grid, Labels], blank_rows: int
) -> tuple[Grid, Labels]:
    """Put one sheet under another."""
    (upper, upper_labels), (lower, lower_labels) = above, below
    width = max(upper.width, lower.width)

    def joined(first: npt.NDArray[Any], second: npt.NDArray[Any], empty: Any) -> npt.NDArray[Any]:
        between = np.full((blank_rows, width), empty, dtype=first.dtype)
        padded = [
            np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=empty)
            for one in (first, second)
        ]
        return np.concatenate((padded[0], between, padded[1]))

    grid = Grid(
        np.arange(1, upper.height + blank_rows + lower.height + 1),
        max(upper.columns, lower.columns, key=len),
        joined(upper.looks, lower.looks, 0),
        joined(upper.texts, lower.texts, ""),
        joined(upper.numbers, lower.numbers, np.nan),
    )
    return grid, (*upper_labels, *("empty",) * blank_rows, *lower_labels)


def _with_last_header_row(
    sheet: LabelledSheet, chance: np.random.Generator
) -> tuple[Grid, Labels] | None:
    """Add what headers of other sources end with: units, column numbers, a name of its own row."""
    grid, labels = _part(sheet, _fewer_rows(sheet, chance), np.arange(sheet.grid.width))
    ends = [
        place
        for place, label in enumerate(labels[:-1])
        if label == "header" and labels[place + 1] == "data"
    ]
    if not ends:
        return None
    end, drawn = ends[0], chance.random()
    texts = grid.texts[end].copy()
    values = np.isin(grid.looks[end + 1 : end + 9], (CellLook.NUMBER, CellLook.YEAR)).mean(axis=0)
    if drawn < UNITS_SHARE:
        kind = UNITS[int(chance.integers(len(UNITS)))]
        row = [kind[int(chance.integers(len(kind)))] if share > 0.5 else "" for share in values]
    elif drawn < UNITS_SHARE + NUMBERS_SHARE:
        form = ("{}", "({})", "[{}]")[int(chance.integers(3))]
        used = np.cumsum(grid.filled[end])
        named = zip(used, texts != "", strict=True)
        row = [form.format(number) if there else "" for number, there in named]
    elif drawn < UNITS_SHARE + NUMBERS_SHARE + STUB_SHARE and texts[0] and (texts[1:] != "").any():
        row = [str(texts[0]), *[""] * (len(texts) - 1)]
        grid.texts[end, 0], grid.looks[end, 0], grid.numbers[end, 0] = "", 0, np.nan
    else:
        return None
    if not any(row):
        return None
    return _inserted(grid, end + 1, row), (*labels[: end + 1], "header", *labels[end + 1 :])


def _inserted(grid: Grid, place: int, texts: Sequence[str]) -> Grid:
    """Insert a row of texts; the rows are numbered anew."""
    looks = [look_of_text(text) for text in texts]
    numbers = [
        number_of_text(text) if look in (CellLook.NUMBER, CellLook.YEAR) else np.nan
        for text, look in zip(texts, looks, strict=True)
    ]
    return Grid(
        np.arange(1, grid.height + 2),
        grid.columns,
        np.insert(grid.looks, place, looks, axis=0),
        np.insert(grid.texts, place, np.array(texts, dtype=object), axis=0),
        np.insert(grid.numbers, place, numbers, axis=0),
    )
