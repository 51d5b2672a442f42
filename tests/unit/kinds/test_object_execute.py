"""The inputs of `object_execute`: one cell in one of two notations."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ade.app.job_requests import Caller, JobRequests
from ade.domain.errors import InvalidRequest
from ade.domain.keys import digest
from ade.kinds import Kinds
from ade.kinds.object_execute import (
    SOURCE_CHARS_MAX,
    ExecuteInputs,
    ObjectExecute,
    environment_name,
)
from ade.settings import Settings

PLAIN = {"source": "a + 1", "parameters": {"a": 1}}
AS_OBJECT = {
    "object": {
        "type": "code",
        "content": {"format": "python", "value": "a + 1"},
        "runtime": {"language": "python", "parameters": {"a": 1}},
    }
}

DATA = "sha256:" + "0" * 64


def taken(inputs: dict[str, Any]) -> dict[str, Any]:
    """Validate inputs; return the inputs of the job."""
    return ExecuteInputs.model_validate(inputs).model_dump(mode="json")


def key(inputs: dict[str, Any]) -> str | None:
    """Return the execution key of a cell, as the server computes it."""
    requests = JobRequests(Settings(), Kinds([ObjectExecute()]))
    asked: Any = {"job_type": "object_execute", "document_revision_id": "r", "inputs": inputs}
    return requests.submission(asked, Caller("workspace", "user")).execution_key


def test_both_notations_become_the_same_inputs() -> None:
    assert taken(PLAIN) == taken(AS_OBJECT)
    assert taken(PLAIN)["cells"] == [{"file": "cell.py", "source": "a + 1"}]
    assert taken(PLAIN)["parameters"] == {"a": 1}


def test_code_blocks_are_named_by_their_numbers() -> None:
    blocks = [
        {"type": "paragraph", "text": "First, the data.", "style": "lead"},
        {"type": "code", "language": "python", "text": "a = 1"},
        {"type": "code", "text": "a + 1"},
    ]
    content = {"format": "blockdoc", "value": {"blocks": blocks, "version": 3}}
    assert taken({"object": {"content": content}})["cells"] == [
        {"file": "cell-block-2.py", "source": "a = 1"},
        {"file": "cell-block-3.py", "source": "a + 1"},
    ]


def dependent(**changes: Any) -> dict[str, Any]:
    """Return a cell that needs another object and a dataset."""
    content = {"format": "python", "value": "def double(x):\n    return 2 * x"}
    snapshot = {"kind": "object", "id": "o1", "content_digest": digest(content), "content": content}
    code = {
        "content": {"format": "python", "value": "double(1)"},
        "dependencies": [
            {"kind": "object", "id": "o1"},
            {"kind": "dataset", "digest": DATA, "name": "prices.csv"},
        ],
        "runtime": {"parameters": {"x": 1}},
    }
    return {"object": code, "dependency_snapshots": [snapshot]} | changes


def test_pinned_dependencies_are_in_the_inputs() -> None:
    found = taken(dependent())
    assert found["datasets"] == [{"digest": DATA, "name": "prices.csv"}]
    assert [cell["file"] for cell in found["snapshots"][0]["cells"]] == ["object-1.py"]
    assert found["objects"] == ["o1"]


def test_both_notations_have_the_same_execution_key() -> None:
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


def test_explicit_defaults_are_the_same_work() -> None:
    explicit = {"source": "1", "parameters": {}, "entrypoint": "main"}
    assert key({"source": "1"}) == key(explicit)


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
        {"object": {"content": {"format": "blockdoc", "value": {}}}},
        {"object": {"content": {"format": "blockdoc", "value": {"blocks": []}}}},
        {"object": {"content": {"format": "blockdoc", "value": {"blocks": [{"type": "code"}]}}}},
        {
            "object": {
                "content": {
                    "format": "blockdoc",
                    "value": {"blocks": [{"type": "code", "language": "r", "text": "1"}]},
                }
            }
        },
        {"source": "1", "datasets": [{"kind": "dataset", "digest": "sha256:ab"}]},
        {"source": "1", "datasets": [{"kind": "dataset", "digest": DATA, "name": "../a"}]},
        dependent(dependency_snapshots=[]),
        {
            "source": "1",
            "datasets": [
                {"kind": "dataset", "digest": DATA, "name": "x"},
                {"kind": "dataset", "digest": DATA[:-1] + "1", "name": "x"},
            ],
        },
        {
            "source": "1",
            "datasets": [
                {"kind": "dataset", "digest": DATA},
                {"kind": "dataset", "digest": DATA[:-1] + "1", "name": DATA.partition(":")[2]},
            ],
        },
        dependent(
            dependency_snapshots=[
                {
                    "kind": "object",
                    "id": "o1",
                    "content_digest": DATA,
                    "content": {"format": "python", "value": "1"},
                }
            ]
        ),
        {"object": {"content": {"format": "python", "value": "1"}, "runtime": {"language": "r"}}},
    ],
)
def test_invalid_cells_are_rejected(inputs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExecuteInputs.model_validate(inputs)
    with pytest.raises(InvalidRequest):
        key(inputs)


def test_the_longest_source_is_accepted() -> None:
    source = "x" * SOURCE_CHARS_MAX
    assert taken({"source": source})["cells"][0]["source"] == source


def test_installed_packages_are_part_of_the_environment_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = environment_name()
    assert ObjectExecute.env_version == f"python-cell@3+{before}"
    monkeypatch.syspath_prepend(tmp_path)
    assert environment_name() == before
    (tmp_path / "something-1.0.dist-info").mkdir()
    one = environment_name()
    (tmp_path / "something-1.0.dist-info").rename(tmp_path / "something-1.1.dist-info")
    assert len({before, one, environment_name()}) == 3


def test_a_cell_needs_the_sandbox() -> None:
    assert not ObjectExecute.trusted
