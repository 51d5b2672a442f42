"""Inputs on which spreadsheet tools go wrong without a word.

Each trap is a small file and what must come of it: the right values, or something that a person
sees (an issue, a count of what was left out, an error). `seen` names it: the code of an issue,
`rows.total` and the like for what was left out, or the code of the run's error.
"""

import csv
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from tests.unit.engine.package.packages import write_package
from tests.unit.engine.pipeline.workbooks import Ran
from tests.unit.engine.sheets.workbook_files import sheet_xml, xlsx
from tests.unit.engine.sheets.xls_files import chart, compound, number, shared_text, workbook

from ade_engine.entry.normalize import NormalizeRequest, normalize
from ade_engine.errors import EngineError

FIELDS = {
    "name": "FIELD = Field(label='Name', type='text', order=1)",
    "amount": "FIELD = Field(label='Amount', type='number', order=2, totals=True)",
    "date": "FIELD = Field(label='Date', type='date', order=3)",
    "code": "FIELD = Field(label='Code', type='text', order=4)",
    "qty": "FIELD = Field(label='Qty', type='integer', order=5)",
    "active": "FIELD = Field(label='Active', type='boolean', order=6)",
}
PEOPLE = ("Ada", "Ben", "Cy", "Di", "Eve", "Fay", "Gus", "Hal", "Ida", "Jo")
REPEATS = 6
Make = Callable[[Path], Path]
DAY = dt.date


@dataclass(frozen=True)
class Trap:
    """A file, the values that are right by field, and what a person must see."""

    make: Make
    right: dict[str, list[Any]] = field(default_factory=dict)
    seen: str = ""
    config: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    finding: str = ""  # of the table detection; the trap is known to fail


def sheet(rows: Sequence[Sequence[Any]], change: Callable[[Any, Any], None] | None = None) -> Make:
    """Write a workbook with one sheet, and change it."""

    def make(folder: Path) -> Path:
        book = Workbook()
        for row in rows:
            book.active.append(list(row))
        if change is not None:
            change(book, book.active)
        path = folder / "input.xlsx"
        book.save(path)
        return path

    return make


def column(
    header: str, values: Sequence[Any], change: Callable[[Any, Any], None] | None = None
) -> Make:
    """Write a workbook with names, one column of values, and line numbers."""
    return sheet([["Name", header, "Line"], *_lines(values)], change)


