"""Runs: started, listed, cancelled, run again; no worker, and the builder's part is the test's."""

import asyncio
import json
from typing import Any

import pytest
from tests.api.catalogue import (
    BASE,
    PACKAGE,
    RUNS,
    builds,
    built,
    claimed,
    configured,
    edited,
    shown,
    started,
    uploaded,
)
from tests.api.conftest import Serve
from tests.api.server import JOBS, Server, problem
from tests.api.test_auth import key_for
from tests.databases import WORKSPACE, SqlDatabase

from ade.domain.job import Status
from ade.domain.outcome import Category, Outcome, timed_out_error
from ade.stages.kernel_settings import KernelSettings
from ade.store import schema
from ade.store.session import Session

NOBODY = "0198a000-0000-7000-8000-00000000dead"


async def prepared(server: Server) -> tuple[str, str]:
    """Make a configuration and a document."""
    return await configured(server), await uploaded(server)


async def payload(server: Server, run: dict[str, Any]) -> dict[str, Any]:
    """Read what the worker is given."""
    answer = await server.http.get(f"{JOBS}/{run['run_id']}/payload")
    return dict(answer.json())


async def rows(server: Server) -> list[Any]:
    """List the jobs."""
    return list((await server.http.get(JOBS)).json()["items"])


# --- start ----------------------------------------------------------------------------------------


