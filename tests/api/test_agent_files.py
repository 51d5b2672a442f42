"""What agents read and leave: only what their own attempts may, checked byte by byte."""

import dataclasses
import hashlib
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.catalogue import CSV, built, configured, started, uploaded
from tests.api.conftest import Serve
from tests.api.server import JOBS, Server
from tests.api.test_agent_jobs import client
from tests.wheels import make_wheel

from ade.agents.input_cache import InputCache
from ade.agents.remote_job_io import RemoteJobIO
from ade.agents.remote_kernel import RemoteKernel
from ade.agents.server_calls import ServerCalls
from ade.agents.uploads import Uploads
from ade.domain.errors import InvalidRequest, LeaseLost, NotFound, StorageFull, Unavailable
from ade.domain.job import Status
from ade.domain.outcome import Outcome, OutputFile
from ade.environments.archive import read_recipe
from ade.environments.environment import is_there
from ade.settings import Settings
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.store.rows import Claim, LeaseRef
from ade.worker.cell_environments import CellEnvironments

ECHO = frozenset({"echo"})


class Cuts(httpx.AsyncBaseTransport):
    """Cut some of the connections, after some bytes of the answer or before it."""

    def __init__(self, beneath: httpx.AsyncBaseTransport) -> None:
        self._beneath = beneath
        self.uploads = 0
        self.downloads = 0
        self.seen: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        answer = await self._beneath.handle_async_request(request)
        if request.method == "PUT" and self.uploads:
            self.uploads -= 1  # the server has it, and the agent does not know
            raise httpx.ReadError("cut", request=request)
        if request.method == "GET" and self.downloads:
            self.downloads -= 1
            return httpx.Response(answer.status_code, headers=answer.headers, stream=Half(answer))
        return answer


class Half(httpx.AsyncByteStream):
    """Give half of an answer, and then nothing."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content = await self._answer.aread()
        yield content[: len(content) // 2]
        raise httpx.ReadError("cut")


class Agent:
    """Hold the parts of an agent, and one attempt."""

    def __init__(self, server: Server, folder: Path, name: str = "a") -> None:
        self.name = name
        self.http = client(server, name)
        self.cuts = self.http._transport = Cuts(self.http._transport)
        self.calls = ServerCalls(self.http)
        self.uploads = Uploads(self.calls)
        self.kernel = RemoteKernel(self.http, uploads=self.uploads)
        self.cache = InputCache(folder / f"{name}-inputs", self.calls, 10**9)
        self.folder = folder
        self.settings = Settings(storage_data_dir=folder / name)

    async def claim(self, kind: str = "echo") -> Claim:
        """Claim the next job."""
        (claim,) = await self.kernel.claim(ClaimRequest(self.name, 1, kinds=frozenset({kind})))
        return claim

    def job_io(self, claim: Claim) -> RemoteJobIO:
        """Make the inputs and outputs of an attempt."""
        return RemoteJobIO(
            lease_of(claim),
            self.calls,
            cache=self.cache,
            uploads=self.uploads,
            environments=CellEnvironments(self.settings),
        )

    def left(self, content: bytes = b"left behind", name: str = "note.txt") -> OutputFile:
        """Leave a file, as a job does."""
        path = self.folder / f"{self.name}-{digest_of(content)}"
        path.write_bytes(content)
        return OutputFile(name, path, len(content), digest_of(content))

    async def ends(self, claim: Claim, *files: OutputFile) -> None:
        """End an attempt with files."""
        artifacts = await self.job_io(claim).keep(claim.workspace_id, files)
        await self.kernel.finish(Finish(claim, outcome_with(artifacts)))


def outcome_with(artifacts: Any) -> Outcome:
    body = {"outputs": {}, "artifacts": [one.as_dict() for one in artifacts]}
    return Outcome(Status.SUCCEEDED, body, artifacts=tuple(artifacts))


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def lease_of(claim: Claim) -> LeaseRef:
    return LeaseRef(claim.workspace_id, claim.id, claim.fence)


@pytest.fixture
def agent(server: Server, tmp_path: Path) -> Agent:
    return Agent(server, tmp_path)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not pause between tries."""
    monkeypatch.setattr("ade.agents.uploads.PAUSES_SECONDS", (0.0, 0.0))
    monkeypatch.setattr("ade.agents.input_cache.PAUSES_SECONDS", (0.0, 0.0))


async def run_claimed(server: Server, agent: Agent) -> tuple[Claim, dict[str, Any]]:
    """Start a run, build it, and have the agent claim it."""
    configuration, document = await configured(server), await uploaded(server)
    await started(server, configuration, document)
    await built(server)
    claim = await agent.claim("normalize")
    return claim, json.loads(claim.payload)["inputs"]


