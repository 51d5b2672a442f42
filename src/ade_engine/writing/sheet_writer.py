"""Write one sheet: its rows in blocks, then what is known only after the last row."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from ade_engine.package.issues import Severity
from ade_engine.sheets.arrays import ByteArray
from ade_engine.sheets.cells import CellArray
from ade_engine.sheets.coordinates import Range, a1, column_letters
from ade_engine.writing.cell_fills import CellFill, fill_cells
from ade_engine.writing.cell_notes import NOTES_MAX, CellNote, drawing_xml, notes_xml
from ade_engine.writing.column_widths import ColumnWidth
from ade_engine.writing.fixed_parts import (
    HEAD,
    MAIN,
    RELATIONS,
    Relation,
    SheetEntry,
    relations,
    sheet_part,
)
from ade_engine.writing.row_xml import BlockColumn, CellStyles, rows_xml
from ade_engine.writing.styles import (
    DATE_FORMAT,
    MOMENT_FORMAT,
    TIME_FORMAT,
    Look,
    NumberFormat,
    Style,
    StyleTable,
)
from ade_engine.writing.text_xml import escaped, shortened
from ade_engine.writing.zip_writer import ZipWriter

MARKS: tuple[Severity | None, ...] = (None, Severity.INFO, Severity.WARNING, Severity.ERROR)
"""What the mark of a cell means; the highest mark of a cell decides its fill."""

LINKS_MAX = 65_530  # of a sheet; Excel drops further ones
LATE_FILLS_MAX = 100_000  # cells that are filled after their rows were written
HEADER_ROW = 1
_COL_BYTES_MAX = 70
_HEAD_BYTES = 700
_EXTERNAL = "rIdFile"


@dataclass(frozen=True)
class SheetColumn:
    """The header of a column, the type of its cells, and a number format of the author's own."""

    header: str
    type: str = "any"
    format: str = ""
    look: Look = Look.PLAIN


@dataclass(frozen=True)
class CellLink:
    """A link from a cell to a place in the workbook, or in a file beside it."""

    row: int
    column: int
    place: str
    file: str = ""


