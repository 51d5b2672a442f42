"""Lists of runs and jobs: what each item says, the filters, and parameters that do not exist."""

from typing import Any

import pytest
from tests.api.catalogue import BASE, RUNS, built, claimed, configured, shown, started, uploaded
from tests.api.server import JOBS, Server, problem

from ade.domain.evaluation import Evaluation
from ade.domain.job import Status
from ade.domain.outcome import Outcome, timed_out_error
from ade.stages.finish import Finish

COUNTS = {
    "tables": 2,
    "tables_written": 1,
    "rows": 7,
    "columns_mapped": 3,
    "issues": {"error": 1, "warning": 0, "info": 4},
    "skipped_rows": 2,
    "skipped": {"rows": {"total": 2}},
}
Run = dict[str, Any]


async def found(server: Server, **query: Any) -> list[str]:
    """List the ids of the runs that match a query."""
    answer = await server.http.get(RUNS, params=query)
    assert answer.status_code == 200, answer.text
    return [run["run_id"] for run in answer.json()["items"]]


async def finished(server: Server, run: Run, outcome: Outcome) -> None:
    """Record the end of a run that is next in the queue."""
    claim = await claimed(server)
    assert claim.id == run["run_id"]
    await server.kernel.finish(Finish(claim, outcome))


async def built_runs(server: Server, count: int) -> list[Run]:
    """Start runs whose build is ready."""
    configuration_id, document_id = await configured(server), await uploaded(server)
    runs = [await started(server, configuration_id, document_id) for _ in range(count)]
    await built(server)
    return runs


# --- what a run says ------------------------------------------------------------------------------


async def test_a_run_says_its_evaluation_and_counts_wherever_it_is_shown(server: Server) -> None:
    (run,) = await built_runs(server, 1)
    assert (run["evaluation"], run["counts"]) == (None, None)
    outcome = Outcome(Status.SUCCEEDED, evaluation=Evaluation.PARTIAL, counts=COUNTS)
    await finished(server, run, outcome)
    (listed,) = (await server.http.get(RUNS)).json()["items"]
    (listed_job,) = [
        job
        for job in (await server.http.get(JOBS)).json()["items"]
        if job["job_id"] == run["run_id"]
    ]
    job = (await server.http.get(run["links"]["job"])).json()
    for one in (listed, await shown(server, run), job, listed_job):
        assert (one["evaluation"], one["counts"]) == ("partial", COUNTS)


async def test_a_list_says_of_a_run_all_that_the_run_itself_says(server: Server) -> None:
    configuration_id, document_id = await configured(server), await uploaded(server)
    run = await started(server, configuration_id, document_id)
    (listed,) = (await server.http.get(RUNS)).json()["items"]
    assert listed == await shown(server, run)
    assert listed["build"]["status"] == "queued"
    assert listed["waiting"]["reason"] == "build"
    assert listed["version"]["sequence"] == 1
    await built(server)
    (listed,) = (await server.http.get(RUNS)).json()["items"]
    assert listed["build"]["status"] == "ready"
    assert listed["waiting"]["reason"] == "capacity"
    assert (await shown(server, run))["waiting"]["position"] == 1


@pytest.mark.parametrize("name", ["artifact", "output"])
async def test_files_of_a_run_that_has_not_ended_are_a_conflict(server: Server, name: str) -> None:
    (run,) = await built_runs(server, 1)
    problem(await server.http.get(run["links"][name]), 409, "not_finished")
    await finished(server, run, Outcome(Status.SUCCEEDED, result={}))
    problem(await server.http.get(run["links"][name]), 404, "not_found")


# --- filters --------------------------------------------------------------------------------------


async def test_runs_are_found_by_status_in_the_words_of_runs(server: Server) -> None:
    runs = await built_runs(server, 3)
    first, second, third = [run["run_id"] for run in runs]
    await finished(server, runs[0], Outcome(Status.SUCCEEDED))
    await finished(server, runs[1], Outcome(Status.TIMED_OUT, error=timed_out_error(1)))
    assert await found(server, status="succeeded") == [first]
    assert await found(server, status="failed") == [second]
    assert await found(server, status="queued") == [third]
    assert await found(server, status=["failed", "succeeded"]) == [second, first]
    assert await found(server, status="cancelled") == []


async def test_runs_are_found_by_evaluation(server: Server) -> None:
    runs = await built_runs(server, 3)
    for run, evaluation in zip(runs, Evaluation, strict=True):
        outcome = Outcome(Status.SUCCEEDED, evaluation=evaluation, counts=COUNTS)
        await finished(server, run, outcome)
    first, second, third = [run["run_id"] for run in runs]
    assert await found(server, evaluation="unusable") == [third]
    assert await found(server, evaluation=["complete", "partial"]) == [second, first]
    answer = await server.http.get(JOBS, params={"evaluation": "partial"})
    assert [job["job_id"] for job in answer.json()["items"]] == [second]


