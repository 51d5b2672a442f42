"""A worker that makes builds: each ends and tells its runs, whatever happens to whom."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.databases import WORKSPACE
from tests.processes import aeventually
from tests.unit.worker.bench import LIMITS, PATIENCE_SECONDS, TroubledStore
from tests.unit.worker.scripted import Scripted, internal, slow_uv
from tests.wheels import make_wheel

from ade.app.build_requests import BuildRequests
from ade.app.catalogue import Catalogue
from ade.app.job_requests import Caller
from ade.domain.build import SETTLED
from ade.domain.job import Status, StopRequest
from ade.domain.lease import LeaseRule
from ade.domain.outcome import Category, CodeLocation, JobError, Outcome
from ade.environments import environment_of
from ade.environments.activation import ActivationFolder
from ade.environments.environment import is_there
from ade.events.stream import wait_until_ended
from ade.kernel import Kernel
from ade.kinds import Kinds
from ade.kinds.build import BuildJob
from ade.kinds.normalize import Normalize
from ade.settings import Settings
from ade.stages.claim import ClaimRequest
from ade.stages.kernel_settings import KernelSettings
from ade.stages.stop import Stop
from ade.stages.submit.model import Accepted, Submission
from ade.storage import Blobs
from ade.store.rows import Build, File, JobRef, JobRow, Version
from ade.worker.build_runner import BuildRunner
from ade.worker.job_io import CatalogueJobIO
from ade.worker.worker import Worker, WorkerRules

LEASE = LeaseRule(lease_seconds=30, margin_seconds=5, renew_seconds=10)
SHORT = LeaseRule(lease_seconds=1.0, margin_seconds=0.5, renew_seconds=0.1)
GONE_AT_ONCE = LeaseRule(lease_seconds=0.000_1, margin_seconds=0.000_01, renew_seconds=0.000_01)
CALLER = Caller(WORKSPACE, "someone")


class Site:
    """Hold what a worker that makes builds needs around it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.wheelhouse = folder / "wheels"
        make_wheel(self.wheelhouse, "greeting")
        self.runner = Scripted()
        self.store = TroubledStore(url)
        self.library = Catalogue(self.store)
        self.folder = folder
        self.blobs = Blobs(folder / "blobs")
        self.configure()

    def configure(self, lease: LeaseRule = LEASE, **changes: Any) -> None:
        """Go by other rules."""
        self.kernel = Kernel(self.store, KernelSettings(lease=lease, queue_size=0))
        self.settings = Settings(
            storage_data_dir=self.folder, wheelhouse=self.wheelhouse, **changes
        )
        self.requests = BuildRequests(self.library, self.blobs, self.settings)

    @contextlib.asynccontextmanager
    async def working(self, **rules: Any) -> AsyncIterator[Worker]:
        """Run a worker while inside; what still runs at the end is handed back."""
        # Whatever happens soon happened because of a notification.
        usual: dict[str, Any] = {"slots": 2, "poll_seconds": 60, "drain_grace_seconds": 60}
        worker = Worker(
            "worker",
            kernel=self.kernel,
            kinds=Kinds([BuildJob(), Normalize()]),
            runner=self.runner,
            build_runner=BuildRunner(self.runner, self.settings),
            jobs_dir=self.settings.jobs_dir,
            rules=WorkerRules(**usual | rules),
            job_io_of=lambda lease: CatalogueJobIO(self.library, self.blobs),
        )
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            self.store.recover()
            worker.drain()
            worker.drain()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await task

    async def version(self, **files: str) -> Version:
        """Make a version; `requirements` is the text of requirements.txt."""
        kept = []
        for name, text in ({"config": "name = 'c'\n"} | files).items():
            blob = self.blobs.write([text.encode()], 10**6)
            path = {"config": "config.toml", "requirements": "requirements.txt"}.get(name, name)
            kept.append(File(path, blob.digest, blob.size_bytes))
        made = await self.library.add_configuration(WORKSPACE, "c", kept)
        return await self.library.snapshot(WORKSPACE, made.id, "someone")

    async def activate(self, version: Version) -> Accepted:
        """Ask that a version become active."""
        return await self.kernel.submit(await self.requests.activation(CALLER, version))

    async def run(self, version: Version) -> Accepted:
        """Submit a run of a version."""
        blob = self.blobs.write([b"a,b\n"], 10**6)
        document = await self.library.add_document(
            WORKSPACE, "d", blob.digest, blob.size_bytes, None
        )
        asked = Submission(
            WORKSPACE,
            "normalize",
            json.dumps({"inputs": {"document_id": document.id}}),
            LIMITS,
            "someone",
            configuration_id=version.configuration_id,
            document_id=document.id,
            required=await self.requests.required(version),
        )
        return await self.kernel.submit(asked)

    async def ended(self, job: JobRow) -> JobRow:
        """Wait until a job has ended."""
        found = await wait_until_ended(self.kernel, job, PATIENCE_SECONDS)
        assert found.finished_at is not None, found
        return found

    async def build(self, accepted: Accepted) -> Build:
        """Read a build."""
        assert accepted.ensured is not None
        return await self.library.find_build(WORKSPACE, accepted.ensured.build.id)

    async def settled(self, accepted: Accepted) -> Build:
        """Wait until a build is settled."""

        async def look() -> Build | None:
            found = await self.build(accepted)
            return found if found.status in SETTLED else None

        found: Build = await aeventually(look)
        return found

    async def made(self, **files: str) -> tuple[Version, Build]:
        """Activate a version, to the end of its build."""
        version = await self.version(**files)
        async with self.working():
            return version, await self.settled(await self.activate(version))

    async def lose(self, times: int) -> None:
        """Let so many workers claim the build and die."""
        dying = Kernel(self.store, KernelSettings(lease=GONE_AT_ONCE, queue_size=0))
        for _ in range(times):
            (claim,) = await dying.claim(ClaimRequest("dies of it", 1))
            assert claim.kind == "build"
            await aeventually(self.expire)

    async def expire(self) -> int:
        """Sweep; count the jobs that were lost."""
        return (await self.kernel.expire()).lost

    async def result(self, job: JobRow) -> dict[str, Any]:
        """Read the outputs of a job."""
        ref = JobRef(job.workspace_id, job.id)
        body = await self.kernel.read(lambda reading: reading.read_result(ref))
        outputs: dict[str, Any] = json.loads(body or "{}")["outputs"]
        return outputs

    def activation(self, version: Version) -> ActivationFolder:
        """Find a version's activation folder."""
        return ActivationFolder(version, self.settings)


