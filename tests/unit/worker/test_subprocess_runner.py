"""Real children: what becomes of them, and of what they started."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.processes import aeventually, eventually, is_alive
from tests.unit.worker.bench import ROGUES
from tests.unit.worker.conftest import Assign

from ade.domain.job import Status
from ade.domain.limits import Limits
from ade.domain.outcome import Category, Outcome
from ade.sandbox.runtime_environment import Environment
from ade.worker.subprocess_runner import SubprocessRun, SubprocessRunner

pytestmark = pytest.mark.slow

RUNNER = SubprocessRunner(command=ROGUES, stop_grace_seconds=0.2)


def _ignore(progress: dict[str, Any]) -> None:
    pass


async def _run(spec: Any, runner: SubprocessRunner = RUNNER) -> Outcome:
    async with asyncio.timeout(20):
        return await runner.start(spec, _ignore).outcome()


async def _started(spec: Any, runner: SubprocessRunner = RUNNER) -> tuple[SubprocessRun, list[int]]:
    """Start a rogue and wait until it has reported its process ids."""
    messages: asyncio.Queue[str] = asyncio.Queue()
    running = runner.start(spec, lambda progress: messages.put_nowait(progress["message"]))
    async with asyncio.timeout(20):
        return running, [int(word) for word in (await messages.get()).split()]


async def test_a_value_comes_back(assign: Assign) -> None:
    outcome = await _run(assign(value={"a": [1, "é"]}, print="hello"), SubprocessRunner())
    assert outcome.status is Status.SUCCEEDED
    assert outcome.error is None
    assert outcome.result == {
        "outputs": {"stdout": "hello\n", "stderr": "", "result_json": {"a": [1, "é"]}},
        "logs": [],
    }
    assert outcome.usage["memory_mb_peak"] > 0


async def test_output_is_cut_at_the_limit(assign: Assign) -> None:
    outcome = await _run(assign(value=1, print="x" * 3000))
    assert outcome.status is Status.SUCCEEDED
    assert outcome.result is not None
    stdout = outcome.result["outputs"]["stdout"]
    assert stdout.startswith("x" * 512 + "\n[output cut: 1977 bytes")
    assert stdout.endswith("x" * 511 + "\n")


async def test_an_exception_is_reported_with_its_traceback(assign: Assign) -> None:
    outcome = await _run(assign(fail="raise", print="before"))
    assert outcome.status is Status.FAILED
    assert outcome.error is not None
    assert (outcome.error.category, outcome.error.code) == (
        Category.USER_CODE_ERROR,
        "PYTHON_EXCEPTION",
    )
    assert outcome.error.message == "ValueError: asked to fail"
    assert "in main" in outcome.error.details["traceback"]
    assert outcome.result is not None
    assert outcome.result["outputs"]["stdout"] == "before\n"
    assert "result_json" not in outcome.result["outputs"]


async def test_a_missing_module_is_a_dependency_error(assign: Assign) -> None:
    outcome = await _run(assign(do="import", module="no_such_module"))
    assert outcome.error is not None
    assert outcome.error.category is Category.DEPENDENCY_ERROR
    assert outcome.error.code == "MODULE_NOT_FOUND"


async def test_an_exit_without_a_result_is_a_failure(assign: Assign) -> None:
    outcome = await _run(assign(fail="exit"))
    assert outcome.error is not None
    assert outcome.error.code == "EXITED_WITHOUT_RESULT"
    assert outcome.error.details == {"exit_code": 3}


async def test_a_signal_is_named(assign: Assign) -> None:
    outcome = await _run(assign(fail="abort"))
    assert outcome.error is not None
    assert outcome.error.code == "KILLED_BY_SIGNAL"
    assert "SIGABRT" in outcome.error.message


async def test_cpu_time_is_limited(assign: Assign) -> None:
    limits = Limits(30_000, 1000, 512, 1, 0)
    outcome = await _run(assign(limits, do="spin"))
    assert outcome.error is not None
    assert (outcome.error.category, outcome.error.code) == (Category.RESOURCE_LIMIT, "CPU_LIMIT")
    assert 700 <= outcome.usage["cpu_ms"] <= 2500


def _package(folder: Path, hook: str) -> dict[str, Path]:
    """Write a package with a hook into a job's folder."""
    texts = {
        "config/columns/a.py": "from ade_engine import Field\n\nFIELD = Field()\n",
        "config/hooks/on_activate.py": f"import time\n\ndef on_activate():\n    {hook}\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}


def _activation(spec: Any, folder: Path, hook: str) -> Any:
    files = _package(folder, hook)
    inputs = {"config": "config"}
    return replace(spec, entry="ade_engine.entry.activate", inputs=inputs, files=files)


async def test_cpu_time_is_used_up_in_a_place(assign: Assign, tmp_path: Path) -> None:
    limits = Limits(60_000, 3000, 512, 1, 0)  # the child's imports take up to a second of it
    asked = _activation(assign(limits), tmp_path, "while True: pass")
    outcome = await _run(asked, SubprocessRunner())
    assert outcome.error is not None
    assert outcome.error.code == "CPU_LIMIT"
    assert "in on_activate (hooks/on_activate.py:4)" in outcome.error.message
    assert outcome.error.details["source"] == "while True: pass"


async def test_whose_time_is_over_says_where_it_is(assign: Assign, tmp_path: Path) -> None:
    asked = _activation(assign(), tmp_path, "open('there', 'w').close(); time.sleep(600)")
    running = SubprocessRunner().start(asked, _ignore)
    await aeventually((tmp_path / "there").exists)
    async with asyncio.timeout(20):
        running.time_out()
        running.time_out()  # a second time changes nothing
        outcome = await running.outcome()
    assert outcome.status is Status.FAILED
    assert outcome.location is not None
    assert (outcome.location.file, outcome.location.line) == ("hooks/on_activate.py", 4)
    assert outcome.location.function == "on_activate"


async def test_who_does_not_answer_is_killed_all_the_same(assign: Assign) -> None:
    running, (pid,) = await _started(assign(do="ignore_the_question"))
    running.time_out()
    async with asyncio.timeout(20):
        outcome = await running.outcome()
    assert outcome.status is Status.FAILED
    assert outcome.location is None
    assert not is_alive(pid)


async def test_the_size_of_a_file_is_limited(assign: Assign, tmp_path: Path) -> None:
    runner = SubprocessRunner(command=ROGUES, file_mb_max=1)
    outcome = await _run(assign(do="write_much", size_bytes=2 * 1024**2), runner)
    assert outcome.status is Status.FAILED
    assert (tmp_path / "large").stat().st_size <= 1024**2


@pytest.mark.parametrize("size_bytes", [100, 70_000, 300_000])
async def test_a_result_that_is_too_large_is_refused(assign: Assign, size_bytes: int) -> None:
    runner = SubprocessRunner(command=ROGUES, result_bytes_max=90)
    outcome = await _run(assign(do="boast", size_bytes=size_bytes), runner)
    assert outcome.error is not None
    assert (outcome.error.category, outcome.error.code) == (
        Category.RESOURCE_LIMIT,
        "RESULT_TOO_LARGE",
    )


BABBLE = ["no JSON", "5", "[1]", '"x"', "null", "{}", '{"progress": 5}', "[" * 10_000, "\x00"]


@pytest.mark.parametrize("words", BABBLE, ids=range(len(BABBLE)))
async def test_what_is_not_of_the_protocol_is_ignored(assign: Assign, words: str) -> None:
    outcome = await _run(assign(do="babble", words=words))
    assert outcome.status is Status.SUCCEEDED
    assert outcome.result is not None
    assert outcome.result["outputs"]["result_json"] == "done"
    assert outcome.result["outputs"]["stderr"] == "a word to stderr\n"


@pytest.mark.parametrize(
    "words",
    [
        '{"failure": null}',
        '{"failure": "x"}',
        '{"failure": {"type": 3}}',
        '{"failure": {"category": "INTERNAL_ERROR", "code": "X"}}',
    ],
)
async def test_a_child_cannot_blame_ade(assign: Assign, words: str) -> None:
    outcome = await _run(assign(do="last_word", words=words))
    assert outcome.error is not None
    assert (outcome.error.category, outcome.error.code) == (
        Category.USER_CODE_ERROR,
        "FAILED_WITHOUT_WORDS",
    )


async def test_a_flood_of_words_is_no_progress(assign: Assign) -> None:
    heard: list[dict[str, Any]] = []
    words = '{"progress": {"message": "' + "x" * 10_000 + '"}}'
    outcome = await RUNNER.start(assign(do="babble", words=words), heard.append).outcome()
    assert outcome.status is Status.SUCCEEDED
    assert heard == []


async def test_progress_is_heard(assign: Assign) -> None:
    heard: list[dict[str, Any]] = []
    running = RUNNER.start(assign(value=1, steps=3), heard.append)
    assert (await running.outcome()).status is Status.SUCCEEDED
    assert [one["done"] for one in heard] == [1, 2, 3]


async def test_stop_asks_first(assign: Assign) -> None:
    running, (pid,) = await _started(assign(do="tell_pid"), SubprocessRunner(command=ROGUES))
    running.stop()
    outcome = await running.outcome()
    assert outcome.error is not None
    assert "SIGTERM" in outcome.error.message
    assert not is_alive(pid)


async def test_stop_kills_who_does_not_listen(assign: Assign) -> None:
    running, (pid,) = await _started(assign(do="ignore_sigterm"))
    running.stop()
    running.stop()
    outcome = await running.outcome()
    assert outcome.error is not None
    assert outcome.error.code == "STOPPED"
    assert not is_alive(pid)


async def test_kill_takes_the_grandchild_too(assign: Assign) -> None:
    running, pids = await _started(assign(do="fork"))
    assert all(map(is_alive, pids))
    running.kill()
    await running.outcome()
    await aeventually(lambda: not any(map(is_alive, pids)))


async def test_a_grandchild_does_not_outlive_the_child(assign: Assign) -> None:
    outcome = await _run(assign(do="fork_and_return"))
    assert outcome.result is not None
    grandchild = outcome.result["outputs"]["result_json"]
    await aeventually(lambda: not is_alive(grandchild))


async def test_a_pipe_held_by_a_stray_process_is_not_waited_for(assign: Assign) -> None:
    async with asyncio.timeout(10):
        outcome = await RUNNER.start(assign(do="hold_the_pipe"), _ignore).outcome()
    assert outcome.status is Status.SUCCEEDED
    assert outcome.result is not None
    stray = outcome.result["outputs"]["result_json"]
    assert is_alive(
        stray
    )  # a process that left the group is beyond this runner; the sandbox contains it
    os.kill(stray, signal.SIGKILL)


async def test_signals_after_the_end_are_harmless(assign: Assign) -> None:
    running = RUNNER.start(assign(value=1), _ignore)
    await running.outcome()
    running.stop()
    running.kill()
    assert not is_alive(running._child.pid)


async def test_no_descriptor_is_left_open(assign: Assign) -> None:
    await _run(assign(value=1))
    before = set(os.listdir("/proc/self/fd"))
    await _run(assign(value=1))
    await _run(assign(fail="exit"))
    assert set(os.listdir("/proc/self/fd")) == before


async def test_the_request_is_not_left_in_the_folder(assign: Assign, tmp_path: Path) -> None:
    await _run(assign(value="secret"))
    assert os.listdir(tmp_path) == []


async def test_the_environment_is_clean(assign: Assign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADE_BOOTSTRAP_API_KEY", "secret")
    running, (pid,) = await _started(assign(do="tell_pid"))
    seen = await asyncio.to_thread(Path(f"/proc/{pid}/environ").read_text)
    running.kill()
    await running.outcome()
    assert "PATH=" in seen
    assert "ADE_" not in seen


PARENT = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.unit.worker.bench import LIMITS, ROGUES
from ade.sandbox.spec import RunSpec
from ade.worker.subprocess_runner import SubprocessRunner

async def main():
    runner = SubprocessRunner(command=ROGUES)
    job = RunSpec("rogues", {{"do": "tell_pid"}}, LIMITS, Path({folder!r}))
    await runner.start(job, lambda event: print(event["message"], flush=True)).outcome()

asyncio.run(main())
"""


def test_the_child_dies_with_its_parent(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    program = PARENT.format(root=root, folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
        eventually(lambda: not is_alive(child), 5)


def test_a_child_whose_parent_is_already_gone_does_nothing() -> None:
    nobody, channel = os.pipe()
    os.close(nobody)
    request = b'{"inputs": {"print": "hello"}, "limits": {}}'
    command = [
        sys.executable,
        "-m",
        "ade_engine.subprocess_child",
        "ade_engine.entry.echo",
        str(channel),
    ]
    ended = subprocess.run(
        command, input=request, capture_output=True, pass_fds=(channel,), timeout=20
    )
    os.close(channel)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"")


async def test_the_child_finds_the_packages_of_its_environment(
    assign: Assign, tmp_path: Path
) -> None:
    (tmp_path / "brought.py").write_text("def main(inputs, channel):\n    return 'found'\n")
    environment = Environment("key", Path(sys.executable), paths=(tmp_path,))
    runner = SubprocessRunner(environment_of=lambda digest: environment)
    given = replace(assign(), entry="brought", environment="sha256:x")
    outcome = await runner.start(given, lambda progress: None).outcome()
    assert outcome.result is not None
    assert outcome.result["outputs"]["result_json"] == "found"
