"""What an agent keeps of an attempt: on disk, private, bounded."""

import stat
from pathlib import Path

import pytest

from ade.agents.containers.attempt_folder import END, ORDER, StateFolder
from ade.domain.errors import Unavailable

JOB = "01900000-0000-7000-8000-00000000000a"


def test_what_was_left_is_found_again(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state", 1000)
    with state.opened():
        folder = state.begin(JOB, 3, {"secret": "s"})
        folder.output.append(b"abc")
        folder.output.close()
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.path / ORDER).stat().st_mode) == 0o600
    with state.opened():
        (left,) = state.left()
        assert left.read(ORDER) == {"secret": "s"}
        assert (left.output.size_bytes, left.output.seen_bytes) == (3, 3)
        left.output.append(b"def")
        assert left.output.read(1, 100) == b"bcdef"
        assert not left.has(END)
        left.write(END, {"status": "finished"})
        assert left.read(END) == {"status": "finished"}
        left.delete()
        assert state.left() == []


def test_what_cannot_be_read_is_not_there(tmp_path: Path) -> None:
    state = StateFolder(tmp_path, 1000)
    with state.opened():
        folder = state.begin(JOB, 1, {})
        (folder.path / END).write_text('{"status": "fin')
        assert folder.read(END) is None
        (tmp_path / "attempts" / "something else").mkdir()
        assert [left.path for left in state.left()] == [folder.path]


def test_one_agent_uses_a_folder(tmp_path: Path) -> None:
    first, second = StateFolder(tmp_path, 1), StateFolder(tmp_path, 1)
    with (
        first.opened(),
        pytest.raises(Unavailable, match="Another agent"),
        second.opened(),
    ):
        pass


def test_output_over_the_limit_is_dropped_and_a_note_says_so(tmp_path: Path) -> None:
    state = StateFolder(tmp_path, 10)
    with state.opened():
        output = state.begin(JOB, 1, {}).output
        output.append(b"12345678")
        output.append(b"9abc")
        output.append(b"more")
        text = output.read(0, 1000)
        output.close()
    assert text.startswith(b"123456789a\n[ade agent: the rest of the output is dropped")
    assert b"more" not in text
    assert (output.seen_bytes, output.is_cut) == (16, True)
