"""What is added to a provider of Parsl, shown with one whose engine is three shell scripts."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.processes import aeventually, is_alive

from ade.agents.launchers.parsl import FAILED_SECONDS, OVERDUE_SECONDS, ParslLauncher
from ade.agents.launchers.parsl_provider import parsl_launcher
from ade.agents.launchers.port import BlockRefused, EngineAway
from ade.domain.errors import Unavailable

pytest.importorskip("parsl", reason="the extra `parsl` is not installed")
from parsl.jobs.states import JobState, JobStatus
from parsl.launchers import SimpleLauncher
from parsl.providers.cluster_provider import ClusterProvider

WALLTIME_SECONDS = 3600.0
STATES = {"Q": JobState.PENDING, "R": JobState.RUNNING, "E": JobState.FAILED}


class ScriptProvider(ClusterProvider):
    """Do as the providers of Parsl do: a failed status command changes nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__("script", 1, 0, 0, 1, 1, "01:00:00", SimpleLauncher())
        self.engine = folder
        self.cancelled: list[str] = []

    def submit(self, command: str, tasks_per_node: int, job_name: str = "") -> str | None:
        (self.engine / "command").write_text(command)
        code, output, _ = self.execute_wait(f"{self.engine}/submit")
        if code:
            return None
        number = str(output.strip())
        self.resources[number] = {"job_id": number, "status": JobStatus(JobState.PENDING)}
        return number

    def _status(self) -> None:
        code, output, _ = self.execute_wait(
            f"{self.engine}/status {' '.join(map(str, self.resources))}"
        )
        if code:
            return
        listed = dict(line.split() for line in output.splitlines())
        for number, resource in self.resources.items():
            resource["status"] = JobStatus(
                STATES.get(listed.get(str(number), ""), JobState.COMPLETED)
            )

    def cancel(self, job_ids: Sequence[object]) -> list[bool]:
        self.cancelled += map(str, job_ids)
        return [True for _ in job_ids]

    @property
    def status_polling_interval(self) -> int:
        return 60


