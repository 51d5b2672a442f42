"""Builds and activations over HTTP; the builder's part is the test's."""

import json
from typing import Any

import pytest
from tests.api.catalogue import BASE, builds, built, configured, shown, started, uploaded
from tests.api.conftest import Serve
from tests.api.server import Server, problem
from tests.api.test_auth import key_for
from tests.databases import WORKSPACE

from ade.domain.job import Status
from ade.domain.outcome import Category, JobError, Outcome
from ade.domain.output import Piece, batch_of
from ade.environments.activation import ActivationFolder
from ade.environments.failure import environment_gone, error_json
from ade.settings import Settings
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.stages.output import OutputAppend
from ade.store.rows import LeaseRef

pytestmark = pytest.mark.slow

BUILDS = f"{BASE}/builds"
NOBODY = "0198a000-0000-7000-8000-00000000dead"


async def snapshot(server: Server) -> str:
    """Make a configuration with one version; return where that is."""
    configuration_id = await configured(server)
    version = await server.catalogue.snapshot(WORKSPACE, configuration_id, "someone")
    return f"{BASE}/configurations/{configuration_id}/versions/{version.sequence}"


async def activated(server: Server, where: str) -> dict[str, Any]:
    """Activate a version that must be accepted."""
    answer = await server.http.post(f"{where}/activate")
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


async def folder_of(server: Server, build: dict[str, Any]) -> ActivationFolder:
    """Find the activation folder of a build's version."""
    version = await server.catalogue.find_version(WORKSPACE, build["config_version_id"])
    settings: Settings = server.app.state.context.settings
    return ActivationFolder(version, settings)


async def test_activating_twice_is_one_build(server: Server) -> None:
    where = await snapshot(server)
    answer = await server.http.post(f"{where}/activate")
    first = answer.json()
    assert answer.headers["location"] == f"{BUILDS}/{first['build_id']}" == first["links"]["self"]
    assert (first["status"], first["error"], first["started_at"]) == ("queued", None, None)
    assert await activated(server, where) == first
    assert len(await builds(server)) == 1
    assert (await server.http.get(first["links"]["self"])).json() == first


async def test_an_activation_is_read_from_its_folder(server: Server) -> None:
    where = await snapshot(server)
    none = (await server.http.get(f"{where}/activation")).json()
    assert (none["status"], none["build_id"], none["packages"]) == ("none", None, [])
    build = await activated(server, where)
    assert (await server.http.get(f"{where}/activation")).json()["status"] == "queued"
    folder = await folder_of(server, build)
    folder.begin().close()
    folder.finish(
        {
            "build_id": build["build_id"],
            "python_executable": "/python",
            "packages": ["greeting==1.0"],
            "diagnostics": [{"level": "warning", "message": "w"}],
        },
        ["greeting==1.0"],
        {"annotations": [1]},
    )
    await built(server)
    found = (await server.http.get(f"{where}/activation")).json()
    assert found["status"] == "ready"
    assert found["python_executable"] == "/python"
    assert found["packages"] == ["greeting==1.0"]
    assert found["diagnostics"] == [{"level": "warning", "message": "w"}]
    assert found["hooks"] == {"annotations": [1]}
    assert found["started_at"] is not None
    assert found["finished_at"] is not None


async def test_a_folder_of_another_build_is_not_shown(server: Server) -> None:
    where = await snapshot(server)
    folder = await folder_of(server, await activated(server, where))
    folder.begin().close()
    folder.finish({"build_id": NOBODY, "packages": ["old==1"]}, [], {"annotations": [1]})
    await built(server)
    found = (await server.http.get(f"{where}/activation")).json()
    assert (found["status"], found["packages"], found["hooks"]) == ("ready", [], None)


async def test_the_log_of_a_build_with_another_folder_is_its_output(server: Server) -> None:
    build = await activated(server, await snapshot(server))
    claim = await server.claim()
    lease = LeaseRef(claim.workspace_id, claim.id, claim.fence)
    said = batch_of([Piece("step", 0, "installing\n"), Piece("stdout", 11, "Resolved 3\n")])
    await server.kernel.append_output(OutputAppend(lease, (said,)))
    assert (await server.http.get(build["links"]["log"])).text == "Resolved 3\n"


async def test_a_run_that_fails_by_a_remembered_build_has_the_log_of_the_build(
    server: Server,
) -> None:
    configuration_id, document_id = await configured(server), await uploaded(server)
    waited = await started(server, configuration_id, document_id)
    (claim,) = await server.kernel.claim(ClaimRequest("builder", 1))
    lease = LeaseRef(claim.workspace_id, claim.id, claim.fence)
    said = batch_of([Piece("step", 0, "installing\n"), Piece("stdout", 11, "no such package\n")])
    await server.kernel.append_output(OutputAppend(lease, (said,)))
    error = JobError(Category.DEPENDENCY_ERROR, "PACKAGES_NOT_INSTALLED", "no such package: nope")
    await server.kernel.finish(Finish(claim, Outcome(Status.FAILED, error=error)))
    logs = []
    where = f"{BASE}/configurations/{configuration_id}/runs"
    late = (await server.http.post(where, json={"input_document_id": document_id})).json()
    assert late["status"] == "failed"
    for run in (waited, late):
        answer = await server.http.get(run["links"]["logs"], params={"after": "0"})
        logs.append([json.loads(line) for line in answer.text.splitlines()])
        timeline = await server.http.get(f"{run['links']['job']}/timeline")
        told = [json.loads(line) for line in timeline.text.splitlines()]
        assert [one["job_id"] for one in told if one["event"] == "output.stdout"] == [claim.id]
    assert [piece["text"] for piece in logs[1]] == ["installing\n", "no such package\n"]
    assert logs[0] == logs[1]


