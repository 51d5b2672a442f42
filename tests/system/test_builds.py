"""Builds by real servers: hooks in the sandbox, and servers that are killed in the middle."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.processes import eventually, is_alive, tree
from tests.sandbox.modes import BY_NAME, can_run
from tests.system.runs import configured, edited, ended, job_of, ran, started, uploaded
from tests.system.server import JOBS, SHORT_LEASE, Server, Start, starting
from tests.wheels import make_wheel

from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.storage import Blobs
from ade.store.rows import File
from ade.store.session import Session

BASE = "/api/v1/workspaces/default"
ENDED = {"ready", "failed", "cancelled"}
FIELD = "from ade_engine import Field\n\nFIELD = Field(label='Name')\n"
HOOK = """
import os, socket
import greeting

def on_activate():
    print("welcome")
    found = {"version": greeting.VERSION, "writes": True, "network": True}
    try:
        open(greeting.__file__, "a").close()
    except OSError:
        found["writes"] = False
    try:
        socket.socket().connect(("127.0.0.1", 1))
    except ConnectionRefusedError:
        pass
    except OSError:
        found["network"] = False
    return found
"""
DOCKER = BY_NAME["docker"]
needs_root = pytest.mark.skipif(
    not can_run(DOCKER), reason="only root can take rights away as Docker does"
)


class Site:
    """Make versions past the API, and activate them through it."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.wheelhouse = start.folder / "wheels"
        self.wheelhouse.mkdir()

    def server(self, **settings: object) -> Server:
        """Start a server that knows the wheelhouse only."""
        given = {"ADE_WHEELHOUSE": self.wheelhouse, **SHORT_LEASE, **settings}
        return self.start.server(**given)

    def version(self, **files: str) -> str:
        """Make a version; return where it is."""
        return asyncio.run(self._version({"columns/name.py": FIELD, **files}))

    async def _version(self, files: dict[str, str]) -> str:
        url = f"sqlite:///{self.start.data_dir}/ade.db"
        blobs = Blobs(self.start.data_dir / "blobs")
        session = Session(url)
        directory, library = Directory(session), Catalogue(session)
        try:
            workspace = await directory.find_workspace("default")
            assert workspace is not None
            kept = []
            for path, text in files.items():
                blob = blobs.write([text.encode()], 10**6)
                kept.append(File(path, blob.digest, blob.size_bytes))
            made = await library.add_configuration(workspace.id, "c", kept)
            version = await library.snapshot(workspace.id, made.id, "someone")
        finally:
            session.close()
        return f"{BASE}/configurations/{made.id}/versions/{version.sequence}"


def activate(server: Server, where: str) -> dict[str, Any]:
    """Activate a version that must be accepted."""
    answer = server.http.post(f"{where}/activate")
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def wait(server: Server, build: dict[str, Any], *statuses: str) -> dict[str, Any]:
    """Wait until a build is in one of these statuses, or has ended."""

    def look() -> dict[str, Any] | None:
        found = server.http.get(build["links"]["self"]).json()
        return dict(found) if found["status"] in (statuses or ENDED) else None

    found = eventually(look, 60)
    assert found is not None
    return found


def uvs(server: Server) -> set[int]:
    """List the installers of a server."""
    return {pid for pid in tree(server.pid) if _program(pid) == "uv"}


def _program(pid: int) -> str:
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return ""


@pytest.fixture
def site(start: Start) -> Site:
    return Site(start)


@pytest.fixture
def site_as_in_docker() -> Iterator[Site]:
    # Not pytest's own folder, which is closed to the users that jobs run as.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with starting(Path(folder), DOCKER.command([])) as start:
            yield Site(start)


def check_activation(site: Site) -> None:
    """Activate a version with requirements and a hook, twice, and look at what came of it."""
    make_wheel(site.wheelhouse, "greeting", "1.5")
    server = site.server()
    files = {"requirements.txt": "greeting\n", "hooks/on_activate.py": HOOK}
    where = site.version(**files)
    first = wait(server, activate(server, where))
    found = server.http.get(f"{where}/activation").json()
    assert first["status"] == "ready", found
    assert found["packages"] == ["greeting==1.5"]
    assert found["hooks"]["annotations"] == [{"version": "1.5", "writes": False, "network": False}]
    assert "landlock" in found["hooks"]["isolation"]
    assert "Installed 1 package" in server.http.get(first["links"]["log"]).text
    logs = server.http.get(f"{JOBS}/{first['job_id']}/logs").text
    assert "Installed 1 package" in logs
    assert logs.endswith("\nwelcome\n")
    # The same requirements under another name: nothing is installed again.
    again = wait(server, activate(server, site.version(**files)))
    assert (again["status"], again["environment"]) == ("ready", first["environment"])
    assert "already" in server.http.get(again["links"]["log"]).text


