"""How fast workbooks are read, normalised and written, against other readers and writers.

`scripts/bench sheets` makes a workbook of 1M rows x 12 columns and one of 100k (kept in
`bench/.data`), runs every contestant in its own process, and prints the ratios that are
wanted. Seconds differ from machine to machine; ratios hold within one run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import sheets_input, sheets_job

DATA = Path(__file__).parent / ".data"
WIDTH = len(sheets_input.HEADERS)
ROWS, SMALL_ROWS = 1_000_000, 100_000
BLOCK_ROWS = 16_384  # written again and again by the bare writer
WARM_ROWS = 1_000  # read first, so that imports are not timed: ADE's jobs start with them done
RATIO_MAX = 2.0
MEMORY_MIB_MAX = 400
SPEED_UP_MIN = 10.0


# --- what is timed --------------------------------------------------------------------------------


def read_ade(path: Path, out: Path) -> int:
    """Read with ADE's reader and keep nothing."""
    from ade_engine.sheets.metadata import SheetMetadata
    from ade_engine.sheets.read_limits import ReadLimits
    from ade_engine.sheets.xlsx.book import XlsxBook

    with path.open("rb") as file:
        book = XlsxBook(file, ReadLimits())
        return (
            sum(block.height for block in book.read(book.sheets[0], SheetMetadata(ReadLimits())))
            - 1
        )


def read_wolfxl(path: Path, out: Path) -> int:
    """Read row by row, as a stream."""
    import wolfxl

    book = wolfxl.load_workbook(str(path), read_only=True)
    sheet = book[book.sheetnames[0]]
    return sum(1 for _ in sheet.iter_rows(values_only=True)) - 1


def read_calamine(path: Path, out: Path) -> int:
    """Read the whole sheet, then row by row."""
    import python_calamine

    sheet = python_calamine.CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0)
    return sum(1 for _ in sheet.iter_rows()) - 1


def read_fastexcel(path: Path, out: Path) -> int:
    """Read the whole sheet into polars columns."""
    import fastexcel

    return int(fastexcel.read_excel(str(path)).load_sheet(0).to_polars().height)


def write_ade(path: Path, out: Path) -> int:
    """Write as many rows as the input has: one block of its cells again and again."""
    from ade_engine.sheets.workbook import open_workbook
    from ade_engine.writing.workbook_writer import WorkbookWriter

    with open_workbook(DATA / f"{BLOCK_ROWS}.xlsx") as book:
        block = next(book.sheets[0].blocks(2))
        columns = [block.column(number) for number in range(1, WIDTH + 1)]
    wanted = int(path.stem)
    writer = WorkbookWriter(out)
    writer.add_sheet("Out", sheets_input.HEADERS)
    left = wanted
    while left:
        size = min(left, block.height)
        writer.write([column.slice(0, size) for column in columns])
        left -= size
    writer.close()
    return wanted


def write_xlsxwriter(path: Path, out: Path) -> int:
    """Write row by row in constant memory."""
    import xlsxwriter

    wanted = int(path.stem)
    row = ["ME100000", "Ada", "Lovelace", "a@example.org", "Sales", "Oslo", 52000.5, 0.123456789]
    book = xlsxwriter.Workbook(str(out), {"constant_memory": True})
    sheet = book.add_worksheet()
    for number in range(wanted):
        sheet.write_row(number, 0, [*row, 45000, 45000.5, True, None])
    book.close()
    return wanted


def whole_ade(path: Path, out: Path) -> int:
    """Read, find the table, map, transform, validate, write, explain."""
    from ade_engine.entry.normalize import NormalizeRequest, normalize

    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        package = sheets_job.write_package(Path(folder) / "package")
        result = normalize(NormalizeRequest(path, package, Path(folder) / "out"))
        assert result["status"] == "succeeded", result
        assert (Path(folder) / "out" / "normalized.xlsx").stat().st_size > 1000
    return int(path.stem)


def whole_openpyxl(path: Path, out: Path) -> int:
    """Read with openpyxl, change and check each value, write with openpyxl."""
    import openpyxl

    source = openpyxl.load_workbook(path, read_only=True)
    target = openpyxl.Workbook(write_only=True)
    sheet = target.create_sheet("Out")
    rows = source.worksheets[0].iter_rows(values_only=True)
    sheet.append(list(next(rows)))
    wrong = count = 0
    for row in rows:
        changed, issues = sheets_job.per_cell(row)
        sheet.append(changed)
        wrong += issues
        count += 1
    target.save(out)
    return count


@dataclass(frozen=True)
class Contestant:
    """What is timed, under which name, on how many rows."""

    name: str
    kind: str
    run: Callable[[Path, Path], int]
    rows: int = ROWS


CONTESTANTS = [
    Contestant("ADE's reader", "read", read_ade),
    Contestant("wolfxl, streaming", "read", read_wolfxl),
    Contestant("calamine", "read", read_calamine),
    Contestant("fastexcel", "read", read_fastexcel),
    Contestant("ADE's writer", "write", write_ade),
    Contestant("ADE, everything", "whole", whole_ade),
    Contestant("ADE, everything, 100k", "small", whole_ade, SMALL_ROWS),
    Contestant("openpyxl, per cell, 100k", "small", whole_openpyxl, SMALL_ROWS),
    Contestant("XlsxWriter, 100k", "peer", write_xlsxwriter, SMALL_ROWS),
]


# --- timing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """One run: wall seconds, CPU seconds, resident memory."""

    seconds: float
    cpu_seconds: float
    memory_mib: float


