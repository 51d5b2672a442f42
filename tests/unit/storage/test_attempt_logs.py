"""The output of agents' jobs by offset: complete, in order, and never shared between attempts."""

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ade.domain.errors import OutputGap, StaleAttempt, Unavailable, UnsafePath
from ade.storage import attempt_logs
from ade.storage.attempt_logs import CUT_LINE, AttemptLogs, LogState

JOB = "01900000-0000-7000-8000-000000000001"


@pytest.fixture
def logs(tmp_path: Path) -> AttemptLogs:
    return AttemptLogs(tmp_path, bytes_max=100)


def text(logs: AttemptLogs) -> bytes:
    """Read all that people read of the job."""
    return logs.read(JOB, 0, 10_000)


def test_pieces_are_appended_by_their_offsets(logs: AttemptLogs) -> None:
    assert logs.append(JOB, 1, 0, b"one ") == LogState(4)
    assert logs.append(JOB, 1, 4, b"\xfftwo") == LogState(8)
    assert text(logs) == b"one \xfftwo"
    assert logs.read(JOB, 4, 2) == b"\xfft"
    assert (logs.size(JOB), logs.held(JOB, 1)) == (8, LogState(8))


def test_what_is_held_already_is_dropped(logs: AttemptLogs) -> None:
    logs.append(JOB, 1, 0, b"abcdef")
    assert logs.append(JOB, 1, 0, b"abcdef") == LogState(6)
    assert logs.append(JOB, 1, 1, b"bc") == LogState(6)
    assert logs.append(JOB, 1, 3, b"defghi") == LogState(9)
    assert text(logs) == b"abcdefghi"


def test_a_gap_is_refused_with_the_size(logs: AttemptLogs) -> None:
    logs.append(JOB, 1, 0, b"abc")
    with pytest.raises(OutputGap) as refused:
        logs.append(JOB, 1, 4, b"e")
    assert refused.value.held_bytes == 3
    assert text(logs) == b"abc"


def test_the_size_is_that_of_the_file_after_a_restart(tmp_path: Path, logs: AttemptLogs) -> None:
    logs.append(JOB, 1, 0, b"abc")
    os.truncate(tmp_path / "jobs" / JOB / "logs" / f"{JOB}.log", 2)
    restarted = AttemptLogs(tmp_path)
    assert restarted.held(JOB, 1) == LogState(2)
    restarted.append(JOB, 1, 0, b"abcd")
    assert text(restarted) == b"abcd"


def test_attempts_do_not_share_a_file(tmp_path: Path, logs: AttemptLogs) -> None:
    logs.append(JOB, 1, 0, b"first")
    assert logs.held(JOB, 2) == LogState(0)
    logs.append(JOB, 2, 0, b"second")
    assert text(logs) == b"second"
    with pytest.raises(StaleAttempt):
        logs.append(JOB, 1, 5, b" more")
    folder = tmp_path / "jobs" / JOB / "logs"
    assert (folder / f"{JOB}.attempt-1.log").read_bytes() == b"first"


def test_what_another_worker_wrote_is_moved_aside(tmp_path: Path, logs: AttemptLogs) -> None:
    folder = tmp_path / "jobs" / JOB / "logs"
    folder.mkdir(parents=True)
    (folder / f"{JOB}.log").write_bytes(b"foreign")
    assert (logs.size(JOB), text(logs)) == (7, b"foreign")
    logs.append(JOB, 2, 0, b"ours")
    assert text(logs) == b"ours"
    assert (folder / f"{JOB}.earlier.log").read_bytes() == b"foreign"


def test_output_is_cut_at_its_limit_and_says_so_once(logs: AttemptLogs) -> None:
    assert logs.append(JOB, 1, 0, b"x" * 90) == LogState(90)
    cut = LogState(100, is_cut=True)
    assert logs.append(JOB, 1, 90, b"y" * 90) == cut
    assert logs.append(JOB, 1, 180, b"z" * 90) == cut
    assert logs.held(JOB, 1) == cut
    assert text(logs) == b"x" * 90 + b"y" * 10 + CUT_LINE
    assert logs.append(JOB, 2, 0, b"x" * 100) == LogState(100)


def test_pieces_that_come_at_once_are_all_there_once(logs: AttemptLogs) -> None:
    with ThreadPoolExecutor(8) as pool:
        for at in range(0, 80, 8):
            list(pool.map(lambda piece, at=at: logs.append(JOB, 1, at, piece), [b"01234567"] * 8))
    assert text(logs) == b"01234567" * 10


def test_a_lock_that_a_container_keeps_holds_no_thread_up(
    tmp_path: Path, logs: AttemptLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_logs, "LOCK_SECONDS", 0.05)
    logs.append(JOB, 1, 0, b"one")
    with ThreadPoolExecutor(1) as pool:
        with open(tmp_path / "jobs" / JOB / "logs" / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(Unavailable):
                pool.submit(logs.append, JOB, 1, 3, b"two").result(30)
        assert logs.append(JOB, 1, 3, b"two") == LogState(6)


def test_a_symbolic_link_is_not_followed(tmp_path: Path, logs: AttemptLogs) -> None:
    folder = tmp_path / "jobs" / JOB / "logs"
    folder.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_bytes(b"secret")
    (folder / f"{JOB}.log").symlink_to(target)
    with pytest.raises(UnsafePath):
        logs.read(JOB, 0, 100)
    (folder / "attempt").write_text("1")
    with pytest.raises(UnsafePath):
        logs.append(JOB, 1, 0, b"x")
    assert target.read_bytes() == b"secret"


def test_an_id_that_is_none_is_refused(logs: AttemptLogs) -> None:
    with pytest.raises(UnsafePath):
        logs.append("../../etc", 1, 0, b"x")


def test_there_may_be_no_output(logs: AttemptLogs) -> None:
    assert logs.size(JOB) is None
    assert text(logs) == b""
    assert logs.held(JOB, 1) == LogState(0)
    logs.sync(JOB)
