"""What can go wrong in the engine, each with a code that does not change.

```
EngineError
└── UnreadableFile
    ├── UnknownFormat       unknown_format      no kind of spreadsheet that is known
    ├── EmptyFile           empty_file          nothing in it
    ├── EncryptedFile       encrypted_file      a password is needed
    ├── DamagedFile         damaged_file        cut off or inconsistent
    ├── UnsafeFile          unsafe_file         made to harm whoever reads it
    ├── TooLarge            file_too_large      beyond a limit
    └── ReaderCrashed       reader_crashed      the library that reads this kind gave up
```

A message says what happened and where; `advice` says what to do next. Neither ever holds the value
of a cell.
"""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """Say what went wrong, where, and what to do next."""

    code: ClassVar[str] = "engine_error"
    advice: ClassVar[str] = "Report it with the version of ADE; it is a fault of the engine."

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.message}{place}. {self.next_step}"

    @property
    def next_step(self) -> str:
        """Say what to do next, here."""
        return self.advice


class UnreadableFile(EngineError):
    """The file cannot be read as a spreadsheet."""

    code = "unreadable_file"
    advice = "Open it in a spreadsheet program and save it again as .xlsx."


class UnknownFormat(UnreadableFile):
    """The content is no kind of spreadsheet that ADE knows."""

    code = "unknown_format"
    advice = "Send .xlsx, .xlsm, .xls, .xlsb, .ods, .csv or .tsv; the name does not matter."


class EmptyFile(UnreadableFile):
    """The file holds nothing."""

    code = "empty_file"
    advice = "Check that it was written and sent completely."


class EncryptedFile(UnreadableFile):
    """The workbook can be opened only with a password."""

    code = "encrypted_file"
    advice = "Save it without a password and send it again."


class DamagedFile(UnreadableFile):
    """The file is cut off or its parts do not fit together."""

    code = "damaged_file"
    advice = "Send it again; if it stays so, open it in a spreadsheet program and save it anew."


class UnsafeFile(UnreadableFile):
    """The file holds what no spreadsheet program writes and what harms whoever reads it."""

    code = "unsafe_file"
    advice = "Open it in a spreadsheet program that you trust and save it again as .xlsx."


class TooLarge(UnreadableFile):
    """The file holds more than the limits allow."""

    code = "file_too_large"
    advice = "Split it, or raise the limit that the message names."


class ReaderCrashed(UnreadableFile):
    """The library that reads this kind of file gave up in a way that it should not."""

    code = "reader_crashed"
    advice = "Open it in a spreadsheet program and save it again as .xlsx."
