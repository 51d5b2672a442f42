"""`ade submit` on a server whose queue has room for one: it waits, and nothing is lost."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.command_line import END_SECONDS, CommandLine, command_line

from ade.cli.exit_codes import ExitCode
from ade.testing.server import AdeServer, running_server
from ade_engine.examples import FOLDER

ROSTER = FOLDER / "member_roster"
FILES = 3


@pytest.fixture(scope="module")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdeServer]:
    """Start a server that takes one job at a time, and no more."""
    settings = {"ADE_QUEUE_SIZE": "1", "ADE_MAX_CONCURRENCY": "1"}
    with running_server(tmp_path_factory.mktemp("ade"), settings) as server:
        yield server


@pytest.fixture
def ade(small_server: AdeServer, tmp_path: Path) -> CommandLine:
    """Log in to it."""
    return command_line(tmp_path, small_server)


def test_a_full_queue_is_waited_for(ade: CommandLine) -> None:
    assert ade("config", "push", ROSTER, "--config", "m", "--no-check").exit_code == ExitCode.OK
    for number in range(FILES):
        content = (ROSTER / "samples" / "roster.csv").read_text() + f"\nEnd {number}\n"
        Path(ade.folder, f"{number}.csv").write_text(content)
    # It holds the queue until the submissions have been refused.
    blocker = ade.json("jobs", "submit", "echo", "-i", "sleep_ms=1500")
    files = [f"{number}.csv" for number in range(FILES)]
    ended = ade("submit", *files, "--config", "m", "--wait", "--json")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert [one["run"]["status"] for one in json.loads(ended.stdout)] == ["succeeded"] * FILES
    assert "the queue is full" in ended.stderr
    assert ade("jobs", "wait", blocker["job_id"]).exit_code == ExitCode.OK
    assert ade.json("jobs", "counts")["succeeded"] >= FILES + 1


def test_ctrl_c_says_what_was_not_submitted(ade: CommandLine) -> None:
    assert ade("config", "push", ROSTER, "--config", "c", "--no-check").exit_code == ExitCode.OK
    for name in ("a", "b"):
        content = (ROSTER / "samples" / "roster.csv").read_bytes()
        Path(ade.folder, f"{name}.csv").write_bytes(content)
    # One runs and one waits, so that there is no room for either file.
    hold = ("jobs", "submit", "echo", "-i", "sleep_ms=600000")
    held = [ade.json(*hold)["job_id"] for _ in range(2)]
    try:
        with ade.start("submit", "a.csv", "b.csv", "--config", "c", "--wait") as submitting:
            assert submitting.stderr is not None
            assert "the queue is full" in submitting.stderr.readline()
            submitting.send_signal(signal.SIGINT)
            _, said = submitting.communicate(timeout=END_SECONDS)
    finally:
        cancelled = [ade("jobs", "cancel", job_id).exit_code for job_id in held]
    assert cancelled == [ExitCode.OK] * 2
    assert submitting.returncode == ExitCode.INTERRUPTED
    assert "Perhaps not submitted: a.csv b.csv" in said
    assert "Traceback" not in said
