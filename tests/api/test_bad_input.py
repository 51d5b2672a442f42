"""Every kind of nonsense is a 4xx problem, never a 500."""

import json
from typing import Any

import pytest
from tests.api.server import JOBS, TARGETS, Server, echo, problem

JSON = {"content-type": "application/json"}


def job(inputs: bytes) -> bytes:
    return b'{"job_type":"echo","document_revision_id":"r","inputs":{' + inputs + b"}}"


RAW_BODIES = {
    "nothing": b"",
    "half": b'{"job_type": "echo"',
    "not utf-8": b'{"job_type": "\xff\xfe"}',
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "a text": b'"echo"',
    "an empty object": b"{}",
    "a lone surrogate": job(b'"value":"\\ud800"'),
    "a lone surrogate in a key": job(b'"\\udfff":1'),
    "infinity": job(b'"value":1e400'),
    "NaN": job(b'"value":NaN'),
    "too deep": job(b'"value":' + b"[" * 5000 + b"]" * 5000),
    "a huge number": job(b'"value":' + b"1" * 5000),
}


@pytest.mark.parametrize("name", RAW_BODIES)
async def test_bodies_that_are_no_job(standing: Server, name: str) -> None:
    answer = await standing.http.post(JOBS, content=RAW_BODIES[name], headers=JSON)
    problem(answer, 422, "validation_error")
    lane = await standing.http.post(TARGETS + "/t/jobs", content=RAW_BODIES[name], headers=JSON)
    problem(lane, 422, "validation_error")


LONG = "x" * 201
WRONG_FIELDS: list[dict[str, Any]] = [
    {"job_type": 1},
    {"job_type": ""},
    {"job_type": LONG},
    {"job_type": None},
    {"document_revision_id": LONG},
    {"document_revision_id": 5},
    {"dedupe": "no"},
    {"project_id": LONG},
    {"document_id": 5},
    {"inputs": None},
    {"inputs": []},
    {"inputs": "x"},
    {"target": {"object_id": LONG}},
    {"target": {"object_ids": ["a"] * 1001}},
    {"target": {"other": 1}},
    {"target": []},
    {"output_spec": 1},
    {"limits": {"timeout_ms": -1}},
    {"limits": {"timeout_ms": 0}},
    {"limits": {"timeout_ms": "5"}},
    {"limits": {"timeout_ms": 1.5}},
    {"limits": {"timeout_ms": True}},
    {"limits": {"timeout_ms": 2**63}},
    {"limits": {"timeout_ms": 10**400}},
    {"limits": {"cpu_ms": 2**63 - 1}},
    {"limits": {"disk": 1}},
    {"priority": "urgent"},
    {"priority": 1},
    {"environment": {"network_access": "maybe"}},
    {"environment": "python"},
    {"reuse_failed": "yes"},
    {"target_id": LONG},
    {"target_id": ""},
    {"target_id": "a\0b"},
    {"target_id": 5},
    {"not_before": "tomorrow"},
    {"not_before": 1},
    {"not_before": "2999-01-01T00:00:00"},
    {"not_before": "99999-01-01T00:00:00Z"},
    {"inputs": {"value": "nul\0"}},
    {"inputs": {"value": {"nul\0": 1}}},
    {"inputs": {"value": [{"deep": ["\0"]}]}},
    {"inputs": {"sleep_ms": 10**400}},
    {"inputs": {"sleep_ms": 1e308}},
    {"inputs": {"steps": 2**63}},
    {"nonsense": 1},
    {"requested_by": {"password": "secret-value"}},
]


@pytest.mark.parametrize("change", WRONG_FIELDS, ids=lambda c: json.dumps(c)[:60])
async def test_fields_that_are_wrong(standing: Server, change: dict[str, Any]) -> None:
    answer = await standing.http.post(JOBS, json={**echo(), **change})
    assert 400 <= answer.status_code < 500
    found = problem(answer, answer.status_code, answer.json()["code"])
    assert found["code"] in ("validation_error", "limit_exceeds_quota")
    assert "secret-value" not in answer.text
    batch = await standing.http.post(
        JOBS + "/batch", json={"jobs": [{**echo(), **change}, echo(9)]}
    )
    assert batch.status_code == 207
    refused, taken = batch.json()["items"]
    assert refused["problem"]["code"] == found["code"]
    assert taken["status"] == 202


async def test_a_backslash_before_u0000_is_no_nul(standing: Server) -> None:
    job = await standing.submit(value="\\u0000")
    envelope = (await standing.http.get(job["links"]["self"] + "/payload")).json()
    assert envelope["inputs"]["value"] == "\\u0000"


async def test_numbers_that_json_allows_are_kept(standing: Server) -> None:
    numbers = [10**300, -1, 2**63, 1.5, -0.0, 1e300]
    job = await standing.submit(value=numbers)
    envelope = (await standing.http.get(job["links"]["self"] + "/payload")).json()
    assert envelope["inputs"]["value"] == numbers


async def test_the_last_of_two_equal_keys_counts(standing: Server) -> None:
    body = b'{"job_type":"nope","job_type":"echo","document_revision_id":"r","inputs":{}}'
    answer = await standing.http.post(JOBS, content=body, headers=JSON)
    assert answer.status_code == 202


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "nonsense"])
async def test_bodies_that_are_not_called_json(standing: Server, kind: str) -> None:
    body = json.dumps(echo()).encode()
    answer = await standing.http.post(JOBS, content=body, headers={"content-type": kind})
    problem(answer, 415, "unsupported_media_type")


