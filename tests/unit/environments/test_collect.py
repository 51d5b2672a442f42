"""Collecting: what is unused is deleted, what may be used stays."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.databases import WORKSPACE
from tests.unit.environments.conftest import Configure, Workbench

from ade.app.build_requests import BuildRequests
from ade.app.catalogue import Catalogue
from ade.app.job_requests import Caller
from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.environments.collect import Collected, collect
from ade.environments.environment import STAMP, fingerprint_of, folder_of, is_there
from ade.environments.install import UNFINISHED
from ade.environments.requirements import BYTES_MAX
from ade.environments.requirements import FILE as REQUIREMENTS
from ade.kernel import Kernel
from ade.settings import Settings
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.storage import Blobs
from ade.store.rows import Build, File, Version
from ade.store.session import Session

DAY_SECONDS = 86_400


@pytest.fixture
def session(sqlite_url: str) -> Iterator[Session]:
    session = Session(sqlite_url)
    yield session
    session.close()


@pytest.fixture
def library(session: Session) -> Catalogue:
    return Catalogue(session)


class Builds:
    """Make builds ready without installing anything."""

    def __init__(self, library: Catalogue, kernel: Kernel, settings: Settings) -> None:
        self.library = library
        self._kernel = kernel
        self._requests = BuildRequests(library, Blobs(settings.storage_data_dir), settings)

    async def version(self) -> Version:
        """Make a version with requirements."""
        files = [File(REQUIREMENTS, "sha256:a", BYTES_MAX + 1)]
        configuration = await self.library.add_configuration(WORKSPACE, "c", files)
        return await self.library.snapshot(WORKSPACE, configuration.id, "someone")

    async def find(self, version: Version) -> Build:
        """Find the build of a version."""
        found = await self.library.find_build_of(version, fingerprint_of(version))
        assert found is not None
        return found

    async def activate(self, version: Version) -> Build:
        """Ask that a version become active; return its build."""
        caller = Caller(WORKSPACE, "someone")
        await self._kernel.submit(await self._requests.activation(caller, version))
        return await self.find(version)

    async def ready(self, version: Version, environment: str) -> Build:
        """Build a version, so that it refers to an environment."""
        await self.activate(version)
        (claim,) = await self._kernel.claim(ClaimRequest("me", 1))
        outputs = {"result_json": {"environment": environment}}
        outcome = Outcome(Status.SUCCEEDED, {"outputs": outputs})
        await self._kernel.finish(Finish(claim, outcome))
        return await self.find(version)


@pytest.fixture
def builds(library: Catalogue, session: Session, settings: Settings) -> Builds:
    return Builds(library, Kernel(session), settings)


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


async def test_an_environment_that_runs_use_stays(
    library: Catalogue, builds: Builds, settings: Settings, workbench: Workbench
) -> None:
    digest = await workbench.install("greeting")
    await builds.ready(await builds.version(), digest)
    age(folder_of(digest, settings) / STAMP, 29 * DAY_SECONDS)
    assert await collect(library.environments, settings) == Collected()
    assert is_there(digest, settings)


async def test_an_idle_one_goes_and_comes_back_with_the_next_run(
    library: Catalogue, builds: Builds, settings: Settings, workbench: Workbench
) -> None:
    digest = await workbench.install("greeting")
    version = await builds.version()
    build = await builds.ready(version, digest)
    age(folder_of(digest, settings) / STAMP, 31 * DAY_SECONDS)
    assert await collect(library.environments, settings) == Collected(environments=1)
    assert not folder_of(digest, settings).exists()
    after = await library.find_build(WORKSPACE, build.id)
    assert after.status == "cancelled"
    assert "not been used for 30 days" in (after.error or "")
    assert (await builds.activate(version)).status == "queued"


async def test_one_that_no_build_names_goes_sooner_but_not_at_once(
    library: Catalogue, settings: Settings, workbench: Workbench
) -> None:
    digest = await workbench.install("greeting")
    assert await collect(library.environments, settings) == Collected()
    age(folder_of(digest, settings) / STAMP, 3700)
    assert await collect(library.environments, settings) == Collected(environments=1)


async def test_one_that_is_not_on_the_disk_any_more_is_built_again(
    library: Catalogue, builds: Builds, settings: Settings
) -> None:
    version = await builds.version()
    lost = "sha256:" + "0" * 64
    assert (await builds.ready(version, lost)).status == "ready"
    assert (await builds.activate(version)).status == "queued"
    await builds.ready(version, lost)
    await collect(library.environments, settings)
    assert (await builds.find(version)).status == "cancelled"
    assert (await builds.activate(version)).status == "queued"


async def test_what_a_killed_build_left_goes_once_no_build_can_be_at_it(
    library: Catalogue, configure: Configure
) -> None:
    settings = configure(build_timeout_seconds=60)
    young, old = (settings.activation_envs_dir / UNFINISHED / name for name in ("young", "old"))
    for folder in (young, old):
        (folder / "environment").mkdir(parents=True)
    age(young, 60)
    age(old, 3700)
    assert await collect(library.environments, settings) == Collected(leftovers=1)
    assert (young.exists(), old.exists()) == (True, False)


async def test_a_cache_that_has_grown_too_large_is_emptied(
    library: Catalogue, configure: Configure
) -> None:
    bench = Workbench(configure(environment_cache_mb=0))
    digest = await bench.install("greeting")
    assert list(bench.tool.cache_folder.iterdir())
    await collect(library.environments, bench.settings)
    left = list(bench.tool.cache_folder.iterdir()) if bench.tool.cache_folder.exists() else []
    assert [path for path in left if path.is_dir()] == []
    assert is_there(digest, bench.settings)