async def test_runs_are_found_by_configuration_document_and_time(server: Server) -> None:
    configurations = [await configured(server) for _ in range(2)]
    documents = [await uploaded(server, b"Name\nAda\n"), await uploaded(server)]
    runs = [
        await started(server, configurations[0], documents[0]),
        await started(server, configurations[0], documents[1]),
        await started(server, configurations[1], documents[1]),
    ]
    first, second, third = [run["run_id"] for run in runs]
    assert await found(server, configuration_id=configurations[0]) == [second, first]
    assert await found(server, configuration_id=configurations) == [third, second, first]
    assert await found(server, document_id=documents[1].upper()) == [third, second]
    both = {"configuration_id": configurations[0], "document_id": documents[1]}
    assert await found(server, **both) == [second]
    assert await found(server, created_after=runs[0]["created_at"]) == [third, second]
    assert await found(server, created_before=runs[2]["created_at"]) == [second, first]


async def test_pages_keep_their_filters(server: Server) -> None:
    runs = await built_runs(server, 3)
    query: dict[str, Any] = {"status": "queued", "limit": 2}
    page = (await server.http.get(RUNS, params=query)).json()
    rest = (await server.http.get(RUNS, params={**query, "cursor": page["next_cursor"]})).json()
    items = [run["run_id"] for run in page["items"] + rest["items"]]
    assert items == [run["run_id"] for run in reversed(runs)]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize(
    "query",
    [
        {"status": "done"},
        {"evaluation": "good"},
        {"document_id": "1"},
        {"created_after": "today"},
        {"created_after": "2024"},  # not a number of seconds since 1970
        {"created_before": "20240131"},
    ],
)
async def test_a_value_that_cannot_match_is_refused(server: Server, query: dict[str, str]) -> None:
    problem(await server.http.get(RUNS, params=query), 422, "validation_error")


async def test_runs_and_jobs_are_counted_by_status_with_the_same_filters(server: Server) -> None:
    runs = await built_runs(server, 3)
    outcome = Outcome(Status.SUCCEEDED, evaluation=Evaluation.PARTIAL, counts=COUNTS)
    await finished(server, runs[0], outcome)
    await finished(server, runs[1], Outcome(Status.TIMED_OUT, error=timed_out_error(1)))

    async def counted(path: str, **query: str) -> dict[str, Any]:
        return dict((await server.http.get(f"{path}/counts", params=query)).json())

    found = await counted(RUNS)
    assert (found["total"], found["counts"]) == (
        3,
        {"queued": 1, "running": 0, "succeeded": 1, "failed": 1, "cancelled": 0},
    )
    assert (await counted(RUNS, evaluation="partial"))["total"] == 1
    found = await counted(JOBS, job_type="normalize")
    assert {status for status, count in found["counts"].items() if count} == {
        "queued",
        "succeeded",
        "timed_out",
    }
    problem(await server.http.get(f"{RUNS}/counts?stauts=failed"), 422, "validation_error")


# --- parameters that do not exist -----------------------------------------------------------------


async def test_an_unknown_parameter_is_refused_with_the_one_that_was_meant(server: Server) -> None:
    answer = await server.http.get(RUNS, params={"stauts": "failed"})
    refusal = problem(answer, 422, "validation_error")
    assert refusal["errors"] == [
        {"field": "stauts", "message": "there is no such parameter; did you mean status?"}
    ]
    assert refusal["detail"] == "stauts: there is no such parameter; did you mean status?"


async def test_every_list_refuses_unknown_parameters(server: Server) -> None:
    paths = (await server.http.get("/api/v1/openapi.json")).json()["paths"]
    configuration_id = await configured(server)
    lists = [
        path.format(ws="default", target_id="t", configuration_id=configuration_id)
        for path, operations in paths.items()
        if "cursor" in {one["name"] for one in operations.get("get", {}).get("parameters", [])}
    ]
    assert len(lists) >= 6
    for path in lists:
        assert (await server.http.get(path)).status_code == 200, path
        problem(await server.http.get(path, params={"colour": "red"}), 422, "validation_error")


async def test_a_parameter_that_takes_one_value_is_refused_twice(server: Server) -> None:
    answer = await server.http.get(f"{RUNS}?limit=1&limit=2")
    refusal = problem(answer, 422, "validation_error")
    assert refusal["errors"] == [{"field": "limit", "message": "it may be given only once"}]


async def test_who_is_not_authenticated_learns_no_parameters(server: Server) -> None:
    answer = await server.http.get(
        f"{BASE}/runs", params={"stauts": "failed"}, headers={"authorization": "Bearer wrong"}
    )
    problem(answer, 401, "unauthenticated")
