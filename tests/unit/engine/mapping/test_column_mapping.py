"""Columns are mapped to fields, or have a reason why not."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.package.packages import write_package

from ade_engine.mapping.column_mapping import ColumnMapping, map_columns
from ade_engine.mapping.scores import RawColumn
from ade_engine.package import AuthorError, Column, load_package
from ade_engine.package.author_errors import Misuse
from ade_engine.package.function_arguments import Context, Table, TableMapping


def mapped(folder: Path, columns: dict[str, list[Any]], **files: str) -> ColumnMapping:
    """Map columns given as {header: cells}, from column B on."""
    raw = [
        RawColumn(number, header.strip(), Column(cells, header=header))
        for number, (header, cells) in enumerate(columns.items(), 2)
    ]
    view = Table(number=1, sheet="S", range="B1:C2", headers={})
    with load_package(write_package(folder, **files)) as package:
        return map_columns(package, raw, view, Context())


def outcomes(mapping: ColumnMapping) -> list[str | None]:
    return [column.target or column.reason for column in mapping.columns]


EMAIL = "FIELD = Field(synonyms=['mail'])"


def test_contributions_add_up_and_are_listed(tmp_path: Path) -> None:
    text = "FIELD = Field(type='date', synonyms=['start'])\ndef detect_x(column): return 0.25"
    mapping = mapped(tmp_path, {"Start": ["2024-01-01", "x"]}, columns__day=text)
    chosen = mapping.columns[0].chosen
    assert chosen is not None
    assert chosen.contributors == (("col.day.synonym", 1.0), ("col.day.x", 0.25))
    assert chosen.score == 1.25
    dates = mapped(tmp_path, {"Start": ["2024-01-01", "2024-01-02"]}).columns[0].chosen
    assert dates is not None
    assert ("col.day.type", 0.3) in dates.contributors


def test_a_detector_may_speak_for_other_fields(tmp_path: Path) -> None:
    mapping = mapped(
        tmp_path,
        {"One": ["x"]},
        columns__a="FIELD = Field()\ndef detect_x(header): return {'b': 0.8, 'a': -1}",
        columns__b="FIELD = Field()",
    )
    assert outcomes(mapping) == ["b"]
    assert mapping.columns[0].chosen.contributors == (("col.a.x", 0.8),)  # type: ignore[union-attr]


@pytest.mark.parametrize("said", ["{'nobody': 1}", "'high'", "float('nan')", "[1]"])
def test_a_score_must_be_a_number_for_a_known_field(tmp_path: Path, said: str) -> None:
    text = f"FIELD = Field()\ndef detect_x(column): return {said}"
    with pytest.raises(AuthorError) as failed:
        mapped(tmp_path, {"One": ["x"]}, columns__a=text)
    assert failed.value.failure.rule == "col.a.x"
    assert failed.value.failure.hint


def test_each_reason_is_given_where_it_is_true(tmp_path: Path) -> None:
    mapping = mapped(
        tmp_path,
        {
            "Email": ["a@b.c"],
            "E-mail ": ["a@b.c"],
            "Shoe size": ["x"],
            " ": ["y"],
            "Mail of boss": ["z"],
        },
        columns__email="FIELD = Field(synonyms=['e-mail', 'mail'])",
    )
    assert outcomes(mapping) == [
        "email",
        "duplicate_field",
        "no_signal",
        "empty_header",
        "below_threshold",
    ]


def test_two_free_fields_that_are_as_good_are_ambiguous(tmp_path: Path) -> None:
    fields = {"columns__home": "FIELD = Field(synonyms=['mail'])", "columns__work": EMAIL}
    assert outcomes(mapped(tmp_path, {"Mail": ["x"]}, **fields)) == ["ambiguous"]
    settled = mapped(tmp_path, {"Mail": ["x"], "Work": ["y"]}, **fields)
    assert outcomes(settled) == ["home", "work"]
    by_order = mapped(tmp_path, {"Mail": ["x"]}, config="[mapping]\nmargin = 0\n")
    assert outcomes(by_order) == ["home"]


def test_a_column_takes_its_second_field_when_another_has_its_first(tmp_path: Path) -> None:
    score = "def detect_x(header): return {'Both': %s, 'One': %s}[header]"
    mapping = mapped(
        tmp_path,
        {"Both": ["x"], "One": ["y"]},
        columns__first="FIELD = Field()\n" + score % (1.0, 0.95),
        columns__second="FIELD = Field()\n" + score % (0.9, 0.2),
    )
    assert outcomes(mapping) == ["second", "first"]


def test_the_best_three_candidates_are_kept(tmp_path: Path) -> None:
    fields = {
        f"columns__f{n}": f"FIELD = Field()\ndef detect_x(header): return .{n}" for n in range(1, 6)
    }
    (column,) = mapped(tmp_path, {"Any": ["x"]}, **fields).columns
    assert [one.field for one in column.candidates] == ["f5", "f4", "f3"]


def test_the_threshold_is_a_setting_and_a_field_may_have_its_own(tmp_path: Path) -> None:
    fields = {"columns__a": "FIELD = Field(threshold=0.2)\ndef detect_x(header): return .3"}
    assert outcomes(mapped(tmp_path, {"Any": ["x"]}, **fields)) == ["a"]
    assert outcomes(
        mapped(tmp_path, {"Any": ["x"]}, columns__a=fields["columns__a"].replace("0.2", "None"))
    ) == ["below_threshold"]


def test_required_fields_that_are_missing_are_listed(tmp_path: Path) -> None:
    fields = {
        "columns__a": "FIELD = Field(required=True)",
        "columns__b": "FIELD = Field(required=True)",
    }
    assert mapped(tmp_path, {"B": ["x"]}, **fields).missing == ("a",)


def test_a_hook_may_assign_and_release(tmp_path: Path) -> None:
    mapping = mapped(tmp_path, {"A": ["x"], "Z": ["y"]}, columns__a="FIELD = Field()")
    view = TableMapping({"a": "B"}, {"B": "A", "C": "Z"}, ("a",), ("a",))
    view.assign("a", "C")
    assert view.targets == {"a": "C"}
    changed = mapping.changed({"a": 3})
    assert [column.target for column in changed.columns] == [None, "a"]
    assert changed.columns[0].reason == "released"
    assert changed.columns[1].chosen.contributors[0][0] == "hook.on_table_mapped"  # type: ignore[union-attr]
    view.release("a")
    assert view.missing == ("a",)
    for name, letters in (("nobody", "B"), ("a", "ZZ")):
        with pytest.raises(Misuse):
            view.assign(name, letters)
