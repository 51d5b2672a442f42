"""Reading jobs: one, lists, payload, result, files, logs, attempts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.api.server import JOBS, Server, echo, failed, kept_file, problem, succeeded

from ade.domain.events import EventType
from ade.domain.job import Status
from ade.domain.outcome import Category, Outcome
from ade.stages.claim import ClaimRequest
from ade.stages.kernel_settings import KernelSettings
from ade.stages.report import AttemptReport
from ade.stages.workers import RunningWorker
from ade.store.rows import LeaseRef


async def test_an_unchanged_job_is_not_sent_again(server: Server) -> None:
    job = await server.submit()
    first = await server.http.get(job["links"]["self"])
    tag = first.headers["etag"]
    for sent in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = await server.http.get(job["links"]["self"], headers={"If-None-Match": sent})
        assert again.status_code == 304
        assert again.content == b""
        assert again.headers["etag"] == tag
    await server.claim()
    changed = await server.http.get(job["links"]["self"], headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["status"] == "running"


async def test_a_waiting_job_says_why_and_which_place_it_has(server: Server) -> None:
    await server.submit(value="first")
    second = await server.submit(value="second")
    waiting = (await server.http.get(second["links"]["self"])).json()["waiting"]
    assert waiting["reason"] == "capacity"
    assert waiting["position"] == 2
    holder = await server.submit(target_id="lamp")
    behind = await server.submit(target_id="lamp")
    waiting = (await server.http.get(behind["links"]["self"])).json()["waiting"]
    assert waiting["reason"] == "lane"
    assert holder["job_id"] in waiting["detail"]


async def test_a_job_that_no_worker_can_run_says_so(server: Server) -> None:
    job = await server.submit()
    await server.kernel.note_worker(RunningWorker("old", "here", frozenset({"build"})))
    await server.kernel.claim(ClaimRequest("old", 1, kinds=frozenset({"build"})))
    one = (await server.http.get(job["links"]["self"])).json()
    (listed,) = (await server.http.get(JOBS)).json()["items"]
    for waiting in (one["waiting"], listed["waiting"]):
        assert waiting["reason"] == "worker"
        assert waiting["detail"] == "No worker that is running now can run jobs of kind echo."
    await server.kernel.note_worker(RunningWorker("new", "here", frozenset({"echo"})))
    waiting = (await server.http.get(job["links"]["self"])).json()["waiting"]
    assert waiting["reason"] == "capacity"


async def test_in_safe_mode_that_is_why_a_job_waits(server: Server, serve: Any) -> None:
    job = await server.submit()
    safe = await serve(rules=KernelSettings(safe_mode=True))
    waiting = (await safe.http.get(job["links"]["self"])).json()["waiting"]
    assert waiting["reason"] == "safe_mode"


async def test_a_list_is_read_in_pages_newest_first(database_url: str, serve: Any) -> None:
    server = await serve(database_url)
    made = [(await server.submit(value=n))["job_id"] for n in range(7)]
    seen, cursor, pages = [], None, 0
    while True:
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await server.http.get(JOBS, params=query)).json()
        seen += [job["job_id"] for job in page["items"]]
        pages += 1
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == made[::-1]
    assert pages == 3
    exact = (await server.http.get(JOBS, params={"limit": 7})).json()
    assert exact["next_cursor"] is None


async def test_new_jobs_do_not_shift_the_pages(server: Server) -> None:
    made = [(await server.submit(value=n))["job_id"] for n in range(4)]
    page = (await server.http.get(JOBS, params={"limit": 2})).json()
    await server.submit(value="new")
    query = {"limit": 2, "cursor": page["next_cursor"]}
    rest = (await server.http.get(JOBS, params=query)).json()
    assert [job["job_id"] for job in rest["items"]] == [made[1], made[0]]


async def test_lists_are_filtered(database_url: str, serve: Any) -> None:
    server = await serve(database_url)
    done = await server.run(value="done")
    lane = await server.submit(target_id="lamp")
    high = await server.submit(value="high", priority="high")
    before = datetime.now(UTC) - timedelta(hours=1)

    async def found(**query: Any) -> set[str]:
        answer = await server.http.get(JOBS, params=query)
        assert answer.status_code == 200, answer.text
        return {job["job_id"] for job in answer.json()["items"]}

    everything = {done["job_id"], lane["job_id"], high["job_id"]}
    assert await found(status="succeeded") == {done["job_id"]}
    assert await found(target_id="lamp") == {lane["job_id"]}
    assert await found(priority="high", status="queued") == {high["job_id"]}
    assert await found(job_type="echo") == everything
    assert await found(job_type="other") == set()
    assert await found(submitted_after=before.isoformat()) == everything
    assert await found(submitted_after="2999-01-01T00:00:00Z") == set()


async def test_a_result_has_the_contracts_envelope(server: Server) -> None:
    job = await server.submit()
    problem(await server.http.get(job["links"]["result"]), 409, "not_finished")
    claim = await server.claim()
    problem(await server.http.get(job["links"]["result"]), 409, "not_finished")
    await server.finish(claim, succeeded({"x": 1}, stdout="hello\n"))
    result = (await server.http.get(job["links"]["result"])).json()
    assert result["schema_version"] == "1.0"
    assert result["job_id"] == job["job_id"]
    assert result["status"] == "SUCCEEDED"
    assert result["outputs"] == {"result_json": {"x": 1}, "stdout": "hello\n", "stderr": ""}
    assert result["resource_usage"] == {"cpu_ms": 7, "memory_mb_peak": 3}
    assert result["artifacts"] == []
    assert result["env_version"] == "echo@1"
    assert "error" not in result


async def test_a_failure_has_the_contracts_envelope(server: Server) -> None:
    job = await server.run(failed())
    result = (await server.http.get(job["links"]["result"])).json()
    assert result["status"] == "FAILED"
    assert result["error"]["category"] == "USER_CODE_ERROR"
    assert result["error"]["details"] == {"line": 3}
    assert result["outputs"] == {"stdout": "", "stderr": "Traceback"}


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(Status.SUCCEEDED),
        Outcome(Status.SUCCEEDED, {"outputs": None, "artifacts": None}),
        Outcome(Status.SUCCEEDED, {"outputs": {"stdout": 5}}),
        Outcome(Status.TIMED_OUT),
        Outcome(Status.CANCELLED),
    ],
)
async def test_a_result_is_shown_whatever_was_stored(server: Server, outcome: Outcome) -> None:
    job = await server.run(outcome)
    result = await server.http.get(job["links"]["result"])
    assert result.status_code == 200
    assert result.json()["status"] == outcome.status.value.upper()
    assert (await server.http.get(job["links"]["logs"])).text == ""
    assert (await server.http.get(job["links"]["self"] + "/artifacts")).json() == []


async def test_a_job_without_files_says_so(server: Server) -> None:
    job = await server.run()
    for name in ("artifact", "output"):
        problem(await server.http.get(job["links"][name]), 404, "not_found")


async def left_files(server: Server, *names: str) -> dict[str, Any]:
    """Run a job that leaves files, each with its name as the content."""
    left = [kept_file(server, name, name.encode()) for name in names]
    return await server.run(Outcome(Status.SUCCEEDED, {"outputs": {}}, artifacts=tuple(left)))


@pytest.mark.parametrize(
    ("names", "output"),
    [
        (["normalized.csv", "normalized.xlsx", "normalized-2.csv"], "normalized.xlsx"),
        (["artifact.json", "issues.csv", "normalized.csv"], "normalized.csv"),
        (["normalized.jsonl", "normalized.parquet", "normalized.csv"], "normalized.csv"),
        (["normalized.jsonl", "normalized.parquet"], "normalized.parquet"),
        (["normalized.jsonl"], "normalized.jsonl"),
    ],
)
async def test_the_output_is_the_workbook_or_the_first_other_format(
    server: Server, names: list[str], output: str
) -> None:
    job = await left_files(server, *names)
    answer = await server.http.get(job["links"]["output"])
    assert answer.text == output
    assert f'filename="{output}"' in answer.headers["content-disposition"]


async def test_a_job_without_an_output_names_the_files_that_it_left(server: Server) -> None:
    job = await left_files(server, "artifact.json", "chart.png")
    answer = await server.http.get(job["links"]["output"])
    problem(answer, 404, "not_found")
    detail = answer.json()["detail"]
    assert "artifact.json, chart.png" in detail
    assert f"{job['links']['self']}/artifacts" in detail


async def test_logs_are_what_the_job_wrote(server: Server) -> None:
    job = await server.run(succeeded(1, stdout="a\nb\nc\n", stderr="oops\n"))
    logs = job["links"]["logs"]
    answer = await server.http.get(logs)
    assert answer.text == "a\nb\nc\n"
    assert answer.headers["content-type"].startswith("text/plain")
    assert (await server.http.get(logs, params={"tail": 2})).text == "b\nc\n"
    assert (await server.http.get(logs, params={"stream": "stderr"})).text == "oops\n"


async def test_attempts_are_read_off_the_log(server: Server) -> None:
    job = await server.submit()
    path = job["links"]["self"] + "/attempts"
    assert (await server.http.get(path)).json()["items"] == []
    claim = await server.claim()
    (running,) = (await server.http.get(path)).json()["items"]
    assert running["status"] == "running"
    assert running["worker"] == "worker-1"
    note = (EventType.LOG, {"message": "hello"})
    held = LeaseRef(claim.workspace_id, claim.id, claim.fence)
    await server.kernel.report(AttemptReport(held, (note,)))
    await server.kernel.finish(_handed_back(claim))
    await server.finish(await server.claim(), failed())
    first, second = (await server.http.get(path)).json()["items"]
    assert (first["attempt"], first["status"], first["error"]) == (1, "released", None)
    assert (second["attempt"], second["status"]) == (2, "failed")
    assert second["error"] == {"category": "USER_CODE_ERROR", "code": "PYTHON_EXCEPTION"}
    assert second["ended_at"] >= second["started_at"] >= first["ended_at"]


def _handed_back(claim: Any) -> Any:
    from ade.stages.finish import Finish

    return Finish(claim, None)


async def test_an_internal_error_leads_to_another_attempt_that_waits(server: Server) -> None:
    job = await server.run(failed(Category.INTERNAL_ERROR))
    found = (await server.http.get(job["links"]["self"])).json()
    assert found["status"] == "queued"
    assert found["waiting"]["reason"] == "schedule"


async def test_a_list_never_counts_places(server: Server) -> None:
    await server.submit()
    (job,) = (await server.http.get(JOBS)).json()["items"]
    assert job["waiting"]["position"] is None
    assert echo()["inputs"] == {"value": 1}
