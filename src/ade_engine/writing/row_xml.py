"""Convert columns of cells to the XML of rows, all rows of a block at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ade_engine.sheets.arrays import BoolArray, FloatArray, IntArray
from ade_engine.sheets.cells import DAY_MS, INTEGERS_MAX, TIME_DAY_MS, CellArray, CellKind
from ade_engine.sheets.coordinates import column_letters
from ade_engine.sheets.dates import to_serials
from ade_engine.writing.fixed_parts import STYLE_DATE, STYLE_MOMENT, STYLE_TIME
from ade_engine.writing.text_xml import escaped

ERRORS = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA")
SERIAL_DECIMALS = 9  # a tenth of a millisecond

_ROW = pl.col("row")
_VALUE_END = "</v></c>"


def rows_xml(columns: Sequence[CellArray], first_row: int) -> bytes:
    """Return the XML of rows; the first column is A."""
    height = len(columns[0])
    frame: dict[str, pl.Series] = {
        "row": pl.Series(np.arange(first_row, first_row + height)).cast(pl.String)
    }
    pieces: list[pl.Expr] = [pl.lit('<row r="'), _ROW, pl.lit('">')]
    for number, column in enumerate(columns, 1):
        pieces += _column(column, column_letters(number), frame)
    joined = pl.concat_str([*pieces, pl.lit("</row>")]).str.join("").cast(pl.Binary)
    xml: bytes = pl.DataFrame(frame).select(joined).item()
    return xml


def _column(column: CellArray, letters: str, frame: dict[str, pl.Series]) -> list[pl.Expr]:
    """Return expressions that concatenate to this column's cells; put their inputs in `frame`."""
    present = np.flatnonzero(np.bincount(column.kinds, minlength=len(CellKind))).tolist()
    kinds = [CellKind(kind) for kind in present]
    filled = [kind for kind in kinds if kind not in (CellKind.EMPTY, CellKind.NO_VALUE)]
    # Texts are null in empty cells; other values would have to be masked.
    alike = len(filled) == 1 and (filled == kinds or filled == [CellKind.TEXT])
    uniform = _uniform(filled[0], column) if alike else None
    if uniform is not None:
        opening, frame[letters], closing = uniform
        pieces = [pl.lit(f'<c r="{letters}'), _ROW, pl.lit(f'"{opening}'), pl.col(letters)]
        pieces.append(pl.lit(closing))
        return pieces if filled == kinds else [pl.concat_str(pieces).fill_null("")]
    merged: pl.Series | None = None
    for kind in kinds:
        cells = _mixed(kind, column)
        if merged is None or cells is None:
            merged = merged if cells is None else cells
        else:
            merged = merged.zip_with(merged.is_not_null(), cells)
    if merged is None:
        return []
    frame[letters] = merged  # everything after the cell reference; null where there is no cell
    opening_piece = pl.lit(f'<c r="{letters}')
    if not merged.null_count():
        return [opening_piece, _ROW, pl.lit('"'), pl.col(letters)]
    return [(opening_piece + _ROW + pl.lit('"') + pl.col(letters)).fill_null("")]


def _uniform(kind: CellKind, column: CellArray) -> tuple[str, pl.Series, str] | None:
    """Return the XML before and after the values if it is the same for all cells, else None."""
    match kind:
        case CellKind.NUMBER if np.isfinite(column.numbers).all():
            return "><v>", _number_text(column.numbers), _VALUE_END
        case CellKind.BOOL:
            return ' t="b"><v>', _bool_text(column.numbers), _VALUE_END
        case CellKind.DATE:
            serials, styles = _serials(column.numbers)
            if serials.min() >= 0 and (styles == styles[0]).all():
                return f' s="{styles[0]}"><v>', _number_text(serials), _VALUE_END
        case CellKind.TEXT:
            texts = escaped(column.text)
            if texts.literal is None:
                return f' t="inlineStr">{texts.opening}', texts.text, "</t></is></c>"
    return None


def _mixed(kind: CellKind, column: CellArray) -> pl.Series | None:
    """Return the XML after the reference for the cells of one kind; null for the others."""
    mask = column.kinds == kind
    match kind:
        case CellKind.TEXT:
            return escaped(_only(column.text, mask)).cells()  # error cells have a text, too
        case CellKind.NUMBER:
            cells = _numbers(column.numbers, mask)
        case CellKind.BOOL:
            cells = ' t="b"><v>' + _bool_text(column.numbers) + _VALUE_END
        case CellKind.DATE:
            cells = _dates(np.where(mask, column.numbers, 0.0))
        case CellKind.ERROR:
            known = column.text.is_in(list(ERRORS)).fill_null(False)
            cells = ' t="e"><v>' + column.text.set(~known, "#VALUE!") + _VALUE_END
        case _:
            return None
    return _only(cells, mask)


def _only(cells: pl.Series, mask: BoolArray) -> pl.Series:
    return cells.set(pl.Series(~mask), None)


def _numbers(numbers: FloatArray, mask: BoolArray) -> pl.Series:
    finite = np.isfinite(numbers)
    cells = "><v>" + _number_text(np.where(finite, numbers, 0)) + _VALUE_END
    wrong = ~finite & mask
    return cells.set(pl.Series(wrong), ' t="e"><v>#NUM!</v></c>') if wrong.any() else cells


def _bool_text(numbers: FloatArray) -> pl.Series:
    return pl.Series((numbers == 1).astype(np.uint8)).cast(pl.String)


def _number_text(numbers: FloatArray) -> pl.Series:
    """Format numbers with the fewest digits that preserve their value."""
    if (np.abs(numbers) < INTEGERS_MAX).all() and (numbers == np.floor(numbers)).all():
        return pl.Series(numbers.astype(np.int64)).cast(pl.String)
    return pl.Series(numbers).cast(pl.String)


def _serials(ms: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the serial numbers of dates and their cell styles."""
    time_only = (ms >= TIME_DAY_MS) & (ms < TIME_DAY_MS + DAY_MS)
    styles = np.where(ms % DAY_MS == 0, STYLE_DATE, STYLE_MOMENT)
    serials: FloatArray = np.round(to_serials(ms), SERIAL_DECIMALS)
    return serials, np.where(time_only, STYLE_TIME, styles)


def _dates(ms: FloatArray) -> pl.Series:
    serials, styles = _serials(ms)
    shown = pl.Series(styles).cast(pl.String)
    cells = ' s="' + shown + '"><v>' + _number_text(serials) + _VALUE_END
    early = pl.Series(serials < 0)
    if early.any():  # before 1900, which date serials cannot express
        moments = pl.Series(ms).cast(pl.Int64).cast(pl.Datetime("ms"))
        texts = moments.dt.strftime("%Y-%m-%dT%H:%M:%S").str.strip_suffix("T00:00:00")
        cells = cells.zip_with(~early, escaped(texts).cells())
    return cells