async def test_the_inputs_of_a_run_are_fetched_and_cached(server: Server, agent: Agent) -> None:
    claim, inputs = await run_claimed(server, agent)
    job_io = agent.job_io(claim)
    for _ in range(2):
        path, name = await job_io.document(claim.workspace_id, inputs["document_id"])
        assert (path.read_bytes(), name) == (CSV, "t.csv")
        package = await job_io.package(claim.workspace_id, inputs["config_version_id"])
        assert "Name" in package.files["columns/name.py"].read_text()
    fetched = [one.url.path for one in agent.cuts.seen if one.method == "GET"]
    assert len(fetched) == len(set(fetched)) == 1 + len(package.files)


async def test_a_download_that_is_cut_goes_on_where_it_stopped(
    server: Server, agent: Agent, hasty: None
) -> None:
    claim, inputs = await run_claimed(server, agent)
    agent.cuts.downloads = 2
    path, _ = await agent.job_io(claim).document(claim.workspace_id, inputs["document_id"])
    assert path.read_bytes() == CSV
    ranges = [one.headers.get("range") for one in agent.cuts.seen if one.method == "GET"]
    assert ranges[0] is None
    assert ranges[1] == f"bytes={len(CSV) // 2}-"


async def test_bytes_of_another_digest_are_not_kept(
    server: Server, agent: Agent, hasty: None
) -> None:
    claim, inputs = await run_claimed(server, agent)
    place = server.blobs.path(digest_of(CSV))
    place.chmod(0o600)
    place.write_bytes(b"other bytes")
    with pytest.raises(Unavailable, match="are not those of"):
        await agent.job_io(claim).document(claim.workspace_id, inputs["document_id"])
    assert not agent.cache._blobs.has(digest_of(CSV))


async def test_inputs_that_the_job_does_not_name_are_refused(server: Server, agent: Agent) -> None:
    other = await uploaded(server, b"secret\n")
    claim, _ = await run_claimed(server, agent)
    job_io = agent.job_io(claim)
    for ask in (job_io.document, job_io.package):
        with pytest.raises(NotFound, match="does not name"):
            await ask(claim.workspace_id, other)
    with pytest.raises(NotFound, match="does not name"):
        await job_io.blob(claim.workspace_id, digest_of(b"secret\n"))


async def test_a_link_is_of_no_use_to_another_attempt_or_for_other_bytes(
    server: Server, agent: Agent, tmp_path: Path
) -> None:
    claim, inputs = await run_claimed(server, agent)
    lease = lease_of(claim)
    message = {"lease": lease, "name": inputs["document_id"]}
    found = (await agent.http.post("/api/agent/inputs/document", json=message)).json()["file"]
    digest, link = found["digest"], found["link"]
    place = f"/api/agent/files/{lease.workspace_id}/{lease.id}"
    other = Agent(server, tmp_path, "b")
    asked = {
        "another agent": (other.http, f"{place}/{lease.fence}/{digest}", link, 409),
        "another attempt": (agent.http, f"{place}/{lease.fence + 1}/{digest}", link, 403),
        "other bytes": (agent.http, f"{place}/{lease.fence}/{digest_of(b'x')}", link, 403),
        "no link": (agent.http, f"{place}/{lease.fence}/{digest}", "1.x", 403),
        "later": (agent.http, f"{place}/{lease.fence}/{digest}", "9" + link, 403),
        "a path": (agent.http, f"{place}/{lease.fence}/..%2f..%2fade.db", link, 404),
    }
    for what, (http, url, given, status) in asked.items():
        answer = await http.get(url, params={"link": given})
        assert answer.status_code in (status, 422), (what, answer.text)
    assert (await agent.http.get(f"{place}/{lease.fence}/{digest}?link={link}")).content == CSV
    await agent.kernel.finish(Finish(claim, Outcome(Status.FAILED)))
    after = await agent.http.get(f"{place}/{lease.fence}/{digest}?link={link}")
    assert (after.status_code, after.json()["code"]) == (409, "lease_lost")


async def test_files_are_kept_and_named_by_the_server(server: Server, agent: Agent) -> None:
    job = await server.submit()
    claim = await agent.claim()
    await agent.ends(claim, agent.left())
    (artifact,) = (await server.http.get(f"{JOBS}/{job['job_id']}/result")).json()["artifacts"]
    assert (artifact["name"], artifact["content_type"]) == ("note.txt", "text/plain")
    content = await server.http.get(f"/api/v1/artifacts/{artifact['artifact_id']}/content")
    assert content.content == b"left behind"


async def test_an_upload_whose_answer_is_lost_is_repeated(
    server: Server, agent: Agent, hasty: None
) -> None:
    job = await server.submit()
    claim = await agent.claim()
    agent.cuts.uploads = 2
    await agent.ends(claim, agent.left())
    result = (await server.http.get(f"{JOBS}/{job['job_id']}/result")).json()
    assert len(result["artifacts"]) == 1
    assert [one.method for one in agent.cuts.seen].count("PUT") == 3


