"""Convert columns of cells to the XML of rows, all rows of a block at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ade_engine.sheets.arrays import BoolArray, ByteArray, FloatArray, IntArray
from ade_engine.sheets.cells import DAY_MS, INTEGERS_MAX, TIME_DAY_MS, CellArray, CellKind
from ade_engine.sheets.coordinates import column_letters
from ade_engine.sheets.dates import to_serials
from ade_engine.writing.text_xml import escaped

ERRORS = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA")
SERIAL_DECIMALS = 9  # a tenth of a millisecond

_ROW = pl.col("row")
_VALUE_END = "</v></c>"


@dataclass(frozen=True)
class CellStyles:
    """The numbers of the styles of a column's cells, by what the cells hold."""

    plain: int = 0
    number: int = 0
    date: int = 0
    moment: int = 0
    time: int = 0
    literal: int = 0


@dataclass(frozen=True)
class BlockColumn:
    """Cells of one column, their styles, and their marks.

    `styles[0]` are the styles of cells without a mark, `styles[mark]` those of the others. A mark
    of 0 is none, and no array means that no cell has one.
    """

    cells: CellArray
    styles: Sequence[CellStyles] = (CellStyles(),)
    marks: ByteArray | None = None


def rows_xml(columns: Sequence[BlockColumn], first_row: int) -> bytes:
    """Return the XML of rows; the first column is A."""
    height = len(columns[0].cells)
    frame: dict[str, pl.Series] = {
        "row": pl.Series(np.arange(first_row, first_row + height)).cast(pl.String)
    }
    pieces: list[pl.Expr] = [pl.lit('<row r="'), _ROW, pl.lit('">')]
    for number, column in enumerate(columns, 1):
        pieces += _column(column, column_letters(number), frame)
    joined = pl.concat_str([*pieces, pl.lit("</row>")]).str.join("").cast(pl.Binary)
    xml: bytes = pl.DataFrame(frame).select(joined).item()
    return xml


def _column(block: BlockColumn, letters: str, frame: dict[str, pl.Series]) -> list[pl.Expr]:
    """Return expressions that concatenate to this column's cells; put their inputs in `frame`."""
    column, styles = block.cells, block.styles[0]
    kinds = _kinds(column)
    filled = [kind for kind in kinds if kind not in (CellKind.EMPTY, CellKind.NO_VALUE)]
    # Texts are null in empty cells; other values would have to be masked.
    alike = len(filled) == 1 and (filled == kinds or filled == [CellKind.TEXT])
    uniform = _uniform(filled[0], column, styles) if alike and block.marks is None else None
    if uniform is not None:
        opening, frame[letters], closing = uniform
        pieces = [pl.lit(f'<c r="{letters}'), _ROW, pl.lit(f'"{opening}'), pl.col(letters)]
        pieces.append(pl.lit(closing))
        return pieces if filled == kinds else [pl.concat_str(pieces).fill_null("")]
    merged = _merged(column, styles)
    if block.marks is not None:
        merged = _marked(block, merged)
    if merged is None:
        return []
    frame[letters] = merged  # everything after the cell reference; null where there is no cell
    opening_piece = pl.lit(f'<c r="{letters}')
    if not merged.null_count():
        return [opening_piece, _ROW, pl.lit('"'), pl.col(letters)]
    return [(opening_piece + _ROW + pl.lit('"') + pl.col(letters)).fill_null("")]


def _kinds(column: CellArray) -> list[CellKind]:
    present = np.flatnonzero(np.bincount(column.kinds, minlength=len(CellKind))).tolist()
    return [CellKind(kind) for kind in present]


def _merged(column: CellArray, styles: CellStyles) -> pl.Series | None:
    """Return the XML after the reference of each cell; null where there is no cell."""
    merged: pl.Series | None = None
    for kind in _kinds(column):
        cells = _mixed(kind, column, styles)
        if merged is None or cells is None:
            merged = merged if cells is None else cells
        else:
            merged = merged.zip_with(merged.is_not_null(), cells)
    return merged


def _marked(block: BlockColumn, cells: pl.Series | None) -> pl.Series:
    """Write the marked cells again with the styles of their marks; an empty one becomes a cell."""
    marks = np.zeros(0, np.uint8) if block.marks is None else block.marks
    if cells is None:
        cells = pl.Series([None], dtype=pl.String).new_from_index(0, len(block.cells))
    for mark in np.unique(marks[marks > 0]).tolist():
        mine, styles = marks == mark, block.styles[mark]
        again = _merged(block.cells.where(mine), styles)
        empty = f"{_attribute(styles.plain)}/>"
        filled = (
            pl.Series([empty], dtype=pl.String).new_from_index(0, int(mine.sum()))
            if again is None
            else again.fill_null(empty)
        )
        cells = cells.clone().scatter(np.flatnonzero(mine), filled)
    return cells


