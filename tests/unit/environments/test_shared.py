"""Environments that hosts share by way of their blobs."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.environments.conftest import Configure, Workbench

from ade.environments import shared as module
from ade.environments.environment import EnvironmentGone, folder_of, is_there
from ade.environments.failure import BuildFailed
from ade.environments.shared import SharedEnvironments
from ade.settings import Settings
from ade.storage import Blobs
from ade.store.rows import EnvironmentArchive

pytestmark = pytest.mark.slow


class Records:
    """Hold archives in memory, as the database does."""

    def __init__(self) -> None:
        self.archives: dict[str, EnvironmentArchive] = {}

    async def find(self, environment: str) -> EnvironmentArchive | None:
        """Find one."""
        return self.archives.get(environment)

    async def add(self, archive: EnvironmentArchive) -> EnvironmentArchive:
        """Record one; the first counts."""
        return self.archives.setdefault(archive.environment, archive)

    async def forget(self, environment: str) -> None:
        """Forget one."""
        self.archives.pop(environment, None)


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


Host = Callable[..., tuple[SharedEnvironments, Settings]]


@pytest.fixture
def host(configure: Configure, records: Records, blobs: Blobs, tmp_path: Path) -> Host:
    """Make hosts with folders of their own."""

    def make(name: str, **changes: object) -> tuple[SharedEnvironments, Settings]:
        settings = configure(storage_data_dir=tmp_path / name, **changes)
        return SharedEnvironments(records, blobs, settings), settings

    return make


async def installed(settings: Settings) -> str:
    """Install an environment on a host."""
    return await Workbench(settings).install("greeting")


async def test_one_host_installs_and_another_fetches(
    host: Host, records: Records, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, here), (two, there) = host("one"), host("two", wheelhouse=None, build_network=False)
    digest = await installed(here)
    await one.share(digest)
    assert blobs.has(records.archives[digest].archive)
    assert await two.obtain(digest) == digest
    package = folder_of(digest, there) / "packages" / "greeting.py"
    assert package.read_text() == "VERSION = '2.0'\n"
    monkeypatch.setattr(module, "unpack", lambda *_: pytest.fail("unpacked again"))
    assert await two.obtain(digest) == digest


def counted(name: str, real: Callable[..., None], calls: list[str]) -> Callable[..., None]:
    """Note each call."""

    def call(*given: object) -> None:
        calls.append(name)
        real(*given)

    return call


async def test_it_is_packed_and_unpacked_once(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    (one, here), (two, _) = host("one"), host("two")
    calls: list[str] = []
    for name in ("pack", "unpack"):
        monkeypatch.setattr(module, name, counted(name, getattr(module, name), calls))
    digest = await installed(here)
    await asyncio.gather(*(one.share(digest) for _ in range(3)))
    await asyncio.gather(*(two.obtain(digest) for _ in range(3)))
    assert calls == ["pack", "unpack"]


async def test_a_cancelled_fetch_leaves_no_half_of_an_environment(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread goes on; the folder that it works in may be removed only after it."""
    (one, here), (two, there) = host("one"), host("two")
    digest = await installed(here)
    await one.share(digest)
    begun, go_on, real = threading.Event(), threading.Event(), module.unpack

    def slowly(*given: Any) -> None:
        begun.set()
        assert go_on.wait(60)
        real(*given)

    monkeypatch.setattr(module, "unpack", slowly)
    fetching = asyncio.create_task(two.obtain(digest))
    await asyncio.to_thread(begun.wait, 60)
    fetching.cancel()
    done, _ = await asyncio.wait([fetching], timeout=0.05)
    assert not done
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    package = folder_of(digest, there) / "packages" / "greeting.py"
    assert package.read_text() == "VERSION = '2.0'\n"
    assert is_there(digest, there)


async def test_another_platform_installs_the_same_versions(
    host: Host, wheelhouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, here), (two, there) = host("one"), host("two")
    digest = await installed(here)
    archive = await one.share(digest)
    assert archive.interpreter == module.interpreter()
    for name in ("shared", "resolve", "install"):
        monkeypatch.setattr(f"ade.environments.{name}.interpreter", lambda: "CPython 9 elsewhere")
    monkeypatch.setattr(module, "unpack", lambda *_: pytest.fail("unpacked"))
    rebuilt = await two.obtain(digest)
    assert rebuilt != digest
    assert is_there(rebuilt, there)
    assert not is_there(digest, there)
    lonely, _ = host("three", wheelhouse=None, build_network=False)
    with pytest.raises(BuildFailed, match="it cannot install them"):
        await lonely.obtain(digest)


async def test_a_damaged_archive_is_not_used(host: Host, records: Records, blobs: Blobs) -> None:
    (one, here), (two, there) = host("one"), host("two")
    digest = await installed(here)
    archive = await one.share(digest)
    spoilt = blobs.write([b"spoilt"], 100)
    records.archives[digest] = archive._replace(archive=spoilt.digest)
    assert await two.obtain(digest) == digest  # installed from its lock
    assert is_there(digest, there)


async def test_an_archive_whose_bytes_are_gone_is_forgotten(
    host: Host, records: Records, blobs: Blobs
) -> None:
    (one, here), (two, there) = host("one"), host("two")
    digest = await installed(here)
    archive = await one.share(digest)
    blobs.delete(archive.archive)
    assert await two.obtain(digest) == digest  # installed from its lock
    assert is_there(digest, there)
    assert records.archives == {}
    await one.share(digest)
    assert blobs.has(archive.archive)


async def test_what_is_nowhere_is_gone(host: Host) -> None:
    (one, here), (two, _) = host("one"), host("two")
    digest = await installed(here)
    with pytest.raises(EnvironmentGone):
        await two.obtain(digest)
    with pytest.raises(EnvironmentGone):
        await two.share(digest)
    (folder_of(digest, here) / "packages" / "away").symlink_to("/etc")
    with pytest.raises(BuildFailed, match="cannot be shared"):
        await one.share(digest)
