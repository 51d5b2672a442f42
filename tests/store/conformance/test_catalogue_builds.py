"""Builds in the catalogue: found, listed, shared by processes, given up; on every SQL database."""

import asyncio
import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import Acts, failure, submission
from tests.store.conformance.test_builds import LIMITS, RUN_PAYLOAD, made

from ade.app.catalogue import Catalogue, WantedRun
from ade.clock import ManualClock
from ade.domain.build import KIND
from ade.domain.errors import Conflict, NotFound
from ade.kernel import Kernel
from ade.stages.builds import RequiredBuild
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Accepted, Submission
from ade.store.listener import listen
from ade.store.rows import Build, Document, File, RunParts, Version
from ade.store.session import EVERYTHING, Session

PRINT = "sha256:" + "f" * 64
ENVIRONMENT = "sha256:" + "e" * 64
NOBODY = "0198b000-0000-7000-8000-000000000009"


async def a_version(catalogue: Catalogue, name: str = "c") -> Version:
    """Make a configuration and a version of it."""
    made = await catalogue.add_configuration(WORKSPACE, name, [File("config.toml", "sha256:a", 1)])
    return await catalogue.snapshot(WORKSPACE, made.id, "someone")


async def a_document(catalogue: Catalogue) -> Document:
    """Add a document."""
    return await catalogue.add_document(WORKSPACE, "d", PRINT, 1, None, quota_bytes=0)


def a_run(version: Version, document: Document, **changes: Any) -> Submission:
    """Ask for a run of a version."""
    required = RequiredBuild(version, print_of(version), LIMITS, retries=2, has_work=True)
    return submission(
        kind="normalize",
        payload=RUN_PAYLOAD,
        configuration_id=version.configuration_id,
        document_id=document.id,
        required=required._replace(**changes),
    )


def print_of(version: Version) -> str:
    """Name the build of a version."""
    return version.digest


class Process:
    """Be one of several processes on a database."""

    def __init__(self, session: Session, clock: ManualClock) -> None:
        self.catalogue = Catalogue(session)
        self.acts = Acts(Kernel(session, KernelSettings(queue_size=0)), clock)

    async def submit(self, run: Submission) -> Accepted:
        """Submit a run."""
        return await self.acts.kernel.submit(run)

    async def builds(self) -> list[Build]:
        """List all builds."""
        return await self.catalogue.list_builds(WORKSPACE, before=None, limit=99)

    def build_jobs(self) -> int:
        """Count the jobs that make builds."""
        return sum(job.kind == KIND for job in self.acts.everything())

    async def ready(self, version: Version, environment: str | None = None) -> Build:
        """Build a version, and run it once."""
        await self.submit(a_run(version, await a_document(self.catalogue)))
        (claim,) = self.acts.claim()
        assert claim.kind == KIND
        self.acts.finish(claim, made(environment))
        self.acts.succeed(self.acts.claim()[0])
        found = await self.catalogue.find_build_of(version, print_of(version))
        assert found is not None
        return found


Open = Callable[[], Process]


@pytest.fixture
def open_process(open_session: Callable[[], Session], clock: ManualClock) -> Open:
    """Open the database, as another process would."""
    return lambda: Process(open_session(), clock)


@pytest.fixture
def process(open_process: Open) -> Process:
    """Be one process."""
    return open_process()


@pytest.fixture
def catalogue(process: Process) -> Catalogue:
    """Be the catalogue of that process."""
    return process.catalogue


async def test_many_runs_in_several_processes_make_one_build(open_process: Open) -> None:
    processes = [open_process() for _ in range(3)]
    first = processes[0]
    run = a_run(await a_version(first.catalogue), await a_document(first.catalogue))
    asked = [one.submit(run) for one in processes for _ in range(20)]
    accepted = await asyncio.gather(*asked)
    assert len({one.job.build_id for one in accepted}) == 1
    assert len(await first.builds()) == 1
    assert first.build_jobs() == 1


async def test_a_draft_that_runs_in_several_processes_is_one_version(open_process: Open) -> None:
    processes = [open_process() for _ in range(3)]
    first = processes[0]
    configuration = await first.catalogue.add_configuration(
        WORKSPACE, "c", [File("config.toml", "sha256:a", 1)]
    )
    document = await a_document(first.catalogue)
    wanted = WantedRun(WORKSPACE, document.id, configuration.id)
    draft = (await first.catalogue.parts_of_run(wanted, "someone", print_of)).version
    assert draft.sequence == 0
    run = a_run(draft, document)
    accepted = await asyncio.gather(*[one.submit(run) for one in processes for _ in range(5)])
    assert {one.ensured and one.ensured.version.sequence for one in accepted} == {1}
    listed = await first.catalogue.list_versions(WORKSPACE, configuration.id, before=None, limit=9)
    assert [version.sequence for version in listed] == [1]
    assert first.build_jobs() == 1


