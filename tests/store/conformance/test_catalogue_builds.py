"""Builds: one for each fingerprint, one holder at a time, on every database."""

import asyncio
import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.acts import submission

from ade.app.catalogue import Catalogue
from ade.clock import ManualClock
from ade.domain.errors import Conflict, NotFound
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store.builds import BUILDS_TOPIC
from ade.store.listener import listen
from ade.store.rows import Build, BuildHeld, File, JobRow, RunParts, Version
from ade.store.session import EVERYTHING, Session

LEASE_US = 15_000_000
PRINT = "sha256:" + "f" * 64
ENVIRONMENT = "sha256:" + "e" * 64
Open = Callable[[], Catalogue]


async def a_version(catalogue: Catalogue, name: str = "c") -> Version:
    """Make a configuration and a version of it."""
    made = await catalogue.add_configuration(WORKSPACE, name, [File("config.toml", "sha256:a", 1)])
    return await catalogue.snapshot(WORKSPACE, made.id, "someone")


async def a_claim(catalogue: Catalogue, owner: str = "me") -> Build:
    """Take a build that must be there."""
    found = await catalogue.claim_build(owner, LEASE_US)
    assert found is not None
    return found


def held(build: Build) -> BuildHeld:
    """Name the lease of a build."""
    return BuildHeld(build.workspace_id, build.id, build.fence)


async def finish(catalogue: Catalogue, build: Build, status: str = "ready", **more: Any) -> bool:
    """End a build."""
    given = {"error": None, "environment": None, **more}
    return await catalogue.finish_build(held(build), status, **given)


async def test_a_thousand_ask_and_one_build_is_made(open_catalogue: Open) -> None:
    catalogues = [open_catalogue() for _ in range(3)]
    version = await a_version(catalogues[0])
    asked = [one.ensure_build(version, PRINT) for one in catalogues for _ in range(20)]
    assert len({build.id for build in await asyncio.gather(*asked)}) == 1
    assert len(await catalogues[0].list_builds(WORKSPACE, before=None, limit=10)) == 1


async def test_one_of_many_builders_gets_a_build(open_catalogue: Open) -> None:
    catalogues = [open_catalogue() for _ in range(4)]
    await catalogues[0].ensure_build(await a_version(catalogues[0]), PRINT)
    claims = await asyncio.gather(
        *(catalogue.claim_build(f"builder-{n}", LEASE_US) for n, catalogue in enumerate(catalogues))
    )
    assert len([claim for claim in claims if claim is not None]) == 1


async def test_whoever_loses_a_race_takes_the_next(open_catalogue: Open) -> None:
    catalogues = [open_catalogue() for _ in range(4)]
    for name in "abcd":
        await catalogues[0].ensure_build(await a_version(catalogues[0], name), PRINT)
    claims = await asyncio.gather(*(one.claim_build("me", LEASE_US) for one in catalogues))
    assert len({claim.id for claim in claims if claim is not None}) == 4


async def test_a_silent_builder_loses_its_build_and_can_record_nothing(
    catalogue: Catalogue, clock: ManualClock
) -> None:
    await catalogue.ensure_build(await a_version(catalogue), PRINT)
    first = await a_claim(catalogue)
    clock.advance(14)
    assert await catalogue.renew_build(held(first), LEASE_US)
    clock.advance(14)
    assert await catalogue.claim_build("another", LEASE_US) is None
    clock.advance(2)
    second = await a_claim(catalogue, "another")
    assert (second.id, second.fence) == (first.id, first.fence + 1)
    assert not await catalogue.renew_build(held(first), LEASE_US)
    assert not await finish(catalogue, first)
    assert not await catalogue.release_build(held(first))
    assert await finish(catalogue, second)


async def test_losses_are_counted_until_it_is_asked_for_again(
    catalogue: Catalogue, clock: ManualClock
) -> None:
    """What its holders put back, or record, is no loss."""
    version = await a_version(catalogue)
    assert (await catalogue.ensure_build(version, PRINT)).losses == 0
    assert await catalogue.release_build(held(await a_claim(catalogue)))
    assert (await a_claim(catalogue)).losses == 0
    for losses in (1, 2):
        clock.advance(16)
        assert (await a_claim(catalogue)).losses == losses
    clock.advance(16)
    last = await a_claim(catalogue)
    assert last.losses == 3
    assert await finish(catalogue, last, "failed", error="{}")
    again = await catalogue.ensure_build(version, PRINT)
    assert (again.status, again.losses) == ("queued", 0)
    assert (await a_claim(catalogue)).losses == 0


