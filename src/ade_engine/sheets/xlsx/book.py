"""Open an .xlsx or .xlsm workbook and stream its sheets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

import numpy as np
import polars as pl

from ade_engine.errors import TooLarge
from ade_engine.sheets.ahead import work_ahead
from ade_engine.sheets.archive import Archive
from ade_engine.sheets.assemble import Assembler, Cells, with_null
from ade_engine.sheets.cells import Block
from ade_engine.sheets.facts import Facts
from ade_engine.sheets.limits import Limits
from ade_engine.sheets.plain import NotPlain
from ade_engine.sheets.xlsx.parts import SheetPart, read_parts
from ade_engine.sheets.xlsx.pieces import Frame, plain_pieces
from ade_engine.sheets.xlsx.scan import Lookups, Scanner
from ade_engine.sheets.xlsx.strings import read_strings, walk_strings
from ade_engine.sheets.xlsx.walk import Walker
from ade_engine.sheets.xlsx.xml import Attributes, parse, plain_name


class XlsxBook:
    """A workbook whose sheets are read as streams."""

    def __init__(self, file: BinaryIO, limits: Limits, archive: Archive | None = None) -> None:
        self._limits = limits
        self._archive = archive or Archive(file, limits)
        self._parts = read_parts(self._archive, limits.sheets_max)
        self.sheets: list[SheetPart] = self._parts.sheets

    @cached_property
    def _shared(self) -> pl.Series:
        part, size = self._parts.strings, self._limits.strings_bytes_max
        if part is None:
            return with_null([])
        try:
            return read_strings(self._archive.stream(part, size), self._limits)
        except NotPlain:
            return walk_strings(self._archive.stream(part, size))

    @cached_property
    def _lookups(self) -> Lookups:
        blank = (self._shared.str.len_bytes() == 0).arg_true().to_numpy().astype(np.int64)
        return Lookups(
            self._parts.date_styles, len(self._shared) - 1, blank, self._parts.epoch_1904
        )

    def read(self, sheet: SheetPart, facts: Facts) -> Iterator[Block]:
        """Give a sheet's blocks as fast as possible; raise `NotPlain` where `reread` must be used.

        What was given before the exception must be forgotten.
        """
        frame = Frame()
        scanner = Scanner(self._lookups)
        stream = self._archive.stream(sheet.part)
        pieces = plain_pieces(stream, b"sheetData", b"row", frame, self._limits)
        yield from self._assemble(work_ahead(scanner.scan, pieces), facts)
        document = (frame.head, b"<sheetData/>", frame.tail)
        parse(document, lambda name, attributes: note(facts, name, attributes), where=sheet.name)

    def reread(self, sheet: SheetPart, facts: Facts) -> Iterator[Block]:
        """Give a sheet's blocks however its XML is written."""
        walker = Walker(self._lookups)
        stream = self._archive.stream(sheet.part)
        cells = walker.walk(stream, lambda name, attributes: note(facts, name, attributes))
        yield from self._assemble(cells, facts)

    def _assemble(self, source: Iterator[Cells], facts: Facts) -> Iterator[Block]:
        assembler = Assembler(self._shared)
        count = 0
        for cells in source:
            count += len(cells.rows)
            if count > self._limits.cells_max:
                raise TooLarge(f"a sheet has more than {self._limits.cells_max} cells (cells_max)")
            facts.hidden_rows += cells.hidden_rows
            yield from assembler.add(cells)
        yield from assembler.flush()


def note(facts: Facts, name: str, attributes: Attributes) -> None:
    """Remember what an element beside the cells says."""
    match plain_name(name):
        case "mergeCell":
            facts.add_merged(attributes.get("ref", ""))
        case "col" if attributes.get("hidden") in ("1", "true"):
            facts.hide_columns(attributes.get("min", ""), attributes.get("max", ""))
