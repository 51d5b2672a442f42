"""The file is a copy of the log: every line once, in order, however the last writer ended."""

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.store.acts import Acts

from ade.clock import ManualClock
from ade.events import event_file
from ade.events.event_file import EventFileExporter
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store.rows import Claim, JobRef, JobRow, NewEvent
from ade.store.session import Session


@pytest.fixture
def store(sqlite_url: str, clock: ManualClock) -> Iterator[Session]:
    """Open a real store."""
    store = Session(sqlite_url, clock=clock)
    yield store
    store.close()


@pytest.fixture
def acts(store: Session, clock: ManualClock) -> Acts:
    """Act on a kernel over it."""
    return Acts(Kernel(store, KernelSettings(queue_size=0)), clock)


@pytest.fixture
def exporter(store: Session, tmp_path: Path) -> EventFileExporter:
    """Mirror to a folder."""
    return EventFileExporter(store, tmp_path)


def _ref(job: JobRow | Claim) -> JobRef:
    return JobRef(job.workspace_id, job.id)


def _lines(folder: Path, job: JobRow | Claim) -> list[dict[str, object]]:
    text = (folder / job.id / "events.ndjson").read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def _seqs(folder: Path, job: JobRow | Claim) -> list[object]:
    return [line["seq"] for line in _lines(folder, job)]


def test_a_line_says_what_happened(acts: Acts, exporter: EventFileExporter, tmp_path: Path) -> None:
    job = acts.submit()
    exporter.append(_ref(job))
    (line,) = _lines(tmp_path, job)
    assert line.keys() == {"seq", "at", "event", "job_id", "data"}
    assert (line["seq"], line["event"], line["job_id"]) == (1, "job.queued", job.id)
    assert str(line["at"]).endswith("Z")


async def test_exporting_twice_adds_nothing(
    acts: Acts, exporter: EventFileExporter, tmp_path: Path
) -> None:
    claim = acts.start()
    await exporter.export(_ref(claim))
    once = (tmp_path / claim.id / "events.ndjson").read_bytes()
    await exporter.export(_ref(claim))
    assert (tmp_path / claim.id / "events.ndjson").read_bytes() == once
    acts.succeed(claim)
    await exporter.export(_ref(claim))
    assert _seqs(tmp_path, claim) == [1, 2, 3]


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_half_written_line_is_rewritten(
    acts: Acts, exporter: EventFileExporter, tmp_path: Path, kept: int
) -> None:
    claim = acts.start()
    exporter.append(_ref(claim))
    file = tmp_path / claim.id / "events.ndjson"
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    file.write_bytes(whole[:first] + whole[first:][:kept])  # a crash in the middle of the second
    exporter.append(_ref(claim))
    assert file.read_bytes() == whole


def test_a_file_of_half_a_line_is_rewritten(
    acts: Acts, exporter: EventFileExporter, tmp_path: Path
) -> None:
    claim = acts.start()
    exporter.append(_ref(claim))
    file = tmp_path / claim.id / "events.ndjson"
    whole = file.read_bytes()
    file.write_bytes(whole[:10])
    exporter.append(_ref(claim))
    assert file.read_bytes() == whole


def test_a_file_that_was_lost_is_rewritten(
    acts: Acts, exporter: EventFileExporter, tmp_path: Path
) -> None:
    claim = acts.start()
    exporter.append(_ref(claim))
    (tmp_path / claim.id / "events.ndjson").unlink()
    exporter.append(_ref(claim))
    assert _seqs(tmp_path, claim) == [1, 2]


def test_a_long_log_is_read_in_pieces(
    acts: Acts, exporter: EventFileExporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_file, "EVENTS_PER_READ", 7)
    monkeypatch.setattr(event_file, "TAIL_BYTES", 500)
    claim = acts.start()
    for turn in range(4):
        acts.report(claim, *[f"line {turn} {n}" for n in range(10)])
        exporter.append(_ref(claim))
    assert _seqs(tmp_path, claim) == list(range(1, 43))


def test_a_line_as_long_as_may_be_is_found_again(
    acts: Acts, exporter: EventFileExporter, tmp_path: Path
) -> None:
    claim = acts.start()
    for _ in range(6):
        acts.report(claim, "\N{SNOWMAN}" * 2500)  # six characters each when encoded in ASCII
        exporter.append(_ref(claim))
    assert _seqs(tmp_path, claim) == list(range(1, 9))


SYNCER = """
import asyncio, sys
from pathlib import Path
from ade.events.event_file import EventFileExporter
from ade.store.rows import JobRef
from ade.store.session import Session

url, folder, workspace, job = sys.argv[1:]
exporter = EventFileExporter(Session(url), Path(folder))
sys.stdout.write("ready\\n")
sys.stdout.flush()
for line in sys.stdin:
    asyncio.run(exporter.export(JobRef(workspace, job)))
"""


