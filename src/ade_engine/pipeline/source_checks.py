"""Report what converting a cell would lose or had to guess: the checks of cells as they were read.

A conversion that succeeds can still be wrong: 01/02/2024 in a column that does not tell which part
is the month, the zeros of `007`, the digits of a number with more of them than a spreadsheet holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ade_engine.mapping.column_mapping import Reason
from ade_engine.package.config_package import FieldRules
from ade_engine.package.field import FieldType
from ade_engine.package.header_parts import header_parts
from ade_engine.package.issues import Issue, Severity
from ade_engine.package.notation import (
    Preference,
    allow_both_orders,
    allow_both_signs,
    has_currency,
)
from ade_engine.pipeline.chunk import Chunk
from ade_engine.pipeline.issue_log import IssueLog
from ade_engine.pipeline.mapped_table import MappedTable
from ade_engine.sheets.arrays import BoolArray
from ade_engine.sheets.cells import CellArray, CellKind
from ade_engine.tables.regions import Doubt

AMBIGUOUS_DATE_ORDER = {
    True: Issue(
        "ambiguous_date_order",
        Severity.WARNING,
        "Day and month could be exchanged, and the column does not tell; read day first."
        " Set [reading] day_first.",
    ),
    False: Issue(
        "ambiguous_date_order",
        Severity.WARNING,
        "Day and month could be exchanged, and the column does not tell; read month first."
        " Set [reading] day_first.",
    ),
}
AMBIGUOUS_DECIMAL_SIGN = {
    ".": Issue(
        "ambiguous_decimal_sign",
        Severity.WARNING,
        "The separator could be a decimal or a thousands sign, and the column does not tell;"
        " read with a decimal point. Set [reading] decimal.",
    ),
    ",": Issue(
        "ambiguous_decimal_sign",
        Severity.WARNING,
        "The separator could be a decimal or a thousands sign, and the column does not tell;"
        " read with a decimal comma. Set [reading] decimal.",
    ),
}
TWO_DIGIT_YEAR = Issue(
    "two_digit_year",
    Severity.WARNING,
    "The year has two digits: 00 to 68 are read as 2000 to 2068, 69 to 99 as 1969 to 1999.",
)
LEADING_ZEROS_LOST = Issue(
    "leading_zeros_lost",
    Severity.WARNING,
    "The number is written with leading zeros, which are lost; declare the field as text to keep"
    " them.",
)
DIGITS_LOST = Issue(
    "digits_lost",
    Severity.WARNING,
    "A number cell keeps 15 digits and this one has more, so the last digits may be wrong.",
)
MIXED_CURRENCIES = Issue(
    "mixed_currencies",
    Severity.WARNING,
    "The column has amounts of several currencies; the output holds only the numbers.",
)
MIXED_PERCENT = Issue(
    "mixed_percent",
    Severity.WARNING,
    "Other values of the column have a percent sign and this one has none.",
)

SEVERAL_COLUMNS_FIT = Issue(
    "several_columns_fit",
    Severity.WARNING,
    "Another column of the table fits this field as well, and was left out.",
)
SCALED_NUMBERS = Issue(
    "scaled_numbers",
    Severity.WARNING,
    "The header says that the numbers are in thousands or millions; they are written as they are.",
)

TABLE_DOUBTS = {
    Doubt.HEADER: Issue(
        Doubt.HEADER,
        Severity.WARNING,
        "The header may be a row of data, or the rows below it may have another header.",
    ),
    Doubt.SIDE_BY_SIDE: Issue(
        Doubt.SIDE_BY_SIDE,
        Severity.WARNING,
        "What stands side by side may be one table with a gap, or several tables.",
    ),
    Doubt.AFTER_DATA: Issue(
        Doubt.AFTER_DATA,
        Severity.WARNING,
        "Several rows with values follow the data and were left out; they may be data.",
    ),
}

DIGITS_MAX = 1e15
_SHORT_YEAR = r"^\s*\d{1,2}[-/. ]+(?:\d{1,2}|[A-Za-z]{3,9})[-/., ]+\d\d(?:[ T]\d{1,2}:.*)?\s*$"
_LONG_NUMBER = r"^\D*\d{16}"
_LEADING_ZEROS = r"^\s*[-+]?0+\d[\d\s.,]*$"


@dataclass
class SourceChecks:
    """Check the chunks of one table as they were read, before any of its cells is converted."""

    table: MappedTable
    rules: Sequence[FieldRules]
    issue_log: IssueLog
    settings: Preference

    def __post_init__(self) -> None:
        """Decide the notation of all columns of dates and numbers in one pass."""
        targets = self.table.targets
        self.table.notations.read(
            [targets[one.name] for one in self.rules if one.field.type in _DATES],
            [targets[one.name] for one in self.rules if one.field.type in _NUMBERS],
        )

    def __call__(self, chunk: Chunk) -> None:
        """Check one chunk."""
        for rules in self.rules:
            cells = chunk.cells(self.table.targets[rules.name])
            for rule, issue, marked in self._found(rules, cells):
                if marked.any():
                    self.issue_log.built_in(rules.name, rule, issue, chunk.rows[marked])

    def _found(self, rules: FieldRules, cells: CellArray) -> list[tuple[str, Issue, BoolArray]]:
        found: list[tuple[str, Issue, BoolArray]] = []
        if rules.field.type in _KEEPS_DIGITS:
            long = np.abs(cells.numbers) >= DIGITS_MAX
            if long.any():
                found.append(("digits", DIGITS_LOST, long & cells.is_kind(CellKind.NUMBER)))
        units = self.table.notations.units.get(self.table.targets[rules.name])
        if units is not None and units.percents:  # 12 beside the text 12 %, which is read as 0.12
            above = cells.is_kind(CellKind.NUMBER) & (np.abs(cells.numbers) > 1)
            found.append(("percent", MIXED_PERCENT, above))
        if not cells.is_kind(CellKind.TEXT).any():
            return found
        text = cells.text
        found += self._notation_doubts(self.table.targets[rules.name], text)
        if rules.field.type in _DATES:
            found.append(("year", TWO_DIGIT_YEAR, _marks(text, _SHORT_YEAR)))
        if rules.field.type in _NUMBERS:
            found.append(("zeros", LEADING_ZEROS_LOST, _marks(text, _LEADING_ZEROS)))
            found.append(("digits", DIGITS_LOST, _marks(text, _LONG_NUMBER)))
        return found

    def _notation_doubts(self, column: int, text: pl.Series) -> list[tuple[str, Issue, BoolArray]]:
        notations = self.table.notations
        found: list[tuple[str, Issue, BoolArray]] = []
        dates, decimals = notations.dates.get(column), notations.decimals.get(column)
        if dates is not None and dates.is_doubtful:
            issue = AMBIGUOUS_DATE_ORDER[dates.day_first(notations.preference)]
            settled = self.settings.day_first is not None
            found.append(("date_order", _graded(issue, settled), allow_both_orders(text)))
        if decimals is not None and decimals.is_doubtful:
            issue = AMBIGUOUS_DECIMAL_SIGN[decimals.decimal(notations.preference)]
            settled = self.settings.decimal is not None
            found.append(("decimal_sign", _graded(issue, settled), allow_both_signs(text)))
        units = notations.units.get(column)
        if units is not None and units.mixes_currencies:
            found.append(("currency", MIXED_CURRENCIES, has_currency(text)))
        if units is not None and units.mixes_percents:
            plain = text.str.contains(r"\d").fill_null(False).to_numpy() & ~_marks(text, "%")
            found.append(("percent", MIXED_PERCENT, plain))
        return found


def report_doubts(table: MappedTable, rules: Sequence[FieldRules], issue_log: IssueLog) -> None:
    """Report what a person should check about the table, at its first field."""
    row = table.region.header_row or table.region.range.first_row
    for doubt in table.region.doubts if rules else ():
        issue_log.built_in(rules[0].name, "table", TABLE_DOUBTS[doubt], np.array([row]))


def check_headers(
    table: MappedTable, rules: Sequence[FieldRules], issue_log: IssueLog, margin: float
) -> None:
    """Report what the headers leave open: the issue is in the header's cell of the field."""
    row = table.region.header_row
    if row is None:
        return
    columns = table.mapping.columns
    chosen = {one.target: one for one in columns if one.target is not None}
    losers: dict[str, float] = {}
    for one in columns:
        for rival in one.candidates if one.reason is Reason.DUPLICATE_FIELD else ():
            # A column of the same name is a choice, however much better the chosen one scores.
            winner = chosen.get(rival.field)
            is_namesake = winner is not None and _folded(one.header) == _folded(winner.header)
            score = math.inf if is_namesake else rival.score
            losers[rival.field] = max(score, losers.get(rival.field, 0.0))
    for field in rules:
        mapped = chosen[field.name]
        best = mapped.chosen.score if mapped.chosen else 0.0
        if field.name in losers and losers[field.name] > best - margin:
            issue_log.built_in(field.name, "mapping", SEVERAL_COLUMNS_FIT, np.array([row]))
        if field.field.type in _NUMBERS and header_parts(mapped.header).scale > 1:
            issue_log.built_in(field.name, "scale", SCALED_NUMBERS, np.array([row]))


def _folded(header: str) -> str:
    return " ".join(header.split()).casefold()


_DATES = (FieldType.DATE,)
_NUMBERS = (FieldType.NUMBER, FieldType.INTEGER)
_KEEPS_DIGITS = (FieldType.TEXT, FieldType.INTEGER)


def _graded(issue: Issue, settled: bool) -> Issue:
    """Lower a warning to a notice if the package's author has chosen the reading."""
    return replace(issue, severity=Severity.INFO) if settled else issue


def _marks(text: pl.Series, pattern: str) -> BoolArray:
    found: BoolArray = text.str.contains(pattern).fill_null(False).to_numpy()
    return found
