"""Turn columns of cells into the XML of rows, all rows of a block at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ade_engine.sheets.cells import DAY_MS, INTEGERS_MAX, TIME_DAY_MS, CellKind, Column
from ade_engine.sheets.coordinates import column_letters
from ade_engine.sheets.dates import to_serials
from ade_engine.writing.parts import STYLE_DATE, STYLE_MOMENT, STYLE_TIME
from ade_engine.writing.text import escaped

ERRORS = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA")

_ROW = pl.col("row")


def rows_xml(columns: Sequence[Column], first_row: int) -> bytes:
    """Give the XML of rows; the first column is A."""
    height = len(columns[0])
    frame: dict[str, pl.Series] = {
        "row": pl.Series(np.arange(first_row, first_row + height)).cast(pl.String)
    }
    pieces: list[pl.Expr] = [pl.lit('<row r="'), _ROW, pl.lit('">')]
    for number, column in enumerate(columns, 1):
        pieces += _column(column, column_letters(number), frame)
    joined = pl.concat_str([*pieces, pl.lit("</row>")]).str.join("").cast(pl.Binary)
    xml = pl.DataFrame(frame).select(joined).item()
    return bytes(xml)


def _column(column: Column, letters: str, frame: dict[str, pl.Series]) -> list[pl.Expr]:
    """Give the pieces whose concatenation is this column's cells; put what they need in `frame`."""
    present = np.flatnonzero(np.bincount(column.kinds, minlength=len(CellKind))).tolist()
    kinds = [CellKind(kind) for kind in present]
    if kinds == [CellKind.NUMBER] and np.isfinite(column.numbers).all():
        frame[letters] = _number_text(column.numbers)
        return _cell(letters, "<v>", "</v></c>")
    if kinds == [CellKind.TEXT]:
        texts = escaped(column.text)
        if not texts.any_literal:
            frame[letters] = texts.text
            return _cell(letters, texts.opening, "</t></is></c>", ' t="inlineStr"')
    merged: pl.Series | None = None
    for kind in kinds:
        cells = _of_kind(kind, column)
        if merged is None or cells is None:
            merged = merged if cells is None else cells
        else:
            merged = merged.zip_with(merged.is_not_null(), cells)
    if merged is None:
        return []
    # What stands behind the reference, null where there is no cell.
    frame[letters] = merged
    opening = pl.lit(f'<c r="{letters}') + _ROW + pl.lit('"')
    if not merged.has_nulls():
        return [pl.lit(f'<c r="{letters}'), _ROW, pl.lit('"'), pl.col(letters)]
    return [(opening + pl.col(letters)).fill_null("")]


def _cell(letters: str, opening: str, closing: str, attributes: str = "") -> list[pl.Expr]:
    return [
        pl.lit(f'<c r="{letters}'),
        _ROW,
        pl.lit(f'"{attributes}>{opening}'),
        pl.col(letters),
        pl.lit(closing),
    ]


def _of_kind(kind: CellKind, column: Column) -> pl.Series | None:
    """Give, for the cells of one kind, everything behind the reference; null for the others."""
    chosen = pl.Series(column.kinds == kind)
    match kind:
        case CellKind.TEXT:
            cells = escaped(column.text.set(~chosen, None)).cells()
        case CellKind.NUMBER:
            cells = _numbers(column)
        case CellKind.BOOL:
            text = pl.Series((column.numbers != 0).astype(np.uint8)).cast(pl.String)
            cells = _wrapped(' t="b"><v>', text)
        case CellKind.DATE:
            cells = _dates(column)
        case CellKind.ERROR:
            known = column.text.is_in(list(ERRORS))
            text = column.text.set(~known, "#VALUE!")
            cells = _wrapped(' t="e"><v>', text)
        case _:
            return None
    return cells.set(~chosen, None)


def _wrapped(opening: str, text: pl.Series) -> pl.Series:
    return opening + text + "</v></c>"


def _numbers(column: Column) -> pl.Series:
    finite = np.isfinite(column.numbers)
    text = _number_text(np.where(finite, column.numbers, 0))
    cells = _wrapped("><v>", text)
    wrong = pl.Series(~finite)
    return cells.set(wrong, ' t="e"><v>#NUM!</v></c>') if wrong.any() else cells


def _number_text(numbers: np.ndarray) -> pl.Series:
    """Write numbers as short as they can be read back exactly."""
    if (np.abs(numbers) < INTEGERS_MAX).all() and (numbers == np.floor(numbers)).all():
        return pl.Series(numbers.astype(np.int64)).cast(pl.String)
    return pl.Series(numbers).cast(pl.String).str.strip_suffix(".0")


def _dates(column: Column) -> pl.Series:
    ms = np.where(column.kinds == CellKind.DATE, column.numbers, 0.0)
    serials = to_serials(ms)
    time_only = (ms >= TIME_DAY_MS) & (ms < TIME_DAY_MS + DAY_MS)
    style = np.where(ms % DAY_MS == 0, STYLE_DATE, STYLE_MOMENT)
    style = np.where(time_only, STYLE_TIME, style)
    styles = pl.Series(style).cast(pl.String)
    cells = ' s="' + styles + '"><v>' + _number_text(np.round(serials, 9)) + "</v></c>"
    early = pl.Series(serials < 0)
    if early.any():  # before 1900, where no program has dates
        moments = pl.Series(ms).cast(pl.Int64).cast(pl.Datetime("ms"))
        texts = moments.dt.strftime("%Y-%m-%dT%H:%M:%S").str.strip_suffix("T00:00:00")
        cells = cells.zip_with(~early, escaped(texts).cells())
    return cells
