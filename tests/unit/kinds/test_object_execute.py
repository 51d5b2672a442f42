"""What may be asked of `object_execute`: one cell, spelled in one of two ways."""

from typing import Any

import pytest
from pydantic import ValidationError

from ade.domain.errors import InvalidRequest
from ade.http.intake import Intake
from ade.kinds import Kinds
from ade.kinds.object_execute import SOURCE_CHARS_MAX, ExecuteInputs, ObjectExecute
from ade.settings import Settings

PLAIN = {"source": "a + 1", "parameters": {"a": 1}}
AS_OBJECT = {
    "object": {
        "type": "code",
        "content": {"format": "python", "value": "a + 1"},
        "runtime": {"language": "python", "parameters": {"a": 1}},
    }
}


def taken(inputs: dict[str, Any]) -> dict[str, Any]:
    """Take inputs in, as the worker hands them to the runtime."""
    return ExecuteInputs.model_validate(inputs).model_dump(mode="json")


def key(inputs: dict[str, Any]) -> str | None:
    """Return the execution key of a cell, as the server makes it."""
    intake = Intake(Settings(), Kinds([ObjectExecute()]))
    asked: Any = {"job_type": "object_execute", "document_revision_id": "r", "inputs": inputs}
    return intake.submission(asked, "workspace", "user").execution_key


def test_both_spellings_are_handed_over_as_one() -> None:
    plain = {"source": "a + 1", "parameters": {"a": 1}, "entrypoint": "main"}
    assert taken(PLAIN) == taken(AS_OBJECT) == plain


def test_both_spellings_have_one_execution_key() -> None:
    assert key(PLAIN) == key(AS_OBJECT)


@pytest.mark.parametrize(
    "other",
    [
        PLAIN | {"source": "a + 2"},
        PLAIN | {"parameters": {"a": 2}},
        PLAIN | {"entrypoint": "start"},
    ],
)
def test_another_cell_has_another_key(other: dict[str, Any]) -> None:
    assert key(PLAIN) != key(other)


def test_defaults_that_are_spelled_out_are_the_same_work() -> None:
    spelled = {"source": "1", "parameters": {}, "entrypoint": "main"}
    assert key({"source": "1"}) == key(spelled)


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"parameters": {"a": 1}},
        PLAIN | AS_OBJECT,
        {"source": "1", "entrypoint": "not a name"},
        {"source": "1", "entrypoint": "main\n"},
        {"source": "1", "entrypoint": ""},
        {"source": "1", "parameters": [1]},
        {"source": 1},
        {"source": "1", "sources": "2"},
        {"source": "x" * (SOURCE_CHARS_MAX + 1)},
        {"object": {"type": "table", "content": {"format": "python", "value": "1"}}},
        {"object": {"content": {"format": "r", "value": "1"}}},
        {"object": {"content": {"format": "python"}}},
        {"object": {"content": {"format": "python", "value": "1"}, "runtime": {"language": "r"}}},
    ],
)
def test_what_is_not_one_cell_is_refused(inputs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExecuteInputs.model_validate(inputs)
    with pytest.raises(InvalidRequest):
        key(inputs)


def test_the_longest_source_is_taken() -> None:
    source = "x" * SOURCE_CHARS_MAX
    assert taken({"source": source})["source"] == source


def test_a_cell_needs_walls() -> None:
    assert not ObjectExecute.trusted
