"""Open a spreadsheet of any supported format as a `Workbook` of `Sheet`s."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from ade_engine.errors import TooLarge, UnreadableFile
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.block_builder import build_blocks
from ade_engine.sheets.cells import Block, CellError
from ade_engine.sheets.coordinates import Range
from ade_engine.sheets.delimited import DelimitedBook
from ade_engine.sheets.fast_path_errors import FastPathUnsupported
from ade_engine.sheets.html_tables import HtmlBook
from ade_engine.sheets.legacy import LegacyRows, LegacySheet, read_legacy
from ade_engine.sheets.legacy_details import LegacyDetails, scan_legacy
from ade_engine.sheets.metadata import SheetMetadata, UnreadSheet, no_sheet_with_cells
from ade_engine.sheets.read_limits import MIB, ReadOptions
from ade_engine.sheets.sniff import sniff
from ade_engine.sheets.spool import Spool
from ade_engine.sheets.xlsx.book import XlsxBook
from ade_engine.sheets.xml2003 import Xml2003Book

Read = Callable[[SheetMetadata], Iterator[Block]]
ENCODING_GUESSED = "encoding_guessed"
LAST_ROW = 2**62  # a text file may have more rows than a worksheet


class Sheet:
    """One sheet, parsed once and then read any number of times.

    These are known after `scan`: `height` and `width` (the last row and column in use), `merged`,
    `hidden_rows`, `hidden_columns`, `format_marks` and `notes` (codes of what was skipped).
    """

    def __init__(
        self, name: str, reads: list[Read], options: ReadOptions, *, hidden: bool = False
    ) -> None:
        self.name = name
        self.hidden = hidden
        self.height = 0
        self.width = 0
        self.merged: list[Range] = []
        self.hidden_rows: IntArray = np.zeros(0, np.int64)
        self.hidden_columns: frozenset[int] = frozenset()
        self.format_marks: dict[int, set[str]] = {}
        self.notes: list[str] = []
        self._reads = reads
        self._options = options
        self._spool: Spool | None = None

    def scan(self) -> Sheet:
        """Parse the whole sheet; further calls do nothing."""
        if self._spool is not None:
            return self
        for number, read in enumerate(self._reads):
            try:
                self._spool = self._read(read)
                break
            except FastPathUnsupported:
                if number + 1 == len(self._reads):
                    raise
        return self

    def _read(self, read: Read) -> Spool:
        metadata = SheetMetadata(self._options.limits)
        spool = Spool(self._options.limits.spool_memory_bytes, self._options.spool_folder)
        height = width = 0
        try:
            for block in read(metadata):
                height = max(height, block.last_row)
                width = max(width, *block.columns, 0)
                spool.add(block)
        except BaseException:
            spool.clear()
            raise
        self.height, self.width = height, width
        self.merged = sorted(metadata.merged)
        self.hidden_rows = np.unique(np.array(metadata.hidden_rows, np.int64))
        self.hidden_columns = frozenset(metadata.hidden_columns)
        self.format_marks = metadata.marks
        self.notes = metadata.notes
        return spool

    def blocks(
        self,
        first_row: int = 1,
        last_row: int | None = None,
        *,
        text_of: frozenset[int] | None = None,
    ) -> Iterator[Block]:
        """Yield the rows from `first_row` to `last_row`; rows that are in no block are empty.

        With `text_of`, yield only blocks in which one of these columns holds text, and of each
        block only these columns.
        """
        self.scan()
        assert self._spool is not None
        return self._spool.read(first_row, LAST_ROW if last_row is None else last_row, text_of)

    def head(self, rows: int) -> list[Block]:
        """Return the blocks that hold the first rows, without parsing the whole sheet."""
        if self._spool is not None:
            return list(self.blocks(1, rows))
        for number, read in enumerate(self._reads):
            found: list[Block] = []
            try:
                for block in read(SheetMetadata(self._options.limits)):
                    found.append(block)
                    if block.last_row >= rows:
                        break
                return found
            except FastPathUnsupported:
                if number + 1 == len(self._reads):
                    raise
        return []

    def close(self) -> None:
        """Free the cells; they can be parsed again."""
        if self._spool is not None:
            self._spool.clear()
            self._spool = None


class Workbook:
    """The sheets of a file; a text file has one, whose name is empty."""

    def __init__(
        self,
        file_format: str,
        sheets: list[Sheet],
        *,
        encoding: str | None = None,
        delimiter: str | None = None,
        language: str | None = None,
        unread: Sequence[UnreadSheet] = (),
        epoch_1904: bool = False,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self.format = file_format
        self.sheets = sheets
        self.encoding = encoding
        self.delimiter = delimiter
        self.language = language
        self.unread = tuple(unread)
        self.epoch_1904 = epoch_1904
        self._closing = closing

    def __enter__(self) -> Workbook:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and free the cells of all sheets."""
        for sheet in self.sheets:
            sheet.close()
        self._closing()


def open_workbook(path: str | Path, options: ReadOptions | None = None) -> Workbook:
    """Open a spreadsheet of any format; raise `UnreadableFile` if that is not possible."""
    options = options or ReadOptions()
    try:
        file = Path(path).open("rb")  # noqa: SIM115  the workbook closes it
    except OSError as error:
        raise UnreadableFile(f"the file cannot be opened: {error.strerror}") from error
    try:
        return _open(file, options)
    except BaseException:
        file.close()
        raise


