"""Installing: from a wheelhouse, once, whole or not at all."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import stat
import zipfile
from pathlib import Path

import pytest
from tests.processes import eventually
from tests.unit.environments.conftest import Configure, Workbench
from tests.wheels import make_wheel

from ade.environments.environment import STAMP, environment_of, folder_of
from ade.environments.failure import BuildFailed
from ade.environments.install import UNFINISHED, install, workshop
from ade.environments.provided import provided
from ade.environments.resolve import resolve
from ade.settings import Settings

pytestmark = pytest.mark.slow

OUTSIDE = Path("/tmp/ade-evil.py")


def leftovers(settings: Settings) -> list[Path]:
    unfinished = settings.activation_envs_dir / UNFINISHED
    return list(unfinished.iterdir()) if unfinished.exists() else []


def strays(workbench: Workbench) -> list[Path]:
    """Find what a wheel wrote where it should not."""
    site = workbench.settings.storage_data_dir.parent
    found = [path for path in site.rglob("*evil.py") if "cache" not in path.parts]
    return [path for path in [*found, OUTSIDE] if path.exists() and "packages" not in path.parts]


async def test_the_newest_that_fits_is_installed_with_what_it_needs(workbench: Workbench) -> None:
    digest = await workbench.install("polite")
    folder = folder_of(digest, workbench.settings)
    stamp = json.loads((folder / STAMP).read_text())
    assert stamp["packages"] == ["greeting==2.0", "polite==1.0"]
    assert (folder / "packages" / "greeting.py").read_text() == "VERSION = '2.0'\n"
    # Jobs cannot write there, so the interpreter could not keep what it compiles.
    assert list((folder / "packages" / "__pycache__").glob("greeting.*.pyc"))
    assert leftovers(workbench.settings) == []


async def test_what_the_engine_runs_on_is_pinned_and_not_installed_again(
    workbench: Workbench,
) -> None:
    versions = {package.name: package.version for package in provided()}
    assert {"numpy", "polars", "python-calamine", "isal", "ade"} <= set(versions)
    lock = await workbench.lock("numpy\npolars>=1\nade\n")
    assert lock.text == ""
    folder = folder_of(await workbench.install("polite"), workbench.settings)
    assert not (folder / "packages" / "numpy").exists()


@pytest.mark.parametrize(
    ("requirements", "words"),
    [
        ("nobody-has-this", "nobody-has-this was not found"),
        ("greeting==7", r"no version of greeting==7"),
        ("greeting==1\ngreeting==2", "unsatisfiable"),
        ("numpy<2", r"you require numpy<2 and numpy=="),
        ("numpy<2", r"\. numpy==\S+ is required by ADE itself: its engine runs on it\.$"),
    ],
)
async def test_what_cannot_be_had_is_said_in_one_line(
    workbench: Workbench, requirements: str, words: str
) -> None:
    with pytest.raises(BuildFailed, match=words) as failed:
        await workbench.install(requirements)
    assert failed.value.error.code == "PACKAGES_NOT_INSTALLED"
    assert "\n" not in failed.value.error.message
    assert str(workbench.settings.storage_data_dir) not in "".join(
        [*workbench.said, str(failed.value)]
    )


async def test_the_same_requirements_are_resolved_and_installed_once(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await workbench.install("greeting # as before")
    monkeypatch.setattr("uv.find_uv_bin", lambda: pytest.fail("uv was called again"))
    assert await workbench.install("greeting") == first


async def test_a_new_wheel_in_the_wheelhouse_is_found(
    workbench: Workbench, wheelhouse: Path
) -> None:
    before = await workbench.lock("greeting")
    make_wheel(wheelhouse, "greeting", "3.0")
    after = await workbench.lock("greeting")
    assert (before.packages, after.packages) == (["greeting==2.0"], ["greeting==3.0"])
    assert before.digest != after.digest


async def test_two_builds_at_once_install_once(workbench: Workbench) -> None:
    digests = await asyncio.gather(*(workbench.install("greeting") for _ in range(2)))
    assert len(set(digests)) == 1
    assert sum("Installed 1 package" in line for line in workbench.said) == 1


async def test_of_two_processes_the_second_drops_its_own(
    settings: Settings, workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = await workbench.lock("greeting")
    digest = await workbench.install("greeting")
    stamp = (folder_of(digest, settings) / STAMP).read_text()
    monkeypatch.setattr("ade.environments.install.is_there", lambda *_: False)
    async with workshop(settings) as folder:
        assert await install(lock, workbench.tool, folder) == digest
    assert (folder_of(digest, settings) / STAMP).read_text() == stamp
    assert leftovers(settings) == []


async def test_a_folder_without_a_stamp_is_no_environment(
    settings: Settings, workbench: Workbench
) -> None:
    lock = await workbench.lock("greeting")
    half = folder_of(lock.digest, settings) / "packages"
    half.mkdir(parents=True)
    (half / "greeting.py").write_text("half of it")
    digest = await workbench.install("greeting")
    assert (folder_of(digest, settings) / "packages" / "greeting.py").read_text().startswith("VER")


async def test_wheels_that_were_changed_are_refused(
    settings: Settings, workbench: Workbench, wheelhouse: Path
) -> None:
    async with workshop(settings) as folder:
        lock = await resolve(["greeting==1.0"], workbench.tool, folder)
        make_wheel(wheelhouse, "greeting", "1.0", files={"greeting.py": "import os  # evil\n"})
        shutil.rmtree(workbench.tool.cache_folder)  # it has the wheel as it was
        with pytest.raises(BuildFailed, match=r"(?i)hash"):
            await install(lock, workbench.tool, folder)
    assert not folder_of(lock.digest, settings).exists()


async def test_packages_without_a_wheel_need_leave_to_run_their_code(
    configure: Configure, wheelhouse: Path, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    setup = f"open({str(proof)!r}, 'w').write('run')\nfrom setuptools import setup\nsetup()\n"
    with zipfile.ZipFile(wheelhouse / "sourced-1.0.zip", "w") as archive:
        archive.writestr("sourced-1.0/setup.py", setup)
        archive.writestr(
            "sourced-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: sourced\nVersion: 1.0\n"
        )
    with pytest.raises(BuildFailed):
        await Workbench(configure()).install("sourced")
    assert not proof.exists()


async def test_a_package_that_would_replace_the_engine_is_refused(
    workbench: Workbench, wheelhouse: Path
) -> None:
    make_wheel(wheelhouse, "sneaky", files={"ade_engine/__init__.py": "", "sneaky.py": ""})
    with pytest.raises(BuildFailed, match="brings a module 'ade_engine'"):
        await workbench.install("sneaky")
    lock = await workbench.lock("sneaky")
    assert not folder_of(lock.digest, workbench.settings).exists()


async def test_packages_have_a_size_that_they_may_reach(
    configure: Configure, wheelhouse: Path
) -> None:
    make_wheel(wheelhouse, "large", files={"large.py": "x = '" + "0" * 2**21 + "'\n"})
    with pytest.raises(BuildFailed, match="ADE_ENVIRONMENT_MAX_MB allows 1"):
        await Workbench(configure(environment_max_mb=1)).install("large")


async def test_without_network_and_wheelhouse_there_is_nowhere_to_get_them(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uv.find_uv_bin", lambda: pytest.fail("uv was called"))
    for given, words in (
        ({"wheelhouse": None, "build_network": False}, "ADE_BUILD_NETWORK is off"),
        ({"wheelhouse": Path("/nowhere/at/all")}, "ADE_WHEELHOUSE names a folder that does not"),
    ):
        with pytest.raises(BuildFailed, match=words):
            await Workbench(configure(**given)).lock("greeting")


async def test_nothing_of_our_environment_reaches_uv_but_how_to_get_out(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ADE_BOOTSTRAP_API_KEY", "secret")
    monkeypatch.setenv("UV_INDEX_URL", "https://elsewhere.example")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    given = workbench.tool._environ(tmp_path)
    assert given["HTTPS_PROXY"] == "http://proxy.example"
    assert not {name for name in given if name.startswith(("ADE_", "UV_INDEX"))}
    assert "secret" not in given.values()


async def test_the_registrys_password_is_in_no_argument_and_no_log(configure: Configure) -> None:
    address = "http://me:hunter2@127.0.0.1:9/simple"
    bench = Workbench(configure(wheelhouse=None, index_url=address))
    assert "hunter2" not in " ".join(bench.tool.sources())
    with pytest.raises(BuildFailed) as failed:
        await bench.lock("greeting")
    assert "hunter2" not in "".join([*bench.said, str(failed.value)])


async def test_uv_is_killed_when_the_build_is_cancelled(
    settings: Settings, tmp_path: Path, workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, pid_file = tmp_path / "slow", tmp_path / "pid"
    slow.write_text(
        f"#!/bin/sh\necho $$ > {pid_file}.new\nmv {pid_file}.new {pid_file}\nsleep 600\n"
    )
    slow.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(slow))
    installing = asyncio.create_task(workbench.install("greeting"))
    await asyncio.to_thread(eventually, pid_file.exists)
    installing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await installing
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), signal.SIGCONT)
    assert leftovers(settings) == []


async def test_jobs_find_packages_behind_the_standard_library_and_before_ades(
    settings: Settings, workbench: Workbench
) -> None:
    digest = await workbench.install("greeting")
    found = environment_of(digest, settings)
    packages = folder_of(digest, settings) / "packages"
    names = [path.name for path in found.paths]
    at = found.paths.index(packages)
    assert names.index("lib-dynload") < at < names.index("site-packages")
    assert packages in found.readable
    assert packages.stat().st_mode & 0o005 == 0o005


@pytest.mark.parametrize(
    "path",
    ["../evil.py", "../../../evil.py", str(OUTSIDE), "evil-1.0.data/data/../../evil.py"],
)
async def test_a_wheel_writes_nowhere_but_into_its_environment(
    workbench: Workbench, wheelhouse: Path, path: str
) -> None:
    make_wheel(wheelhouse, "evil", files={path: "gotcha = 1\n", "evil_itself.py": ""})
    with contextlib.suppress(BuildFailed):
        await workbench.install("evil")
    assert strays(workbench) == []


async def test_links_in_a_wheel_lead_nowhere(workbench: Workbench, wheelhouse: Path) -> None:
    wheel = make_wheel(wheelhouse, "linked")
    entry = zipfile.ZipInfo("secret.py")
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(entry, "/etc/passwd")
    digest = None
    with contextlib.suppress(BuildFailed):
        digest = await workbench.install("linked")
    if digest is not None:
        packages = folder_of(digest, workbench.settings) / "packages"
        assert [path for path in packages.rglob("*") if path.is_symlink()] == []