def test_hooks_find_their_packages_in_the_sandbox(site: Site) -> None:
    check_activation(site)


def test_a_package_that_cannot_be_imported_fails_the_build(site: Site) -> None:
    make_wheel(site.wheelhouse, "half", files={"half.py": "import no_such_module\n"})
    server = site.server()
    build = wait(server, activate(server, site.version(**{"requirements.txt": "half\n"})))
    assert (build["status"], build["error"]["code"]) == ("failed", "PACKAGE_NOT_IMPORTABLE")
    assert "import half raises ModuleNotFoundError" in build["error"]["message"]


@needs_root
def test_hooks_find_their_packages_as_in_docker(site_as_in_docker: Site) -> None:
    check_activation(site_as_in_docker)


@needs_root
def test_packages_that_jobs_cannot_reach_are_reported(site_as_in_docker: Site) -> None:
    site = site_as_in_docker
    make_wheel(site.wheelhouse, "greeting", "1.5")
    server = site.server()
    site.start.folder.chmod(0o700)
    build = wait(server, activate(server, site.version(**{"requirements.txt": "greeting\n"})))
    assert (build["status"], build["error"]["code"]) == ("failed", "BUILDER_ERROR")
    assert "cannot reach the installed packages" in build["error"]["message"]


def test_a_server_killed_while_it_installs_leaves_nothing_that_is_used(site: Site) -> None:
    # uv opens the wheel and waits for a writer that never comes.
    stuck = site.wheelhouse / "greeting-1.5-py3-none-any.whl"
    os.mkfifo(stuck)
    server = site.server()
    files = {"requirements.txt": "greeting\n", "hooks/on_activate.py": HOOK}
    where = site.version(**files)
    build = activate(server, where)
    wait(server, build, "building")
    (uv,) = eventually(lambda: uvs(server))
    server.kill()
    eventually(lambda: not is_alive(uv))
    environments = site.start.data_dir / "venvs"
    assert not list(environments.glob("*/complete.json"))
    stuck.unlink()
    make_wheel(site.wheelhouse, "greeting", "1.5")
    server = site.server()
    ended = wait(server, build)
    assert ended["status"] == "ready", server.http.get(f"{where}/activation").text
    assert ended["attempt"] > 1
    assert len(list(environments.glob("*/complete.json"))) == 1


def test_a_server_killed_while_hooks_run_leaves_no_process_and_no_stuck_build(site: Site) -> None:
    hook = "import time\n\ndef on_activate():\n    time.sleep(3600)\n"
    server = site.server(ADE_BUILD_TIMEOUT=5)
    build = activate(server, site.version(**{"hooks/on_activate.py": hook}))
    wait(server, build, "building")
    before = eventually(lambda: tree(server.pid))
    server.kill()
    eventually(lambda: not any(is_alive(pid) for pid in before))
    server = site.server(ADE_BUILD_TIMEOUT=1)
    ended = wait(server, build)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "BUILD_TIMED_OUT")
    assert "running on_activate" in ended["error"]["message"]


def test_a_build_whose_every_builder_is_killed_ends(site: Site) -> None:
    os.mkfifo(site.wheelhouse / "greeting-1.5-py3-none-any.whl")  # uv waits for it forever
    twice = {"ADE_RETRY_MAX_ATTEMPTS": 2}
    server = site.server(**twice)
    where = site.version(**{"requirements.txt": "greeting\n"})
    build = activate(server, where)
    for attempt in (1, 2):
        eventually(partial(uvs, server))
        assert wait(server, build, "building")["attempt"] == attempt
        server.kill()
        server = site.server(**twice)
    ended = wait(server, build)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "BUILDER_LOST")
    assert "started 2 times" in ended["error"]["message"]
    found = server.http.get(f"{where}/activation").json()
    assert found["diagnostics"][0]["code"] == "BUILDER_LOST"


def test_cancelling_kills_what_is_under_way(site: Site) -> None:
    os.mkfifo(site.wheelhouse / "greeting-1.5-py3-none-any.whl")
    server = site.server()
    build = activate(server, site.version(**{"requirements.txt": "greeting\n"}))
    (uv,) = eventually(lambda: uvs(server))
    assert server.http.post(build["links"]["cancel"]).status_code == 200
    assert wait(server, build)["status"] == "cancelled"
    assert not is_alive(uv)
    unfinished = site.start.data_dir / "venvs" / "unfinished"
    eventually(lambda: not list(unfinished.iterdir()))


