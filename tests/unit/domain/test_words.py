"""The words of statuses, priorities and stop requests exist once, in `ade.domain.job`.

The database's CHECK constraints and the enums of the HTTP API are compared with them here.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import CheckConstraint

from ade.domain.job import TERMINAL, Priority, Status, StopRequest
from ade.domain.vocabulary import contract_status, run_status
from ade.store.schema import jobs

OPENAPI = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"
# A lane runs or is paused, and a build has its own statuses: these are not statuses of jobs.
OF_OTHER_THINGS = {"queue_status"}
OF_BUILDS = "building"

VOCABULARIES: list[set[str]] = [
    {status.value for status in Status},
    {run_status(status).value for status in Status},
    {contract_status(status) for status in TERMINAL},
    {priority.value for priority in Priority},
    {request.value for request in StopRequest},
]


def _enums(node: Any, name: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Find every enum of a JSON schema, with the name of the property or parameter it is for."""
    if isinstance(node, list):
        for one in node:
            yield from _enums(one, name)
    elif isinstance(node, dict):
        if "enum" in node:
            yield name, frozenset(word for word in node["enum"] if word is not None)
        for key, value in node.items():
            inner = node.get("name", name) if key == "schema" else name
            yield from _enums(value, inner if key in ("anyOf", "items", "schema") else key)


ENUMS = sorted(
    {
        (name, words)
        for name, words in _enums(json.loads(OPENAPI.read_text()))
        if any(words & vocabulary for vocabulary in VOCABULARIES)
        and name not in OF_OTHER_THINGS
        and OF_BUILDS not in words
    },
    key=str,
)


@pytest.mark.parametrize(("name", "words"), ENUMS)
def test_an_enum_of_the_api_has_all_words_and_no_others(name: str, words: frozenset[str]) -> None:
    assert words in VOCABULARIES


def test_the_api_has_an_enum_for_each_vocabulary() -> None:
    found = {words for _, words in ENUMS}
    assert [words for words in VOCABULARIES if frozenset(words) not in found] == []


def test_the_database_knows_the_same_statuses() -> None:
    checks = [str(one.sqltext) for one in jobs.constraints if isinstance(one, CheckConstraint)]
    (shape,) = [text for text in checks if "CASE" in text]
    assert set(re.findall(r"status\S* = '(\w+)'", shape)) == {status.value for status in Status}
