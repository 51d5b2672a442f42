"""An execution key covers everything that a result may depend on, and nothing else."""

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.app.job_requests import Caller, JobRequests
from ade.domain.keys import digest
from ade.kinds import load_kinds
from ade.settings import Settings

REQUESTS = JobRequests(Settings(), load_kinds())
DATA = "sha256:" + "ab" * 32
CONTENT = {"format": "python", "value": "def rate():\n    return 1.5"}
ASKED: dict[str, Any] = {
    "job_type": "object_execute",
    "document_revision_id": "revision-1",
    "target": {"object_id": "object-1"},
    "inputs": {
        "object": {
            "type": "code",
            "content": {"format": "python", "value": "rate() * x"},
            "dependencies": [
                {"kind": "object", "id": "object-2"},
                {"kind": "dataset", "digest": DATA},
            ],
            "runtime": {"entrypoint": "main", "parameters": {"x": 10, "more": {"a": [1, 2.5]}}},
        },
        "dependency_snapshots": [
            {
                "kind": "object",
                "id": "object-2",
                "content_digest": digest(CONTENT),
                "content": CONTENT,
                "resolved_runtime": {"python": "3.11"},
            }
        ],
    },
    "output_spec": {"formats": ["png"]},
    "environment": {"env_version": "py-executor@2026.01.10", "network_access": "disabled"},
}


def key(body: str | bytes) -> str | None:
    """Return the execution key of a request, from its bytes on."""
    asked: Any = REQUESTS.parse(body.encode() if isinstance(body, str) else body)
    return REQUESTS.submission(asked, Caller("workspace", "user")).execution_key


KEY = key(json.dumps(ASKED))


def test_the_key_is_the_same_on_every_machine_and_python() -> None:
    """A change here changes which earlier results are reused: raise the env_version too."""
    inputs = {"value": {"b": 1.0, "a": "é"}}
    plain = {"job_type": "echo", "document_revision_id": "r1", "inputs": inputs}
    canonical = (
        '{"document_revision_id":"r1","env_version":"echo@1",'
        '"inputs":{"fail":"","print":"","sleep_ms":0,"steps":0,"value":{"a":"é","b":1.0}},'
        '"job_type":"echo",'
        '"output_spec":{"formats":[],"return_stderr":true,"return_stdout":true},'
        '"target_object_ids":[]}'
    )
    assert key(json.dumps(plain)) == f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


@given(st.data())
def test_notation_never_changes_the_key(data: st.DataObject) -> None:
    assert key(_any_notation(ASKED, data.draw)) == KEY


def _any_notation(value: Any, draw: Callable[[Any], Any]) -> str:
    """Write JSON in any notation: order of keys, white space, numbers, escapes."""
    space = draw(st.sampled_from(["", " ", "\n\t", "  \r\n"]))
    if isinstance(value, dict):
        items = draw(st.permutations(list(value.items())))
        parts = [
            f"{_any_notation(k, draw)}{space}:{space}{_any_notation(v, draw)}" for k, v in items
        ]
        return f"{{{space}{(space + ',' + space).join(parts)}{space}}}"
    if isinstance(value, list):
        return f"[{space}{(',' + space).join(_any_notation(one, draw) for one in value)}{space}]"
    if isinstance(value, str):
        plain = json.dumps(value)
        escaped = "".join(f"\\u{ord(character):04x}" for character in value)
        return str(draw(st.sampled_from([plain, f'"{escaped}"'])))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value}"
    if isinstance(value, float):
        return str(draw(st.sampled_from([repr(value), f"{value}0", f"{value}e0", f"{value}0E+0"])))
    return json.dumps(value)


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "revision": lambda a: a.update(document_revision_id="revision-2"),
    "target object": lambda a: a["target"].update(object_id="object-9"),
    "no target": lambda a: a.pop("target"),
    "source": lambda a: a["inputs"]["object"]["content"].update(value="rate() * x + 0"),
    "white space in the source": lambda a: a["inputs"]["object"]["content"].update(
        value="rate() * x "
    ),
    "parameter": lambda a: a["inputs"]["object"]["runtime"]["parameters"].update(x=11),
    "parameter's type": lambda a: a["inputs"]["object"]["runtime"]["parameters"].update(x="10"),
    "a float for an int": lambda a: a["inputs"]["object"]["runtime"]["parameters"].update(x=10.0),
    "one more parameter": lambda a: a["inputs"]["object"]["runtime"]["parameters"].update(y=None),
    "deep parameter": lambda a: a["inputs"]["object"]["runtime"]["parameters"]["more"].update(
        a=[2.5, 1]
    ),
    "entrypoint": lambda a: a["inputs"]["object"]["runtime"].update(entrypoint="start"),
    "dataset": lambda a: a["inputs"]["object"]["dependencies"][1].update(digest=f"{DATA[:-1]}0"),
    "dataset's name": lambda a: a["inputs"]["object"]["dependencies"][1].update(name="prices.csv"),
    "no dataset": lambda a: a["inputs"]["object"]["dependencies"].pop(),
    "pinned version": lambda a: a["inputs"]["dependency_snapshots"][0].update(
        content=CONTENT | {"value": "1"}, content_digest=digest(CONTENT | {"value": "1"})
    ),
    "pinned object": lambda a: (
        a["inputs"]["dependency_snapshots"][0].update(id="object-3"),
        a["inputs"]["object"]["dependencies"][0].update(id="object-3"),
    ),
    "pinned runtime": lambda a: a["inputs"]["dependency_snapshots"][0].update(
        resolved_runtime=None
    ),
    "formats": lambda a: a["output_spec"].update(formats=["svg"]),
    "streams": lambda a: a["output_spec"].update(return_stdout=False),
    "environment": lambda a: a["environment"].update(env_version="py-executor@2026.01.11"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_input_changes_the_key(name: str) -> None:
    changed = deepcopy(ASKED)
    CHANGES[name](changed)
    assert key(json.dumps(changed)) != KEY


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(st.sets(TEXT, min_size=2, max_size=3))
def test_two_sources_have_two_keys(sources: set[str]) -> None:
    keys = set()
    for source in sources:
        changed = deepcopy(ASKED)
        changed["inputs"]["object"]["content"]["value"] = source
        keys.add(key(json.dumps(changed)))
    assert len(keys) == len(sources)


UNRELATED: dict[str, Callable[[dict[str, Any]], object]] = {
    "priority": lambda a: a.update(priority="high"),
    "limits": lambda a: a.update(limits={"timeout_ms": 1000}),
    "project": lambda a: a.update(project_id="p", document_id="d"),
    "schema version": lambda a: a.update(schema_version="1.1"),
    "the user": lambda a: a.update(requested_by={"user_id": "someone"}),
    "a key of the client's own": lambda a: a.update(execution_key="sha256:0"),
    "explicit defaults": lambda a: a["output_spec"].update(return_stdout=True),
}


@pytest.mark.parametrize("name", UNRELATED)
def test_the_key_ignores_what_no_result_depends_on(name: str) -> None:
    changed = deepcopy(ASKED)
    UNRELATED[name](changed)
    assert key(json.dumps(changed)) == KEY