async def test_json_may_be_called_by_its_longer_names(standing: Server) -> None:
    body = json.dumps(echo()).encode()
    for kind in ("application/json; charset=utf-8", "APPLICATION/JSON", "application/x+json"):
        answer = await standing.http.post(JOBS, content=body, headers={"content-type": kind})
        assert answer.status_code == 202


@pytest.mark.parametrize("key", ["", "x" * 201, "tab\there", "ünï"])
async def test_idempotency_keys_that_are_none(standing: Server, key: str) -> None:
    headers = {"Idempotency-Key": key.encode("latin-1")}
    answer = await standing.http.post(JOBS, json=echo(), headers=headers)  # type: ignore[arg-type]
    problem(answer, 422, "validation_error")


UNKNOWN = [
    "x",
    "0",
    "00000000-0000-0000-0000-000000000000",
    "%00",
    "%F0%9F%A6%86",
    "a" * 3000,
    "{00000000-0000-0000-0000-000000000000}",
]
READS = ["", "/payload", "/result", "/artifact", "/output", "/artifacts", "/events", "/logs"]


@pytest.mark.parametrize("job_id", UNKNOWN, ids=lambda text: text[:12])
async def test_unknown_jobs_are_not_found(standing: Server, job_id: str) -> None:
    for read in [*READS, "/attempts"]:
        problem(await standing.http.get(f"{JOBS}/{job_id}{read}"), 404, "not_found")
    for verb in ("cancel", "interrupt", "resume", "retry"):
        problem(await standing.http.post(f"{JOBS}/{job_id}/{verb}"), 404, "not_found")
    for verb in ("cancel", "interrupt", "resume", "clear"):
        answer = await standing.http.post(f"{TARGETS}/t/jobs/{job_id}/{verb}")
        problem(answer, 404, "not_found")


QUERIES = [
    "limit=0",
    "limit=201",
    "limit=-1",
    "limit=x",
    "limit=" + "9" * 400,
    "status=nope",
    "priority=urgent",
    "submitted_after=yesterday",
    "submitted_after=2026-01-01T00:00:00",
    "cursor=nonsense",
    "cursor=MTp4",
    "cursor=%00",
    "cursor=" + "x" * 300,
    "target_id=" + "x" * 201,
    "target_id=a%00b",
    "job_type=%00",
    "job_type=",
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda text: text[:30])
async def test_lists_refuse_what_they_do_not_understand(standing: Server, query: str) -> None:
    problem(await standing.http.get(f"{JOBS}?{query}"), 422, "validation_error")


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "after=99999999999", "after=" + "9" * 400]
)
async def test_event_logs_refuse_places_that_are_none(standing: Server, query: str) -> None:
    job = await standing.submit()
    answer = await standing.http.get(f"{job['links']['events']}?{query}")
    problem(answer, 422, "validation_error")


@pytest.mark.parametrize("query", ["stream=stdin", "tail=0", "tail=x", "tail=" + "9" * 30])
async def test_logs_refuse_what_they_do_not_know(standing: Server, query: str) -> None:
    job = await standing.submit()
    problem(await standing.http.get(f"{job['links']['logs']}?{query}"), 422, "validation_error")


async def test_a_path_that_is_not_there_and_a_method_that_is_not_known(standing: Server) -> None:
    problem(await standing.http.get("/api/v1/nothing"), 404, "not_found")
    answer = await standing.http.put(JOBS)
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, POST"


async def test_a_trace_id_is_taken_over(standing: Server) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    for path in (JOBS, "/nothing"):
        answer = await standing.http.get(path, headers=headers)
        assert answer.headers["x-trace-id"] == trace
    answer = await standing.http.post(JOBS, json=echo(), headers=headers)
    assert answer.headers["x-trace-id"] == trace


@pytest.mark.parametrize("sent", ["nonsense", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", ""])
async def test_a_trace_id_that_is_none_is_replaced(standing: Server, sent: str) -> None:
    answer = await standing.http.get("/healthz", headers={"traceparent": sent})
    made = answer.headers["x-trace-id"]
    assert len(made) == 32
    assert int(made, 16)


@pytest.mark.parametrize("path", [JOBS, "/api/v1/workspaces"])
async def test_a_client_that_leaves_halfway_is_not_answered(
    standing: Server, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    messages: list[Any] = [
        {"type": "http.request", "body": b'{"job', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    key = standing.http.headers["authorization"].encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"authorization", key), (b"content-type", b"application/json")],
    }
    await standing.app(scope, receive, send)
    assert sent == []
    assert not caplog.records


async def test_an_unexpected_error_is_a_500_without_details(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def fall(*_: Any) -> Any:
        raise RuntimeError("the password is hunter2")

    context: Any = server.app.state.context
    object.__setattr__(context.kernel, "submit", fall)
    context.kernel.read = fall
    for answer in (
        await server.http.post(JOBS, json=echo()),
        await server.http.get(JOBS),
    ):
        found = problem(answer, 500, "internal_error")
        assert "hunter2" not in answer.text
        assert found["trace_id"] in caplog.text
    assert "hunter2" in caplog.text