def test_a_server_that_is_stopped_puts_its_build_back(site: Site) -> None:
    stuck = site.wheelhouse / "greeting-1.5-py3-none-any.whl"
    os.mkfifo(stuck)
    server = site.server(ADE_DRAIN_GRACE_SECONDS=1)
    build = activate(server, site.version(**{"requirements.txt": "greeting\n"}))
    eventually(lambda: uvs(server))
    assert server.stop() == 0
    stuck.unlink()
    make_wheel(site.wheelhouse, "greeting", "1.5")
    # Put back, not left to expire: a lease this long would outlast the test.
    server = site.server(ADE_LEASE_SECONDS=600)
    assert wait(server, build)["status"] == "ready"


# --- runs and their build -------------------------------------------------------------------------

ROSTER = {"requirements.txt": "greeting\n", "hooks/on_activate.py": HOOK}
RUNS_AT_ONCE = 20


def build_jobs(server: Server) -> list[dict[str, Any]]:
    """List the jobs that make builds."""
    answer = server.http.get(JOBS, params={"job_type": "build"})
    return list(answer.json()["items"])


def test_a_first_run_fits_into_a_queue_of_one_and_a_single_slot(site: Site) -> None:
    make_wheel(site.wheelhouse, "greeting", "1.5")
    server = site.server(ADE_QUEUE_SIZE=1, ADE_MAX_CONCURRENCY=1)
    run = ran(server, configured(server, ROSTER), uploaded(server))
    assert run["status"] == "succeeded", run["error"]
    (job,) = build_jobs(server)
    assert (job["status"], job["attempt"]) == ("succeeded", 1)


def test_a_run_without_requirements_and_hooks_needs_no_installer_and_no_build_job(
    site: Site,
) -> None:
    server = site.server()
    run = ran(server, configured(server), uploaded(server))
    assert (run["status"], run["build"]["status"]) == ("succeeded", "ready")
    assert build_jobs(server) == []
    environments = site.start.data_dir / "venvs"
    assert not [path for path in environments.rglob("*") if path.is_file()]


def test_runs_whose_builder_is_killed_share_the_build_of_the_next(site: Site) -> None:
    stuck = site.wheelhouse / "greeting-1.5-py3-none-any.whl"
    os.mkfifo(stuck)
    server = site.server(ADE_QUEUE_SIZE=0)
    configuration_id, document_id = configured(server, ROSTER), uploaded(server)
    runs = [started(server, configuration_id, document_id) for _ in range(RUNS_AT_ONCE)]
    (uv,) = eventually(lambda: uvs(server))
    server.kill()
    eventually(lambda: not is_alive(uv))
    stuck.unlink()
    make_wheel(site.wheelhouse, "greeting", "1.5")
    server = site.server(ADE_QUEUE_SIZE=0)
    found = [ended(server, run) for run in runs]
    assert {run["status"] for run in found} == {"succeeded"}, found[0]["error"]
    assert {server.job(job_of(run))["attempt"] for run in runs} == {1}
    (job,) = build_jobs(server)
    assert (job["status"], job["attempt"]) == ("succeeded", 2)


def test_runs_use_the_active_version_and_an_earlier_one_is_active_again_at_once(
    site: Site,
) -> None:
    server = site.server()
    configuration_id, document_id = configured(server), uploaded(server)
    where = f"{BASE}/configurations/{configuration_id}"

    def sequence(**asked: Any) -> int:
        run = ran(server, configuration_id, document_id, **asked)
        assert run["status"] == "succeeded", run["error"]
        return int(run["version"]["sequence"])

    assert sequence() == 1  # there is no active version: the draft
    edited(server, configuration_id, "NOTES.md", "the second")
    assert server.http.post(f"{where}/versions").json()["sequence"] == 2
    for number in (1, 2):
        build = wait(server, activate(server, f"{where}/versions/{number}"))
        assert build["status"] == "ready", build["error"]
        active = server.http.get(where).json()["active_version"]
        assert active["sequence"] == number
        assert sequence() == number
    edited(server, configuration_id, "NOTES.md", "the third")
    assert (sequence(), sequence(version="draft"), sequence(version=1)) == (2, 3, 1)
    answer = server.http.post(f"{where}/versions/1/activate")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert sequence() == 1
    assert len(build_jobs(server)) == 2