async def test_a_build_that_was_put_back_is_the_next_ones(catalogue: Catalogue) -> None:
    await catalogue.ensure_build(await a_version(catalogue), PRINT)
    first = await a_claim(catalogue)
    assert await catalogue.release_build(held(first))
    assert (await catalogue.find_build(WORKSPACE, first.id)).status == "queued"
    assert (await a_claim(catalogue)).fence == first.fence + 1


@pytest.mark.parametrize("claimed", [False, True])
async def test_a_build_is_cancelled_before_or_while_it_is_made(
    catalogue: Catalogue, claimed: bool
) -> None:
    version = await a_version(catalogue)
    build = await catalogue.ensure_build(version, PRINT)
    if claimed:
        build = await a_claim(catalogue)
    assert (await catalogue.cancel_build(WORKSPACE, build.id)).status == "cancelled"
    assert not await catalogue.renew_build(held(build), LEASE_US)
    assert not await finish(catalogue, build)
    with pytest.raises(Conflict):
        await catalogue.cancel_build(WORKSPACE, build.id)
    # Whoever asks again gets it made after all.
    assert (await catalogue.ensure_build(version, PRINT)).status == "queued"
    assert (await a_claim(catalogue)).id == build.id


async def test_one_that_failed_is_tried_again_and_one_that_is_ready_stays(
    catalogue: Catalogue,
) -> None:
    version = await a_version(catalogue)
    await catalogue.ensure_build(version, PRINT)
    await finish(catalogue, await a_claim(catalogue), "failed", error="{}")
    again = await catalogue.ensure_build(version, PRINT)
    assert (again.status, again.error) == ("queued", None)
    await finish(catalogue, await a_claim(catalogue), environment=ENVIRONMENT)
    ready = await catalogue.ensure_build(version, PRINT)
    assert (ready.status, ready.environment) == ("ready", ENVIRONMENT)
    assert await catalogue.claim_build("me", LEASE_US) is None
    assert await catalogue.find_build_of(version, PRINT) == ready
    assert await catalogue.find_build_of(version, ENVIRONMENT) is None


async def test_builds_are_listed_by_status_and_configuration(catalogue: Catalogue) -> None:
    versions = [await a_version(catalogue, name) for name in "ab"]
    for version in versions:
        await catalogue.ensure_build(version, PRINT)
    taken = await a_claim(catalogue)
    listed = await catalogue.list_builds(WORKSPACE, status="building", before=None, limit=9)
    assert [build.id for build in listed] == [taken.id]
    of_one = await catalogue.list_builds(
        WORKSPACE, configuration_id=versions[1].configuration_id, before=None, limit=9
    )
    assert [build.configuration_id for build in of_one] == [versions[1].configuration_id]
    with pytest.raises(NotFound):
        await catalogue.find_build("0198b000-0000-7000-8000-000000000002", taken.id)


class Runs:
    """Submit runs that wait for a build."""

    def __init__(self, database: SqlDatabase, clock: ManualClock) -> None:
        self.kernel = Kernel(database.open(clock), KernelSettings(queue_size=0))

    def submit(self, document_id: str, build: Build) -> JobRow:
        """Ask for a run."""
        ask = submission(
            kind="normalize",
            configuration_id=build.configuration_id,
            document_id=document_id,
            build_id=build.id,
        )
        job: JobRow = self.kernel.now.submit(ask).job
        return job


async def test_runs_of_a_build_that_ended_unheard_are_found(
    catalogue: Catalogue, sql_database: SqlDatabase, clock: ManualClock
) -> None:
    document = await catalogue.add_document(WORKSPACE, "d", PRINT, 1, None, quota_bytes=0)
    build = await catalogue.ensure_build(await a_version(catalogue), PRINT)
    Runs(sql_database, clock).submit(document.id, build)
    assert await catalogue.settled_with_waiting_runs(10) == []
    await finish(catalogue, await a_claim(catalogue))
    assert [found.id for found in await catalogue.settled_with_waiting_runs(10)] == [build.id]


