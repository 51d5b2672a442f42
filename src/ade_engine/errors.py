"""The errors of the engine, each with a stable code.

```
EngineError
└── UnreadableFile
    ├── UnknownFormat       unknown_format      not a supported spreadsheet format
    ├── OldWorkbook         old_workbook        of a version of Excel before 1997
    ├── EmptyFile           empty_file          no content
    ├── NoCells             no_cells            only charts and the like, no sheet with cells
    ├── EncryptedFile       encrypted_file      a password is needed
    ├── DamagedFile         damaged_file        truncated or inconsistent
    ├── UnsafeFile          unsafe_file         crafted to attack its reader
    ├── TooLarge            file_too_large      exceeds a limit
    └── ReaderCrashed       reader_crashed      the library that reads the format crashed
```

The message says what happened and where, and `advice` says what to do next. Neither ever holds the
value of a cell.
"""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """What went wrong, where, and what to do next."""

    code: ClassVar[str] = "engine_error"
    advice: ClassVar[str] = "This is a bug in the engine: report it with the version of ADE."

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.message}{place}. {self.next_step}"

    @property
    def next_step(self) -> str:
        """Return what to do next in this case."""
        return self.advice


class UnreadableFile(EngineError):
    """The file cannot be read as a spreadsheet."""

    code = "unreadable_file"
    advice = "Open it in a spreadsheet program and save it again as .xlsx."


class UnknownFormat(UnreadableFile):
    """The content is not a spreadsheet format that ADE supports."""

    code = "unknown_format"
    advice = "Send .xlsx, .xlsm, .xls, .xlsb, .ods, .csv or .tsv; the file name does not matter."


class OldWorkbook(UnreadableFile):
    """The workbook is of a version of Excel before 1997."""

    code = "old_workbook"
    advice = "Open it in a spreadsheet program and save it as .xlsx."


class EmptyFile(UnreadableFile):
    """The file is empty."""

    code = "empty_file"
    advice = "Check that it was saved and sent completely."


class NoCells(UnreadableFile):
    """The workbook has no sheet with cells."""

    code = "no_cells"
    advice = "Send the workbook that holds the data of the charts."


class EncryptedFile(UnreadableFile):
    """The workbook can be opened only with a password."""

    code = "encrypted_file"
    advice = "Save it without a password and send it again."


class DamagedFile(UnreadableFile):
    """The file is truncated or inconsistent."""

    code = "damaged_file"
    advice = "Send it again. If that fails, open it in a spreadsheet program and save it again."


class UnsafeFile(UnreadableFile):
    """The file holds something harmful that no spreadsheet program writes."""

    code = "unsafe_file"
    advice = "Open it in a spreadsheet program that you trust and save it again as .xlsx."


class TooLarge(UnreadableFile):
    """The file exceeds a limit."""

    code = "file_too_large"
    advice = "Split it, or raise the limit that the message names."


class ReaderCrashed(UnreadableFile):
    """The library that reads this file format crashed."""

    code = "reader_crashed"
    advice = "Open it in a spreadsheet program and save it again as .xlsx."