async def test_a_failed_build_that_several_processes_try_again_has_one_new_job(
    open_process: Open,
) -> None:
    processes = [open_process() for _ in range(4)]
    first = processes[0]
    version, document = await a_version(first.catalogue), await a_document(first.catalogue)
    await first.submit(a_run(version, document))
    first.acts.finish(first.acts.claim()[0], failure())
    again = a_run(version, document, rebuild=True)
    accepted = await asyncio.gather(*[one.submit(again) for one in processes for _ in range(5)])
    assert {one.job.status for one in accepted} == {"queued"}
    assert first.build_jobs() == 2


async def test_a_build_that_was_put_back_is_claimed_again(
    process: Process, catalogue: Catalogue
) -> None:
    version = await a_version(catalogue)
    await process.submit(a_run(version, await a_document(catalogue)))
    (claim,) = process.acts.claim()
    process.acts.release(claim)
    assert [build.status for build in await process.builds()] == ["queued"]
    (again,) = process.acts.claim()
    assert (again.id, again.fence) == (claim.id, claim.fence + 1)
    assert [(build.status, build.attempt) for build in await process.builds()] == [("building", 2)]


async def test_one_that_is_ready_is_found_by_its_fingerprint(
    process: Process, catalogue: Catalogue
) -> None:
    version = await a_version(catalogue)
    ready = await process.ready(version, ENVIRONMENT)
    assert (ready.status, ready.environment, ready.attempt) == ("ready", ENVIRONMENT, 1)
    assert (ready.version_id, ready.error) == (version.id, None)
    assert await catalogue.find_build_of(version, ENVIRONMENT) is None
    assert await catalogue.find_build(WORKSPACE, ready.id.upper()) == ready
    found = await catalogue.builds_of_runs(WORKSPACE, [ready.id, None])
    assert found == {ready.id: (ready, (version.id, version.sequence, version.digest))}


async def test_builds_are_listed_by_status_and_configuration(
    process: Process, catalogue: Catalogue
) -> None:
    document = await a_document(catalogue)
    versions = [await a_version(catalogue, name) for name in "ab"]
    for version in versions:
        process.acts.wait()
        await process.submit(a_run(version, document))
    (taken,) = process.acts.claim()
    for status, is_taken in (("building", True), ("queued", False)):
        listed = await catalogue.list_builds(WORKSPACE, status=status, before=None, limit=9)
        assert [build.job_id == taken.id for build in listed] == [is_taken]
    of_one = await catalogue.list_builds(
        WORKSPACE, configuration_id=versions[1].configuration_id, before=None, limit=9
    )
    assert [build.configuration_id for build in of_one] == [versions[1].configuration_id]
    with pytest.raises(NotFound):
        await catalogue.find_build(NOBODY, of_one[0].id)


async def test_an_environment_is_taken_from_its_builds_unless_a_job_needs_it(
    process: Process, catalogue: Catalogue
) -> None:
    document = await a_document(catalogue)
    versions = [await a_version(catalogue, name) for name in "ab"]
    build, _ = [await process.ready(version, ENVIRONMENT) for version in versions]
    assert await catalogue.environments.in_use() == {ENVIRONMENT}
    run = await process.submit(a_run(versions[0], document))
    assert run.job.eligible
    assert not await catalogue.environments.retire(ENVIRONMENT, "{}")
    assert await catalogue.environments.in_use() == {ENVIRONMENT}
    assert await catalogue.environments.retire(ENVIRONMENT, "{}", even_if_needed=True)
    assert await catalogue.environments.in_use() == set()
    assert (await catalogue.find_build(WORKSPACE, build.id)).status == "cancelled"
    await process.submit(a_run(versions[0], document))
    assert (await catalogue.find_build(WORKSPACE, build.id)).status == "queued"