class SheetWriter:
    """Write the rows of one sheet, and collect what its end needs."""

    def __init__(
        self,
        archive: ZipWriter,
        number: int,
        name: str,
        columns: Sequence[SheetColumn],
        styles: StyleTable,
    ) -> None:
        self._archive, self._number, self._styles = archive, number, styles
        self.name, self.columns = name, columns
        self.next_row = HEADER_ROW
        self.notes: list[CellNote] = []
        self.links: list[CellLink] = []
        self.unfilled = 0
        self._fills: list[CellFill] = []
        self._pieces: list[tuple[int, int]] = []
        formats = [NumberFormat(column.type, column.format) for column in columns]
        self._cell_styles = [
            self._styles_of(column, numbers)
            for column, numbers in zip(columns, formats, strict=True)
        ]
        self._widths = [
            ColumnWidth(column.header, numbers, column.format if column.type == "date" else "")
            for column, numbers in zip(columns, formats, strict=True)
        ]
        archive.begin(sheet_part(number), _HEAD_BYTES + _COL_BYTES_MAX * len(columns))
        self._write_header()

    def _styles_of(self, column: SheetColumn, numbers: NumberFormat) -> list[CellStyles]:
        number_of = self._styles.number_of
        date = column.format if column.type == "date" and column.format else DATE_FORMAT
        number = "General" if numbers.is_general or column.type == "date" else numbers
        return [
            CellStyles(
                plain=number_of(Style(severity=mark, look=column.look)),
                number=number_of(Style(number, mark, column.look)),
                date=number_of(Style(date, mark, Look.DATE)),
                moment=number_of(Style(MOMENT_FORMAT, mark, Look.DATE)),
                time=number_of(Style(TIME_FORMAT, mark, Look.DATE)),
                literal=number_of(Style(severity=mark, look=Look.LITERAL)),
            )
            for mark in MARKS
        ]

    def _write_header(self) -> None:
        style = self._styles.number_of(Style(look=Look.HEADER))
        texts = [column.header for column in self.columns]
        cells = escaped(shortened(CellArray.of(texts).text)[0])
        heads = "".join(
            f'<c r="{column_letters(number)}1" s="{style}" t="inlineStr">'
            f"{cells.opening}{text}</t></is></c>"
            for number, text in enumerate(cells.text.to_list(), 1)
        )
        self._piece(f'<row r="1">{heads}</row>'.encode(), 1)

    def write(
        self,
        columns: Sequence[CellArray],
        text_bytes_max: Sequence[int],
        marks: Sequence[ByteArray | None],
    ) -> None:
        """Write a block of rows."""
        for width, cells, bytes_max in zip(self._widths, columns, text_bytes_max, strict=True):
            width.see(cells, bytes_max)
        block = [
            BlockColumn(cells, styles, mark)
            for cells, styles, mark in zip(columns, self._cell_styles, marks, strict=True)
        ]
        self._piece(rows_xml(block, self.next_row), len(columns[0]))

    def _piece(self, xml: bytes, height: int) -> None:
        self._pieces.append((self.next_row, self._archive.write(xml)))
        self.next_row += height

    def fill(self, rows: Sequence[int], column: int, severity: Severity) -> None:
        """Fill cells that are already written."""
        room = LATE_FILLS_MAX - len(self._fills)
        self._fills += [CellFill(row, column, severity) for row in rows[:room]]
        self.unfilled += max(len(rows) - room, 0)

    def end(self) -> None:
        """Write what stands before and after the rows, and the parts beside the sheet."""
        if self._fills:
            self._rewrite()
        notes = sorted(self.notes)[:NOTES_MAX]
        self._archive.write(self._tail(bool(notes)).encode())
        self._archive.end(self._head().encode())
        beside = [
            Relation(f"{_EXTERNAL}{number}", f"{RELATIONS}/hyperlink", quote(file), True)
            for number, file in enumerate(self._files())
        ]
        if notes:
            number = self._number
            beside += [
                Relation("rIdNotes", f"{RELATIONS}/comments", f"../comments{number}.xml"),
                Relation(
                    "rIdBoxes", f"{RELATIONS}/vmlDrawing", f"../drawings/vmlDrawing{number}.vml"
                ),
            ]
            self._part(f"xl/comments{number}.xml", notes_xml(notes))
            self._part(f"xl/drawings/vmlDrawing{number}.vml", drawing_xml(notes, number))
        if beside:
            self._part(f"xl/worksheets/_rels/sheet{self._number}.xml.rels", relations(beside))

    def _part(self, name: str, text: str) -> None:
        self._archive.begin(name)
        self._archive.write(text.encode())
        self._archive.end()

    def _rewrite(self) -> None:
        """Fill cells of rows that are already written, one piece at a time."""
        firsts = [first for first, _ in self._pieces]
        by_piece: dict[int, list[CellFill]] = {}
        for fill in self._fills:
            piece = self._pieces[bisect_right(firsts, fill.row) - 1][1]
            by_piece.setdefault(piece, []).append(fill)
        self._archive.rewrite(
            {
                piece: lambda xml, fills=fills: fill_cells(xml, fills, self._styles)  # type: ignore[misc]
                for piece, fills in by_piece.items()
            }
        )

    def _head(self) -> str:
        selected = ' tabSelected="1"' if self._number == 1 else ""
        columns = "".join(
            f'<col min="{number}" max="{number}" width="{width.width}" customWidth="1"/>'
            for number, width in enumerate(self._widths, 1)
        )
        return (
            f'{HEAD}<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONS}">'
            '<sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>'
            f'<dimension ref="{self._range()}"/>'
            f'<sheetViews><sheetView{selected} workbookViewId="0">'
            '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
            '</sheetView></sheetViews><sheetFormatPr defaultRowHeight="15"/>'
            + (f"<cols>{columns}</cols>" if columns else "")
            + "<sheetData>"
        )

    def _range(self) -> str:
        return str(Range(1, 1, max(self.next_row - 1, 1), max(len(self.columns), 1)))

    def _files(self) -> list[str]:
        return list(dict.fromkeys(link.file for link in self.links if link.file))

    def _tail(self, has_notes: bool) -> str:
        names = {file: f"{_EXTERNAL}{number}" for number, file in enumerate(self._files())}
        links = "".join(_link_xml(link, names) for link in self.links[:LINKS_MAX])
        return (
            "</sheetData>"
            + (f'<autoFilter ref="{self._range()}"/>' if self.columns else "")
            + (f"<hyperlinks>{links}</hyperlinks>" if links else "")
            + '<pageMargins left="0.5" right="0.5" top="0.6" bottom="0.6" header="0.3"'
            ' footer="0.3"/><pageSetup orientation="landscape" fitToHeight="0"/>'
            + ('<legacyDrawing r:id="rIdBoxes"/>' if has_notes else "")
            + "</worksheet>"
        )

    def entry(self) -> SheetEntry:
        """Return what the workbook's list of sheets says about this one."""
        if not self.columns:
            return SheetEntry(self.name)
        last = column_letters(len(self.columns))
        return SheetEntry(self.name, f"$A$1:${last}${max(self.next_row - 1, 1)}")


def _link_xml(link: CellLink, files: dict[str, str]) -> str:
    place = f" location={quoteattr(link.place)}" if link.place else ""
    file = f' r:id="{files[link.file]}"' if link.file else ""
    return f'<hyperlink ref="{a1(link.row, link.column)}"{file}{place}/>'
