"""Headers are compared as people do."""

import pytest

from ade_engine.mapping.headers import Names, words_of


@pytest.mark.parametrize(
    "header",
    ["Employee ID", "employee_id", "EmployeeID", "  EMPLOYEE-ID: ", "Employée ID", "Employee\nId"],
)
def test_writing_does_not_count(header: str) -> None:
    assert Names.of(["employee id"]).likeness(header) == 1.0


def test_usual_abbreviations_are_the_same_word() -> None:
    assert words_of("Member No.") == words_of("member #") == words_of("Member Number")


def test_the_nearer_the_name_the_more_it_counts() -> None:
    names = Names.of(["employee id"])
    headers = ["employee id", "ID Employee", "emplyee id", "employee id old", "department"]
    found = [names.likeness(header) for header in headers]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(found)
    assert found[-1] == 0


def test_the_last_level_of_a_header_counts_a_little_less() -> None:
    names = Names.of(["email"])
    alone = names.likeness("Contact data Email", "Email")
    assert names.likeness("Contact data Email") < alone < names.likeness("Email")


def test_an_empty_header_is_like_nothing() -> None:
    assert Names.of(["id"]).likeness("  ") == 0
    assert Names.of([]).likeness("id") == 0