async def test_an_end_counts_only_with_files_that_this_attempt_sent(
    server: Server, agent: Agent
) -> None:
    """Knowing a digest gives no right to the bytes."""
    await uploaded(server, b"secret\n")
    await server.submit()
    await server.submit(value=2)
    claim, earlier = await agent.claim(), await agent.claim()
    secret = agent.left(b"secret\n", "secret.txt")
    (named,) = await agent.job_io(earlier).keep(claim.workspace_id, [secret])
    receipt = agent.uploads.receipts(lease_of(earlier))[named.digest]
    for borrowed in ("", "1.x", receipt):
        agent.uploads._receipts[lease_of(claim)] = {named.digest: borrowed}
        with pytest.raises(InvalidRequest, match="did not upload"):
            await agent.kernel.finish(Finish(claim, outcome_with([named])))
    await agent.ends(claim, agent.left())


async def test_an_end_whose_bytes_are_gone_is_refused(server: Server, agent: Agent) -> None:
    await server.submit()
    claim = await agent.claim()
    artifacts = await agent.job_io(claim).keep(claim.workspace_id, [agent.left()])
    server.blobs.delete(artifacts[0].digest)
    with pytest.raises(InvalidRequest, match="not there any more"):
        await agent.kernel.finish(Finish(claim, outcome_with(artifacts)))
    await agent.ends(claim, agent.left())


async def test_other_bytes_than_announced_leave_nothing(server: Server, agent: Agent) -> None:
    await server.submit()
    claim = await agent.claim()
    place = "/api/agent/files/{}/{}/{}".format(*lease_of(claim))
    wrong = await agent.http.put(f"{place}/{digest_of(b'abc')}", content=b"abd")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "validation_error")
    assert not server.blobs.has(digest_of(b"abc"))
    assert not server.blobs.has(digest_of(b"abd"))
    for digest in ("sha256:abc", "..%2f..%2fx", digest_of(b"abc").upper()):
        assert (await agent.http.put(f"{place}/{digest}", content=b"abc")).status_code in (404, 422)


async def test_what_a_job_leaves_is_limited(serve: Serve, tmp_path: Path) -> None:
    server = await serve(workspace_storage_mb=1)
    agent = Agent(server, tmp_path)
    await server.submit()
    claim = await agent.claim()
    with pytest.raises(StorageFull):
        await agent.ends(claim, agent.left(bytes(2 * 1024 * 1024)))
    place = "/api/agent/files/{}/{}/{}/{}".format(*lease_of(claim), digest_of(b""))
    large = await agent.http.put(place, content=b"", headers={"content-length": "1" + "0" * 12})
    assert (large.status_code, large.json()["code"]) == (413, "payload_too_large")
    some = [agent.left(b"%d" % number, f"{number}.txt") for number in range(80)]
    with pytest.raises(Exception, match="at most 70 files"):
        await agent.ends(claim, *some)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a//b", "a\\b", "x\n", "a/../b", "."])
async def test_names_that_lead_elsewhere_are_refused(
    server: Server, agent: Agent, name: str
) -> None:
    await server.submit()
    claim = await agent.claim()
    with pytest.raises(InvalidRequest, match="cannot be the name"):
        await agent.ends(claim, dataclasses.replace(agent.left(), name=name))


async def test_another_agents_job_takes_no_files(
    server: Server, agent: Agent, tmp_path: Path
) -> None:
    await server.submit()
    claim = await agent.claim()
    other = Agent(server, tmp_path, "b")
    with pytest.raises(LeaseLost):
        await other.job_io(claim).keep(claim.workspace_id, [other.left()])
    with pytest.raises(LeaseLost):
        await other.job_io(claim).document(claim.workspace_id, "x")
    assert not server.blobs.has(digest_of(b"left behind"))


async def test_what_a_result_says_of_its_files_is_not_believed(
    server: Server, agent: Agent
) -> None:
    job = await server.submit()
    claim = await agent.claim()
    body = {"outputs": {}, "artifacts": [{"artifact_id": "x", "digest": digest_of(b"secret")}]}
    await agent.kernel.finish(Finish(claim, Outcome(Status.SUCCEEDED, body)))
    result = (await server.http.get(f"{JOBS}/{job['job_id']}/result")).json()
    assert result["artifacts"] == []


# --- environments ---------------------------------------------------------------------------------


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """Make a folder with a wheel."""
    make_wheel(tmp_path / "wheels", "greeting", "2.0")
    return tmp_path / "wheels"


def host(server: Server, folder: Path, name: str, **settings: Any) -> Agent:
    """Make an agent with a disk of its own."""
    agent = Agent(server, folder, name)
    agent.settings = agent.settings.model_copy(update=settings)
    return agent