async def test_a_run_is_accepted_and_waits_for_its_build(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    answer = await server.http.post(
        f"{BASE}/configurations/{configuration_id}/runs", json={"input_document_id": document_id}
    )
    assert answer.status_code == 202
    run = answer.json()
    assert answer.headers["location"] == f"{RUNS}/{run['run_id']}" == run["links"]["self"]
    (build,) = await builds(server)
    assert run["build"] == {"build_id": build.id, "status": "queued", "error": None}
    facts = {
        "status": "queued",
        "configuration_id": configuration_id,
        "build_id": build.id,
        "input_document_id": document_id,
        "rerun_of": None,
        "started_at": None,
        "finished_at": None,
        "progress": None,
        "error": None,
    }
    assert {name: run[name] for name in facts} == facts
    assert await shown(server, run) == run
    job = (await server.http.get(run["links"]["job"])).json()
    assert (job["job_type"], job["status"]) == ("normalize", "queued")
    assert job["waiting"]["reason"] == "build"


async def test_every_link_of_a_run_leads_somewhere(server: Server) -> None:
    run = await started(server, *await prepared(server))
    for name, link in run["links"].items():
        answer = await server.http.get(link)
        missing = name in ("artifact", "output")  # it has not run
        assert answer.status_code == (409 if missing else 200), (name, answer.text)


async def test_runs_of_one_draft_share_version_and_build(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    runs = [await started(server, configuration_id, document_id) for _ in range(3)]
    assert len({run["run_id"] for run in runs}) == 3
    assert len({run["build_id"] for run in runs}) == 1
    assert len(await builds(server)) == 1
    versions = {(await payload(server, run))["inputs"]["config_version_id"] for run in runs}
    assert len(versions) == 1


async def test_starts_at_the_same_moment_share_version_and_build(
    database_url: str, serve: Serve
) -> None:
    servers = [await serve(database_url), await serve(database_url)]
    configuration_id, document_id = await prepared(servers[0])
    runs = await asyncio.gather(
        *[started(servers[n % 2], configuration_id, document_id) for n in range(40)]
    )
    assert len({run["run_id"] for run in runs}) == 40
    assert len({run["build_id"] for run in runs}) == 1
    assert len(await builds(servers[0])) == 1
    versions = await servers[0].catalogue.list_versions(
        WORKSPACE, configuration_id, before=None, limit=10
    )
    assert [version.sequence for version in versions] == [1]


async def test_a_run_keeps_the_draft_that_it_was_started_with(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    first = await started(server, configuration_id, document_id)
    await edited(server, configuration_id, "columns/name.py", "changed = True\n")
    second = await started(server, configuration_id, document_id)
    before, after = await payload(server, first), await payload(server, second)
    assert before["inputs"]["config_version_id"] != after["inputs"]["config_version_id"]
    assert first["build_id"] != second["build_id"]
    again = await started(
        server,
        configuration_id,
        document_id,
        config_version_id=before["inputs"]["config_version_id"],
    )
    assert again["build_id"] == first["build_id"]


async def test_limits_and_priority_are_the_jobs(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    asked = {"limits": {"memory_mb": 99, "cpu_ms": 1234}, "priority": "high"}
    run = await started(server, configuration_id, document_id, **asked)
    job = (await server.http.get(run["links"]["job"])).json()
    assert (job["limits"]["memory_mb"], job["limits"]["cpu_ms"]) == (99, 1234)
    assert job["priority"] == "high"


async def test_a_run_says_whether_it_asked_for_network(serve: Serve) -> None:
    server = await serve(runtime_network_access="if_asked")
    configuration_id, document_id = await prepared(server)
    for asked, word in ((None, None), (False, "disabled"), (True, "enabled")):
        more = {} if asked is None else {"runtime_network_access": asked}
        run = await started(server, configuration_id, document_id, **more)
        assert (await payload(server, run))["environment"]["network_access"] == word


# --- refuse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "validation_error"),
        ({"input_document_id": 7}, 422, "validation_error"),
        ({"input_document_id": NOBODY}, 404, "not_found"),
        ({"input_document_id": "no id"}, 404, "not_found"),
        ({"input_document_ids": [NOBODY]}, 422, "validation_error"),
        ({"priority": "urgent"}, 422, "validation_error"),
        ({"limits": {"memory_mb": 0}}, 422, "validation_error"),
        ({"limits": {"memory_mb": 10**6}}, 422, "limit_exceeds_quota"),
        ({"runtime_network_access": True}, 403, "forbidden"),
        ({"config_version_id": NOBODY}, 404, "not_found"),
    ],
)
async def test_what_cannot_be_run_is_refused(
    server: Server, body: dict[str, Any], status: int, code: str
) -> None:
    configuration_id, document_id = await prepared(server)
    whole = body if not body or "document" in str(body) else {"input_document_id": document_id}
    answer = await server.http.post(
        f"{BASE}/configurations/{configuration_id}/runs", json=whole | body
    )
    problem(answer, status, code)
    assert await rows(server) == []
    assert await builds(server) == []


@pytest.mark.parametrize("name", [NOBODY, "no-id", "%00"])
async def test_an_unknown_configuration_is_not_found(server: Server, name: str) -> None:
    document_id = await uploaded(server)
    body = {"input_document_id": document_id}
    problem(
        await server.http.post(f"{BASE}/configurations/{name}/runs", json=body), 404, "not_found"
    )


async def test_a_version_of_another_configuration_is_not_found(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    version = await server.catalogue.snapshot(WORKSPACE, configuration_id, "someone")
    other = await configured(server)
    body = {"input_document_id": document_id, "config_version_id": version.id}
    answer = await server.http.post(f"{BASE}/configurations/{other}/runs", json=body)
    problem(answer, 404, "not_found")


async def test_a_deleted_document_is_not_run(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    run = await started(server, configuration_id, document_id)
    assert (await server.http.delete(f"{BASE}/documents/{document_id}")).status_code == 204
    body = {"input_document_id": document_id}
    answer = await server.http.post(f"{BASE}/configurations/{configuration_id}/runs", json=body)
    problem(answer, 404, "not_found")
    assert (await shown(server, run))["input_document_id"] == document_id


async def test_another_workspace_is_not_there(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    run = await started(server, configuration_id, document_id)
    version_id = (await payload(server, run))["inputs"]["config_version_id"]
    await server.http.post("/api/v1/workspaces", json={"slug": "lab", "name": "Lab"})
    lab = "/api/v1/workspaces/lab"
    asked = {"input_document_id": document_id}
    seed = {"config_version_id": version_id, "document_id": document_id}
    answers = [
        await server.http.post(f"{lab}/configurations/{configuration_id}/runs", json=asked),
        await server.http.post(f"{lab}/jobs", json=seed),
        await server.http.get(f"{lab}/runs/{run['run_id']}"),
        await server.http.post(f"{lab}/runs/{run['run_id']}/cancel"),
        await server.http.post(f"{lab}/runs/{run['run_id']}/rerun"),
        await server.http.get(f"{lab}/jobs/{run['run_id']}/output"),
    ]
    for answer in answers:
        problem(answer, 404, "not_found")
    assert (await server.http.get(f"{lab}/runs")).json()["items"] == []


async def test_who_only_looks_starts_nothing(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    run = await started(server, configuration_id, document_id)
    viewer = server.client(await key_for(server, "viewer"))
    assert (await viewer.get(run["links"]["self"])).status_code == 200
    body = {"input_document_id": document_id}
    for path in (f"{BASE}/configurations/{configuration_id}/runs", f"{RUNS}/{run['run_id']}/rerun"):
        problem(await viewer.post(path, json=body), 403, "forbidden")
    problem(await viewer.post(f"{RUNS}/{run['run_id']}/cancel"), 403, "forbidden")


async def test_a_run_of_a_known_version_reads_the_catalogue_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand at once wait for one thread: each look more is a thousand more."""
    configuration_id, document_id = await prepared(server)
    await started(server, configuration_id, document_id)
    await built(server)
    asked: list[str] = []
    aread, achange = Session.aread, Session.achange

    async def noting_read(session: Session, look: Any) -> Any:
        asked.append("read")
        return await aread(session, look)

    async def noting_change(session: Session, *work: Any) -> Any:
        asked.append("change")
        return await achange(session, *work)

    monkeypatch.setattr(Session, "aread", noting_read)
    monkeypatch.setattr(Session, "achange", noting_change)
    run = await started(server, configuration_id, document_id)
    assert asked == ["read"]
    assert run["build"]["status"] == "ready"


async def runs_in(server: Server) -> list[dict[str, Any]]:
    """List all runs."""
    return list((await server.http.get(RUNS)).json()["items"])


async def test_a_full_queue_leaves_no_run(serve: Serve) -> None:
    server = await serve(rules=KernelSettings(queue_size=1))
    configuration_id, document_id = await prepared(server)
    first = await started(server, configuration_id, document_id)
    body = {"input_document_id": document_id}
    answer = await server.http.post(f"{BASE}/configurations/{configuration_id}/runs", json=body)
    problem(answer, 429, "run_queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    assert [run["run_id"] for run in await runs_in(server)] == [first["run_id"]]
    await server.http.post(f"{RUNS}/{first['run_id']}/cancel")
    await started(server, configuration_id, document_id)


async def test_runs_that_wait_for_their_build_fill_the_quota(serve: Serve) -> None:
    server = await serve(rules=KernelSettings(queue_size=0, workspace_queue_size=2))
    configuration_id, document_id = await prepared(server)
    runs = [await started(server, configuration_id, document_id) for _ in range(2)]
    body = {"input_document_id": document_id}
    answer = await server.http.post(f"{BASE}/configurations/{configuration_id}/runs", json=body)
    assert "workspace's quota" in problem(answer, 429, "run_queue_full")["detail"]
    assert int(answer.headers["retry-after"]) >= 1
    assert {run["run_id"] for run in await runs_in(server)} == {run["run_id"] for run in runs}
    await server.http.post(f"{RUNS}/{runs[0]['run_id']}/cancel")
    await started(server, configuration_id, document_id)


async def test_safe_mode_starts_nothing(serve: Serve) -> None:
    server = await serve(rules=KernelSettings(queue_size=0, safe_mode=True), safe_mode=True)
    configuration_id, document_id = await prepared(server)
    version = await server.catalogue.snapshot(WORKSPACE, configuration_id, "someone")
    asked = {"input_document_id": document_id}
    seed = {"config_version_id": version.id, "document_id": document_id}
    for path, body in ((f"{BASE}/configurations/{configuration_id}/runs", asked), (JOBS, seed)):
        found = problem(await server.http.post(path, json=body), 400, "safe_mode")
        assert found["detail"].startswith("ADE_SAFE_MODE is enabled")
    assert await rows(server) == []
    assert await builds(server) == []


# --- the short form -------------------------------------------------------------------------------


async def test_the_short_form_starts_the_same_run(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    version = await server.catalogue.snapshot(WORKSPACE, configuration_id, "someone")
    for named in ({"document_id": document_id}, {"document_ids": [document_id]}):
        answer = await server.http.post(JOBS, json={"config_version_id": version.id, **named})
        assert answer.status_code == 202, answer.text
        job = answer.json()
        assert job["job_type"] == "normalize"
        assert answer.headers["location"] == f"{JOBS}/{job['job_id']}"
        run = (await server.http.get(f"{RUNS}/{job['job_id']}")).json()
        assert run["configuration_id"] == configuration_id
        assert run["input_document_id"] == document_id
        inputs = (await payload(server, run))["inputs"]
        assert inputs["config_version_id"] == version.id
    assert len(await builds(server)) == 1


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"document_ids": []},
        {"document_ids": ["{id}", "{id}"]},
        {"document_id": "{id}", "document_ids": ["{id}"]},
        {"document_id": ["{id}"]},
        {"document_id": "{id}", "inputs": {}},
    ],
    ids=["none", "empty", "two", "both", "list", "more"],
)
async def test_the_short_form_takes_exactly_one_document(
    server: Server, named: dict[str, Any]
) -> None:
    configuration_id, document_id = await prepared(server)
    version = await server.catalogue.snapshot(WORKSPACE, configuration_id, "someone")
    named = json.loads(json.dumps(named).replace("{id}", document_id))
    answer = await server.http.post(JOBS, json={"config_version_id": version.id, **named})
    problem(answer, 422, "validation_error")
    assert await rows(server) == []


async def test_the_short_form_has_idempotency(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    version = await server.catalogue.snapshot(WORKSPACE, configuration_id, "someone")
    body = {"config_version_id": version.id, "document_id": document_id}
    headers = {"Idempotency-Key": "once"}
    first = await server.http.post(JOBS, json=body, headers=headers)
    second = await server.http.post(JOBS, json=body, headers=headers)
    assert second.json()["job_id"] == first.json()["job_id"]
    assert second.headers["idempotency-replayed"] == "true"
    other = await server.http.post(
        JOBS, json=body | {"runtime_network_access": False}, headers=headers
    )
    problem(other, 422, "idempotency_key_reused")


async def test_the_short_form_waits_if_asked(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    version = await server.catalogue.snapshot(WORKSPACE, configuration_id, "someone")
    body = {"config_version_id": version.id, "document_id": document_id}
    await started(server, configuration_id, document_id)  # so that the build is there
    await built(server)
    await server.finish(await server.claim())
    waiting = asyncio.create_task(server.http.post(JOBS, json=body, headers={"Prefer": "wait=20"}))
    await server.finish(await claimed(server))
    answer = await waiting
    assert (answer.status_code, answer.json()["status"]) == (200, "succeeded")


async def test_the_kind_is_not_open_to_everyone(server: Server) -> None:
    body = {"job_type": "normalize", "document_revision_id": "r", "inputs": {}}
    found = problem(await server.http.post(JOBS, json=body), 422, "validation_error")
    assert "configurations/{id}/runs" in found["detail"]


# --- the build ------------------------------------------------------------------------------------


async def test_a_ready_build_lets_its_runs_go(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    runs = [await started(server, configuration_id, document_id) for _ in range(2)]
    await built(server)
    claims = [await server.claim(), await server.claim()]
    assert {claim.id for claim in claims} == {run["run_id"] for run in runs}
    assert (await shown(server, runs[0]))["build"]["status"] == "ready"
    later = await started(server, configuration_id, document_id)
    assert (await server.claim()).id == later["run_id"]  # there is no second build


async def test_a_failed_build_fails_its_runs_and_is_remembered(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    runs = [await started(server, configuration_id, document_id) for _ in range(2)]
    build = await built(server, failure="no such package: nope")
    for run in runs:
        found = await shown(server, run)
        assert found["status"] == "failed"
        assert found["error"]["category"] == Category.DEPENDENCY_ERROR
        assert found["error"]["code"] == "BUILD_FAILED"
        assert found["error"]["message"] == "build failed: no such package: nope"
        assert found["build"]["status"] == "failed"
        assert found["build"]["error"]["message"] == "no such package: nope"
        assert found["finished_at"] is not None
    body = {"input_document_id": document_id}
    where = f"{BASE}/configurations/{configuration_id}/runs"
    answer = await server.http.post(where, json=body)
    assert (answer.status_code, answer.json()["status"]) == (200, "failed")
    assert answer.json()["error"]["message"] == "build failed: no such package: nope"
    again = await server.http.post(f"{RUNS}/{runs[0]['run_id']}/rerun")
    assert again.status_code == 202, again.text
    assert again.json()["build"] == {"build_id": build.id, "status": "queued", "error": None}
    await built(server)
    assert (await server.claim()).id == again.json()["run_id"]
    assert (await shown(server, runs[0]))["status"] == "failed"  # what has ended stays so


async def test_a_cancelled_build_fails_its_runs(server: Server) -> None:
    run = await started(server, *await prepared(server))
    answer = await server.http.post(f"{BASE}/builds/{run['build_id']}/cancel")
    assert answer.status_code == 200, answer.text
    found = await shown(server, run)
    assert (found["status"], found["build"]["status"]) == ("failed", "cancelled")
    assert found["error"]["message"] == "build failed: the build was cancelled."


@pytest.mark.parametrize("way", ["rerun", "retry"])
async def test_a_run_whose_build_failed_builds_again_when_it_is_run_again(
    server: Server, way: str
) -> None:
    run = await started(server, *await prepared(server))
    await built(server, failure="the registry is away")
    path = f"{RUNS if way == 'rerun' else JOBS}/{run['run_id']}/{way}"
    answer = await server.http.post(path)
    assert answer.status_code == 202, answer.text
    new_id = answer.json()["run_id" if way == "rerun" else "job_id"]
    await built(server)
    assert (await server.claim()).id == new_id


# --- cancel, run again, list ----------------------------------------------------------------------


async def test_a_run_that_waits_is_cancelled_at_once(server: Server) -> None:
    run = await started(server, *await prepared(server))
    answer = await server.http.post(f"{RUNS}/{run['run_id']}/cancel", json={"reason": "a slip"})
    assert answer.status_code == 200
    assert answer.json()["status"] == "cancelled"
    assert answer.json()["finished_at"] is not None
    await built(server)
    assert (await shown(server, run))["status"] == "cancelled"


async def test_a_run_that_has_ended_is_not_cancelled(server: Server) -> None:
    run = await started(server, *await prepared(server))
    await built(server)
    await server.finish(await server.claim())
    answer = await server.http.post(f"{RUNS}/{run['run_id']}/cancel")
    problem(answer, 409, "invalid_transition")
    assert (await shown(server, run))["status"] == "succeeded"


@pytest.mark.parametrize("way", ["rerun", "retry"])
async def test_running_again_is_a_new_run_of_the_same_version(server: Server, way: str) -> None:
    configuration_id, document_id = await prepared(server)
    asked = {"limits": {"memory_mb": 77}, "priority": "low"}
    run = await started(server, configuration_id, document_id, **asked)
    path = f"{RUNS if way == 'rerun' else JOBS}/{run['run_id']}/{way}"
    problem(await server.http.post(path), 409, "not_finished")
    await built(server)
    await server.finish(await server.claim())
    await edited(server, configuration_id, "columns/name.py", "changed = True\n")
    answer = await server.http.post(path)
    assert answer.status_code == 202, answer.text
    new_id = answer.json()["run_id" if way == "rerun" else "job_id"]
    new = (await server.http.get(f"{RUNS}/{new_id}")).json()
    same = ("configuration_id", "build_id", "input_document_id")
    assert {name: new[name] for name in same} == {name: run[name] for name in same}
    assert new["rerun_of"] == run["run_id"]
    assert (await payload(server, new))["inputs"] == (await payload(server, run))["inputs"]
    job = (await server.http.get(new["links"]["job"])).json()
    assert (job["limits"]["memory_mb"], job["priority"]) == (77, "low")
    assert (await server.claim()).id == new_id  # its build is ready


async def test_an_attempt_that_ran_out_of_time_is_a_failed_run(server: Server) -> None:
    run = await started(server, *await prepared(server))
    await built(server)
    outcome = Outcome(Status.TIMED_OUT, error=timed_out_error(1000))
    await server.finish(await server.claim(), outcome)
    found = await shown(server, run)
    assert (found["status"], found["error"]["code"]) == ("failed", "TIMED_OUT")


async def test_only_runs_are_listed_newest_first(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    runs = [await started(server, configuration_id, document_id) for _ in range(3)]
    echo = await server.submit()
    problem(await server.http.get(f"{RUNS}/{echo['job_id']}"), 404, "not_found")
    problem(await server.http.post(f"{RUNS}/{echo['job_id']}/cancel"), 404, "not_found")
    first = (await server.http.get(RUNS, params={"limit": 2})).json()
    rest = (await server.http.get(RUNS, params={"cursor": first["next_cursor"]})).json()
    listed = [run["run_id"] for run in first["items"] + rest["items"]]
    assert listed == [run["run_id"] for run in reversed(runs)]
    assert rest["next_cursor"] is None


# --- versions -------------------------------------------------------------------------------------

REQUIRING = {"columns/name.py": PACKAGE["columns/name.py"], "requirements.txt": "greeting\n"}
BROKEN = "from ade_engine import Field\n\nFIELD = Field(label='Name'\n"


async def activated(server: Server, configuration_id: str) -> dict[str, Any]:
    """Make a version of the draft and make it the active one."""
    where = f"{BASE}/configurations/{configuration_id}/versions"
    made = await server.http.post(where)
    assert made.status_code in (200, 201), made.text
    answer = await server.http.post(f"{where}/{made.json()['sequence']}/activate")
    if answer.status_code == 202:
        await built(server)
    return dict(made.json())


def versions_of(runs: list[dict[str, Any]]) -> list[int]:
    return [run["version"]["sequence"] for run in runs]


async def test_a_run_uses_the_active_version_whatever_the_draft_is(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    version = await activated(server, configuration_id)
    await edited(server, configuration_id, "columns/name.py", BROKEN)
    runs = [await started(server, configuration_id, document_id) for _ in range(3)]
    for run in runs:
        assert run["version"] == {
            "config_version_id": version["config_version_id"],
            "sequence": 1,
            "digest": version["digest"],
        }
        assert run["build"]["status"] == "ready"
        assert (await shown(server, run))["version"] == run["version"]
    assert versions_of(await runs_in(server)) == [1, 1, 1]
    for name, sequence in (("draft", 2), ("active", 1), (1, 1), (None, 1)):
        body = {} if name is None else {"version": name}
        run = await started(server, configuration_id, document_id, **body)
        assert run["version"]["sequence"] == sequence, name


async def test_a_version_that_does_not_build_does_not_become_active(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    await activated(server, configuration_id)
    await edited(server, configuration_id, "columns/name.py", BROKEN)
    where = f"{BASE}/configurations/{configuration_id}"
    sequence = (await server.http.post(f"{where}/versions")).json()["sequence"]
    assert (await server.http.post(f"{where}/versions/{sequence}/activate")).status_code == 202
    found = (await server.http.get(where)).json()
    assert (found["active_version"]["sequence"], sequence) == (1, 2)
    assert found["activating_version_id"] is not None
    await built(server, failure="columns/name.py, line 3: '(' was never closed")
    found = (await server.http.get(where)).json()
    assert found["active_version"]["sequence"] == 1
    assert found["activating_version_id"] is None
    assert (await started(server, configuration_id, document_id))["version"]["sequence"] == 1


async def test_an_earlier_version_is_made_active_again(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    await activated(server, configuration_id)
    await edited(server, configuration_id, "columns/name.py", PACKAGE["columns/name.py"] + "\n")
    second = await activated(server, configuration_id)
    where = f"{BASE}/configurations/{configuration_id}"
    found = (await server.http.get(where)).json()["active_version"]
    assert (found["sequence"], found["digest"]) == (2, second["digest"])
    back = await server.http.post(f"{where}/versions/1/activate")
    assert (back.status_code, back.json()["status"]) == (200, "ready")
    assert (await server.http.get(where)).json()["active_version"]["sequence"] == 1
    assert (await started(server, configuration_id, document_id))["version"]["sequence"] == 1


async def test_without_an_active_version_there_is_only_the_draft(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    where = f"{BASE}/configurations/{configuration_id}"
    assert (await server.http.get(where)).json()["active_version"] is None
    body = {"input_document_id": document_id, "version": "active"}
    problem(await server.http.post(f"{where}/runs", json=body), 409, "conflict")
    assert (await started(server, configuration_id, document_id))["version"]["sequence"] == 1


@pytest.mark.parametrize("version", [0, -1, "newest", "", 2**31, 1.5, True])
async def test_a_version_that_cannot_be_is_refused(server: Server, version: Any) -> None:
    configuration_id, document_id = await prepared(server)
    body = {"input_document_id": document_id, "version": version}
    where = f"{BASE}/configurations/{configuration_id}/runs"
    problem(await server.http.post(where, json=body), 422, "validation_error")
    body["version"] = 7
    problem(await server.http.post(where, json=body), 404, "not_found")


async def test_the_document_may_be_named_as_in_jobs(server: Server) -> None:
    configuration_id, document_id = await prepared(server)
    where = f"{BASE}/configurations/{configuration_id}/runs"
    answer = await server.http.post(where, json={"document_id": document_id})
    assert answer.json()["input_document_id"] == document_id
    for body in ({}, {"document_id": document_id, "input_document_id": configuration_id}):
        problem(await server.http.post(where, json=body), 422, "validation_error")


def everything(server: Server) -> dict[str, list[Any]]:
    """Read every row of every table, but the counter that submitters lock one another out with."""
    tables = [table for table in schema.metadata.sorted_tables if table.name != "gates"]
    with SqlDatabase("", server.app.state.context.settings.database_url).connect() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(table.select()).all()))
            for table in tables
        }


async def test_a_refused_run_leaves_no_row_in_any_table(serve: Serve) -> None:
    server = await serve(rules=KernelSettings(queue_size=1))
    configuration_id, document_id = await prepared(server)
    first = await started(server, configuration_id, document_id)
    await built(server)
    await edited(server, configuration_id, "requirements.txt", "polars\n")
    before = everything(server)
    assert before["config_versions"]
    key = {"Idempotency-Key": "refused"}
    where = f"{BASE}/configurations/{configuration_id}/runs"
    body = {"input_document_id": document_id, "version": "draft"}
    batch = {
        "jobs": [
            {"config_version_id": first["version"]["config_version_id"], "document_id": document_id}
        ]
    }
    for path, asked in ((where, body), (f"{BASE}/jobs/batch", batch)):
        answer = await server.http.post(path, json=asked, headers=key)
        assert answer.status_code in (429, 207), answer.text
        assert "run_queue_full" in answer.text
    assert everything(server) == before
    assert (await server.claim()).id == first["run_id"]
    again = await server.http.post(where, json=body, headers=key)
    assert again.status_code == 202  # the key was not used up
    assert again.json()["version"]["sequence"] == 2


async def test_a_run_whose_requirements_are_gone_is_left_to_its_build(server: Server) -> None:
    configuration_id, document_id = await configured(server, REQUIRING), await uploaded(server)
    [file] = [
        file
        for file in await server.catalogue.draft(WORKSPACE, configuration_id)
        if file.path == "requirements.txt"
    ]
    server.blobs.path(file.digest).unlink()
    run = await started(server, configuration_id, document_id)
    assert run["build"]["status"] == "queued"
