"""Read every odd workbook of the corpus: each must end in rows or in one clear error.

`scripts/bench robustness [FOLDER...]` reads each file, and looks for tables in it, in a process of
its own that may use 10 s of CPU and 1 GiB; it prints the counts. It exits with 1 if any file ends
in another way.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ade_engine.errors import EngineError
from ade_engine.sheets.workbook import open_workbook
from ade_engine.tables.finder import find_tables
from ade_engine.tables.forest import default_weights

CPU_SECONDS_MAX = 10
WALL_SECONDS_MAX = 120
MEMORY_BYTES_MAX = 1024**3
ENDINGS = {".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".csv", ".tsv"}
CLEAR = ("rows", "no rows", "error")


@dataclass(frozen=True)
class Outcome:
    """How one file ended."""

    file: Path
    ending: str  # rows, no rows, error, or what must not be
    detail: str
    cpu_seconds: float
    memory_mib: float


def main() -> None:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 140)
    folders = options.folders or [corpus()]
    default_weights()  # once, not again in every child
    outcomes = [read(file) for file in files(folders)]
    if not outcomes:
        sys.exit(f"there are no spreadsheets in {', '.join(map(str, folders))}")
    show(outcomes, console)
    if options.json:
        lines = [{**vars(outcome), "file": str(outcome.file)} for outcome in outcomes]
        options.json.write_text(json.dumps(lines, indent=1) + "\n")
    sys.exit(any(outcome.ending not in CLEAR for outcome in outcomes))


def parse() -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="scripts/bench robustness", description=summary)
    add = parser.add_argument
    add("folders", nargs="*", type=Path, help="where the files are (the corpus)")
    add("--json", type=Path, metavar="FILE", help="write every file's outcome there")
    return parser.parse_args()


def corpus() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "corpus"
    return Path(os.environ.get("ADE_TEST_CORPUS", beside)) / "workbooks"


def files(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        found = folder.rglob("*") if folder.is_dir() else [folder]
        yield from sorted(path for path in found if path.suffix.lower() in ENDINGS)


def read(file: Path) -> Outcome:
    """Read a file in a child, and see how the child ends."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        be_child(file, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status, usage = os.wait4(pid, 0)
    cpu = usage.ru_utime + usage.ru_stime
    memory = usage.ru_maxrss / 1024
    if os.WIFSIGNALED(status):
        return Outcome(file, "killed", f"signal {os.WTERMSIG(status)}", cpu, memory)
    ending, _, detail = said.partition("\n")
    if ending in CLEAR and memory * 1024**2 > MEMORY_BYTES_MAX:
        ending = "too much memory"
    return Outcome(file, ending or "silent", detail, cpu, memory)


def be_child(file: Path, writing: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(WALL_SECONDS_MAX)  # ends a process that only waits
    try:
        said = look(file)
    except EngineError as error:
        said = f"error\n{error.code}"
    except BaseException:
        said = f"exception\n{traceback.format_exc(limit=-3)}"
    os.write(writing, said.encode())
    os._exit(0)


def look(file: Path) -> str:
    cells = 0
    with open_workbook(file) as book:
        for sheet in book.sheets:
            find_tables(sheet)
            for block in sheet.blocks():
                cells += sum(int((column.kinds > 0).sum()) for column in block.columns.values())
        return f"rows\n{book.format}" if cells else f"no rows\n{book.format}"


def show(outcomes: list[Outcome], console: Console) -> None:
    for outcome in outcomes:
        if outcome.ending not in CLEAR:
            console.print(f"{outcome.file}: {outcome.ending}: {outcome.detail}", markup=False)
    table = Table(title=f"{len(outcomes)} files", title_justify="left")
    for head in ("ending", "detail", "files"):
        table.add_column(head, justify="right" if head == "files" else "left")
    counts = Counter((o.ending, o.detail if o.ending in CLEAR else "") for o in outcomes)
    order = {ending: place for place, ending in enumerate(CLEAR)}
    for (ending, detail), count in sorted(
        counts.items(), key=lambda item: (order.get(item[0][0], 9), item[0])
    ):
        table.add_row(ending, detail, str(count))
    console.print(table)
    slowest = max(outcomes, key=lambda outcome: outcome.cpu_seconds)
    largest = max(outcomes, key=lambda outcome: outcome.memory_mib)
    console.print(f"most CPU: {slowest.cpu_seconds:.1f} s ({slowest.file.name})")
    console.print(f"most memory: {largest.memory_mib:.0f} MiB ({largest.file.name})")
    unclear = sum(outcome.ending not in CLEAR for outcome in outcomes)
    console.print(f"neither rows nor a clear error: {unclear}")


if __name__ == "__main__":
    main()