def test_two_processes_write_each_line_once(acts: Acts, sqlite_url: str, tmp_path: Path) -> None:
    claim = acts.start()
    command = [sys.executable, "-c", SYNCER, sqlite_url, str(tmp_path), *_ref(claim)]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for turn in range(50):
            acts.report(claim, f"line {turn}")
            for writer in writers:
                assert writer.stdin is not None
                writer.stdin.write("export\n")
                writer.stdin.flush()
    finally:
        for writer in writers:
            writer.communicate(timeout=20)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert _seqs(tmp_path, claim) == list(range(1, 53))


@pytest.fixture
def brief_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a process that holds a file less time to let go of it."""
    monkeypatch.setattr(event_file, "LOOKS", 3)
    monkeypatch.setattr(event_file, "LOOK_SECONDS", 0.001)


@contextmanager
def _held(path: Path) -> Iterator[BinaryIO]:
    """Hold a file's lock, as a process does that is frozen while it writes."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


async def test_a_process_frozen_while_it_holds_the_lock_delays_no_other(
    acts: Acts, exporter: EventFileExporter, tmp_path: Path, brief_looks: None
) -> None:
    claim = acts.start()
    assert exporter.append(_ref(claim))
    with _held(tmp_path / claim.id / "events.ndjson") as held:
        acts.report(claim, "meanwhile")
        assert not exporter.append(_ref(claim))
        await exporter.export(_ref(claim))
        assert _seqs(tmp_path, claim) == [1, 2, 3]
        held.write(b"what the sleeper had begun\n")
    acts.succeed(claim)
    await exporter.export(_ref(claim))
    assert _seqs(tmp_path, claim) == [1, 2, 3, 4]
    assert [file.name for file in (tmp_path / claim.id).iterdir()] == ["events.ndjson"]


async def test_a_file_that_was_replaced_before_its_lock_was_had_is_left_alone(
    acts: Acts, exporter: EventFileExporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = acts.start()
    file = tmp_path / claim.id / "events.ndjson"
    could_lock = event_file._could_lock

    def replaced_meanwhile(opened: BinaryIO) -> bool:
        monkeypatch.setattr(event_file, "_could_lock", could_lock)
        file.rename(tmp_path / "old")
        file.touch()
        return could_lock(opened)

    monkeypatch.setattr(event_file, "_could_lock", replaced_meanwhile)
    await exporter.export(_ref(claim))
    assert (tmp_path / "old").read_bytes() == b""
    assert _seqs(tmp_path, claim) == [1, 2]


async def test_a_replaced_file_has_what_is_committed_meanwhile(
    acts: Acts,
    exporter: EventFileExporter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    brief_looks: None,
) -> None:
    claim = acts.start()
    assert exporter.append(_ref(claim))
    replace = Path.replace

    def replace_late(made: Path, path: Path) -> Path:
        acts.report(claim, "in between")
        replaced = replace(made, path)
        assert not exporter.append(_ref(claim))  # it is not let go before the last look
        return replaced

    monkeypatch.setattr(Path, "replace", replace_late)
    with _held(tmp_path / claim.id / "events.ndjson"):
        await exporter.export(_ref(claim))
    assert _seqs(tmp_path, claim) == [1, 2, 3]


async def test_of_two_processes_that_replace_a_file_the_late_one_leaves_it(
    acts: Acts,
    exporter: EventFileExporter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    brief_looks: None,
) -> None:
    claim = acts.start()
    assert exporter.append(_ref(claim))
    file = tmp_path / claim.id / "events.ndjson"
    append_after = exporter._append_after
    asleep: list[int] = []

    def slow(ref: JobRef, seen: int, opened: BinaryIO) -> int:
        last = append_after(ref, seen, opened)
        if not asleep:  # only the first: meanwhile another does all of it
            asleep.append(last)
            acts.report(claim, "while it slept")
            assert exporter._write_anew(_ref(claim))
            asleep.append(file.stat().st_ino)
        return last

    monkeypatch.setattr(exporter, "_append_after", slow)
    with _held(file):
        await exporter.export(_ref(claim))
    assert (asleep[0], asleep[1]) == (2, file.stat().st_ino)
    assert _seqs(tmp_path, claim) == [1, 2, 3]
    assert [one.name for one in (tmp_path / claim.id).iterdir()] == ["events.ndjson"]


async def test_a_file_that_is_never_let_go_is_given_up(
    acts: Acts, exporter: EventFileExporter, monkeypatch: pytest.MonkeyPatch, brief_looks: None
) -> None:
    claim = acts.start()
    monkeypatch.setattr(event_file, "_is_at", lambda path, file: False)
    with pytest.raises(TimeoutError):
        await exporter.export(_ref(claim))


async def test_a_replacement_that_fails_leaves_the_old_file_and_no_other(
    acts: Acts,
    exporter: EventFileExporter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    brief_looks: None,
) -> None:
    claim = acts.start()
    assert exporter.append(_ref(claim))

    def away(*_: object) -> list[NewEvent]:
        raise ConnectionError

    with _held(tmp_path / claim.id / "events.ndjson"):
        monkeypatch.setattr(exporter, "_after", away)
        with pytest.raises(ConnectionError):
            await exporter.export(_ref(claim))
    assert _seqs(tmp_path, claim) == [1, 2]
    assert [file.name for file in (tmp_path / claim.id).iterdir()] == ["events.ndjson"]
