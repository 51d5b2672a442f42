"""Whatever is accepted as the result of a job can be read by every route that shows it."""

import json
import random
from typing import Any

import pytest
from tests.api.server import JOBS, TARGETS, Server, echo, failed, succeeded

from ade.domain.limits import Limits
from ade.sandbox.child_messages import DEPTH_MAX, ChildMessages
from ade.sandbox.exit_status import ExitObservation, classify_exit

LIMITS = Limits(1000, 1000, 64, 64, 1)
ROUTES = ("", "/result", "/logs", "/artifacts", "/events", "/attempts", "/payload")
LEAVES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    10**400,
    1e308,
    0.1,
    "",
    "é",
    "\0",
    "\ud800",
    "\U0001f600",
]


def nested(depth: int, leaf: Any = 1) -> Any:
    """Nest lists and objects in turn."""
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"a": leaf}
    return leaf


def anything(source: random.Random, depth: int) -> Any:
    if depth == 0 or source.random() < 0.3:
        return source.choice(LEAVES)
    inner = [anything(source, depth - 1) for _ in range(source.randrange(4))]
    return inner if source.random() < 0.5 else {str(source.choice(LEAVES)): one for one in inner}


def returned(line: bytes) -> tuple[ChildMessages, Any]:
    """Take a line of a child that then ends; return its messages and its error."""
    messages = ChildMessages(lambda _: None)
    messages.receive(line)
    return messages, classify_exit(ExitObservation(0, LIMITS, messages=messages.kept))


def deep_line(depth: int) -> bytes:
    return b'{"result": ' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 300, 970, 100_000])
def test_a_result_that_is_nested_too_deep_is_a_failure(depth: int) -> None:
    _, error = returned(deep_line(depth))
    assert error is not None
    assert error.code == "RESULT_TOO_DEEP"


def test_a_failure_whose_details_are_nested_too_deep_keeps_its_code() -> None:
    declared = {"code": "mine", "message": "m", "details": {"deep": nested(500), "column": 3}}
    line = json.dumps({"failure": {"type": "X", "declared": declared}}).encode()
    _, error = returned(line)
    assert error is not None
    assert (error.code, error.details["column"]) == ("MINE", 3)
    assert len(json.dumps(error.details)) < 10_000


def test_a_description_of_a_file_that_is_nested_too_deep_is_ignored() -> None:
    messages = ChildMessages(lambda _: None)
    messages.receive(b'{"artifact": {"name": "a", "x": ' + b"[" * 970 + b"]" * 970 + b"}}")
    assert messages.declared == {}


async def test_what_is_accepted_can_be_read(server: Server) -> None:
    source = random.Random(15)
    values = [nested(depth) for depth in (0, 1, 100, DEPTH_MAX - 1, DEPTH_MAX)]
    values += [anything(source, 6) for _ in range(30)] + LEAVES
    for number, value in enumerate(values):  # no two are the same work
        messages, error = returned(json.dumps({"result": value}).encode())
        assert error is None, value
        job = await server.run(succeeded(messages.first("result")), value=number)
        for route in ROUTES:
            answer = await server.http.get(f"{JOBS}/{job['job_id']}{route}")
            assert answer.status_code in (200, 404), (route, value, answer.text)
        shown = (await server.http.get(f"{JOBS}/{job['job_id']}/result")).json()
        assert shown["outputs"]["result_json"] == value


@pytest.mark.parametrize("depth", [150, 201, 970, 100_000])
async def test_a_body_of_any_depth_is_accepted_and_readable_or_refused(
    standing: Server, depth: int
) -> None:
    body = json.dumps(echo(0)).replace('"value": 0', f'"value": {"[" * depth}{"]" * depth}')
    answer = await standing.http.post(
        JOBS, content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (202, 422)
    if answer.status_code == 202:
        for route in ("", "/payload", "/events"):
            shown = await standing.http.get(f"{JOBS}/{answer.json()['job_id']}{route}")
            assert shown.status_code in (200, 404), (route, shown.text)


@pytest.mark.parametrize("depth", [150, 201, 970, 10_000])
async def test_what_a_person_resolves_is_readable_or_refused(server: Server, depth: int) -> None:
    job = await server.run(failed(), target_id="t")
    place = f"{TARGETS}/t/jobs/{job['job_id']}"
    content = f'{{"result": {"[" * depth}{"]" * depth}}}'
    headers = {"Content-Type": "application/json"}
    answer = await server.http.post(f"{place}/resolve", content=content, headers=headers)
    assert answer.status_code in (200, 409, 422), answer.text
    if answer.status_code == 200:
        for route in ROUTES:
            shown = await server.http.get(f"{JOBS}/{job['job_id']}{route}")
            assert shown.status_code in (200, 404), (route, shown.text)