def main() -> None:
    options = parse()
    if options.one:
        perform(options.one, options.rows or 0)
        return
    console = Console(width=None if sys.stdout.isatty() else 120)
    scale = 0.1 if options.quick else 1.0
    contestants = [
        Contestant(c.name, c.kind, c.run, max(int(c.rows * scale), 1000)) for c in CONTESTANTS
    ]
    if options.only:
        contestants = [c for c in contestants if any(word in c.name for word in options.only)]
    prepare({WARM_ROWS, BLOCK_ROWS, *(contestant.rows for contestant in contestants)}, console)
    samples: dict[str, list[Sample]] = {contestant.name: [] for contestant in contestants}
    for number in range(options.rounds):
        for contestant in contestants:
            sample = measure(contestant)
            samples[contestant.name].append(sample)
            console.print(f"round {number + 1}: {contestant.name}: {sample.seconds:.2f} s")
    middle = {name: median(found) for name, found in samples.items()}
    console.print(table(contestants, middle))
    goals = list(checked(contestants, middle))
    for text, _ in goals:
        console.print(text)
    if options.json:
        figures = {name: vars(sample) for name, sample in middle.items()}
        goal_texts = dict(goals)
        options.json.write_text(json.dumps({"figures": figures, "goals": goal_texts}, indent=2))


def parse() -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="scripts/bench sheets", description=summary)
    add = parser.add_argument
    add("--quick", action="store_true", help="a tenth of the rows")
    add("--rounds", type=int, default=3, help="how often everything is repeated (3)")
    add("--only", nargs="+", default=[], metavar="NAME", help="only those whose name holds this")
    add("--json", type=Path, metavar="FILE", help="write the figures there")
    add("--one", help=argparse.SUPPRESS)
    add("--rows", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def prepare(sizes: set[int], console: Console) -> None:
    DATA.mkdir(exist_ok=True)
    for rows in sorted(sizes):
        path = DATA / f"{rows}.xlsx"
        if not path.exists():
            console.print(f"making {path.name} ...")
            sheets_input.write(path.with_suffix(".part"), rows)
            path.with_suffix(".part").rename(path)


def measure(contestant: Contestant) -> Sample:
    """Run a contestant in a fresh process; it prints how long it took."""
    command = [sys.executable, "-m", "bench.sheets", "--one", contestant.name]
    process = subprocess.Popen(
        [*command, "--rows", str(contestant.rows)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        sys.exit(f"{contestant.name} failed")
    seconds = json.loads(said.splitlines()[0])["seconds"]
    return Sample(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def perform(name: str, rows: int) -> None:
    contestant = next(c for c in CONTESTANTS if c.name == name)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        contestant.run(DATA / f"{WARM_ROWS}.xlsx", Path(folder) / "warm.xlsx")
        started = time.perf_counter()
        done = contestant.run(DATA / f"{rows}.xlsx", Path(folder) / "out.xlsx")
        print(json.dumps({"seconds": time.perf_counter() - started}))
    assert done == rows, (done, rows)


def median(samples: list[Sample]) -> Sample:
    return Sample(
        statistics.median(sample.seconds for sample in samples),
        statistics.median(sample.cpu_seconds for sample in samples),
        max(sample.memory_mib for sample in samples),
    )


def table(contestants: list[Contestant], middle: dict[str, Sample]) -> Table:
    shown = Table(title="medians; memory is the most of all rounds", title_justify="left")
    shown.add_column("contestant")
    for head in ("rows", "s", "s of CPU", "MiB"):
        shown.add_column(head, justify="right")
    for contestant in contestants:
        sample = middle[contestant.name]
        figures = (sample.seconds, sample.cpu_seconds)
        texts = (f"{figure:.2f}" for figure in figures)
        shown.add_row(contestant.name, f"{contestant.rows:,}", *texts, f"{sample.memory_mib:.0f}")
    return shown


def checked(contestants: list[Contestant], middle: dict[str, Sample]) -> Iterator[tuple[str, bool]]:
    """Compare the figures with what is wanted."""
    by_kind: dict[str, list[Sample]] = {}
    for contestant in contestants:
        by_kind.setdefault(contestant.kind, []).append(middle[contestant.name])
    if {"read", "write", "whole"} <= set(by_kind):
        reader = min(sample.seconds for sample in by_kind["read"])
        writer = min(sample.seconds for sample in by_kind["write"])
        whole = by_kind["whole"][0]
        ratio = whole.seconds / (reader + writer)
        text = f"everything / (fastest reader + writer): {ratio:.2f}"
        yield goal(text, ratio <= RATIO_MAX, f"at most {RATIO_MAX:.0f}")
        memory = whole.memory_mib
        text = f"resident memory: {memory:.0f} MiB"
        yield goal(text, memory <= MEMORY_MIB_MAX, f"at most {MEMORY_MIB_MAX}")
    if len(by_kind.get("small", [])) == 2:
        ours, theirs = by_kind["small"]
        faster = theirs.seconds / ours.seconds
        text = f"against openpyxl, per cell: {faster:.1f} times faster"
        yield goal(text, faster >= SPEED_UP_MIN, f"at least {SPEED_UP_MIN:.0f}")


def goal(text: str, reached: bool, wanted: str) -> tuple[str, bool]:
    return f"{text} ({wanted}: {'reached' if reached else 'NOT reached'})", reached


if __name__ == "__main__":
    main()
