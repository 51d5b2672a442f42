"""A column is read in one way; what its texts leave open, or a conversion loses, is reported."""

import datetime as dt
from pathlib import Path

import pytest
from tests.unit.engine.pipeline.workbooks import Ran, run_on, write_workbook

DATE = "FIELD = Field(label='Date', type='date')\n"
AMOUNT = "FIELD = Field(label='Amount', type='number')\n"
NAME = "FIELD = Field(label='Name', type='text')\n"


def run_csv(folder: Path, header: str, texts: list[str], *, config: str = "", **more: str) -> Ran:
    """Run on a CSV with names and one column of texts."""
    lines = [f"Name,{header}", *(f'person {n},"{text}"' for n, text in enumerate(texts, 1))]
    source = folder / "input.csv"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = {
        "columns__name": NAME,
        f"columns__{header.lower()}": {"Date": DATE}.get(header, AMOUNT),
    }
    return run_on(folder, source, **files, **more, **({"config": config} if config else {}))


def values(ran: Ran) -> list[object]:
    at = 0 if ran.output["Normalized"][0][0] != "Name" else 1
    found = [row[at] for row in ran.rows]
    return [one.date() if isinstance(one, dt.datetime) else one for one in found]


def severities(ran: Ran) -> dict[str, str]:
    return {
        issue["code"]: issue["severity"]
        for event in ran.stage("validate")
        for issue in event["issues"]
    }


def test_the_order_of_day_and_month_is_decided_once_for_a_column(tmp_path: Path) -> None:
    texts = [f"{day:02}/02/2024" for day in range(1, 21)]
    ran = run_csv(tmp_path, "Date", texts)
    assert values(ran) == [dt.date(2024, 2, day) for day in range(1, 21)]
    assert ran.issues == {}


def test_one_value_in_the_last_chunk_decides_for_the_first(tmp_path: Path) -> None:
    texts = ["01/02/2024"] * 70_000 + ["13/02/2024"]
    ran = run_csv(tmp_path, "Date", texts)
    assert set(values(ran)) == {dt.date(2024, 2, 1), dt.date(2024, 2, 13)}
    assert ran.issues == {}


def test_a_column_that_allows_both_orders_is_reported(tmp_path: Path) -> None:
    ran = run_csv(tmp_path, "Date", ["01/02/2024", "05/05/2024", "03/04/2024"])
    assert values(ran)[0] == dt.date(2024, 1, 2)
    assert ran.issues == {("date", "ambiguous_date_order"): ["B2", "B4"]}
    assert severities(ran) == {"ambiguous_date_order": "warning"}


def test_the_package_decides_where_the_column_does_not(tmp_path: Path) -> None:
    texts = ["01/02/2024", "03/04/2024"]
    ran = run_csv(tmp_path, "Date", texts, config="[reading]\nday_first = true\n")
    assert values(ran) == [dt.date(2024, 2, 1), dt.date(2024, 4, 3)]
    assert severities(ran) == {"ambiguous_date_order": "info"}


def test_values_that_contradict_each_other_are_never_mixed(tmp_path: Path) -> None:
    ran = run_csv(tmp_path, "Date", ["13/02/2024", "14/02/2024", "02/15/2024", "01/02/2024"])
    assert values(ran) == [
        dt.date(2024, 2, 13),
        dt.date(2024, 2, 14),
        "02/15/2024",
        dt.date(2024, 2, 1),
    ]
    assert ran.issues == {
        ("date", "invalid_type"): ["B4"],
        ("date", "ambiguous_date_order"): ["B5"],
    }


def test_a_semicolon_says_how_the_place_of_the_file_writes(tmp_path: Path) -> None:
    source = tmp_path / "input.csv"
    source.write_text("Name;Amount;Date\nAda;1.234;01/02/2024\nBen;2.345;02/03/2024\n")
    files = {"columns__name": NAME, "columns__amount": AMOUNT, "columns__date": DATE}
    ran = run_on(tmp_path, source, **files)
    assert [row[0] for row in ran.rows] == [1234, 2345]
    assert ran.rows[0][1].date() == dt.date(2024, 2, 1)
    assert set(severities(ran).values()) == {"warning"}


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1.234", "1.234,56"], [1234, 1234.56]),
        (["1,234", "1,234.56"], [1234, 1234.56]),
        (["1,234", "12,5"], [1.234, 12.5]),
        (["1.234", "12.5"], [1.234, 12.5]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["1,234", "1,234,567"], [1234, 1234567]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["1.234", "1 234,5"], [1234, 1234.5]),
    ],
)
def test_the_decimal_sign_is_decided_once_for_a_column(
    tmp_path: Path, texts: list[str], numbers: list[float]
) -> None:
    ran = run_csv(tmp_path, "Amount", texts)
    assert values(ran) == numbers
    assert ran.issues == {}


