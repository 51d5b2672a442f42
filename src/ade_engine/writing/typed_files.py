"""Write rows as CSV, Parquet and JSON lines.

The type of a column can depend on its last row: dates have no time only if none has one. So chunks
are kept in files of Arrow's format until the last row is known, and then streamed to each format.
Memory does not grow with the number of rows; `scratch`, which must be on the disk of the files,
needs room for the rows once more. A file appears under its name only when it is complete.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ade_engine.package.field import Field
from ade_engine.sheets.cells import CellArray
from ade_engine.writing.table_schema import table_schema
from ade_engine.writing.typed_columns import TypedColumn

FORMATS = ("csv", "parquet", "jsonl")
ROW_GROUP_ROWS = 100_000


class TypedFiles:
    """Write one table to a file of each format, with its Table Schema beside them."""

    def __init__(
        self,
        folder: Path,
        name: str,
        formats: Sequence[str],
        columns: Sequence[TypedColumn],
        *,
        quote_formulas: bool,
        scratch: Path,
    ) -> None:
        self._folder, self._name, self._columns = folder, name, columns
        self._formats = [one for one in FORMATS if one in formats]
        self._quote_formulas = quote_formulas
        folder.mkdir(parents=True, exist_ok=True)
        # Not in the folder of the files: of a run that is stopped, everything there is kept.
        self._spool = Path(tempfile.mkdtemp(prefix=".rows-", dir=scratch))
        self._chunks = 0
        self.rows = 0

    def write(self, columns: Sequence[CellArray]) -> None:
        """Write rows: columns of equal height, in the order of the header."""
        frame: dict[str, pl.Series] = {}
        for number, (column, cells) in enumerate(zip(self._columns, columns, strict=True)):
            frame[f"value{number}"], frame[f"other{number}"] = column.series(cells)
        pl.DataFrame(frame).write_ipc(self._chunk(), compression="uncompressed")
        self._chunks += 1
        self.rows += len(columns[0])

    def _chunk(self) -> Path:
        return self._spool / f"{self._chunks:08}.arrow"

    def close(self, fields: Mapping[str, Field]) -> list[dict[str, Any]]:
        """Write the files, and return what each one is."""
        if not self._chunks:
            self.write([CellArray.empty(0) for _ in self._columns])
        rows = pl.scan_ipc(self._spool / "*.arrow")
        written = [self._file(format_, rows) for format_ in self._formats]
        schema = f"{self._name}.schema.json"
        described = table_schema(self._columns, fields)
        text = json.dumps(described, indent=2, ensure_ascii=False) + "\n"
        (self._folder / schema).write_text(text, encoding="utf-8")
        self.abandon()
        return [*written, {"path": schema, "format": "table_schema"}]

    def _file(self, format_: str, rows: pl.LazyFrame) -> dict[str, Any]:
        path = self._folder / f"{self._name}.{format_}"
        unfinished = self._spool / path.name
        about: dict[str, Any] = {"path": path.name, "format": format_, "rows": self.rows}
        if format_ == "csv":
            about["texts_quoted"] = self._formulas()
            self._select(rows, self._printed).sink_csv(unfinished, line_terminator="\r\n")
        else:
            about["cells_emptied"] = sum(column.misfits for column in self._columns)
        if format_ == "jsonl":
            self._select(rows, self._written).sink_ndjson(unfinished)
        elif format_ == "parquet":
            self._select(rows, self._exact).sink_parquet(unfinished, row_group_size=ROW_GROUP_ROWS)
        unfinished.replace(path)
        return about

    def _formulas(self) -> int:
        return sum(column.formulas for column in self._columns) if self._quote_formulas else 0

    def _select(self, rows: pl.LazyFrame, convert: Any) -> pl.LazyFrame:
        return rows.select(
            convert(column, number).alias(column.name)
            for number, column in enumerate(self._columns)
        )

    def _printed(self, column: TypedColumn, number: int) -> pl.Expr:
        value, other = f"value{number}", f"other{number}"
        return column.printed(value, other, quote_formulas=self._quote_formulas)

    @staticmethod
    def _written(column: TypedColumn, number: int) -> pl.Expr:
        return column.written(f"value{number}")

    @staticmethod
    def _exact(column: TypedColumn, number: int) -> pl.Expr:
        return column.exact(f"value{number}")

    def abandon(self) -> None:
        """Delete what was kept for writing; files that are complete stay."""
        shutil.rmtree(self._spool, ignore_errors=True)
