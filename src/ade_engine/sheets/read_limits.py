"""Limits on what is read; reaching one raises `TooLarge` unless its comment says otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bound the cost of reading one file, whatever its own metadata says."""

    file_bytes_max: int = 1024 * MIB
    part_bytes_max: int = 4096 * MIB
    """What one part of an archive may inflate to, counted while it inflates."""
    ratio_max: int = 250
    """How many times a part may grow, once it is larger than `ratio_free_bytes`."""
    ratio_free_bytes: int = 64 * MIB
    parts_max: int = 20_000
    """Entries in the archive."""
    document_bytes_max: int = 64 * MIB
    """Parts that are read whole: the list of sheets, the styles, what surrounds the cells."""
    strings_bytes_max: int = 1024 * MIB
    """The table of shared strings, inflated."""
    row_bytes_max: int = 64 * MIB
    """One row, as it is written in the file."""
    cells_max: int = 64_000_000
    """Cells of one sheet, and the rectangle that a library which makes one may need."""
    sheets_max: int = 1_000
    merged_max: int = 100_000
    """Merged ranges that are kept of one sheet; the rest is dropped, with a note."""
    reader_memory_bytes_max: int = 768 * MIB
    """What a library that reads .xls, .xlsb or .ods may use, where it can be bounded."""
    reader_cpu_seconds_max: int = 60
    spool_memory_bytes: int = 16 * MIB
    """What is kept in memory for reading again; the rest goes to a file."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Choose how a workbook is opened."""

    limits: ReadLimits = field(default_factory=ReadLimits)
    spool_folder: Path | None = None
    """Where the file for reading again is made; the system's temporary folder if not given."""
    fork: bool = True
    """Whether a library that may crash is tried in its own process, where that is allowed."""
