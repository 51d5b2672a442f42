"""The builder: each build is made once, ends, and tells its runs, whatever happens to whom."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.databases import WORKSPACE
from tests.processes import aeventually
from tests.unit.worker.bench import LIMITS
from tests.wheels import make_wheel

from ade.app.catalogue import Catalogue
from ade.domain.job import Status
from ade.domain.lease import LeaseRule
from ade.domain.outcome import Category, CodeLocation, JobError, Outcome
from ade.environments import ensure_build, environment_of
from ade.environments.activation import ActivationFolder
from ade.environments.environment import is_there
from ade.kernel import Kernel
from ade.sandbox.spec import RunSpec
from ade.settings import Settings
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Submission
from ade.storage import Blobs
from ade.store.builds import BUILDS_TOPIC
from ade.store.rows import Build, BuildHeld, File, JobRef, JobRow, Version
from ade.store.session import Session
from ade.worker.builder import Builder, end

LEASE = LeaseRule(lease_seconds=30, margin_seconds=5, renew_seconds=10)
SHORT = LeaseRule(lease_seconds=1.0, margin_seconds=0.5, renew_seconds=0.1)
ENDED = {"ready", "failed", "cancelled"}
TOLD = {"annotations": [{"note": 1}], "fields": ["a"], "warnings": [], "name": "c", "digest": "d"}


class Scripted:
    """Be a runner whose hooks end as a test says, or only when they are killed."""

    isolation = ("paper",)

    def __init__(self) -> None:
        self.refusal: str | None = None
        self.outcomes: list[Outcome] = []
        self.hangs = False
        self.location: CodeLocation | None = None
        self.given: list[RunSpec] = []
        self.started = asyncio.Event()
        self.killed = 0

    def start(self, spec: RunSpec, tell: Any) -> "Scripted.Hooks":
        """Note what is to be run."""
        self.given.append(spec)
        self.started.set()
        return Scripted.Hooks(self)

    class Hooks:
        """Stand for hooks that were started."""

        def __init__(self, runner: "Scripted") -> None:
            self._runner = runner
            self._killed = asyncio.Event()

        async def outcome(self) -> Outcome:
            """End as the test says."""
            if self._runner.hangs:
                await self._killed.wait()
                return replace(internal("STOPPED"), location=self._runner.location)
            return self._runner.outcomes.pop(0) if self._runner.outcomes else activated()

        def stop(self) -> None:
            """End."""
            self.kill()

        def kill(self) -> None:
            """End."""
            self._runner.killed += 1
            self._killed.set()

        def time_out(self) -> None:
            """End."""
            self.kill()


def activated() -> Outcome:
    outputs = {"result_json": TOLD, "stdout": "printed", "stderr": ""}
    return Outcome(Status.SUCCEEDED, {"outputs": outputs})


def internal(code: str) -> Outcome:
    return Outcome(Status.FAILED, {}, JobError(Category.INTERNAL_ERROR, code, "ours"))


class Site:
    """Hold a builder's surroundings."""

    def __init__(self, url: str, folder: Path) -> None:
        self.wheelhouse = folder / "wheels"
        make_wheel(self.wheelhouse, "greeting")
        self.runner = Scripted()
        self.store = Session(url)
        self.library = Catalogue(self.store)
        self.folder = folder
        self.blobs = Blobs(folder / "blobs")
        self.configure()

    def configure(self, lease: LeaseRule = LEASE, **changes: Any) -> None:
        """Go by other rules."""
        self.kernel = Kernel(self.store, KernelSettings(lease=lease, queue_size=0))
        usual: dict[str, Any] = {"storage_data_dir": self.folder, "wheelhouse": self.wheelhouse}
        # Whatever happens soon happened because somebody rang.
        usual |= {"poll_seconds": 60, "sweep_seconds": 60}
        self.settings = Settings(**usual | changes)

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def builder(self, name: str = "builder") -> Builder:
        """Make a builder that nobody runs yet."""
        return Builder(
            name,
            kernel=self.kernel,
            library=self.library,
            blobs=self.blobs,
            runner=self.runner,
            settings=self.settings,
        )

    @contextlib.asynccontextmanager
    async def building(self) -> AsyncIterator[Builder]:
        """Run a builder while inside."""
        builder = self.builder()
        task = asyncio.create_task(builder.run())
        try:
            yield builder
        finally:
            async with asyncio.timeout(20):
                await end(task)

    async def version(self, **files: str) -> Version:
        """Make a version; `requirements` stands for requirements.txt."""
        kept = []
        for name, text in ({"config": "name = 'c'\n"} | files).items():
            blob = self.blobs.write([text.encode()], 10**6)
            path = {"config": "config.toml", "requirements": "requirements.txt"}.get(name, name)
            kept.append(File(path, blob.digest, blob.size_bytes))
        made = await self.library.add_configuration(WORKSPACE, "c", kept)
        return await self.library.snapshot(WORKSPACE, made.id, "someone")

    async def ask(self, version: Version) -> Build:
        """Ask for a build."""
        return await ensure_build(self.library, self.kernel, version)

    async def ended(self, build: Build) -> Build:
        """Wait until a build has ended."""

        async def look() -> Build | None:
            found = await self.library.find_build(WORKSPACE, build.id)
            return found if found.status in ENDED else None

        found: Build = await aeventually(look)
        return found

    async def made(self, **files: str) -> tuple[Version, Build]:
        """Build a version to its end."""
        version = await self.version(**files)
        async with self.building():
            return version, await self.ended(await self.ask(version))

    async def run_waiting_for(self, build: Build) -> JobRow:
        """Submit a run."""
        document = await self.library.add_document(
            WORKSPACE, "d", "sha256:d", 1, None, quota_bytes=0
        )
        ask = Submission(
            WORKSPACE,
            "normalize",
            "{}",
            LIMITS,
            "someone",
            configuration_id=build.configuration_id,
            document_id=document.id,
            build_id=build.id,
        )
        return (await self.kernel.submit(ask)).job

    async def run(self, job: JobRow) -> JobRow:
        """Read a run."""
        ref = JobRef(job.workspace_id, job.id)
        found = await self.kernel.read(lambda reading: reading.read_job(ref))
        assert found is not None
        return found

    def activation(self, version: Version) -> ActivationFolder:
        """Find a version's activation folder."""
        return ActivationFolder(version, self.settings)