def test_a_sign_that_could_be_either_is_reported(tmp_path: Path) -> None:
    ran = run_csv(tmp_path, "Amount", ["1,234", "12", "5,678"])
    assert values(ran) == [1234, 12, 5678]
    assert ran.issues == {("amount", "ambiguous_decimal_sign"): ["B2", "B4"]}


def test_as_number_in_an_untyped_field_follows_the_whole_column(tmp_path: Path) -> None:
    source = tmp_path / "input.csv"
    rows = ["1.234"] * 70_000 + ["1.234,5"]
    source.write_text("Name;Price\n" + "".join(f"p{n};{text}\n" for n, text in enumerate(rows)))
    price = (
        "FIELD = Field(label='Price')\ndef transform_column(column): return column.as_number()\n"
    )
    ran = run_on(tmp_path, source, columns__name=NAME, columns__price=price)
    assert {row[1] for row in ran.rows} == {1234, 1234.5}


@pytest.mark.parametrize(
    ("header", "texts", "code", "cells"),
    [
        ("Date", ["13/02/45", "2024-01-02"], "two_digit_year", ["B2"]),
        ("Amount", ["007", "12"], "leading_zeros_lost", ["B2"]),
        ("Amount", ["$ 5", "7 EUR", "9"], "mixed_currencies", ["B2:B3"]),
        ("Amount", ["12 %", "15"], "mixed_percent", ["B3"]),
        ("Amount", ["12345678901234567890", "15"], "digits_lost", ["B2"]),
        ("Amount", ["5 MIO", "7"], "invalid_type", ["B2"]),
    ],
)
def test_what_a_conversion_would_lose_is_reported(
    tmp_path: Path, header: str, texts: list[str], code: str, cells: list[str]
) -> None:
    ran = run_csv(tmp_path, header, texts)
    assert ran.issues == {(header.lower(), code): cells}


def test_digits_of_negative_numbers_are_counted_too(tmp_path: Path) -> None:
    rows = [["Name", "Amount"], [-1234567890123456, 1], [-1234567890123457, 2]]
    source = write_workbook(tmp_path / "input.xlsx", Sheet=rows)
    ran = run_on(tmp_path, source, columns__name=NAME, columns__amount=AMOUNT)
    assert ran.issues == {("name", "digits_lost"): ["A2:A3"]}


def test_what_a_person_should_check_is_a_warning_at_the_header(tmp_path: Path) -> None:
    data = [[dt.date(2024, 1, n), f"person {n}", n, 2 * n] for n in range(1, 9)]
    after = [["VAT 19%", None, 5.5], ["Net", None, 10.2], ["Gross", None, 15.7], ["Code", "DE1"]]
    rows = [["Day", "Name", "Amount", "Rest"], *data, *after]
    source = write_workbook(tmp_path / "input.xlsx", Sheet=rows)
    ran = run_on(tmp_path, source, columns__name=NAME, columns__amount=AMOUNT)
    assert [table["doubts"] for table in ran.stage("structure")[0]["tables"]] == [
        ["rows_after_data"]
    ]
    assert severities(ran) == {"rows_after_data": "warning"}
    assert ran.issues == {("amount", "rows_after_data"): ["C1"]}


def test_a_second_column_of_the_same_name_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "input.csv"
    rows = [f"person {n},{'none' if n < 3 else n},{n * 10}" for n in range(1, 9)]
    source.write_text("\n".join(["Name,Amount,amount ", *rows]) + "\n", encoding="utf-8")
    typed = AMOUNT + "def detect_place(column):\n    return 0.4 if column.letter == 'C' else 0.0\n"
    ran = run_on(tmp_path, source, columns__name=NAME, columns__amount=typed)
    assert ("amount", "several_columns_fit") in ran.issues
