"""Make sheets of any layout together with the ranges of their tables.

A layout is a grid of tables with random gaps, titles, units rows, notes, totals and merged cells.
The same random generator makes the same sheet.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.unit.engine.tables.sheets import MadeSheet

from ade_engine.sheets.coordinates import Range

FIRST = (
    "Ada",
    "Bo",
    "Cy",
    "Di",
    "Ed",
    "Fay",
    "Gus",
    "Hal",
    "Ivy",
    "Jo",
    "Kit",
    "Lea",
    "Max",
    "Nia",
)
LAST = ("Moss", "Lind", "Park", "Vance", "Roy", "Holt", "Ahn", "Berg", "Cole", "Dorn", "Eck", "Fox")
TOWNS = ("Oslo", "Lima", "Quito", "Riga", "Bern", "Cairo", "Porto", "Turin", "Ghent", "Kyoto")
THINGS = ("bolt", "hinge", "lamp", "valve", "cable", "shelf", "hose", "clamp", "panel", "wheel")

Cell = Callable[[Random, int], object]
COLUMNS: dict[str, tuple[str, str, Cell]] = {  # header, unit, values
    "name": ("Name", "", lambda r, n: f"{r.choice(FIRST)} {r.choice(LAST)}"),
    "item": ("Item", "", lambda r, n: f"{r.choice(THINGS).title()} {r.randint(2, 99)}"),
    "town": ("Town", "", lambda r, n: r.choice(TOWNS)),
    "status": ("Status", "", lambda r, n: r.choice(("open", "closed", "on hold"))),
    "email": ("Email", "", lambda r, n: f"{r.choice(FIRST).lower()}{n}@example.com"),
    "code": ("Code", "", lambda r, n: f"{r.choice('ABKX')}{r.choice('QRS')}-{r.randint(100, 999)}"),
    "date": ("Start date", "", lambda r, n: dt.date(2021, 1, 4) + dt.timedelta(r.randint(0, 900))),
    "amount": ("Amount", "EUR", lambda r, n: round(r.uniform(5, 9000), 2)),
    "price": ("Unit price", "EUR", lambda r, n: round(r.uniform(1, 90), 2)),
    "weight": ("Weight", "kg", lambda r, n: round(r.uniform(0.2, 40), 1)),
    "count": ("Quantity", "pcs", lambda r, n: r.randint(1, 400)),
    "share": ("Share", "%", lambda r, n: round(r.uniform(0, 100), 1)),
}
IDS = ("ID", "No.", "Order no", "Account", "Employee ID")
KEYS = ("name", "item", "town", "code")
VALUES = ("amount", "price", "weight", "count", "share", "date")
TITLES = (
    "Annual report of the northern branch",
    "Prepared for the board",
    "Source: survey of members, 2024",
    "North region",
    "Figures in EUR",
)


@dataclass
class Table:
    """The rows of one table, and which of them are header, data and total."""

    rows: list[list[object]]
    header_rows: int
    data_rows: int
    titles: int = 0
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)

    @property
    def height(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return max(len(row) for row in self.rows)


@dataclass
class Truth:
    """Where a table is, and which rows are its header and its data."""

    range: Range
    header_rows: tuple[int, ...]
    data_rows: tuple[int, ...]


@dataclass
class Layout:
    """A sheet while tables are put on it."""

    cells: dict[tuple[int, int], object] = field(default_factory=dict)
    truths: list[Truth] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)

    def put(self, table: Table, row: int, column: int, *, kept: bool = True) -> None:
        """Put a table on the sheet; `kept` rows after it, such as notes, are not part of it."""
        for down, cells in enumerate(table.rows):
            for right, cell in enumerate(cells):
                if cell is not None:
                    self.cells[row + down, column + right] = cell
        for top, left, bottom, right in table.merged:
            self.merged.append(str(Range(row + top, column + left, row + bottom, column + right)))
        first = row + table.titles
        data = first + table.header_rows
        if kept:
            width = max(len(cells) for cells in table.rows[table.titles :])
            self.truths.append(
                Truth(
                    Range(first, column, row + table.height - 1, column + width - 1),
                    tuple(range(first, data)),
                    tuple(range(data, data + table.data_rows)),
                )
            )

    def text(self, row: int, column: int, *texts: object) -> None:
        """Write texts into adjacent cells."""
        for right, text in enumerate(texts):
            self.cells[row, column + right] = text

    def sheet(self) -> MadeSheet:
        """Return the sheet."""
        height = max(row for row, _ in self.cells)
        width = max(column for _, column in self.cells)
        rows = [
            [self.cells.get((row, column)) for column in range(1, width + 1)]
            for row in range(1, height + 1)
        ]
        return MadeSheet(rows, merged=self.merged, block_rows=64)


def make_table(
    random: Random,
    *,
    rows: int | None = None,
    key: str | None = None,
    numeric_id: bool = False,
    columns: tuple[str, ...] | None = None,
    titles: int = 0,
    units: bool = False,
    upper: bool = False,
    total: bool = False,
    header: bool = True,
) -> Table:
    """Make a table of random columns."""
    names = list(columns or _columns(random, key))
    count = rows or random.randint(4, 18)
    made = [[COLUMNS[name][2](random, n) for name in names] for n in range(1, count + 1)]
    heads: list[object] = [COLUMNS[name][0] for name in names]
    if numeric_id:
        first = random.randint(1, 5000)
        made = [[first + n, *row] for n, row in enumerate(made)]
        heads = [random.choice(IDS), *heads]
        names = ["id", *names]
    _leave_out_some(random, made)
    above: list[list[object]] = []
    merged: list[tuple[int, int, int, int]] = []
    if header and upper and len(heads) >= 4:
        half = len(heads) // 2
        above.append(["Main", *[None] * (half - 1), "Details", *[None] * (len(heads) - half - 1)])
        merged = [(titles, 0, titles, half - 1), (titles, half, titles, len(heads) - 1)]
    if header:
        above.append(heads)
    if header and units:
        above.append([COLUMNS[name][1] or None if name != "id" else None for name in names])
    head: list[list[object]] = [[f"{random.choice(TOWNS)} report {n + 1}"] for n in range(titles)]
    end = [_total(made, len(heads))] if total else []
    return Table([*head, *above, *made, *end], len(above), count, titles, merged)


def _columns(random: Random, key: str | None) -> list[str]:
    first = key or random.choice(KEYS)
    words = [name for name in ("town", "status", "email", "code") if name != first]
    return [
        first,
        *random.sample(words, random.randint(0, 2)),
        *random.sample(VALUES, random.randint(1, 3)),
    ]


def _leave_out_some(random: Random, rows: list[list[Any]]) -> None:
    for row in rows[1:-1]:
        for column in range(1, len(row)):
            if random.random() < 0.03:
                row[column] = None


def _total(rows: list[list[Any]], width: int) -> list[object]:
    numeric = [
        column
        for column in range(1, width)
        if all(isinstance(row[column], int | float | None) for row in rows)
    ]
    total: list[object] = ["Total", *[None] * (width - 1)]
    for column in numeric:
        total[column] = round(sum(row[column] or 0 for row in rows), 2)
    return total


def single(random: Random) -> Layout:
    layout = Layout()
    layout.put(make_table(random), random.randint(1, 4), random.randint(1, 4))
    return layout


def titled(random: Random) -> Layout:
    layout = Layout()
    layout.text(1, 1, TITLES[0])
    layout.text(2, 1, TITLES[1])
    layout.put(make_table(random), random.randint(3, 5), 1)
    return layout


def units_row(random: Random) -> Layout:
    layout = Layout()
    columns = ("item", random.choice(("town", "status")), *random.sample(VALUES[:5], 3))
    layout.put(make_table(random, columns=columns, units=True), random.randint(1, 3), 1)
    return layout


def merged_header(random: Random) -> Layout:
    layout = Layout()
    columns = ("name", "town", *random.sample(VALUES, 3))
    layout.put(make_table(random, columns=columns, upper=True), random.randint(1, 3), 1)
    return layout


def total_at_the_end(random: Random) -> Layout:
    layout = Layout()
    columns = ("name", "town", "amount", "count")
    layout.put(make_table(random, columns=columns, total=True), random.randint(1, 3), 1)
    return layout


def notes_after(random: Random) -> Layout:
    layout = Layout()
    table = make_table(random)
    layout.put(table, 1, 1)
    below = 1 + table.height + random.randint(1, 2)
    for note in random.sample(
        ("Source: the ledger of the branch.", "* provisional", "Page 1 of 1", "Signed: B. Lind"), 2
    ):
        layout.text(below, 1, note)
        below += 1
    return layout


def stacked(random: Random) -> Layout:
    layout, row = Layout(), 1
    for _ in range(random.randint(2, 3)):
        table = make_table(random, titles=random.randint(0, 1))
        layout.put(table, row, 1)
        row += table.height + random.randint(1, 3)
    return layout


def stacked_same_header(random: Random) -> Layout:
    """Titled tables of the same columns, one under another."""
    layout, row = Layout(), 1
    columns = ("name", "town", "amount", "count")
    for town in random.sample(TOWNS, 3):
        layout.text(row, 1, f"Branch {town}")
        table = make_table(random, columns=columns, rows=random.randint(4, 9))
        layout.put(table, row + 1, 1)
        row += table.height + 1 + random.randint(1, 2)
    return layout


def staggered(random: Random) -> Layout:
    """Tables one under another that begin in different columns."""
    layout, row = Layout(), 1
    for _ in range(random.randint(2, 3)):
        table = make_table(random)
        layout.put(table, row, random.randint(1, 6))
        row += table.height + random.randint(1, 3)
    return layout


def _beside(random: Random, tables: list[Table], top: Callable[[], int]) -> Layout:
    layout, column = Layout(), 1
    for table in tables:
        layout.put(table, top(), column)
        column += table.width + random.randint(1, 2)
    return layout


def beside(random: Random) -> Layout:
    """Tables side by side of different heights."""
    heights = random.sample(range(4, 30, 3), random.randint(2, 3))
    keys = random.sample(KEYS, len(heights))
    tables = [
        make_table(random, rows=rows, key=key) for rows, key in zip(heights, keys, strict=True)
    ]
    return _beside(random, tables, lambda: 1)


def beside_with_ids(random: Random) -> Layout:
    """Tables side by side that begin with a numeric identifier."""
    heights = random.sample(range(4, 30, 3), 2)
    tables = [make_table(random, rows=rows, numeric_id=True) for rows in heights]
    return _beside(random, tables, lambda: 1)


def beside_same_height(random: Random) -> Layout:
    """Tables of names side by side that begin and end on the same rows."""
    rows = random.randint(5, 20)
    tables = [make_table(random, rows=rows, key=key) for key in ("name", "item")]
    return _beside(random, tables, lambda: 1)


def beside_titled(random: Random) -> Layout:
    """Tables side by side, each with its own title."""
    tables = [
        make_table(random, rows=random.randint(4, 20), key=key, titles=1)
        for key in ("item", "town")
    ]
    return _beside(random, tables, lambda: 1)


def offset(random: Random) -> Layout:
    """Tables beside each other that begin on different rows."""
    tables = [make_table(random, numeric_id=random.random() < 0.4) for _ in range(2)]
    return _beside(random, tables, lambda: random.choice((1, 3, 4, 6, 8)))


def beside_and_below(random: Random) -> Layout:
    """Two tables side by side, and a wider one below both."""
    tables = [make_table(random, rows=rows, key=key) for rows, key in ((6, "name"), (11, "item"))]
    layout = _beside(random, tables, lambda: 1)
    row = max(truth.range.last_row for truth in layout.truths) + random.randint(2, 3)
    wide = ("name", "email", "town", "status", "code", "date", "amount", "price", "weight", "count")
    layout.put(make_table(random, columns=wide[: tables[0].width + 4]), row, 1)
    return layout


def table_grid(random: Random) -> Layout:
    """Two rows of two tables."""
    layout, row = Layout(), 1
    width = 8
    for _ in range(2):
        tables = [
            make_table(random, rows=random.randint(4, 12), key=key)
            for key in random.sample(KEYS, 2)
        ]
        layout.put(tables[0], row, 1)
        layout.put(tables[1], row, width)
        row += max(table.height for table in tables) + random.randint(2, 3)
    return layout


def subheaders(random: Random) -> Layout:
    """One table whose header is repeated under the heading of each group."""
    layout = Layout()
    parts = [
        make_table(random, columns=("name", "town", "amount"), rows=random.randint(4, 8))
        for _ in range(3)
    ]
    row, data = 1, []
    for number, part in enumerate(parts):
        if number:
            layout.text(row, 1, f"Group {random.choice(TOWNS)}")
            row += 1
        layout.put(part, row, 1, kept=False)
        data += list(range(row + 1, row + part.height))
        row += part.height
    layout.truths = [Truth(Range(1, 1, row - 1, 3), (1,), tuple(data))]
    return layout


def pages(random: Random) -> Layout:
    """One table over several pages, with a footer and the header on each."""
    layout, row, data = Layout(), 1, []
    count = random.randint(2, 4)
    for page in range(1, count + 1):
        part = make_table(random, columns=("name", "town", "code", "amount"), rows=8)
        layout.put(part, row, 1, kept=False)
        data += list(range(row + 1, row + part.height))
        last = row + part.height - 1
        layout.text(last + 1, 1, f"Page {page} of {count}")
        row = last + 3
    layout.truths = [Truth(Range(1, 1, last, 4), (1,), tuple(data))]
    return layout


def gap_column(random: Random) -> Layout:
    """One table of figures with an empty column."""
    layout = Layout()
    left = make_table(random, columns=("town", "amount", "count"), rows=random.randint(6, 20))
    right = make_table(random, columns=("price", "weight"), rows=left.data_rows)
    layout.put(left, 1, 1, kept=False)
    layout.put(right, 1, 5, kept=False)
    last = left.height
    layout.truths = [Truth(Range(1, 1, last, 6), (1,), tuple(range(2, last + 1)))]
    return layout


def groups(random: Random) -> Layout:
    """One table with headings between its rows."""
    layout, data = Layout(), []
    table = make_table(random, columns=("item", "code", "amount", "count"), rows=18)
    header, rows = table.rows[0], table.rows[1:]
    layout.text(1, 1, *header)
    row = 2
    for number, cells in enumerate(rows):
        if number % 6 == 0:
            layout.text(row, 1, random.choice(TOWNS))
            row += 1
        layout.put(Table([cells], 0, 1), row, 1, kept=False)
        data.append(row)
        row += 1
    layout.truths = [Truth(Range(1, 1, row - 1, 4), (1,), tuple(data))]
    return layout


def headerless(random: Random) -> Layout:
    """A table without a header."""
    layout = Layout()
    columns = (random.choice(("name", "email", "code")), "town", "amount", random.choice(VALUES))
    layout.put(make_table(random, columns=columns, header=False, rows=12), 1, 1)
    return layout


def headerless_titled(random: Random) -> Layout:
    """Titles above a table without a header: the last of them is not its header."""
    layout = Layout()
    for row, title in enumerate(random.sample(TITLES, titles := random.randint(1, 3)), 1):
        layout.text(row, 1, title)
    columns = tuple(random.sample(sorted(COLUMNS), random.randint(2, 4)))
    table = make_table(random, columns=columns, header=False, rows=12)
    layout.put(table, titles + random.randint(1, 2), 1)
    return layout


def one_column(random: Random) -> Layout:
    """A list."""
    layout = Layout()
    layout.put(make_table(random, columns=(random.choice(KEYS),), rows=12), 1, 1)
    return layout


def form_above(random: Random) -> Layout:
    """A few names and values above a table, as on an invoice."""
    layout = Layout()
    for row, (name, value) in enumerate(
        (("Invoice no", "RE-4711"), ("Date", dt.date(2024, 5, 3)), ("Customer", "Moss Ltd")), 1
    ):
        layout.text(row, 1, name, value)
    columns = ("item", "code", "count", "price", "amount")
    layout.put(make_table(random, columns=columns, total=True), random.randint(5, 6), 1)
    return layout


LAYOUTS: dict[str, Callable[[Random], Layout]] = {
    made.__name__: made
    for made in (
        single,
        titled,
        units_row,
        merged_header,
        total_at_the_end,
        notes_after,
        stacked,
        stacked_same_header,
        staggered,
        beside,
        beside_with_ids,
        beside_same_height,
        beside_titled,
        offset,
        beside_and_below,
        table_grid,
        subheaders,
        pages,
        gap_column,
        groups,
        headerless,
        headerless_titled,
        one_column,
        form_above,
    )
}