@pytest.fixture
def site(sqlite_url: str, tmp_path: Path) -> Iterator[Site]:
    """Set up a site."""
    site = Site(sqlite_url, tmp_path)
    yield site
    site.close()


def error_of(build: Build) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(build.error or "{}")
    return found


async def test_without_requirements_nothing_is_installed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uv.find_uv_bin", lambda: pytest.fail("uv was called"))
    version, build = await site.made(requirements="# none\n")
    assert (build.status, build.environment, build.error) == ("ready", None, None)
    (given,) = site.runner.given
    assert (given.entry, given.inputs) == ("ade_engine.entry.activate", {"config": "config"})
    assert (given.environment, given.network) == (None, False)
    assert set(given.files) == {"config/config.toml", "config/requirements.txt"}
    assert "nothing is installed" in (site.activation(version).log() or "")


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
    build = await site.ask(version)
    waiting = await site.run_waiting_for(build)
    async with site.building():
        build = await site.ended(build)
        run = await aeventually(lambda: _ended_run(site, waiting))
    assert (build.status, build.environment, error_of(build)["code"]) == ("failed", None, code)
    assert site.runner.given == []
    failure = json.loads(run.error)
    assert failure["code"] == "BUILD_FAILED"
    assert failure["message"] == f"build failed: {error_of(build)['message']}"
    result = site.activation(version).result() or {}
    assert result["diagnostics"][0]["code"] == code


async def _ended_run(site: Site, job: JobRow) -> JobRow | None:
    found = await site.run(job)
    return found if found.finished_at is not None else None


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


async def test_a_sandbox_that_stumbles_is_given_another_try(site: Site) -> None:
    site.runner.outcomes = [internal("ZYGOTE_LOST"), internal("ZYGOTE_LOST")]
    assert (await site.made())[1].status == "ready"
    site.runner.outcomes = [internal("ZYGOTE_LOST")] * 3
    _, build = await site.made(more="x")
    assert (build.status, error_of(build)["code"]) == ("failed", "ZYGOTE_LOST")


async def test_below_the_walls_that_are_asked_for_no_hook_is_run(site: Site) -> None:
    site.runner.refusal = "No walls here."
    _, build = await site.made()
    assert (build.status, error_of(build)["code"]) == ("failed", "SANDBOX_UNAVAILABLE")
    assert site.runner.given == []


async def test_runs_go_on_when_their_build_is_ready(site: Site) -> None:
    build = await site.ask(await site.version())
    waiting = await site.run_waiting_for(build)
    assert not waiting.eligible
    async with site.building():
        await aeventually(lambda: _is_eligible(site, waiting))


async def _is_eligible(site: Site, job: JobRow) -> bool:
    return bool((await site.run(job)).eligible)


async def test_a_build_that_takes_too_long_fails_and_says_where(site: Site) -> None:
    site.configure(build_timeout_seconds=0.3)
    site.runner.hangs = True
    version, build = await site.made()
    assert error_of(build)["code"] == "BUILD_TIMED_OUT"
    assert "stopped while running on_activate" in error_of(build)["message"]
    assert site.runner.killed == 1
    result = site.activation(version).result() or {}
    assert result["diagnostics"][0]["code"] == "BUILD_TIMED_OUT"


async def test_a_hook_that_takes_too_long_is_told_with_its_place(site: Site) -> None:
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
    pid_file = _slow_uv(tmp_path, monkeypatch)
    site.configure(build_timeout_seconds=1)
    _, build = await site.made(requirements="greeting")
    assert "stopped while resolving requirements.txt" in error_of(build)["message"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), signal.SIGCONT)


def _slow_uv(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    slow, pid_file = folder / "slow", folder / "pid"
    slow.write_text(
        f"#!/bin/sh\necho $$ > {pid_file}.new\nmv {pid_file}.new {pid_file}\nsleep 600\n"
    )
    slow.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(slow))
    return pid_file


