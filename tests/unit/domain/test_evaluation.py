"""When a result makes its run a failure."""

import pytest

from ade.domain.evaluation import Evaluation, FailOn, shortcoming
from ade_engine.package.package_settings import RunSettings
from ade_engine.pipeline import map_tables

RESULTS: dict[str, tuple[Evaluation, dict[str, int]]] = {
    "unusable": (Evaluation.UNUSABLE, {}),
    "partial": (Evaluation.PARTIAL, {}),
    "errors": (Evaluation.COMPLETE, {"error": 2}),
    "warnings": (Evaluation.COMPLETE, {"warning": 1}),
    "infos": (Evaluation.COMPLETE, {"info": 5}),
}


@pytest.mark.parametrize("fail_on", list(FailOn))
def test_each_word_includes_those_before_it(fail_on: FailOn) -> None:
    failing = [name for name, result in RESULTS.items() if shortcoming(fail_on, *result)]
    assert failing == list(FailOn)[1 : list(FailOn).index(fail_on) + 1]


def test_what_was_found_is_said_in_words() -> None:
    assert shortcoming(FailOn.ERRORS, *RESULTS["errors"]) == "2 errors were found"
    assert shortcoming(FailOn.WARNINGS, *RESULTS["warnings"]) == "1 warning was found"


def test_a_package_knows_the_same_words() -> None:
    (setting,) = RunSettings.__dataclass_fields__.values()
    assert setting.metadata["one_of"] == tuple(FailOn)
    assert setting.default == FailOn.UNUSABLE
    assert list(map_tables.Evaluation) == list(Evaluation)
