"""The file is a copy of the log: every line once, in order, however the last writer ended."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.acts import Acts

from ade.clock import ManualClock
from ade.events import mirror as mirror_module
from ade.events.mirror import Mirror
from ade.kernel import Kernel
from ade.stages.rules import Rules
from ade.store.rows import Claim, JobRef, JobRow
from ade.store.store import SqlStore


@pytest.fixture
def store(sqlite_url: str, clock: ManualClock) -> Iterator[SqlStore]:
    """Open a real store."""
    store = SqlStore(sqlite_url, clock=clock)
    yield store
    store.close()


@pytest.fixture
def acts(store: SqlStore, clock: ManualClock) -> Acts:
    """Act on a kernel over it."""
    return Acts(Kernel(store, Rules(queue_size=0)), clock)


@pytest.fixture
def mirror(store: SqlStore, tmp_path: Path) -> Mirror:
    """Mirror to a folder."""
    return Mirror(store, tmp_path)


def _ref(job: JobRow | Claim) -> JobRef:
    return JobRef(job.workspace_id, job.id)


def _lines(folder: Path, job: JobRow | Claim) -> list[dict[str, object]]:
    text = (folder / job.id / "events.ndjson").read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def _seqs(folder: Path, job: JobRow | Claim) -> list[object]:
    return [line["seq"] for line in _lines(folder, job)]


def test_a_line_says_what_happened(acts: Acts, mirror: Mirror, tmp_path: Path) -> None:
    job = acts.submit()
    mirror.sync_now(_ref(job))
    (line,) = _lines(tmp_path, job)
    assert line.keys() == {"seq", "at", "event", "job_id", "data"}
    assert (line["seq"], line["event"], line["job_id"]) == (1, "job.queued", job.id)
    assert str(line["at"]).endswith("Z")


async def test_syncing_twice_adds_nothing(acts: Acts, mirror: Mirror, tmp_path: Path) -> None:
    claim = acts.start()
    await mirror.sync(_ref(claim))
    once = (tmp_path / claim.id / "events.ndjson").read_bytes()
    await mirror.sync(_ref(claim))
    assert (tmp_path / claim.id / "events.ndjson").read_bytes() == once
    acts.succeed(claim)
    await mirror.sync(_ref(claim))
    assert _seqs(tmp_path, claim) == [1, 2, 3]


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_half_written_line_is_written_anew(
    acts: Acts, mirror: Mirror, tmp_path: Path, kept: int
) -> None:
    claim = acts.start()
    mirror.sync_now(_ref(claim))
    file = tmp_path / claim.id / "events.ndjson"
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    file.write_bytes(whole[:first] + whole[first:][:kept])  # a crash in the middle of the second
    mirror.sync_now(_ref(claim))
    assert file.read_bytes() == whole


def test_a_file_of_half_a_line_is_written_anew(acts: Acts, mirror: Mirror, tmp_path: Path) -> None:
    claim = acts.start()
    mirror.sync_now(_ref(claim))
    file = tmp_path / claim.id / "events.ndjson"
    whole = file.read_bytes()
    file.write_bytes(whole[:10])
    mirror.sync_now(_ref(claim))
    assert file.read_bytes() == whole


def test_a_file_that_was_lost_is_written_anew(acts: Acts, mirror: Mirror, tmp_path: Path) -> None:
    claim = acts.start()
    mirror.sync_now(_ref(claim))
    (tmp_path / claim.id / "events.ndjson").unlink()
    mirror.sync_now(_ref(claim))
    assert _seqs(tmp_path, claim) == [1, 2]


def test_a_long_log_is_read_in_pieces(
    acts: Acts, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_module, "EVENTS_PER_READ", 7)
    monkeypatch.setattr(mirror_module, "TAIL_BYTES", 500)
    claim = acts.start()
    for turn in range(4):
        acts.report(claim, *[f"line {turn} {n}" for n in range(10)])
        mirror.sync_now(_ref(claim))
    assert _seqs(tmp_path, claim) == list(range(1, 43))


def test_a_line_as_long_as_may_be_is_found_again(
    acts: Acts, mirror: Mirror, tmp_path: Path
) -> None:
    claim = acts.start()
    for _ in range(6):
        acts.report(claim, "\N{SNOWMAN}" * 2500)  # six characters each when spelled in ASCII
        mirror.sync_now(_ref(claim))
    assert _seqs(tmp_path, claim) == list(range(1, 9))


SYNCER = """
import sys
from pathlib import Path
from ade.events.mirror import Mirror
from ade.store.rows import JobRef
from ade.store.store import SqlStore

url, folder, workspace, job = sys.argv[1:]
mirror = Mirror(SqlStore(url), Path(folder))
sys.stdout.write("ready\\n")
sys.stdout.flush()
for line in sys.stdin:
    mirror.sync_now(JobRef(workspace, job))
"""


def test_two_processes_write_each_line_once(acts: Acts, sqlite_url: str, tmp_path: Path) -> None:
    claim = acts.start()
    command = [sys.executable, "-c", SYNCER, sqlite_url, str(tmp_path), *_ref(claim)]
    syncers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for syncer in syncers:
            assert syncer.stdout is not None
            assert syncer.stdout.readline() == "ready\n"
        for turn in range(50):
            acts.report(claim, f"line {turn}")
            for syncer in syncers:
                assert syncer.stdin is not None
                syncer.stdin.write("sync\n")
                syncer.stdin.flush()
    finally:
        for syncer in syncers:
            syncer.communicate(timeout=20)
    assert [syncer.returncode for syncer in syncers] == [0, 0]
    assert _seqs(tmp_path, claim) == list(range(1, 53))
