"""``ade inspect``: show the tables that ADE sees in files, with no config at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as Drawn

    from ade_engine.inspection import InspectedFile, InspectedSheet
    from ade_engine.sheets.metadata import UnreadSheet
    from ade_engine.tables.regions import TableRegion

PIPE_WIDTH_COLUMNS = 120
CELL_CHARACTERS = 14
ROW_LABEL_CHARACTERS = 26
REASONS_SHOWN = 4

STYLES = {
    "header": "bold green",
    "repeated_header": "green",
    "data": "",
    "total": "bold yellow",
    "group": "yellow",
    "note": "magenta",
    "footer": "magenta",
    "preamble": "cyan",
    "blank": "dim",
    "not drawn": "dim",
}


def inspect(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Spreadsheets.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each file.")
    ] = False,
) -> None:
    """Show the tables of spreadsheets: ranges, headers, skipped rows, confidence, and why."""
    import json

    readable = 0
    for seen in _each(files, draw=not as_json):
        readable += seen.error is None
        if as_json:
            typer.echo(json.dumps(seen.as_json(), ensure_ascii=False))
        else:
            _draw(seen)
    if not readable:
        raise typer.Exit(ExitCode.JOB_FAILED)


def _each(files: list[Path], *, draw: bool) -> Iterator[InspectedFile]:
    """Look at file after file, with a progress bar if there are several and someone watches."""
    from rich.console import Console
    from rich.progress import Progress

    from ade_engine.inspection import inspect_file

    watched = Console(stderr=True)
    if len(files) < 2 or not watched.is_terminal or draw:
        yield from (inspect_file(file, draw=draw) for file in files)
        return
    with Progress(console=watched, transient=True) as progress:
        for file in progress.track(files, description="inspecting"):
            yield inspect_file(file)


def _draw(seen: InspectedFile) -> None:
    import os

    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=PIPE_WIDTH_COLUMNS)
    format_ = f" ({seen.format})" if seen.format else ""
    console.print(Text(f"{seen.file}{format_}", style="bold underline"))
    for sheet in seen.sheets:
        console.print(*_sheet(sheet, console), sep="\n")
    if seen.unread:
        console.print(Text(f"not read: {_unread(seen.unread)}", style="yellow"))
    if seen.error is not None:
        console.print(Text(f"error {seen.error.code}: {seen.error}", style="bold red"))
    console.print()


def _unread(sheets: Sequence[UnreadSheet]) -> str:
    from collections import Counter

    from ade.cli.run_summary import counted

    reasons = Counter(sheet.reason for sheet in sheets)
    listed = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in reasons.items())
    names = _listed(repr(sheet.name) for sheet in sheets)
    return f"{counted(len(sheets), 'sheet')} ({listed}): {names}"


def _sheet(sheet: InspectedSheet, console: Console) -> Iterator[RenderableType]:
    from rich.text import Text

    name = f"sheet {sheet.name!r}" if sheet.name else "text"
    hidden = ", hidden" if sheet.hidden else ""
    notes = f"; notes: {', '.join(sheet.notes)}" if sheet.notes else ""
    yield Text(f"{name}: {sheet.rows:,} rows, {sheet.columns:,} columns{hidden}{notes}", "bold")
    for number, table in enumerate(sheet.structure.tables, 1):
        yield from _table(number, table)
    if not sheet.structure.tables:
        yield Text("  no table", style="dim")
    if sheet.picture:
        yield _picture(sheet, console)


def _table(number: int, table: TableRegion) -> Iterator[RenderableType]:
    from rich.text import Text

    from ade_engine.inspection import rows_as_text

    line = Text(f"  table {number}: {table.range}, ")
    if table.header_rows:
        word = "header row" if len(table.header_rows) == 1 else "header rows"
        line.append(f"{word} {_listed(map(str, table.header_rows))}", STYLES["header"])
    else:
        line.append("key and value" if table.shape == "key_value" else "no header", "bold")
    line.append(f", {table.data_rows.count:,} data rows")
    line.append(f", confidence {table.confidence:.2f}", _confidence_style(table.confidence))
    if table.doubts:
        doubts = ", ".join(doubt.replace("_", " ") for doubt in table.doubts)
        line.append(f", to be checked: {doubts}", "bold red")
    yield line
    skipped = Text("    skipped:")
    for kind, spans in table.skipped.items():
        rows = _listed(rows_as_text(spans))
        skipped.append(f" {spans.count} {kind.replace('_', ' ')} (")
        skipped.append(rows, STYLES.get(kind, "blue")).append(")")
    if table.skipped:
        yield skipped
    reasons = [one for one in table.why if not one.rule.endswith((".base", ".other_features"))]
    if reasons:
        shown = (
            f"{one.rule.removeprefix('row.header.')} {one.delta:+.2f}"
            for one in reasons[:REASONS_SHOWN]
        )
        yield Text(f"    why: {', '.join(shown)}", style="dim")


def _confidence_style(confidence: float) -> str:
    return "green" if confidence >= 0.8 else "yellow" if confidence >= 0.5 else "bold red"


def _listed(rows: Iterable[str], at_most: int = 6) -> str:
    shown = list(rows)
    more = f" and {len(shown) - at_most} more" if len(shown) > at_most else ""
    return ", ".join(shown[:at_most]) + more


def _picture(sheet: InspectedSheet, console: Console) -> Drawn:
    """Draw the grid: row numbers and kinds on the left, as many columns as the terminal takes."""
    from rich.table import Table as Drawn
    from rich.text import Text

    from ade_engine.sheets.coordinates import column_letters

    widest = max((len(line.cells) for line in sheet.picture), default=0)
    room = max((console.width - ROW_LABEL_CHARACTERS) // (CELL_CHARACTERS + 1), 1)
    count = min(widest, room)
    drawn = Drawn(box=None, padding=(0, 1, 0, 0), header_style="dim", pad_edge=False)
    drawn.add_column("", justify="right", style="dim", no_wrap=True)
    drawn.add_column("", no_wrap=True)
    for column in range(1, count + 1):
        drawn.add_column(
            column_letters(column), no_wrap=True, max_width=CELL_CHARACTERS, overflow="ellipsis"
        )
    if sheet.columns > count:
        drawn.add_column(f"+{sheet.columns - count}")
    for line in sheet.picture:
        style = STYLES.get(line.kind, "blue")
        kind = Text(line.kind.replace("_", " "), style)
        if line.rows_left_out:
            word = "row" if line.rows_left_out == 1 else "rows"
            kind.append(f" ({line.rows_left_out:,} {word})", "dim")
            drawn.add_row(f"{line.row}", kind)
        else:
            cells = (Text(text.replace("\n", " "), style) for text in line.cells[:count])
            drawn.add_row(f"{line.row}", kind, *cells)
    return drawn