def _attribute(style: int) -> str:
    return f' s="{style}"' if style else ""


def _uniform(
    kind: CellKind, column: CellArray, styles: CellStyles
) -> tuple[str, pl.Series, str] | None:
    """Return the XML before and after the values if it is the same for all cells, else None."""
    match kind:
        case CellKind.NUMBER if np.isfinite(column.numbers).all():
            return f"{_attribute(styles.number)}><v>", _number_text(column.numbers), _VALUE_END
        case CellKind.BOOL:
            opening = f'{_attribute(styles.plain)} t="b"><v>'
            return opening, _bool_text(column.numbers), _VALUE_END
        case CellKind.DATE:
            serials, shown = _serials(column.numbers, styles)
            if serials.min() >= 0 and (shown == shown[0]).all():
                return f"{_attribute(shown[0])}><v>", _number_text(serials), _VALUE_END
        case CellKind.TEXT:
            texts = escaped(column.text)
            if texts.literal is None:
                opening = f'{_attribute(styles.plain)} t="inlineStr">{texts.opening}'
                return opening, texts.text, "</t></is></c>"
    return None


def _mixed(kind: CellKind, column: CellArray, styles: CellStyles) -> pl.Series | None:
    """Return the XML after the reference for the cells of one kind; null for the others."""
    mask = column.kinds == kind
    plain = _attribute(styles.plain)
    match kind:
        case CellKind.TEXT:
            return _texts(_only(column.text, mask), styles)  # error cells have a text, too
        case CellKind.NUMBER:
            cells = _numbers(column.numbers, mask, styles)
        case CellKind.BOOL:
            cells = f'{plain} t="b"><v>' + _bool_text(column.numbers) + _VALUE_END
        case CellKind.DATE:
            cells = _dates(np.where(mask, column.numbers, 0.0), styles)
        case CellKind.ERROR:
            known = column.text.is_in(list(ERRORS)).fill_null(False)
            cells = f'{plain} t="e"><v>' + column.text.set(~known, "#VALUE!") + _VALUE_END
        case _:
            return None
    return _only(cells, mask)


def _only(cells: pl.Series, mask: BoolArray) -> pl.Series:
    return cells.set(pl.Series(~mask), None)


def _texts(texts: pl.Series, styles: CellStyles) -> pl.Series:
    return escaped(texts).cells(_attribute(styles.plain), _attribute(styles.literal))


def _numbers(numbers: FloatArray, mask: BoolArray, styles: CellStyles) -> pl.Series:
    finite = np.isfinite(numbers)
    opening = f"{_attribute(styles.number)}><v>"
    cells = opening + _number_text(np.where(finite, numbers, 0)) + _VALUE_END
    wrong = pl.Series(~finite & mask)
    error = f'{_attribute(styles.plain)} t="e"><v>#NUM!</v></c>'
    return cells.set(wrong, error) if wrong.any() else cells


def _bool_text(numbers: FloatArray) -> pl.Series:
    return pl.Series((numbers == 1).astype(np.uint8)).cast(pl.String)


def _number_text(numbers: FloatArray) -> pl.Series:
    """Format numbers with the fewest digits that preserve their value."""
    if (np.abs(numbers) < INTEGERS_MAX).all() and (numbers == np.floor(numbers)).all():
        return pl.Series(numbers.astype(np.int64)).cast(pl.String)
    return pl.Series(numbers).cast(pl.String)


def _serials(ms: FloatArray, styles: CellStyles) -> tuple[FloatArray, IntArray]:
    """Return the serial numbers of dates and their cell styles."""
    time_only = (ms >= TIME_DAY_MS) & (ms < TIME_DAY_MS + DAY_MS)
    shown = np.where(ms % DAY_MS == 0, styles.date, styles.moment)
    serials: FloatArray = np.round(to_serials(ms), SERIAL_DECIMALS)
    return serials, np.where(time_only, styles.time, shown)


def _dates(ms: FloatArray, styles: CellStyles) -> pl.Series:
    serials, shown = _serials(ms, styles)
    cells = ' s="' + pl.Series(shown).cast(pl.String) + '"><v>' + _number_text(serials) + _VALUE_END
    early = pl.Series(serials < 0)
    if early.any():  # before 1900, which date serials cannot express
        moments = pl.Series(ms).cast(pl.Int64).cast(pl.Datetime("ms"))
        texts = moments.dt.strftime("%Y-%m-%dT%H:%M:%S").str.strip_suffix("T00:00:00")
        cells = cells.zip_with(~early, _texts(texts, styles))
    return cells