async def test_a_build_that_a_person_cancels_is_killed_at_once(site: Site) -> None:
    site.runner.hangs = True
    version = await site.version()
    async with site.building() as builder:
        build = await site.ask(version)
        await site.runner.started.wait()
        await site.library.cancel_build(WORKSPACE, build.id)
        site.kernel.notifier.publish([BUILDS_TOPIC])
        await aeventually(lambda: builder.running == 0)
    assert site.runner.killed == 1
    assert (await site.library.find_build(WORKSPACE, build.id)).status == "cancelled"
    assert site.activation(version).result() is None


async def test_a_builder_that_cannot_renew_kills_its_work_and_records_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.configure(SHORT)
    site.runner.hangs = True

    async def away(*_: Any) -> bool:
        raise OSError("the database is away")

    async with site.building() as builder:
        build = await site.ask(await site.version())
        await site.runner.started.wait()
        monkeypatch.setattr(site.library, "renew_build", away)
        await aeventually(lambda: builder.running == 0 or site.runner.killed)
        monkeypatch.undo()
        assert site.runner.killed == 1
        # Its lease runs out, and the next look takes it up again.
        site.runner.hangs = False
        await aeventually(lambda: _rings(site, build))
    assert (await site.library.find_build(WORKSPACE, build.id)).fence > 1


async def _rings(site: Site, build: Build) -> bool:
    site.kernel.notifier.publish([BUILDS_TOPIC])
    return (await site.library.find_build(WORKSPACE, build.id)).status == "ready"


async def test_what_a_dead_builder_held_is_made_by_the_next(site: Site) -> None:
    build = await site.ask(await site.version())
    dead = await site.library.claim_build("dead", lease_us=0)
    assert dead is not None
    async with site.building():
        made = await site.ended(build)
    assert (made.status, made.fence) == ("ready", dead.fence + 1)


async def test_a_build_that_kills_each_of_its_builders_fails_and_its_runs_with_it(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uv.find_uv_bin", lambda: pytest.fail("it was begun once more"))
    version = await site.version(requirements="greeting")
    build = await site.ask(version)
    waiting = await site.run_waiting_for(build)
    for _ in range(site.settings.retry_max_attempts):
        assert await site.library.claim_build("dies of it", lease_us=0) is not None
    log = site.activation(version).begin()
    log.say("what the last one said")
    log.close()
    async with site.building():
        build = await site.ended(build)
        run = await aeventually(lambda: _ended_run(site, waiting))
    failure = error_of(build)
    assert (build.status, failure["code"]) == ("failed", "BUILDER_LOST")
    assert failure["category"] == "INTERNAL_ERROR"
    assert "begun 3 times" in failure["message"]
    assert json.loads(run.error)["message"] == f"build failed: {failure['message']}"
    folder = site.activation(version)
    assert (folder.result() or {})["diagnostics"][0]["code"] == "BUILDER_LOST"
    assert folder.log() == "what the last one said\n"
    assert site.runner.given == []


async def test_a_build_that_survives_its_last_attempt_is_ready(site: Site) -> None:
    build = await site.ask(await site.version())
    for _ in range(site.settings.retry_max_attempts - 1):
        assert await site.library.claim_build("dies of it", lease_us=0) is not None
    async with site.building():
        assert (await site.ended(build)).status == "ready"


async def test_a_builder_that_is_stopped_puts_its_build_back(site: Site) -> None:
    site.runner.hangs = True
    async with site.building():
        build = await site.ask(await site.version())
        await site.runner.started.wait()
    found = await site.library.find_build(WORKSPACE, build.id)
    assert (found.status, found.lease_owner) == ("queued", None)
    assert site.runner.killed == 1


async def test_runs_whose_build_ended_unheard_are_told_at_the_next_start(site: Site) -> None:
    build = await site.ask(await site.version())
    waiting = await site.run_waiting_for(build)
    claimed = await site.library.claim_build("dies here", 10**7)
    assert claimed is not None
    held = BuildHeld(claimed.workspace_id, claimed.id, claimed.fence)
    await site.library.finish_build(held, "ready", error=None, environment=None)
    assert not await _is_eligible(site, waiting)
    async with site.building():
        await aeventually(lambda: _is_eligible(site, waiting))


async def test_a_version_whose_bytes_are_gone_fails(site: Site) -> None:
    version = await site.version()
    for file in version.files:
        site.blobs.delete(file.digest)
    async with site.building():
        build = await site.ended(await site.ask(version))
    assert error_of(build)["code"] == "FILES_GONE"


async def test_no_more_are_made_at_once_than_allowed(site: Site) -> None:
    site.configure(build_concurrency=2)
    site.runner.hangs = True
    async with site.building() as builder:
        for number in range(3):
            await site.ask(await site.version(more=str(number)))
        await aeventually(lambda: len(site.runner.given) == 2)
        assert builder.running == 2
        site.kernel.notifier.publish([BUILDS_TOPIC])
        waiting = await site.library.list_builds(WORKSPACE, status="queued", before=None, limit=10)
        assert len(waiting) == 1