def csv_column(
    header: str, values: Sequence[str], delimiter: str = ",", encoding: str = "utf-8"
) -> Make:
    """Write a text file with names, one column of texts, and line numbers."""

    def make(folder: Path) -> Path:
        path = folder / "input.csv"
        with path.open("w", encoding=encoding, newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([["Name", header, "Line"], *_lines(values)])
        return path

    return make


def _lines(values: Sequence[Any]) -> list[list[Any]]:
    """Repeat the values, so that nobody can doubt where the header is."""
    every = [*values] * REPEATS
    return [[PEOPLE[n % len(PEOPLE)], value, n + 1] for n, value in enumerate(every)]


def old(stream: bytes) -> Make:
    """Write a .xls workbook."""
    return lambda folder: compound(folder / "input.xls", Workbook=stream)


def _hide(rows: Sequence[int] = (), columns: Sequence[str] = ()) -> Callable[[Any, Any], None]:
    def change(book: Any, active: Any) -> None:
        for row in rows:
            active.row_dimensions[row].hidden = True
        for letter in columns:
            active.column_dimensions[letter].hidden = True

    return change


def _merge(*ranges: str) -> Callable[[Any, Any], None]:
    def change(book: Any, active: Any) -> None:
        for one in ranges:
            active.merge_cells(one)

    return change


def _more_sheets(book: Any, active: Any) -> None:
    for state in ("hidden", "veryHidden"):
        other = book.create_sheet(state)
        other.append(["Name", "Amount"])
        other.append(["Zoe", 5])
        other.sheet_state = state
    picture = BarChart()
    picture.add_data(Reference(active, min_col=2, min_row=1, max_row=4))
    book.create_chartsheet("Picture").add_chart(picture)


def _epoch_1904(book: Any, active: Any) -> None:
    book.epoch = CALENDAR_MAC_1904


def _two_currencies(book: Any, active: Any) -> None:
    active["B2"].number_format = "[$€-407] #,##0.00"
    active["B3"].number_format = '"$"#,##0.00'
    active["B4"].number_format = '#,##0.00 "GBP"'


def _format(cells: str, code: str) -> Callable[[Any, Any], None]:
    def change(book: Any, active: Any) -> None:
        for (cell,) in active[cells]:
            cell.number_format = code

    return change


AMOUNTS: list[list[Any]] = [["Name", "Amount"], *([name, 10] for name in PEOPLE[:5])]
TOTAL_NAMES = ["Total Energies", "Grand Total Foods", "Totally Spies", "Sum Insurance", "Summe AG"]
SUBTOTALS: list[list[Any]] = [
    ["Name", "Amount"],
    ["Ada", 1],
    ["Ben", 2],
    ["Subtotal", 3],
    ["Cy", 3],
    ["Di", 4],
    ["Subtotal", 7],
    ["Total", 10],
]
NO_VALUE = (
    '<row r="1"><c r="A1" t="inlineStr"><is><t>Name</t></is></c>'
    '<c r="B1" t="inlineStr"><is><t>Amount</t></is></c></row>'
    + "".join(
        f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>{PEOPLE[n]}</t></is></c>'
        f'<c r="B{n}"><f>1+{n}</f></c></row>'
        for n in range(2, 6)
    )
)

TRAPS: dict[str, Trap] = {
    # --- dates ---
    "the thirteenth decides for the first": Trap(
        csv_column("Date", ["01/02/2024", "13/02/2024"]),
        {"date": [DAY(2024, 2, 1), DAY(2024, 2, 13)]},
    ),
    "months first": Trap(
        csv_column("Date", ["01/02/2024", "02/13/2024"]),
        {"date": [DAY(2024, 1, 2), DAY(2024, 2, 13)]},
    ),
    "day or month": Trap(
        csv_column("Date", ["01/02/2024", "3/4/2024"]), seen="ambiguous_date_order"
    ),
    "both orders in one column": Trap(
        csv_column("Date", ["13/02/2024", "02/14/2024", "01/02/2024"]), seen="ambiguous_date_order"
    ),
    "dashes like slashes": Trap(
        csv_column("Date", ["01-02-2024", "03-04-2024"]), seen="ambiguous_date_order"
    ),
    "dots are day first": Trap(
        csv_column("Date", ["01.02.2024", "02.03.2024"]),
        {"date": [DAY(2024, 2, 1), DAY(2024, 3, 2)]},
    ),
    "dates that a program half converted": Trap(
        column("Date", [dt.date(2024, 1, 2), "13/02/2024", dt.date(2024, 3, 4), "25/12/2024"]),
        seen="suspect_date",
    ),
    "years of two digits": Trap(
        csv_column("Date", ["13/02/45", "14/02/46"]), seen="two_digit_year"
    ),
    "dates of the 1904 system": Trap(
        sheet(
            [["Name", "Date"], ["Ada", dt.date(2024, 2, 1)], ["Ben", dt.date(2024, 2, 2)]],
            _epoch_1904,
        ),
        {"date": [DAY(2024, 2, 1), DAY(2024, 2, 2)]},
    ),
    "serials of the 1904 system": Trap(
        sheet([["Name", "Date"], ["Ada", 43861], ["Ben", 43862], ["Cy", 43863]], _epoch_1904),
        {"date": [DAY(2024, 2, 1), DAY(2024, 2, 2), DAY(2024, 2, 3)]},
    ),
    "serial numbers": Trap(
        column("Date", [45323, 45324, 45325]),
        {"date": [DAY(2024, 2, 1), DAY(2024, 2, 2), DAY(2024, 2, 3)]},
    ),
    "compact dates": Trap(
        csv_column("Date", ["20240201", "20240202"]), {"date": [DAY(2024, 2, 1), DAY(2024, 2, 2)]}
    ),
    "dates as ISO text": Trap(
        column("Date", ["2024-02-01", "2024-02-02"]), {"date": [DAY(2024, 2, 1), DAY(2024, 2, 2)]}
    ),
    "month names": Trap(
        csv_column("Date", ["1 Feb 2024", "February 2, 2024"]),
        {"date": [DAY(2024, 2, 1), DAY(2024, 2, 2)]},
    ),
    "month names in another language": Trap(
        csv_column("Date", ["1 März 2024", "2 Mai 2024"]), seen="invalid_type"
    ),
    "a day that does not exist": Trap(
        csv_column("Date", ["31.02.2024", "01.02.2024"]), seen="invalid_type"
    ),
    "a time in a field of dates": Trap(csv_column("Date", ["12:30", "13:45"]), seen="invalid_type"),
    "a time zone": Trap(
        csv_column("Date", ["2024-02-01T10:00:00Z", "2024-02-01T10:00:00+02:00"]),
        seen="invalid_type",
    ),
    "a date in a field of numbers": Trap(
        column("Amount", [1, dt.date(2024, 2, 1), 3]), seen="invalid_type"
    ),
    # --- numbers ---
    "decimal commas": Trap(csv_column("Amount", ["1,5", "1.234,50"]), {"amount": [1.5, 1234.5]}),
    "decimal points": Trap(csv_column("Amount", ["1.5", "1,234.50"]), {"amount": [1.5, 1234.5]}),
    "points that group": Trap(
        csv_column("Amount", ["1.234.567", "1.234"]), {"amount": [1234567, 1234]}
    ),
    "a comma that could be either": Trap(
        csv_column("Amount", ["1,234", "5,678"]), seen="ambiguous_decimal_sign"
    ),
    "a point that could be either": Trap(
        csv_column("Amount", ["1.234", "5.678"]), seen="ambiguous_decimal_sign"
    ),
    "both decimal signs in one column": Trap(
        csv_column("Amount", ["1,5", "2.5", "3,5", "1,234"]), seen="invalid_type"
    ),
    "semicolons and decimal commas": Trap(
        csv_column("Amount", ["1,5", "2,25", "1.000,75"], ";"), {"amount": [1.5, 2.25, 1000.75]}
    ),
    "Indian groups": Trap(csv_column("Amount", ["1,23,456.50", "2.5"]), seen="invalid_type"),
    "Swiss apostrophes": Trap(
        csv_column("Amount", ["1'234.50", "1’234.50"]), {"amount": [1234.5, 1234.5]}
    ),
    "narrow and hard spaces": Trap(
        csv_column("Amount", ["1\u202f234,5", "1\u00a0234,5", "1\u2009234,5", "\u00a07,5\u00a0"]),
        {"amount": [1234.5, 1234.5, 1234.5, 7.5]},
    ),
    "negative in brackets": Trap(
        csv_column("Amount", ["(12.50)", "($ 3.25)"]), {"amount": [-12.5, -3.25]}
    ),
    "trailing minus": Trap(csv_column("Amount", ["7.5-", "8.25 -"]), {"amount": [-7.5, -8.25]}),
    "a typographic minus": Trap(csv_column("Amount", ["−7.5", "8.5"]), {"amount": [-7.5, 8.5]}),
    "percent": Trap(csv_column("Amount", ["12.5 %", "3%"]), {"amount": [0.125, 0.03]}),
    "percent in some rows": Trap(csv_column("Amount", ["12 %", "15"]), seen="mixed_percent"),
    "percent as text beside numbers": Trap(
        column("Amount", ["12 %", 15, 0.5]), seen="mixed_percent"
    ),
    "percent as a format": Trap(
        sheet([["Name", "Amount"], ["Ada", 0.5], ["Ben", 0.25]], _format("B2:B3", "0%")),
        {"amount": [0.5, 0.25]},
    ),
    "scientific notation": Trap(
        csv_column("Amount", ["1.2E+05", "3e-2"]), {"amount": [120000, 0.03]}
    ),
    "one currency": Trap(csv_column("Amount", ["$ 5.50", "$1,200.25"]), {"amount": [5.5, 1200.25]}),
    "several currencies": Trap(csv_column("Amount", ["$ 5", "7 EUR"]), seen="mixed_currencies"),
    "currencies that only the formats show": Trap(
        sheet([["Name", "Amount"], ["Ada", 5], ["Ben", 7], ["Cy", 9]], _two_currencies),
        seen="mixed_currencies",
    ),
    "one currency as a format": Trap(
        sheet([["Name", "Amount"], ["Ada", 5], ["Ben", 7]], _format("B2:B3", "[$€-407] 0.00")),
        {"amount": [5, 7]},
    ),
    "millions as a word": Trap(csv_column("Amount", ["7", "5 MIO", "8", "9"]), seen="invalid_type"),
    "thousands as a letter": Trap(csv_column("Amount", ["5k", "7k"]), seen="invalid_type"),
    "thousands in the header": Trap(
        column("Amount (TEUR)", [5, 7, 9]), {"amount": [5, 7, 9]}, "scaled_numbers"
    ),
    "a unit in the header": Trap(column("Amount (EUR)", [5, 7, 9]), {"amount": [5, 7, 9]}),
    "a unit in a cell": Trap(csv_column("Amount", ["12 kg", "13 kg"]), seen="invalid_type"),
    "a fraction": Trap(csv_column("Amount", ["1/2", "3/4"]), seen="invalid_type"),
    "a footnote mark": Trap(
        csv_column("Amount", ["13", "12 [1]", "14", "15"]), seen="invalid_type"
    ),
    "nan and inf": Trap(csv_column("Amount", ["nan", "inf", "1.5"]), seen="invalid_type"),
    "digits of another script": Trap(csv_column("Amount", ["١٢٣", "4.5"]), seen="invalid_type"),
    "a fraction in a field of whole numbers": Trap(column("Qty", [1, 2.5, 3]), seen="invalid_type"),
    "numbers stored as text": Trap(column("Amount", ["5", " 7 ", "9.5"]), {"amount": [5, 7, 9.5]}),
    "zeros in front of a number": Trap(csv_column("Qty", ["007", "12"]), seen="leading_zeros_lost"),
    "zeros in front of a code": Trap(
        csv_column("Code", ["00123", "01000"]), {"code": ["00123", "01000"]}
    ),
    "zeros that only the format shows": Trap(
        sheet([["Name", "Code"], ["Ada", 123], ["Ben", 1000]], _format("B2:B3", "00000")),
        seen="leading_zeros_lost",
    ),
    "a number longer than a cell can hold": Trap(
        csv_column("Qty", ["12345678901234567890", "5"]), seen="digits_lost"
    ),
    "a card number that a cell has rounded": Trap(
        column("Code", [4111111111111110, 5]), seen="digits_lost"
    ),
    "a code that looks like a number": Trap(
        csv_column("Code", ["1E5", "2E10", "0x10"]), {"code": ["1E5", "2E10", "0x10"]}
    ),
    "a code that looks like a formula": Trap(
        csv_column("Code", ["=1+1", "+5", "@x"]), {"code": ["=1+1", "+5", "@x"]}
    ),
    "numbers and texts in a field of texts": Trap(
        column("Code", ["A1", 12, 3.5, True, dt.date(2024, 2, 1)]),
        {"code": ["A1", "12", "3.5", "TRUE", "2024-02-01"]},
    ),
    "words for booleans": Trap(
        csv_column("Active", ["yes", "N", "TRUE", "0"]), {"active": [True, False, True, False]}
    ),
    "booleans in another language": Trap(csv_column("Active", ["ja", "nein"]), seen="invalid_type"),
    # --- cells ---
    "cells that show an error": Trap(column("Amount", [1, "#REF!", 3]), seen="error_cell"),
    "formulas without a result": Trap(
        lambda folder: xlsx(folder / "input.xlsx", sheet_xml(NO_VALUE)),
        seen="formula_without_value",
    ),
    "spaces around a text": Trap(
        csv_column("Code", [" A1\u00a0", "\tB2 "]), {"code": ["A1", "B2"]}
    ),
    "a line break in a cell": Trap(
        csv_column("Code", ["one\ntwo", "three"]), {"code": ["one\ntwo", "three"]}
    ),
    "a text too long for a cell": Trap(csv_column("Code", ["x" * 40_000, "y"]), seen="texts_cut"),
    "merged data cells": Trap(
        sheet([["Name", "Amount"], ["Ada", 1], [None, 2], ["Cy", 3]], _merge("A2:A3")),
        seen="merged_cell",
    ),
    # --- files ---
    "a byte order mark": Trap(
        csv_column("Code", ["ä", "ö"], encoding="utf-8-sig"), {"code": ["ä", "ö"]}
    ),
    "UTF-16": Trap(csv_column("Code", ["ä", "ö"], "\t", "utf-16"), {"code": ["ä", "ö"]}),
    "Western letters": Trap(
        csv_column("Code", ["ä", "é"], encoding="cp1252"), {"code": ["ä", "é"]}
    ),
    "Cyrillic letters": Trap(
        csv_column("Code", ["Москва", "Минск"], encoding="cp1251"), seen="guessed_encoding"
    ),
    "charts in an old workbook": Trap(
        old(
            workbook(
                (
                    "One",
                    0,
                    shared_text(0, 0, 0)
                    + shared_text(0, 1, 1)
                    + b"".join(
                        shared_text(row, 0, row + 1) + number(row, 1, row * 10) for row in (1, 2, 3)
                    )
                    + chart(number(1, 1, 99), number(2, 1, 98)),
                ),
                texts=("Name", "Amount", "Ada", "Ben", "Cy"),
            )
        ),
        {"amount": [10, 20, 30]},
    ),
    "an old workbook of charts only": Trap(
        old(workbook(("Picture", 2, number(0, 0, 1)))), seen="no_cells"
    ),
    # --- sheets, rows and columns that are left out ---
    "a hidden sheet": Trap(sheet(AMOUNTS, _more_sheets), {"amount": [10] * 5}, "sheets.hidden"),
    "a chart sheet": Trap(sheet(AMOUNTS, _more_sheets), {"amount": [10] * 5}, "sheets.chart"),
    "hidden rows that are read": Trap(
        sheet(AMOUNTS, _hide(rows=[3])), {"amount": [10] * 5}, "hidden_row"
    ),
    "hidden rows that are left out": Trap(
        sheet(AMOUNTS, _hide(rows=[3])),
        {"amount": [10] * 4},
        "rows.hidden",
        config="[reading]\nhidden_rows = false\n",
    ),
    "a hidden column that is read": Trap(
        sheet(AMOUNTS, _hide(columns=["B"])), {"amount": [10] * 5}, "hidden_column"
    ),
    "a hidden column that is left out": Trap(
        sheet(AMOUNTS, _hide(columns=["B"])),
        seen="columns.hidden",
        config="[reading]\nhidden_columns = false\n",
    ),
    "a column without a field": Trap(column("Mood", ["good", "bad"]), seen="columns.unmapped"),
    "two columns of one name": Trap(
        sheet([["Name", "Amount", "Amount"], ["Ada", 1, 2], ["Ben", 3, 4]]),
        seen="several_columns_fit",
    ),
    "two columns that differ in brackets": Trap(
        sheet([["Name", "Amount (net)", "Amount (gross)"], ["Ada", 1, 2], ["Ben", 3, 4]]),
        seen="several_columns_fit",
    ),
    "a total row": Trap(sheet([*AMOUNTS, ["Total", 50]]), {"amount": [10] * 5}, "rows.total"),
    "a total that is wrong": Trap(
        sheet([*AMOUNTS, ["Total", 51]]), {"amount": [10] * 5}, "total_mismatch"
    ),
    "subtotals": Trap(sheet(SUBTOTALS), {"amount": [1, 2, 3, 4]}, "rows.total"),
    "customers named like totals": Trap(
        sheet([["Name", "Amount"], *([name, n * 7 + 3] for n, name in enumerate(TOTAL_NAMES * 2))]),
        {"name": TOTAL_NAMES},
    ),
    "a missing value": Trap(
        sheet([["Name", "Amount"], ["Ada", 1], ["Ben", None], ["Cy", 3]]),
        seen="missing_value",
        fields={"amount": "FIELD = Field(label='Amount', type='number', required=True)"},
    ),
    "a missing column": Trap(
        column("Mood", ["good", "bad"]),
        seen="tables.required_missing",
        fields={"amount": "FIELD = Field(label='Amount', type='number', required=True)"},
    ),
    "a value that occurs twice": Trap(
        column("Code", ["A", "B", "A"]),
        seen="duplicate_value",
        fields={"code": "FIELD = Field(label='Code', type='text', unique=True)"},
    ),
    # --- tables ---
    "a title above the header": Trap(
        sheet([["Report of 2024"], [], *AMOUNTS]), {"amount": [10] * 5}, "rows.preamble"
    ),
    "a header of two rows with merged cells": Trap(
        sheet(
            [
                ["Name", "Values", None],
                [None, "Amount", "Qty"],
                ["Ada", 1.5, 1],
                ["Ben", 2.5, 2],
                ["Cy", 3.5, 3],
            ],
            _merge("A1:A2", "B1:C1"),
        ),
        {"name": ["Ada", "Ben", "Cy"], "amount": [1.5, 2.5, 3.5], "qty": [1, 2, 3]},
    ),
    "a repeated header": Trap(
        sheet([*AMOUNTS[:4], ["Name", "Amount"], *AMOUNTS[4:]]),
        {"amount": [10] * 5},
        "rows.repeated_header",
    ),
    "blank rows within a table": Trap(
        sheet([*AMOUNTS[:4], [None, None], *AMOUNTS[4:]]), {"amount": [10] * 5}
    ),
    "a note below the table": Trap(
        sheet([*AMOUNTS, [], ["Prepared by the accounts team on request"]]),
        {"amount": [10] * 5},
    ),
    "units in a row below the header": Trap(
        sheet([["Name", "Amount", "Qty"], [None, "EUR", "pcs"], *([n, 5, 2] for n in PEOPLE[:6])]),
        {"amount": [5] * 6, "qty": [2] * 6},
    ),
    "two tables side by side": Trap(
        sheet(
            [
                ["Name", "Amount", None, "Name", "Amount"],
                *([PEOPLE[n], n, None, PEOPLE[n + 5], n + 5] for n in range(5)),
            ]
        ),
        {"amount": list(range(10))},
    ),
    "two tables below each other": Trap(
        sheet([*AMOUNTS, [], [], ["Amount", "Name"], [20, "Zoe"], [20, "Yan"], [20, "Xi"]]),
        {"amount": [10] * 5 + [20] * 3},
    ),
    "a table of other things": Trap(
        sheet([["Colour", "Sides"], ["red", 3], ["blue", 4], ["red", 5], ["black", 6]]),
        seen="tables.no_field",
    ),
}


def run(folder: Path, trap: Trap) -> Ran:
    """Run the standard package on the file of a trap."""
    fields = {f"columns__{name}": code for name, code in (FIELDS | trap.fields).items()}
    if trap.config:
        fields["config"] = trap.config
    package = write_package(folder / "package", **fields)
    request = NormalizeRequest(trap.make(folder), package, folder / "out", timings=False)
    try:
        return Ran(folder / "out", normalize(request))
    except EngineError:
        return Ran(folder / "out", {})


def visible(ran: Ran) -> set[str]:
    """Return what a person who reads the result sees."""
    artifact = ran.artifact
    seen = {code for _, code in ran.issues}
    skipped = artifact["summary"]["skipped"]
    seen |= {f"{kind}.{reason}" for kind, reasons in skipped.items() for reason in reasons}
    seen |= {"texts_cut" for event in ran.stage("output") if event["texts_cut"]}
    return seen | ({artifact["error"]["code"]} if artifact["error"] else set())


def written(ran: Ran, name: str) -> list[Any]:
    """Return the values of a field in the output; dates without a time."""
    labels = [*FIELDS]
    rows = ran.output["Normalized"][1:]
    values = [row[labels.index(name)] for row in rows]
    return [one.date() if isinstance(one, dt.datetime) else one for one in values]


@pytest.mark.parametrize(
    "trap",
    [
        pytest.param(
            trap,
            id=name,
            marks=pytest.mark.xfail(strict=True, reason=trap.finding) if trap.finding else (),
        )
        for name, trap in TRAPS.items()
    ],
)
def test_no_trap_is_silent(tmp_path: Path, trap: Trap) -> None:
    assert trap.right or trap.seen
    ran = run(tmp_path, trap)
    for name, values in trap.right.items():
        found = written(ran, name)
        assert found == values * (len(found) // len(values))
        assert found
    if trap.seen:
        assert trap.seen in visible(ran)


def test_a_right_result_raises_no_alarm(tmp_path: Path) -> None:
    """Warnings that a plain file gets would teach people to ignore them."""
    rows: list[list[Any]] = [
        ["Name", "Amount", "Date", "Code", "Qty", "Active"],
        *(
            [name, n + 0.5, dt.date(2024, 1, n + 1), f"A{n}", n, n % 2 == 0]
            for n, name in enumerate(PEOPLE)
        ),
    ]
    assert visible(run(tmp_path, Trap(sheet(rows)))) == set()


def test_there_are_sixty_traps() -> None:
    assert len(TRAPS) >= 60