@pytest.fixture
def site(sqlite_url: str, tmp_path: Path) -> Iterator[Site]:
    """Set up a site."""
    site = Site(sqlite_url, tmp_path)
    yield site
    site.store.close()


def error_of(found: Build | JobRow) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(found.error or "{}")
    return error


async def test_without_requirements_nothing_is_installed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uv.find_uv_bin", lambda: pytest.fail("uv was called"))
    version, build = await site.made(requirements="# none\n")
    assert (build.status, build.environment, build.error) == ("ready", None, None)
    (given,) = site.runner.given
    assert given.entry == "ade_engine.entry.activate"
    assert given.inputs == {"config": "config", "required": []}
    assert (given.environment, given.network) == (None, False)
    assert set(given.files) == {"config/config.toml", "config/requirements.txt"}
    assert "nothing is installed" in (site.activation(version).log() or "")


async def test_a_run_without_requirements_and_hooks_needs_no_build_job(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uv.find_uv_bin", lambda: pytest.fail("uv was called"))
    async with site.working():
        accepted = await site.run(await site.version(requirements="# none\n"))
        assert (await site.ended(accepted.job)).status == "succeeded"
    build = await site.build(accepted)
    assert (build.status, build.job_id) == ("ready", None)
    assert [spec.entry for spec in site.runner.given] == ["ade_engine.entry.normalize"]


async def test_requirements_are_installed_and_the_hooks_run_in_them(site: Site) -> None:
    version, build = await site.made(requirements="greeting")
    assert build.status == "ready"
    assert build.environment is not None
    assert is_there(build.environment, site.settings)
    assert environment_of(build.environment, site.settings).key.startswith(build.environment)
    assert site.runner.given[0].environment == build.environment
    folder = site.activation(version)
    result = folder.result() or {}
    assert result["status"] == "ready"
    assert result["build_id"] == build.id
    assert result["packages"] == ["greeting==1.0"]
    assert (folder.path / "packages.txt").read_text() == "greeting==1.0\n"
    hooks = folder.hooks() or {}
    assert (hooks["annotations"], hooks["output"]) == ([{"note": 1}], "printed")
    assert "Installed 1 package" in (folder.log() or "")


async def test_the_output_of_a_build_job_is_its_log_and_what_the_hooks_print(site: Site) -> None:
    async with site.working():
        accepted = await site.activate(await site.version(requirements="greeting"))
        job = await site.ended(accepted.job)
    outputs = await site.result(job)
    log, _, printed = outputs["stdout"].rpartition("\n")
    assert ("Installed 1 package" in log, printed) == (True, "printed")
    assert outputs["result_json"]["packages"] == ["greeting==1.0"]
    kept = site.settings.jobs_dir / job.id / "logs.txt"
    assert await asyncio.to_thread(kept.read_text) == outputs["stdout"]


async def test_a_second_version_with_the_same_requirements_shares_the_environment(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = await site.made(requirements="greeting")
    monkeypatch.setattr("uv.find_uv_bin", lambda: pytest.fail("uv was called again"))
    _, second = await site.made(requirements="greeting", more="x")
    assert second.id != first.id
    assert second.environment == first.environment is not None


@pytest.mark.parametrize(
    ("requirements", "code"),
    [("-r /etc/passwd", "REQUIREMENTS_REFUSED"), ("nobody-has-this", "PACKAGES_NOT_INSTALLED")],
)
async def test_requirements_that_cannot_be_met_fail_the_build_and_its_runs(
    site: Site, requirements: str, code: str
) -> None:
    version = await site.version(requirements=requirements)
    accepted = await site.run(version)
    async with site.working():
        run = await site.ended(accepted.job)
    build = await site.build(accepted)
    assert (build.status, build.environment, error_of(build)["code"]) == ("failed", None, code)
    assert site.runner.given == []
    assert error_of(run)["code"] == "BUILD_FAILED"
    assert error_of(run)["message"] == f"build failed: {error_of(build)['message']}"
    result = site.activation(version).result() or {}
    assert result["diagnostics"][0]["code"] == code


async def test_hooks_that_fail_leave_the_version_inactive_with_diagnostics(site: Site) -> None:
    raised = JobError(
        Category.USER_CODE_ERROR, "AUTHOR_CODE_FAILED", "on_activate raised", {"line": 2}
    )
    site.runner.outcomes = [Outcome(Status.FAILED, {"outputs": {}}, raised)]
    version, build = await site.made(requirements="greeting")
    assert (build.status, build.environment) == ("failed", None)
    assert error_of(build)["code"] == "AUTHOR_CODE_FAILED"
    assert error_of(build)["details"] == {"line": 2}
    assert "could not be activated: on_activate raised" in error_of(build)["message"]
    assert (site.activation(version).hooks() or {})["status"] == "failed"
    activation, active = await site.library.find_activation(WORKSPACE, version.configuration_id)
    assert (active, activation.pending_version_id) == (None, None)


async def test_a_sandbox_that_stumbles_is_given_another_try(site: Site) -> None:
    site.runner.outcomes = [internal("ZYGOTE_LOST"), internal("ZYGOTE_LOST")]
    assert (await site.made())[1].status == "ready"
    site.configure(retry_max_attempts=1)
    site.runner.outcomes = [internal("ZYGOTE_LOST")] * 3
    _, build = await site.made(more="x")
    assert (build.status, error_of(build)["code"]) == ("failed", "ZYGOTE_LOST")


async def test_below_the_isolation_that_is_required_no_hook_is_run(site: Site) -> None:
    site.configure(retry_max_attempts=1)
    site.runner.refusal = "No isolation here."
    _, build = await site.made()
    assert (build.status, error_of(build)["code"]) == ("failed", "SANDBOX_UNAVAILABLE")
    assert site.runner.given == []


async def test_runs_go_on_when_their_build_is_ready(site: Site) -> None:
    accepted = await site.run(await site.version(requirements="greeting"))
    assert not accepted.job.eligible
    async with site.working(slots=1):
        assert (await site.ended(accepted.job)).status == "succeeded"
    entries = [spec.entry.rpartition(".")[2] for spec in site.runner.given]
    assert entries == ["activate", "normalize"]
    assert len({spec.environment for spec in site.runner.given}) == 1


async def test_a_build_that_takes_too_long_fails_and_says_where(site: Site) -> None:
    site.configure(build_timeout_seconds=0.3)
    site.runner.hangs = True
    version, build = await site.made()
    assert error_of(build)["code"] == "BUILD_TIMED_OUT"
    assert "stopped while running on_activate" in error_of(build)["message"]
    assert site.runner.killed == 1
    result = site.activation(version).result() or {}
    assert result["diagnostics"][0]["code"] == "BUILD_TIMED_OUT"


async def test_a_hook_that_takes_too_long_is_reported_with_its_location(site: Site) -> None:
    site.configure(build_timeout_seconds=0.3)
    site.runner.hangs = True
    site.runner.location = CodeLocation("hooks/on_activate.py", 4, "on_activate")
    _, build = await site.made()
    failure = error_of(build)
    assert failure["message"].endswith(
        "while running on_activate, in on_activate (hooks/on_activate.py:4)."
    )
    assert failure["details"]["line"] == 4


async def test_an_installation_that_takes_too_long_is_killed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = slow_uv(tmp_path, monkeypatch)
    site.configure(build_timeout_seconds=1)
    _, build = await site.made(requirements="greeting")
    assert "stopped while resolving requirements.txt" in error_of(build)["message"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), signal.SIGCONT)


async def test_a_build_that_a_person_cancels_is_killed_at_once(site: Site) -> None:
    site.runner.hangs = True
    version = await site.version()
    async with site.working():
        accepted = await site.activate(version)
        await site.runner.started.wait()
        ref = JobRef(WORKSPACE, accepted.job.id)
        await site.kernel.stop(Stop(ref, StopRequest.CANCEL, "someone"))
        assert (await site.ended(accepted.job)).status == "cancelled"
    assert site.runner.killed == 1
    assert (await site.build(accepted)).status == "cancelled"
    assert site.activation(version).result() is None


async def test_a_worker_that_cannot_renew_kills_its_build_and_records_nothing(site: Site) -> None:
    site.configure(SHORT)
    site.runner.hangs = True
    async with site.working() as worker:
        accepted = await site.activate(await site.version())
        await site.runner.started.wait()
        site.store.trouble("fails", "renew")
        await aeventually(lambda: site.runner.killed)
        await aeventually(lambda: worker.running == 0)
        assert (await site.build(accepted)).status == "building"
        site.store.recover()
        # Its lease expires, and the worker claims it again.
        site.runner.hangs = False
        await aeventually(site.expire)
        build = await site.settled(accepted)
    assert (build.status, build.attempt) == ("ready", 2)


async def test_what_a_dead_worker_held_is_made_by_the_next(site: Site) -> None:
    accepted = await site.activate(await site.version())
    await site.lose(1)
    async with site.working():
        made = await site.settled(accepted)
    assert (made.status, made.attempt) == ("ready", 2)


async def test_a_build_that_kills_each_of_its_workers_fails_and_is_not_begun_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uv.find_uv_bin", lambda: pytest.fail("it was begun once more"))
    version = await site.version(requirements="greeting")
    accepted = await site.run(version)
    log = site.activation(version).begin()
    log.say("what the last one said")
    log.close()
    await site.lose(site.settings.retry_max_attempts)
    async with site.working():
        run = await site.ended(accepted.job)
    failure = error_of(await site.build(accepted))
    assert (failure["category"], failure["code"]) == ("INTERNAL_ERROR", "BUILDER_LOST")
    assert "started 3 times" in failure["message"]
    assert error_of(run)["message"] == f"build failed: {failure['message']}"
    assert site.activation(version).log() == "what the last one said\n"
    assert site.runner.given == []


async def test_a_build_that_survives_its_last_attempt_is_ready(site: Site) -> None:
    accepted = await site.activate(await site.version())
    await site.lose(site.settings.retry_max_attempts - 1)
    async with site.working():
        assert (await site.settled(accepted)).status == "ready"


async def test_a_worker_that_is_stopped_puts_its_build_back(site: Site) -> None:
    site.runner.hangs = True
    async with site.working():
        accepted = await site.activate(await site.version())
        await site.runner.started.wait()
    assert (await site.build(accepted)).status == "queued"
    ref = JobRef(WORKSPACE, accepted.job.id)
    job = await site.kernel.read(lambda reading: reading.read_job(ref))
    assert job is not None
    assert (job.status, job.lease_owner, job.retries_left) == ("queued", None, 2)
    assert site.runner.killed == 1


async def test_a_version_whose_bytes_are_gone_fails(site: Site) -> None:
    version = await site.version()
    for file in version.files:
        site.blobs.delete(file.digest)
    async with site.working():
        build = await site.settled(await site.activate(version))
    assert error_of(build)["code"] == "FILES_GONE"


async def test_no_more_are_made_at_once_than_there_are_slots(site: Site) -> None:
    site.runner.hangs = True
    async with site.working(slots=2) as worker:
        for number in range(3):
            await site.activate(await site.version(more=str(number)))
        await aeventually(lambda: len(site.runner.given) == 2)
        assert worker.running == 2
        waiting = await site.library.list_builds(WORKSPACE, status="queued", before=None, limit=10)
        assert len(waiting) == 1
