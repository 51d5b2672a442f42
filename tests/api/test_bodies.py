"""Bodies are what their types promise, and the fast path of a batch writes the same text."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from ade.domain.job import TERMINAL, Priority, Status, StopRequest
from ade.http.batch import JobTemplate
from ade.http.schemas.jobs import Job, job_body
from ade.http.schemas.results import Result, result_body
from ade.http.schemas.runs import Run, run_body
from ade.store.rows import JobRow

JOB: TypeAdapter[Job] = TypeAdapter(Job)
RUN: TypeAdapter[Run] = TypeAdapter(Run)
RESULT: TypeAdapter[Result] = TypeAdapter(Result)
LIMITS = {
    "timeout_ms": 1000,
    "cpu_ms": 1000,
    "memory_mb": 64,
    "max_output_kb": 1,
    "max_artifacts": 0,
}
ERROR = {"category": "USER_CODE_ERROR", "code": "X", "message": "half \ud800", "details": {"n": 1}}
RESULTS = [None, "{}", "[1]", '{"outputs": {"stdout": "x"}}']
ids = st.uuids().map(str)
times = st.none() | st.integers(0, 2**52)
# Also what JSON escapes, and what a template could take for something else.
texts = st.text(st.characters(codec="utf-8"), max_size=20) | st.just("\x01 execution_key")


def stored(value: Any) -> st.SearchStrategy[str | None]:
    return st.none() | st.just(json.dumps(value))


@st.composite
def jobs(draw: st.DrawFn, statuses: Any = Status) -> JobRow:
    status = draw(st.sampled_from(sorted(statuses)))
    return JobRow(
        workspace_id=draw(ids),
        id=draw(ids),
        kind=draw(texts),
        pool=draw(st.sampled_from(["local", "agent"])),
        status=status.value,
        eligible=draw(st.integers(0, 1)),
        priority=draw(st.sampled_from(Priority)).value,
        rank=0,
        target_id=draw(st.none() | texts),
        holds_lane=0,
        not_before=draw(times),
        execution_key=draw(st.none() | st.just("sha256:" + "ab" * 32)),
        rerun_of=draw(st.none() | ids),
        configuration_id=draw(ids),
        document_id=draw(ids),
        build_id=draw(ids),
        fence=draw(st.integers(0, 9)),
        retries_left=0,
        lease_owner=None,
        lease_expires_at=None,
        stop_request=draw(st.none() | st.sampled_from([stop.value for stop in StopRequest])),
        event_seq=1,
        submitted_by=draw(texts),
        submitted_at=draw(st.integers(0, 2**52)),
        started_at=draw(times),
        finished_at=draw(st.integers(0, 2**52)) if status in TERMINAL else None,
        timeout_ms=1000,
        limits=json.dumps(LIMITS),
        progress=draw(stored({"done": 1, "deep": [[["\ud800"]]]})),
        usage=draw(stored({"cpu_ms": 7, "memory_mb_peak": 3.5})),
        isolation=draw(stored(["user", "pid"])),
        error=draw(stored(ERROR)),
    )


@given(st.lists(jobs(), max_size=3), st.booleans(), st.booleans())
def test_a_template_writes_what_serializing_the_body_writes(
    different: list[JobRow], deduplicated: bool, safe_mode: bool
) -> None:
    template = JobTemplate("lab", safe_mode=safe_mode)
    for job in different:
        alike = job._replace(id="another id", execution_key=job.execution_key and "sha256:other")
        for one in (job, alike, job):
            body = job_body(one, "lab", deduplicated=deduplicated, safe_mode=safe_mode)
            assert template.text(one, deduplicated=deduplicated) == json.dumps(body)


@given(jobs())
def test_a_job_and_a_run_are_what_the_document_promises(job: JobRow) -> None:
    readable = job._replace(error=None, progress=None)  # pydantic refuses half a surrogate pair
    shown, run = job_body(readable, "lab"), run_body(readable, "lab", None, None, None)
    JOB.validate_json(json.dumps(shown))
    RUN.validate_json(json.dumps(run))
    assert (set(shown), set(run)) == (set(Job.__annotations__), set(Run.__annotations__))


@given(jobs(statuses=TERMINAL), st.sampled_from(RESULTS))
def test_a_result_is_what_the_document_promises(job: JobRow, text: str | None) -> None:
    result = result_body(job._replace(error=None), text, "echo@1")
    RESULT.validate_json(json.dumps(result))
    assert set(result) | {"error", "resolved"} == set(Result.__annotations__)
    assert ("error" in result) == (job.status != "succeeded")