class Engine:
    """Say what the commands of the engine answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 0.0
        self.answers("submit", "echo 7")
        self.answers("status", "echo 7 Q")
        self.provider = ScriptProvider(folder)

    def answers(self, command: str, script: str) -> None:
        file = self.folder / command
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def launcher(self, timeout_seconds: float = 30) -> ParslLauncher:
        """Make a launcher as a new process would, which knows no block."""
        self.provider = ScriptProvider(self.folder)
        return ParslLauncher(
            "ade-a-",
            self.provider,
            self.folder,
            timeout_seconds=timeout_seconds,
            walltime_seconds=WALLTIME_SECONDS,
            monotonic=lambda: self.now,
        )


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


async def listed(launcher: ParslLauncher) -> list[tuple[str, bool]]:
    return [(block.name, block.is_started) for block in await launcher.poll()]


async def test_the_shell_becomes_the_pilot_and_a_name_is_ordered_once(engine: Engine) -> None:
    one = engine.launcher()
    assert await one.launch("ade-a-1", ["env", "A=b c", "ade"]) == "7"
    assert (engine.folder / "command").read_text() == (
        f"cd {engine.folder} && exec env 'A=b c' ade"
    )
    engine.answers("submit", "echo 8")
    assert await one.launch("ade-a-1", ["ade"]) == "7"
    assert await listed(one) == [("ade-a-1", False)]
    engine.answers("status", "echo 7 R")
    assert await listed(one) == [("ade-a-1", True)]
    engine.answers("status", "true")
    assert await listed(one) == []


async def test_blocks_are_adopted_by_the_next_process_and_by_one_that_waited(
    engine: Engine,
) -> None:
    waiting = engine.launcher()
    assert await waiting.poll() == []
    first = engine.launcher()
    await first.launch("ade-a-1", ["ade"])
    assert await listed(engine.launcher()) == [("ade-a-1", False)]
    assert await listed(waiting) == [("ade-a-1", False)]
    engine.answers("status", "true")
    assert await listed(waiting) == []
    assert await listed(first) == []


async def test_no_answer_is_not_no_blocks(engine: Engine) -> None:
    one = engine.launcher()
    await one.launch("ade-a-1", ["ade"])
    engine.answers("status", "echo 'error: commlib error' >&2; exit 1")
    with pytest.raises(EngineAway, match="commlib error"):
        await one.poll()
    (engine.folder / "ade-a-blocks.json").write_text("{")
    with pytest.raises(EngineAway, match="cannot be read"):
        await engine.launcher().poll()


async def test_a_command_that_hangs_is_killed_and_is_no_answer(engine: Engine) -> None:
    await engine.launcher().launch("ade-a-1", ["ade"])
    pid = engine.folder / "pid"
    engine.answers("status", f"echo $$ > {pid}; exec sleep 600")
    with pytest.raises(EngineAway, match="timed out after 2 s"):
        await engine.launcher(timeout_seconds=2).poll()
    await aeventually(lambda: not is_alive(int(pid.read_text())))
    engine.answers("status", "echo 7 R")
    assert await listed(engine.launcher()) == [("ade-a-1", True)]


@pytest.mark.parametrize(
    ("script", "raised"),
    [
        ("echo 'Unable to run job: denied: no such queue' >&2; exit 1", BlockRefused),
        ("echo 'unable to send message to qmaster' >&2; exit 1", EngineAway),
        ("exit 3", BlockRefused),
    ],
)
async def test_an_order_without_an_id_says_why(
    engine: Engine, script: str, raised: type[Exception]
) -> None:
    engine.answers("submit", script)
    with pytest.raises(raised, match=r"denied|qmaster|exited with 3"):
        await engine.launcher().launch("ade-a-1", ["ade"])


async def test_blocks_that_the_engine_forgot_have_ended_and_hide_no_others(engine: Engine) -> None:
    one = engine.launcher()
    await one.launch("ade-a-7", ["ade"])
    engine.answers("submit", "echo 8")
    await one.launch("ade-a-8", ["ade"])
    engine.answers("status", '[ "$*" = 8 ] && echo 8 R && exit; echo "Unknown Job 7" >&2; exit 1')
    assert await listed(one) == [("ade-a-8", True)]


async def test_a_state_that_reads_failed_in_passing_is_no_end(engine: Engine) -> None:
    one = engine.launcher()
    await one.launch("ade-a-1", ["ade"])
    engine.answers("status", "echo 7 E")
    for _ in range(2):
        assert await listed(one) == [("ade-a-1", False)]
        engine.now += FAILED_SECONDS - 1
    engine.answers("status", "echo 7 R")
    assert await listed(one) == [("ade-a-1", True)]
    engine.answers("status", "echo 7 E")
    await one.poll()
    engine.now += FAILED_SECONDS
    assert await listed(one) == []
    assert engine.provider.cancelled == []  # it may have jobs


async def test_a_block_that_never_starts_and_stays_in_error_is_removed(engine: Engine) -> None:
    one = engine.launcher()
    await one.launch("ade-a-1", ["ade"])
    engine.answers("status", "echo 7 E")
    await one.poll()
    engine.now += FAILED_SECONDS
    assert await listed(one) == []
    assert engine.provider.cancelled == ["7"]


async def test_a_block_is_not_believed_to_run_for_ever(engine: Engine) -> None:
    one = engine.launcher()
    await one.launch("ade-a-1", ["ade"])
    engine.answers("status", "echo 7 R")
    await one.poll()
    engine.now += WALLTIME_SECONDS + OVERDUE_SECONDS - 1
    assert len(await one.poll()) == 1
    engine.now += 1
    assert await one.poll() == []


async def test_only_blocks_that_wait_are_cancelled_and_none_is_drained(engine: Engine) -> None:
    one = engine.launcher()
    await one.launch("ade-a-1", ["ade"])
    await one.cancel(["7", "99"])
    assert engine.provider.cancelled == ["7"]
    engine.answers("status", "echo 7 R")  # it has started since the last look
    await one.cancel(["7"])
    assert engine.provider.cancelled == ["7"]
    with pytest.raises(BlockRefused, match="leave when they are idle"):
        await one.drain(["7"])
    await one.drain([])


def make(folder: Path, provider: str, **options: Any) -> ParslLauncher:
    return parsl_launcher(
        "ade-a-", provider, options, folder, timeout_seconds=60, walltime_seconds=5400
    )


def test_a_provider_gets_what_ade_must_set(tmp_path: Path) -> None:
    made = make(tmp_path, "GridEngineProvider", queue="short.q")
    provider = made._provider
    assert (provider.walltime, provider.cmd_timeout, provider.queue) == ("01:30:00", 60, "short.q")
    assert isinstance(provider.launcher, SimpleLauncher)
    assert provider.script_dir == str(tmp_path)
    assert "GridEngineProvider" in made.describe()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda folder: make(folder, "NoProvider"), "'NoProvider' is not known: there are"),
        (lambda folder: make(folder, "GridEngineProvider", quue="x"), "quue is not known"),
        (lambda folder: make(folder, "KubernetesProvider", image="a"), "cannot be made: Optional"),
        (lambda folder: make(folder / "a b", "GridEngineProvider"), "is not allowed with Parsl"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, call: Callable[[Path], ParslLauncher], says: str
) -> None:
    with pytest.raises(Unavailable, match=says) as refused:
        call(tmp_path)
    assert "\n" not in refused.value.detail


async def test_the_file_of_blocks_holds_names_and_ids_only(engine: Engine) -> None:
    await engine.launcher().launch("ade-a-1", ["ade"])
    kept = json.loads((engine.folder / "ade-a-blocks.json").read_text())
    assert kept == {"ade-a-1": {"id": "7", "resource": {"job_id": "7"}}}
