"""Open an .xlsx or .xlsm workbook and stream its sheets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

import numpy as np
import polars as pl

from ade_engine.errors import TooLarge
from ade_engine.sheets.block_builder import BlockBuilder, CellBatch, with_null
from ade_engine.sheets.cells import Block
from ade_engine.sheets.fast_path_errors import FastPathUnsupported
from ade_engine.sheets.metadata import SheetMetadata
from ade_engine.sheets.prefetch import prefetch
from ade_engine.sheets.read_limits import ReadLimits
from ade_engine.sheets.safe_xml import Attributes, parse, plain_name
from ade_engine.sheets.xlsx.scan import Lookups, Scanner
from ade_engine.sheets.xlsx.shared_strings import read_strings, walk_strings
from ade_engine.sheets.xlsx.walk import Walker
from ade_engine.sheets.xlsx.workbook_info import SheetPart, read_workbook_info
from ade_engine.sheets.xlsx.xml_chunks import Surroundings, element_chunks
from ade_engine.sheets.zip_reader import ZipReader


class XlsxBook:
    """A workbook whose sheets are read as streams."""

    def __init__(
        self, file: BinaryIO, limits: ReadLimits, archive: ZipReader | None = None
    ) -> None:
        self._limits = limits
        self._archive = archive or ZipReader(file, limits)
        self._parts = read_workbook_info(self._archive, limits.sheets_max)
        self.sheets: list[SheetPart] = self._parts.sheets
        self.language = self._parts.language
        self.unread = self._parts.unread
        self.epoch_1904 = self._parts.epoch_1904

    @cached_property
    def _shared(self) -> pl.Series:
        part, size = self._parts.strings, self._limits.strings_bytes_max
        if part is None:
            return with_null([])
        try:
            return read_strings(self._archive.stream(part, size), self._limits)
        except FastPathUnsupported:
            return walk_strings(self._archive.stream(part, size))

    @cached_property
    def _lookups(self) -> Lookups:
        blank = (self._shared.str.len_bytes() == 0).arg_true().to_numpy().astype(np.int64)
        return Lookups(
            self._parts.date_styles,
            len(self._shared) - 1,
            blank,
            self._parts.epoch_1904,
            self._parts.style_marks,
        )

    def read(self, sheet: SheetPart, metadata: SheetMetadata) -> Iterator[Block]:
        """Read a sheet's blocks by the fast path.

        Raise `FastPathUnsupported` where `reread` must be used; the caller then discards every
        block that it has received.
        """
        surroundings = Surroundings()
        scanner = Scanner(self._lookups)
        stream = self._archive.stream(sheet.part)
        pieces = element_chunks(stream, b"sheetData", b"row", surroundings, self._limits)
        yield from self._assemble(prefetch(scanner.scan, pieces), metadata)
        document = (surroundings.head, b"<sheetData/>", surroundings.tail)
        parse(
            document,
            lambda name, attributes: add_metadata(metadata, name, attributes),
            where=sheet.name,
        )

    def reread(self, sheet: SheetPart, metadata: SheetMetadata) -> Iterator[Block]:
        """Read a sheet's blocks however its XML is written."""
        walker = Walker(self._lookups)
        stream = self._archive.stream(sheet.part)
        cells = walker.walk(
            stream, lambda name, attributes: add_metadata(metadata, name, attributes)
        )
        yield from self._assemble(cells, metadata)

    def _assemble(self, source: Iterator[CellBatch], metadata: SheetMetadata) -> Iterator[Block]:
        assembler = BlockBuilder(self._shared)
        count = 0
        for cells in source:
            count += len(cells.rows)
            if count > self._limits.cells_max:
                raise TooLarge(f"a sheet has more than {self._limits.cells_max} cells (cells_max)")
            metadata.hidden_rows += cells.hidden_rows
            for column, mark in cells.marked_columns:
                metadata.mark(column, self._parts.marks[mark])
            yield from assembler.add(cells)
        yield from assembler.flush()


def add_metadata(metadata: SheetMetadata, name: str, attributes: Attributes) -> None:
    """Add the merged range or the hidden columns that an element outside the rows declares."""
    match plain_name(name):
        case "mergeCell":
            metadata.add_merged(attributes.get("ref", ""))
        case "col" if attributes.get("hidden") in ("1", "true"):
            metadata.hide_columns(attributes.get("min", ""), attributes.get("max", ""))