async def test_the_log_is_read_while_it_is_written(server: Server) -> None:
    build = await activated(server, await snapshot(server))
    assert (await server.http.get(build["links"]["log"])).text == ""
    log = (await folder_of(server, build)).begin()
    log.say("Resolved 3 packages")
    answer = await server.http.get(build["links"]["log"])
    log.close()
    assert answer.text == "Resolved 3 packages\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_cancelling_fails_the_runs_that_wait(server: Server) -> None:
    run = await started(server, await configured(server), await uploaded(server))
    answer = await server.http.post(f"{BUILDS}/{run['build_id']}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    failed = await shown(server, run)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "BUILD_FAILED")
    assert failed["error"]["message"] == "build failed: the build was cancelled."
    problem(await server.http.post(f"{BUILDS}/{run['build_id']}/cancel"), 409, "conflict")


async def test_a_failed_build_says_why_and_is_tried_again(server: Server) -> None:
    where = await snapshot(server)
    build = await activated(server, where)
    await built(server, "greeting was not found")
    found = (await server.http.get(build["links"]["self"])).json()
    assert (found["status"], found["error"]["message"]) == ("failed", "greeting was not found")
    again = await activated(server, where)
    assert (again["build_id"], again["status"]) == (build["build_id"], "queued")


async def test_builds_are_listed_in_pages_and_by_filter(server: Server) -> None:
    made = [await activated(server, await snapshot(server)) for _ in range(3)]
    await built(server)
    first = (await server.http.get(BUILDS, params={"limit": 2})).json()
    rest = (await server.http.get(BUILDS, params={"cursor": first["next_cursor"]})).json()
    listed = [build["build_id"] for build in [*first["items"], *rest["items"]]]
    assert listed == [build["build_id"] for build in reversed(made)]
    assert rest["next_cursor"] is None
    ready = (await server.http.get(BUILDS, params={"status": "ready"})).json()["items"]
    assert [build["build_id"] for build in ready] == [made[0]["build_id"]]
    one = made[1]["configuration_id"]
    of_one = (await server.http.get(BUILDS, params={"configuration_id": one})).json()["items"]
    assert [build["build_id"] for build in of_one] == [made[1]["build_id"]]


@pytest.mark.parametrize("query", ["status=nope", "configuration_id=x", "cursor=x", "limit=0"])
async def test_filters_that_mean_nothing_are_refused(standing: Server, query: str) -> None:
    problem(await standing.http.get(f"{BUILDS}?{query}"), 422, "validation_error")


@pytest.mark.parametrize("build_id", [NOBODY, "nope", "%00"])
async def test_what_is_not_there_is_not_found(standing: Server, build_id: str) -> None:
    for path in ("", "/log"):
        problem(await standing.http.get(f"{BUILDS}/{build_id}{path}"), 404, "not_found")
    problem(await standing.http.post(f"{BUILDS}/{build_id}/cancel"), 404, "not_found")
    where = f"{BASE}/configurations/{build_id}/versions/1"
    problem(await standing.http.get(f"{where}/activation"), 404, "not_found")
    problem(await standing.http.post(f"{where}/activate"), 404, "not_found")


@pytest.mark.parametrize(
    ("sequence", "status"), [("7", 404), ("0", 422), ("x", 422), ("9" * 30, 422)]
)
async def test_a_version_that_is_not_there_cannot_be_activated(
    server: Server, sequence: str, status: int
) -> None:
    where = (await snapshot(server)).rpartition("/")[0]
    answer = await server.http.post(f"{where}/{sequence}/activate")
    assert answer.status_code == status


async def test_viewers_look_and_editors_do(server: Server) -> None:
    where = await snapshot(server)
    build = await activated(server, where)
    viewer = server.client(await key_for(server, "viewer"))
    for path in (build["links"]["self"], build["links"]["log"], f"{where}/activation", BUILDS):
        assert (await viewer.get(path)).status_code == 200
    problem(await viewer.post(build["links"]["cancel"]), 403, "forbidden")
    problem(await viewer.post(f"{where}/activate"), 403, "forbidden")


async def test_in_safe_mode_nothing_is_activated(serve: Serve) -> None:
    server = await serve(rules=KernelSettings(safe_mode=True), safe_mode=True)
    where = await snapshot(server)
    problem(await server.http.post(f"{where}/activate"), 400, "safe_mode")
    assert await builds(server) == []


def test_errors_of_builds_are_json() -> None:
    assert json.loads(error_json(environment_gone("x")))["code"] == "ENVIRONMENT_GONE"
