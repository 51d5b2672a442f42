"""Read .xls, .xlsb and .ods with calamine, which is fast but may crash.

Calamine allocates the whole rectangle of a sheet, so that one distant cell costs gigabytes, and a
failed allocation in Rust ends the process. It therefore runs in a forked child with a memory limit
and sends rows through a pipe. Where forking is not allowed it runs in this process, inside the
sandbox of the job.

| what happens in calamine | what the caller gets |
| --- | --- |
| an error | DamagedFile, EncryptedFile |
| a panic, which Python sees as a BaseException | ReaderCrashed |
| an abort, a signal, no memory, too much time | ReaderCrashed; without a child, it ends the job |

Calamine returns error cells as empty. `legacy_details` finds those of .xls and .xlsb; the `notes`
of other sheets say `errors_read_as_empty`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import pickle
import resource
import signal
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import python_calamine as calamine

from ade_engine.errors import (
    DamagedFile,
    EncryptedFile,
    ReaderCrashed,
    TooLarge,
    UnreadableFile,
)
from ade_engine.sheets.coordinates import COLUMNS_MAX, a1
from ade_engine.sheets.metadata import BEYOND_LIMIT, UnreadSheet
from ade_engine.sheets.read_limits import ReadLimits

ROWS_AT_ONCE = 1_000
_LENGTH = struct.Struct("<Q")
_PANIC = "PanicException"  # raised by pyo3; it cannot be imported


@dataclass(frozen=True, slots=True)
class LegacySheet:
    """What is known about a sheet before its rows are read."""

    name: str
    hidden: bool
    merged: list[str]
    first_column: int


@dataclass(frozen=True, slots=True)
class LegacyRows:
    """Consecutive rows of the most recent `LegacySheet`, beginning at `first_row`."""

    first_row: int
    rows: list[list[object]]


Message = LegacySheet | LegacyRows | UnreadSheet | UnreadableFile


def read_legacy(
    source: Path | bytes, limits: ReadLimits, *, fork: bool
) -> Iterator[LegacySheet | LegacyRows | UnreadSheet]:
    """Yield each sheet, followed by its rows, of a file or of a file's content."""
    messages = _from_child(source, limits) if fork else _read_here(source, limits)
    for message in messages:
        if isinstance(message, UnreadableFile):
            raise message
        yield message


def _read_here(source: Path | bytes, limits: ReadLimits) -> Iterator[Message]:
    """Read the file in this process; an error becomes the last message."""
    try:
        yield from _sheets(source, limits)
    except UnreadableFile as error:
        yield error
    except calamine.PasswordError:
        yield EncryptedFile("the workbook is protected by a password")
    except (calamine.CalamineError, OSError, ValueError, OverflowError):
        # Calamine's message may quote the file, so it is not passed on.
        yield DamagedFile("the workbook cannot be read")
    except MemoryError:
        yield TooLarge("the workbook needs more memory than a reader may use")
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        yield ReaderCrashed("the reader of this kind of workbook failed")


def _sheets(source: Path | bytes, limits: ReadLimits) -> Iterator[Message]:
    with _opened(source) as book:
        read = 0
        for about in book.sheets_metadata:
            if about.typ != calamine.SheetTypeEnum.WorkSheet:
                yield UnreadSheet(about.name, _reason(about.typ))
                continue
            read += 1
            if read > limits.sheets_max:
                yield UnreadSheet(about.name, BEYOND_LIMIT)
                continue
            sheet = book.get_sheet_by_name(about.name)
            if sheet.total_height * sheet.total_width > limits.cells_max:
                raise TooLarge(f"a sheet spans more than {limits.cells_max} cells (cells_max)")
            hidden = about.visible != calamine.SheetVisibleEnum.Visible
            first_column = sheet.start[1] + 1 if sheet.start else 1
            yield LegacySheet(about.name, hidden, _merged(sheet, limits), first_column)
            yield from _rows(sheet)


def _opened(source: Path | bytes) -> calamine.CalamineWorkbook:
    if isinstance(source, bytes):
        return calamine.CalamineWorkbook.from_filelike(io.BytesIO(source))
    return calamine.CalamineWorkbook.from_path(str(source))


def _reason(kind: calamine.SheetTypeEnum) -> str:
    if kind == calamine.SheetTypeEnum.ChartSheet:
        return "chart"
    return "dialog" if kind == calamine.SheetTypeEnum.DialogSheet else "macro"


def _merged(sheet: calamine.CalamineSheet, limits: ReadLimits) -> list[str]:
    ranges = sheet.merged_cell_ranges or []
    return [
        f"{a1(top + 1, left + 1)}:{a1(bottom + 1, right + 1)}"
        for (top, left), (bottom, right) in ranges[: limits.merged_max]
        if right < COLUMNS_MAX
    ]


def _rows(sheet: calamine.CalamineSheet) -> Iterator[LegacyRows]:
    waiting: list[list[object]] = []
    first = 1
    for number, row in enumerate(sheet.iter_rows(), 1):
        if not waiting:
            first = number
        waiting.append(list(row))
        if len(waiting) >= ROWS_AT_ONCE:
            yield LegacyRows(first, waiting)
            waiting = []
    if waiting:
        yield LegacyRows(first, waiting)


# --- in a child process ---------------------------------------------------------------------------


def _from_child(source: Path | bytes, limits: ReadLimits) -> Iterator[Message]:
    reading, writing = os.pipe()
    try:
        with warnings.catch_warnings():
            # After a fork, locks that other threads held stay locked forever. The child only
            # calls calamine, which has no threads, and writes to the pipe.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
    except OSError:  # forbidden, or the process limit is reached
        os.close(reading)
        os.close(writing)
        yield from _read_here(source, limits)
        return
    if pid == 0:
        _be_child(source, limits, reading, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            yield from _messages(pipe)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _be_child(source: Path | bytes, limits: ReadLimits, reading: int, writing: int) -> NoReturn:
    status = 1
    try:
        os.close(reading)
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a panic prints parts of the file
        _bound(limits)
        with os.fdopen(writing, "wb") as pipe:
            for message in _read_here(source, limits):
                _send(pipe, message)
            _send(pipe, None)
        status = 0
    finally:
        os._exit(status)


def _bound(limits: ReadLimits) -> None:
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    _lower(resource.RLIMIT_AS, used + limits.reader_memory_bytes_max)
    _lower(resource.RLIMIT_CPU, limits.reader_cpu_seconds_max)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _send(pipe: IO[bytes], message: Any) -> None:
    if isinstance(message, UnreadableFile):
        message = (type(message), message.message, message.where)
    packed = pickle.dumps(message, protocol=5)
    pipe.write(_LENGTH.pack(len(packed)))
    pipe.write(packed)


def _messages(pipe: IO[bytes]) -> Iterator[Message]:
    while True:
        head = pipe.read(_LENGTH.size)
        packed = pipe.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
        if not packed:
            yield ReaderCrashed(
                "the reader of this kind of workbook crashed or exceeded its limits"
            )
            return
        message = pickle.loads(packed)
        if message is None:
            return
        if isinstance(message, tuple):
            kind, text, where = message
            yield kind(text, where=where)
            return
        yield message