def _open(file: BinaryIO, options: ReadOptions) -> Workbook:
    size = file.seek(0, 2)
    if size > options.limits.file_bytes_max:
        limit = options.limits.file_bytes_max // MIB
        raise TooLarge(f"the file is larger than {limit} MiB (file_bytes_max)")
    kind = sniff(file)
    return _OPENERS[kind](file, options)


def _open_xlsx(file: BinaryIO, options: ReadOptions) -> Workbook:
    book = XlsxBook(file, options.limits)

    def sheet(index: int) -> Sheet:
        part = book.sheets[index]
        reads: list[Read] = [
            lambda metadata: book.read(part, metadata),
            lambda metadata: book.reread(part, metadata),
        ]
        return Sheet(part.name, reads, options, hidden=part.hidden)

    sheets = [sheet(index) for index in range(len(book.sheets))]
    return Workbook(
        "xlsx",
        sheets,
        language=book.language,
        unread=book.unread,
        epoch_1904=book.epoch_1904,
        closing=file.close,
    )


def _open_text(file: BinaryIO, options: ReadOptions) -> Workbook:
    book = DelimitedBook(file, options.limits)
    guessed = book.encoding in ("cp1252", "latin-1")

    def noted(read: Callable[[], Iterator[Block]]) -> Read:
        def noting(metadata: SheetMetadata) -> Iterator[Block]:
            if guessed:
                metadata.note(ENCODING_GUESSED)
            return read()

        return noting

    reads: list[Read] = [noted(book.read), noted(book.reread)]
    return Workbook(
        "tsv" if book.delimiter == "\t" else "csv",
        [Sheet("", reads, options)],
        encoding=book.encoding,
        delimiter=book.delimiter,
        closing=file.close,
    )


def _open_html(file: BinaryIO, options: ReadOptions) -> Workbook:
    book = HtmlBook(file, options.limits)
    sheets = [Sheet("", [book.read], options)]
    return Workbook("html", sheets, encoding=book.encoding, closing=file.close)


def _open_xml(file: BinaryIO, options: ReadOptions) -> Workbook:
    book = Xml2003Book(file, options.limits)
    sheets = [
        Sheet(name, [partial(book.read, index)], options) for index, name in enumerate(book.sheets)
    ]
    return Workbook("xml", sheets, unread=book.unread, closing=file.close)


def _open_legacy(file_format: str, file: BinaryIO, options: ReadOptions) -> Workbook:
    """Read all sheets at once, so that calamine runs only once, in a child if possible."""
    sheets: list[Sheet] = []
    seen = scan_legacy(file, file_format, options.limits)
    details = seen.sheets if seen else []
    source = Path(file.name) if seen is None or seen.corrected is None else seen.corrected
    unread: list[UnreadSheet] = []
    messages = read_legacy(source, options.limits, fork=options.fork)
    for number, (head, rows) in enumerate(_by_sheet(_set_apart(messages, unread))):
        about = details[number] if number < len(details) else None
        read = partial(_legacy_blocks, head, rows, about, options)
        sheets.append(Sheet(head.name, [read], options, hidden=head.hidden).scan())
    if not sheets:
        raise no_sheet_with_cells(unread)
    return Workbook(file_format, sheets, unread=unread, closing=file.close)


def _set_apart(
    messages: Iterator[LegacySheet | LegacyRows | UnreadSheet], unread: list[UnreadSheet]
) -> Iterator[LegacySheet | LegacyRows]:
    for message in messages:
        if isinstance(message, UnreadSheet):
            unread.append(message)
        else:
            yield message


def _by_sheet(
    messages: Iterator[LegacySheet | LegacyRows],
) -> Iterator[tuple[LegacySheet, Iterator[LegacyRows]]]:
    """Group rows by their sheet; consume each group before asking for the next."""
    head: LegacySheet | LegacyRows | None = next(messages, None)
    while isinstance(head, LegacySheet):
        following: list[LegacySheet] = []

        def rows(following: list[LegacySheet] = following) -> Iterator[LegacyRows]:
            for message in messages:
                if isinstance(message, LegacySheet):
                    following.append(message)
                    return
                yield message

        yield head, rows()
        head = following[0] if following else None


def _legacy_blocks(
    head: LegacySheet,
    messages: Iterator[LegacyRows],
    seen: LegacyDetails | None,
    options: ReadOptions,
    metadata: SheetMetadata,
) -> Iterator[Block]:
    if seen is None:
        metadata.note("errors_read_as_empty")
        seen = LegacyDetails()
    for reference in head.merged:
        metadata.add_merged(reference)
    metadata.hidden_rows += seen.hidden_rows
    metadata.hidden_columns |= seen.hidden_columns
    errors: dict[int, dict[int, object]] = {}
    for (row, column), code in seen.errors.items():
        errors.setdefault(row, {})[column] = CellError(code)
    rows = (
        (number, dict(enumerate(values, head.first_column)) | errors.get(number, {}))
        for message in messages
        for number, values in enumerate(message.rows, message.first_row)
    )
    yield from build_blocks(rows, options.limits)


_OPENERS: dict[str, Callable[[BinaryIO, ReadOptions], Workbook]] = {
    "xlsx": _open_xlsx,
    "xls": partial(_open_legacy, "xls"),
    "xlsb": partial(_open_legacy, "xlsb"),
    "ods": partial(_open_legacy, "ods"),
    "text": _open_text,
    "html": _open_html,
    "xml": _open_xml,
}
