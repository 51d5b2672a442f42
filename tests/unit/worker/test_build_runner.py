"""The work of a build: installed, activated, reported; killed whatever it is doing."""

import asyncio
import os
import select
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.processes import aeventually
from tests.unit.worker.bench import LIMITS
from tests.unit.worker.scripted import Scripted, activated, internal, slow_uv
from tests.wheels import make_wheel

from ade.domain.job import Status
from ade.domain.limits import Limits
from ade.domain.outcome import Category, CodeLocation, JobError, Outcome
from ade.environments.activation import ActivationFolder
from ade.environments.environment import is_there
from ade.sandbox.spec import RunSpec
from ade.settings import Settings
from ade.worker.build_runner import BuildInputs, BuildRun, BuildRunner
from ade.worker.runner import see_to_the_end

INPUTS = BuildInputs("a-build", 1, "a-configuration", 3)
DEATH_SECONDS_MAX = 10.0
SHORT = Limits(300, 30_000, 512, 1, 0)
Start = Callable[..., BuildRun]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Know a wheelhouse and no other source."""
    make_wheel(tmp_path / "wheels", "greeting")
    return Settings(storage_data_dir=tmp_path / "data", wheelhouse=tmp_path / "wheels")


@pytest.fixture
async def hooks() -> Scripted:
    """Be the runner of the hooks."""
    return Scripted()


@pytest.fixture
def progress() -> list[str]:
    """Keep the messages of progress reports."""
    return []


@pytest.fixture
def start(settings: Settings, hooks: Scripted, progress: list[str], tmp_path: Path) -> Start:
    """Start builds of a package that has these requirements."""

    def make(requirements: str = "", limits: Limits = LIMITS) -> BuildRun:
        folder = tmp_path / "job"
        files = {"config/config.toml": "name = 'c'\n", "config/requirements.txt": requirements}
        paths = {}
        for name, text in files.items():
            paths[name] = folder / name
            paths[name].parent.mkdir(parents=True, exist_ok=True)
            paths[name].write_text(text)
        spec = RunSpec("a build", asdict(INPUTS), limits, folder, files=paths)
        return BuildRunner(hooks, settings).start(
            spec,
            lambda shown: progress.append(f"{shown['done']}/{shown['total']} {shown['message']}"),
        )

    return make


def report_of(outcome: Outcome) -> dict[str, Any]:
    report: dict[str, Any] = (outcome.result or {})["outputs"]["result_json"]
    return report


async def test_a_build_is_installed_and_activated(
    start: Start, settings: Settings, hooks: Scripted, progress: list[str]
) -> None:
    outcome = await start("greeting").outcome()
    assert (outcome.status, outcome.error) == (Status.SUCCEEDED, None)
    report = report_of(outcome)
    assert (report["status"], report["packages"]) == ("ready", ["greeting==1.0"])
    assert report["hooks"]["annotations"] == [{"note": 1}]
    assert report["python_executable"]
    assert is_there(report["environment"], settings)
    (spec,) = hooks.given
    assert spec.entry == "ade_engine.entry.activate"
    assert spec.inputs == {"config": "config", "required": ["greeting"]}
    assert spec.environment == report["environment"]
    assert set(spec.files) == {"config/config.toml", "config/requirements.txt"}
    assert progress == [
        "0/3 resolving requirements.txt",
        "1/3 installing 1 package",
        "2/3 running on_activate",
    ]
    result = ActivationFolder(INPUTS, settings).result() or {}
    assert (result["status"], result["build_id"], result["attempt"]) == ("ready", "a-build", 1)
    assert result["finished_at"] >= result["started_at"]


async def test_the_output_is_the_log_and_then_what_the_hooks_print(
    start: Start, settings: Settings
) -> None:
    outcome = await start("greeting").outcome()
    written = ActivationFolder(INPUTS, settings).log() or ""
    assert "Installed 1 package" in written
    assert (outcome.result or {})["outputs"]["stdout"] == f"{written}printed"


async def test_of_a_long_output_whole_lines_of_the_end_are_kept(
    start: Start, hooks: Scripted
) -> None:
    lines = [f"{number:04} " + "ä" * 20 for number in range(100)]
    outputs = {"result_json": {}, "stdout": "\n".join(lines), "stderr": ""}
    hooks.outcomes = [Outcome(Status.SUCCEEDED, {"outputs": outputs})]
    outcome = await start().outcome()
    kept = (outcome.result or {})["outputs"]["stdout"]
    assert kept.splitlines() == lines[-22:]
    assert len(kept.encode()) <= LIMITS.max_output_kb * 1024


async def test_the_log_of_a_cancelled_build_is_kept(start: Start, hooks: Scripted) -> None:
    hooks.hangs = True
    running = start()
    ending = asyncio.ensure_future(running.outcome())
    await hooks.started.wait()
    running.stop()
    assert "nothing is installed" in ((await ending).result or {})["outputs"]["stdout"]


async def test_without_requirements_only_the_hooks_run(start: Start, progress: list[str]) -> None:
    outcome = await start().outcome()
    assert report_of(outcome)["environment"] is None
    assert progress == ["2/3 running on_activate"]


async def test_a_failure_is_in_the_outcome_the_folder_and_the_log(
    start: Start, settings: Settings, hooks: Scripted
) -> None:
    outcome = await start("-r /etc/passwd").outcome()
    assert outcome.status is Status.FAILED
    assert outcome.error is not None
    assert outcome.error.code == "REQUIREMENTS_REFUSED"
    assert report_of(outcome)["diagnostics"][0]["code"] == "REQUIREMENTS_REFUSED"
    folder = ActivationFolder(INPUTS, settings)
    assert (folder.result() or {})["status"] == "failed"
    assert outcome.error.message in (folder.log() or "")
    assert hooks.given == []


async def test_an_environment_whose_hooks_fail_is_not_reported(
    start: Start, hooks: Scripted
) -> None:
    raised = JobError(Category.USER_CODE_ERROR, "AUTHOR_CODE_FAILED", "on_activate raised")
    hooks.outcomes = [Outcome(Status.FAILED, {"outputs": {}}, raised)]
    outcome = await start("greeting").outcome()
    assert report_of(outcome)["environment"] is None
    assert outcome.error is not None
    assert outcome.error.message == "The configuration could not be activated: on_activate raised"


async def test_a_sandbox_that_fails_is_tried_again(start: Start, hooks: Scripted) -> None:
    hooks.outcomes = [internal("ZYGOTE_LOST"), internal("ZYGOTE_LOST"), activated()]
    assert (await start().outcome()).status is Status.SUCCEEDED
    assert len(hooks.given) == 3


async def test_hooks_have_the_whole_time_and_are_reported_with_their_location(
    start: Start, hooks: Scripted, settings: Settings
) -> None:
    hooks.hangs = True
    hooks.location = CodeLocation("hooks/on_activate.py", 4, "on_activate")
    outcome, timed_out = await see_to_the_end(start(limits=SHORT), 0.3)
    assert timed_out
    assert outcome.status is Status.TIMED_OUT
    assert outcome.error is not None
    assert outcome.error.code == "BUILD_TIMED_OUT"
    assert "(0.3 s)" in outcome.error.message
    assert outcome.error.message.endswith("in on_activate (hooks/on_activate.py:4).")
    assert (ActivationFolder(INPUTS, settings).result() or {})["status"] == "failed"


async def test_an_installation_that_takes_too_long_names_its_step(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_uv(tmp_path, monkeypatch)
    outcome, _ = await see_to_the_end(start("greeting", limits=SHORT), 0.3)
    assert outcome.status is Status.TIMED_OUT
    assert outcome.location == CodeLocation(doing="resolving requirements.txt")


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_uv_is_killed_before_the_call_returns(
    start: Start, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    pid_file = slow_uv(tmp_path, monkeypatch)
    running = start("greeting")
    ending = asyncio.ensure_future(running.outcome())
    await aeventually(pid_file.exists)
    pid = int(await asyncio.to_thread(pid_file.read_text))
    watched = os.pidfd_open(pid)
    getattr(running, how)()
    # The event loop has not run since: only the call itself can have sent the signal.
    dead, _, _ = select.select([watched], [], [], DEATH_SECONDS_MAX)
    os.close(watched)
    assert dead
    outcome = await ending
    assert (outcome.status, outcome.error and outcome.error.code) == (Status.FAILED, "STOPPED")
    assert ActivationFolder(INPUTS, settings).result() is None


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_hooks_are_killed_and_nothing_more_is_written(
    start: Start, hooks: Scripted, settings: Settings, how: str
) -> None:
    hooks.hangs = True
    running = start()
    ending = asyncio.ensure_future(running.outcome())
    await hooks.started.wait()
    getattr(running, how)()
    assert hooks.killed == 1
    outcome = await ending
    assert outcome.error is not None
    assert outcome.error.code == "STOPPED"
    assert ActivationFolder(INPUTS, settings).result() is None


async def test_a_build_that_is_done_when_the_stop_comes_is_done(
    start: Start, hooks: Scripted, settings: Settings
) -> None:
    hooks.outcomes = [replace(activated(), isolation=("paper",))]
    running = start()
    await asyncio.wait([running._work])
    running.stop()
    assert (await running.outcome()).status is Status.SUCCEEDED
    assert (ActivationFolder(INPUTS, settings).result() or {})["status"] == "ready"