async def test_the_parts_of_a_run_are_found_in_one_read(
    process: Process, catalogue: Catalogue
) -> None:
    document = await a_document(catalogue)
    files = [File("config.toml", "sha256:a", 1)]
    configuration = await catalogue.add_configuration(WORKSPACE, "c", files)

    async def parts(**named: Any) -> RunParts:
        wanted = WantedRun(WORKSPACE, document.id, **named)
        return await catalogue.parts_of_run(wanted, "someone", print_of)

    draft = {"configuration_id": configuration.id}
    unknown = await parts(**draft)
    assert (unknown.document, unknown.version.sequence, unknown.build) == (document, 0, None)
    version = await catalogue.snapshot(WORKSPACE, configuration.id, "someone")
    assert await parts(**draft) == (document, version, None)
    build = await process.ready(version)
    assert await parts(**draft) == (document, version, build)
    # The draft goes on; the version that is named stays what it was.
    await catalogue.put_file(WORKSPACE, configuration.id, File("more.py", "sha256:b", 1))
    changed = await parts(**draft)
    assert (changed.version.sequence, changed.build) == (0, None)
    named = {"version_id": version.id.upper()}
    assert await parts(**named) == (document, version, build)
    assert await parts(**named, **draft) == (document, version, build)
    assert await parts(**draft, version=1) == (document, version, build)


async def test_a_run_uses_the_active_version_unless_it_names_another(
    process: Process, catalogue: Catalogue
) -> None:
    document = await a_document(catalogue)
    active = await a_version(catalogue)
    build = await process.ready(active)
    named = {"configuration_id": active.configuration_id}

    async def version(**more: Any) -> Version:
        wanted = WantedRun(WORKSPACE, document.id, **named, **more)
        return (await catalogue.parts_of_run(wanted, "someone", print_of)).version

    with pytest.raises(Conflict, match="no active version"):
        await version(version="active")
    required = RequiredBuild(
        active, print_of(active), LIMITS, retries=2, has_work=True, activate=True
    )
    await process.submit(submission(kind=KIND, required=required, **named))
    await catalogue.put_file(WORKSPACE, active.configuration_id, File("b.py", "sha256:b", 1))
    assert await version() == active
    assert await version(version="active") == active
    assert (await version(version="draft")).sequence == 0
    activation, found = await catalogue.find_activation(WORKSPACE, active.configuration_id)
    assert (found, activation.activated_by) == (active, "someone")
    assert [one.id for one in await process.builds()] == [build.id]


async def test_what_a_run_cannot_be_made_of(catalogue: Catalogue) -> None:
    document = await a_document(catalogue)
    version = await a_version(catalogue)
    another = await a_version(catalogue, "another")
    await catalogue.delete_configuration(WORKSPACE, another.configuration_id)
    good = WantedRun(WORKSPACE, document.id, version.configuration_id)
    for bad in (
        {"document_id": NOBODY},
        {"document_id": "no id"},
        {"configuration_id": NOBODY},
        {"configuration_id": another.configuration_id},
        {"configuration_id": another.configuration_id, "version": 1},
        {"version_id": NOBODY},
        {"version_id": another.id},
        {"version": 2},
        {"workspace_id": NOBODY},
    ):
        with pytest.raises(NotFound):
            await catalogue.parts_of_run(good._replace(**bad), "someone", print_of)
    await catalogue.delete_document(WORKSPACE, document.id)
    with pytest.raises(NotFound, match="document"):
        await catalogue.parts_of_run(good, "someone", print_of)


class Listening:
    """Hear, as another process would, what the database tells."""

    def __init__(self, url: str) -> None:
        self._heard: queue.Queue[Sequence[str]] = queue.Queue()
        self._store = Session(url)
        self._listener = listen(self._store, self._heard.put)

    async def next(self) -> list[str]:
        """Wait for the next news."""
        return list(await asyncio.to_thread(self._heard.get, timeout=30))

    def close(self) -> None:
        """Stop to hear."""
        if self._listener is not None:
            self._listener.close()
        self._store.close()


@pytest.fixture
def elsewhere(postgres_url: str) -> Iterator[Listening]:
    """Be another process."""
    listening = Listening(postgres_url)
    yield listening
    listening.close()


async def test_workers_in_other_processes_hear_of_builds_and_of_the_runs_that_wait(
    postgres_url: str, elsewhere: Listening
) -> None:
    assert await elsewhere.next() == list(EVERYTHING)  # it hears from now on
    session = Session(postgres_url)
    process = Process(session, ManualClock())
    try:
        version = await a_version(process.catalogue)
        await process.submit(a_run(version, await a_document(process.catalogue)))
        assert await elsewhere.next() == ["work:local"]
        (claim,) = process.acts.claim()
        process.acts.finish(claim, made())
        heard = await elsewhere.next()
        while "work:local" not in heard:
            heard = await elsewhere.next()
        assert [run.kind for run in process.acts.claim()] == ["normalize"]
    finally:
        session.close()
