"""When a result makes its run a failure."""

import pytest

from ade.domain import evaluation
from ade.domain.evaluation import Evaluation, FailOn, shortcoming
from ade_engine.package.package_settings import RunSettings
from ade_engine.pipeline import map_tables
from ade_engine.record import skipped

RESULTS: dict[str, tuple[Evaluation, dict[str, int], dict[str, int]]] = {
    "unusable": (Evaluation.UNUSABLE, {}, {}),
    "partial": (Evaluation.PARTIAL, {}, {}),
    "errors": (Evaluation.COMPLETE, {"error": 2}, {}),
    "warnings": (Evaluation.COMPLETE, {"warning": 1}, {}),
    "infos": (Evaluation.COMPLETE, {"info": 5}, {}),
}


@pytest.mark.parametrize("fail_on", list(FailOn))
def test_each_word_includes_those_before_it(fail_on: FailOn) -> None:
    failing = [name for name, result in RESULTS.items() if shortcoming(fail_on, *result)]
    assert failing == list(FailOn)[1 : list(FailOn).index(fail_on) + 1]


def test_what_was_found_is_said_in_words() -> None:
    assert shortcoming(FailOn.ERRORS, *RESULTS["errors"]) == "2 errors were found"
    assert shortcoming(FailOn.WARNINGS, *RESULTS["warnings"]) == "1 warning was found"


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({}, "(none was found)"),
        ({"no_header": 1}, "(1 table without a header row)"),
        (
            {"no_field": 2, "required_missing": 1},
            "(2 tables without a column of any field, 1 table without any required field)",
        ),
    ],
)
def test_why_no_table_could_be_used_is_said(tables: dict[str, int], words: str) -> None:
    found = shortcoming(FailOn.UNUSABLE, Evaluation.UNUSABLE, {}, tables)
    assert found == f"no table could be used {words}"


def test_every_reason_for_leaving_out_a_table_has_words() -> None:
    assert set(evaluation._WHY_UNUSED) == {str(reason) for reason in skipped.TableReason}


def test_a_package_knows_the_same_words() -> None:
    (setting,) = RunSettings.__dataclass_fields__.values()
    assert setting.metadata["one_of"] == tuple(FailOn)
    assert setting.default == FailOn.UNUSABLE
    assert list(map_tables.Evaluation) == list(Evaluation)