async def install(settings: Settings) -> str:
    """Install a package on a host."""
    made = await CellEnvironments(settings).installed(["greeting"])
    assert made.environment is not None
    return made.environment


def ready_with(environment: str) -> Outcome:
    """End a build well."""
    report = {"environment": environment, "status": "ready"}
    return Outcome(Status.SUCCEEDED, {"outputs": {"result_json": report}})


async def test_a_build_on_an_agent_makes_an_environment_for_others(
    server: Server, tmp_path: Path, wheels: Path
) -> None:
    one, two = (host(server, tmp_path, name, wheelhouse=wheels) for name in ("one", "two"))
    configuration, document = await configured(server), await uploaded(server)
    await started(server, configuration, document)
    build = await one.claim("build")
    environment = await install(one.settings)
    with pytest.raises(InvalidRequest, match="was not sent"):
        await one.kernel.finish(Finish(build, ready_with(environment)))
    await one.job_io(build).made_environment(environment)
    await one.job_io(build).made_environment(environment)
    puts = [request for request in one.cuts.seen if request.method == "PUT"]
    assert len(puts) == 1
    await one.kernel.finish(Finish(build, ready_with(environment)))
    run = await two.claim("normalize")
    build_id = json.loads(run.payload)["inputs"]["build_id"]
    job_io = two.job_io(run)
    for _ in range(2):
        assert await job_io.environment(run.workspace_id, build_id) == environment
    assert is_there(environment, two.settings)
    fetched = [one.url.path for one in two.cuts.seen if one.method == "GET"]
    assert len(fetched) == 1


async def test_an_environment_counts_against_no_workspace(serve: Serve, tmp_path: Path) -> None:
    server = await serve(workspace_storage_mb=1)
    noise = {"greeting.py": f"NOISE = {random.Random(1).randbytes(1_500_000).hex()!r}\n"}
    make_wheel(tmp_path / "wheels", "greeting", "3.0", files=noise)
    agent = host(server, tmp_path, "a", wheelhouse=tmp_path / "wheels")
    await started(server, await configured(server), await uploaded(server))
    build = await agent.claim("build")
    environment = await install(agent.settings)
    await agent.job_io(build).made_environment(environment)
    archive = await server.catalogue.environments.find(environment)
    assert archive is not None
    assert archive.archive_bytes > 1_048_576
    await agent.kernel.finish(Finish(build, ready_with(environment)))


async def test_what_the_server_installed_is_packed_for_an_agent(
    server: Server, tmp_path: Path, wheels: Path
) -> None:
    there = Settings(storage_data_dir=tmp_path, wheelhouse=wheels)  # the server's own disk
    environment = await install(there)
    configuration, document = await configured(server), await uploaded(server)
    await started(server, configuration, document)
    (build,) = await server.kernel.claim(ClaimRequest("builder", 1))
    await server.kernel.finish(Finish(build, ready_with(environment)))
    agent = host(server, tmp_path, "a", wheelhouse=None, build_network=False)
    run = await agent.claim("normalize")
    build_id = json.loads(run.payload)["inputs"]["build_id"]
    assert await agent.job_io(run).environment(run.workspace_id, build_id) == environment
    assert is_there(environment, agent.settings)
    with pytest.raises(NotFound, match="does not name"):
        await agent.job_io(run).environment(run.workspace_id, build.id)


async def test_an_environment_is_what_its_digest_says(
    server: Server, tmp_path: Path, wheels: Path
) -> None:
    agent = host(server, tmp_path, "a", wheelhouse=wheels)
    configuration, document = await configured(server), await uploaded(server)
    await started(server, configuration, document)
    build = await agent.claim("build")
    recipe, _ = read_recipe(await install(agent.settings), agent.settings)
    message = {
        "lease": lease_of(build),
        "recipe": recipe._asdict() | {"lock": "evil==1\n"},
    }
    other = await agent.http.post("/api/agent/environments", json=message)
    assert (other.status_code, other.json()["code"]) == (422, "validation_error")
    message["recipe"] = recipe._asdict()
    message["archive"] = {
        "digest": digest_of(CSV),
        "size_bytes": len(CSV),
        "installed_bytes": 1,
        "receipt": "1.x",
    }
    unsent = await agent.http.post("/api/agent/environments", json=message)
    assert (unsent.status_code, unsent.json()["code"]) == (409, "artifact_missing")
    await server.submit()
    echo = await agent.claim()
    message["lease"] = lease_of(echo)
    no_build = await agent.http.post("/api/agent/environments", json=message)
    assert (no_build.status_code, no_build.json()["code"]) == (422, "validation_error")
    broken = Outcome(Status.SUCCEEDED, {"outputs": {}})
    with pytest.raises(InvalidRequest, match="reports there what it made"):
        await agent.kernel.finish(Finish(build, broken))