async def test_an_environment_is_taken_from_its_builds_unless_a_job_needs_it(
    catalogue: Catalogue, sql_database: SqlDatabase, clock: ManualClock
) -> None:
    document = await catalogue.add_document(WORKSPACE, "d", PRINT, 1, None, quota_bytes=0)
    versions = [await a_version(catalogue, name) for name in "ab"]
    for version in versions:
        await catalogue.ensure_build(version, PRINT)
        await finish(catalogue, await a_claim(catalogue), environment=ENVIRONMENT)
    build = await catalogue.ensure_build(versions[0], PRINT)
    assert await catalogue.environments_in_use() == {ENVIRONMENT}
    job = Runs(sql_database, clock).submit(document.id, build)
    assert job.finished_at is None
    assert not await catalogue.retire_environment(ENVIRONMENT, "{}")
    assert await catalogue.environments_in_use() == {ENVIRONMENT}
    assert await catalogue.retire_environment(ENVIRONMENT, "{}", even_if_needed=True)
    assert await catalogue.environments_in_use() == set()
    assert (await catalogue.find_build(WORKSPACE, build.id)).status == "cancelled"
    assert (await catalogue.ensure_build(versions[0], PRINT)).status == "queued"


def print_of(version: Version) -> str:
    """Name the build of a version."""
    return version.digest


async def test_the_parts_of_a_run_are_found_in_one_look(catalogue: Catalogue) -> None:
    document = await catalogue.add_document(WORKSPACE, "d", PRINT, 1, None, quota_bytes=0)
    made = await catalogue.add_configuration(WORKSPACE, "c", [File("config.toml", "sha256:a", 1)])

    async def parts(**named: str) -> RunParts:
        return await catalogue.parts_of_run(
            WORKSPACE, document.id, fingerprint_of=print_of, **named
        )

    draft = {"configuration_id": made.id}
    assert await parts(**draft) == (document, None, None)
    version = await catalogue.snapshot(WORKSPACE, made.id, "someone")
    assert await parts(**draft) == (document, version, None)
    build = await catalogue.ensure_build(version, print_of(version))
    assert await parts(**draft) == (document, version, build)
    # The draft goes on; the version that is named stays what it was.
    await catalogue.put_file(WORKSPACE, made.id, File("more.py", "sha256:b", 1))
    assert await parts(**draft) == (document, None, None)
    named = {"version_id": version.id.upper()}
    assert await parts(**named) == (document, version, build)
    assert await parts(**named, configuration_id=made.id.upper()) == (document, version, build)


async def test_what_a_run_cannot_be_made_of(catalogue: Catalogue) -> None:
    document = await catalogue.add_document(WORKSPACE, "d", PRINT, 1, None, quota_bytes=0)
    version = await a_version(catalogue)
    another = await a_version(catalogue, "another")
    await catalogue.delete_configuration(WORKSPACE, another.configuration_id)
    good = {"document_id": document.id, "configuration_id": version.configuration_id}
    nobody = "0198b000-0000-7000-8000-000000000009"
    for bad in (
        {"document_id": nobody},
        {"document_id": "no id"},
        {"configuration_id": nobody},
        {"configuration_id": another.configuration_id},
        {"version_id": nobody},
        {"version_id": another.id},
    ):
        with pytest.raises(NotFound):
            await catalogue.parts_of_run(WORKSPACE, fingerprint_of=print_of, **good | bad)
    with pytest.raises(NotFound):
        await catalogue.parts_of_run(nobody, fingerprint_of=print_of, **good)
    await catalogue.delete_document(WORKSPACE, document.id)
    with pytest.raises(NotFound, match="document"):
        await catalogue.parts_of_run(WORKSPACE, fingerprint_of=print_of, **good)


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


async def test_builders_in_other_processes_hear_of_builds(
    postgres_url: str, elsewhere: Listening
) -> None:
    assert await elsewhere.next() == list(EVERYTHING)  # it hears from now on
    session = Session(postgres_url)
    catalogue = Catalogue(session)
    try:
        version = await a_version(catalogue)
        made = await catalogue.ensure_build(version, PRINT)
        assert await elsewhere.next() == [BUILDS_TOPIC]
        await catalogue.release_build(held(await a_claim(catalogue)))
        assert await elsewhere.next() == [BUILDS_TOPIC]
        await catalogue.cancel_build(WORKSPACE, made.id)
        assert await elsewhere.next() == [BUILDS_TOPIC]
        await catalogue.ensure_build(version, PRINT)
        assert await elsewhere.next() == [BUILDS_TOPIC]
        # Nobody is told of what changes nothing for a builder.
        await catalogue.ensure_build(version, PRINT)
        taken = await a_claim(catalogue)
        await catalogue.renew_build(held(taken), LEASE_US)
        await finish(catalogue, taken)
        with pytest.raises(Conflict):
            await catalogue.cancel_build(WORKSPACE, made.id)
        Kernel(session).now.submit(submission())
        assert await elsewhere.next() == ["work:local"]
    finally:
        session.close()
