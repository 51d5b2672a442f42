"""What ADE ships for the tests of others, used as they use it."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ade.testing.server import AdeServer, running_server


def test_a_job_ends(ade_server: AdeServer) -> None:
    job = ade_server.submit("echo", {"value": {"a": 1}})
    assert job["status"] == "queued"
    assert ade_server.wait(job)["status"] == "succeeded"
    assert ade_server.result(job)["outputs"]["result_json"] == {"a": 1}


def test_the_client_is_the_first_user(ade_server: AdeServer) -> None:
    answer = ade_server.client.get(ade_server.path("documents"))
    assert answer.status_code == 200
    assert httpx.get(f"{ade_server.url}{ade_server.path('documents')}").status_code == 401


def test_two_jobs_are_two_executions(ade_server: AdeServer) -> None:
    jobs = [ade_server.submit("echo", {"value": 1}) for _ in range(2)]
    assert jobs[0]["job_id"] != jobs[1]["job_id"]


def test_a_refused_job_raises(ade_server: AdeServer) -> None:
    with pytest.raises(httpx.HTTPStatusError, match="422"):
        ade_server.submit("no such kind")


def test_waiting_has_an_end(ade_server: AdeServer) -> None:
    job = ade_server.submit("echo", {"value": 1, "sleep_ms": 20_000, "steps": 2})
    with pytest.raises(TimeoutError, match=job["job_id"]):
        ade_server.wait(job, seconds=0.3)
    answer = ade_server.client.post(ade_server.path(f"jobs/{job['job_id']}/cancel"))
    assert answer.status_code < 300, answer.text
    assert ade_server.wait(job)["status"] == "cancelled"


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    settings = {"ADE_DATABASE_URL": "nonsense://"}
    with pytest.raises(RuntimeError, match="did not start"), running_server(tmp_path, settings):
        pass


def test_it_takes_no_settings_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    with running_server(tmp_path, {}) as server:
        assert (server.data_dir / "ade.db").exists()


# What a project writes that uses ADE: an override for all of its tests, and a test.
PROJECT = {
    "conftest.py": """
import pytest

@pytest.fixture(scope="session")
def ade_server_settings():
    return {"ADE_SAFE_MODE": "true"}
""",
    "test_it.py": """
import httpx
import pytest

def test_safe_mode_refuses(ade_server):
    with pytest.raises(httpx.HTTPStatusError, match="400"):
        ade_server.submit("echo", {"value": 1})
""",
}


def test_a_project_overrides_settings(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
