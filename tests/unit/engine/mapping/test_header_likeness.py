"""Similar headers are recognised."""

from collections.abc import Callable

import pytest

from ade_engine.mapping.header_likeness import FieldNames, normalized_words


@pytest.mark.parametrize(
    "header",
    ["Employee ID", "employee_id", "EmployeeID", "  EMPLOYEE-ID: ", "Employée ID", "Employee\nId"],
)
def test_writing_does_not_count(header: str) -> None:
    assert FieldNames.of(["employee id"]).likeness(header) == 1.0


def test_usual_abbreviations_are_the_same_word() -> None:
    assert (
        normalized_words("Member No.")
        == normalized_words("member #")
        == normalized_words("Member Number")
    )


def test_the_nearer_the_name_the_more_it_counts() -> None:
    names = FieldNames.of(["employee id"])
    headers = ["employee id", "ID Employee", "emplyee id", "employee id old", "department"]
    found = [names.likeness(header) for header in headers]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(found)
    assert found[-1] == 0


def test_the_last_level_of_a_header_counts_a_little_less() -> None:
    names = FieldNames.of(["email"])
    alone = names.likeness("Contact data Email", "Email")
    assert names.likeness("Contact data Email") < alone < names.likeness("Email")


def test_an_empty_header_is_like_nothing() -> None:
    assert FieldNames.of(["id"]).likeness("  ") == 0
    assert FieldNames.of([]).likeness("id") == 0


@pytest.mark.parametrize("name", ["USt", "DoB", "PhD", "IBAN", "eMail", "McDonald"])
@pytest.mark.parametrize("change", [str.upper, str.lower, str.title, str])
def test_case_does_not_count_in_synonyms(name: str, change: Callable[[str], str]) -> None:
    assert FieldNames.of([name]).likeness(change(name)) == 1.0


@pytest.mark.parametrize("header", ["Amount (EUR)", "Amount [kg]", "Amount in USD", "Amount %"])
def test_a_unit_does_not_hide_the_name(header: str) -> None:
    assert FieldNames.of(["amount"]).likeness(header) >= 0.9
    assert FieldNames.of([header]).likeness(header) == 1.0


def test_a_remark_in_brackets_counts_a_little_less_than_a_unit() -> None:
    names = FieldNames.of(["name"])
    assert 0.5 < names.likeness("Name (first)") < names.likeness("Name (kg)") < 1.0
