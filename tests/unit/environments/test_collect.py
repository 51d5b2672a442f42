"""Collecting: what nobody uses goes, what anybody might use stays."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.databases import WORKSPACE
from tests.unit.environments.conftest import Configure, Workbench

from ade.app.catalogue import Catalogue
from ade.environments.collect import Collected, collect
from ade.environments.environment import STAMP, ensure_build, folder_of, is_there
from ade.environments.install import UNFINISHED
from ade.kernel import Kernel
from ade.settings import Settings
from ade.store.rows import Build, BuildHeld, File, Version
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


@pytest.fixture
def kernel(session: Session) -> Kernel:
    return Kernel(session)


async def a_version(library: Catalogue) -> Version:
    made = await library.add_configuration(WORKSPACE, "c", [File("config.toml", "sha256:a", 1)])
    return await library.snapshot(WORKSPACE, made.id, "someone")


async def ready(library: Catalogue, kernel: Kernel, version: Version, environment: str) -> Build:
    await ensure_build(library, kernel, version)
    build = await library.claim_build("me", 10**7)
    assert build is not None
    held = BuildHeld(build.workspace_id, build.id, build.fence)
    await library.finish_build(held, "ready", error=None, environment=environment)
    return await library.find_build(WORKSPACE, build.id)


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


async def test_an_environment_that_runs_use_stays(
    library: Catalogue, kernel: Kernel, settings: Settings, workbench: Workbench
) -> None:
    digest = await workbench.install("greeting")
    await ready(library, kernel, await a_version(library), digest)
    age(folder_of(digest, settings) / STAMP, 29 * DAY_SECONDS)
    assert await collect(library, settings) == Collected()
    assert is_there(digest, settings)


async def test_an_idle_one_goes_and_comes_back_with_the_next_run(
    library: Catalogue, kernel: Kernel, settings: Settings, workbench: Workbench
) -> None:
    digest = await workbench.install("greeting")
    version = await a_version(library)
    build = await ready(library, kernel, version, digest)
    age(folder_of(digest, settings) / STAMP, 31 * DAY_SECONDS)
    assert await collect(library, settings) == Collected(environments=1)
    assert not folder_of(digest, settings).exists()
    after = await library.find_build(WORKSPACE, build.id)
    assert after.status == "cancelled"
    assert "not been used for 30 days" in (after.error or "")
    assert (await ensure_build(library, kernel, version)).status == "queued"


async def test_one_that_no_build_names_goes_sooner_but_not_at_once(
    library: Catalogue, settings: Settings, workbench: Workbench
) -> None:
    digest = await workbench.install("greeting")
    assert await collect(library, settings) == Collected()
    age(folder_of(digest, settings) / STAMP, 3700)
    assert await collect(library, settings) == Collected(environments=1)


async def test_one_that_is_not_on_the_disk_any_more_is_built_again(
    library: Catalogue, kernel: Kernel, settings: Settings
) -> None:
    version = await a_version(library)
    lost = "sha256:" + "0" * 64
    await ready(library, kernel, version, lost)
    assert (await ensure_build(library, kernel, version)).status == "ready"
    assert (await ensure_build(library, kernel, version, settings)).status == "queued"
    await ready(library, kernel, version, lost)
    await collect(library, settings)
    found = await library.find_build_of(
        version, (await ensure_build(library, kernel, version)).fingerprint
    )
    assert found is not None
    assert found.status == "queued"


async def test_what_a_killed_build_left_goes_once_no_build_can_be_at_it(
    library: Catalogue, configure: Configure
) -> None:
    settings = configure(build_timeout_seconds=60)
    young, old = (settings.activation_envs_dir / UNFINISHED / name for name in ("young", "old"))
    for folder in (young, old):
        (folder / "environment").mkdir(parents=True)
    age(young, 60)
    age(old, 3700)
    assert await collect(library, settings) == Collected(leftovers=1)
    assert (young.exists(), old.exists()) == (True, False)


async def test_a_cache_that_has_grown_too_large_is_emptied(
    library: Catalogue, configure: Configure
) -> None:
    bench = Workbench(configure(environment_cache_mb=0))
    digest = await bench.install("greeting")
    assert list(bench.tool.cache_folder.iterdir())
    await collect(library, bench.settings)
    left = list(bench.tool.cache_folder.iterdir()) if bench.tool.cache_folder.exists() else []
    assert [path for path in left if path.is_dir()] == []
    assert is_there(digest, bench.settings)
