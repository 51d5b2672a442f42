"""A process dumps its stack at once, whatever it is doing."""

import faulthandler
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ade_engine.run_entry import run_entry
from ade_engine.stack_dump import STACK_DUMP_SIGNAL

RUN = """
import os, sys
sys.path.insert(0, sys.argv[1])
from ade_engine.run_entry import run_entry
with os.fdopen(int(sys.argv[2]), "w") as stream:
    sys.exit(run_entry("entry", {}, stream))
"""
DOINGS = {
    "python": "[None for _ in iter(int, 1)]",
    "a library": "re.match('(a+)+$', 'a' * 60 + 'b')",
    "sleep": "time.sleep(600)",
    "a read": "os.read(os.pipe()[0], 1)",
}


@pytest.mark.parametrize("doing", DOINGS)
def test_the_stack_comes_before_the_end(tmp_path: Path, doing: str) -> None:
    entry = tmp_path / "entry.py"
    entry.write_text(
        "import os, re, time\n\ndef main(inputs, channel):\n"
        f"    channel.progress(0, 1, 'there'); {DOINGS[doing]}\n"
    )
    reads, writes = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path), str(writes)], pass_fds=(writes,), cwd=tmp_path
    )
    os.close(writes)
    with child, os.fdopen(reads, "r") as line:
        assert "there" in line.readline()
        child.send_signal(STACK_DUMP_SIGNAL)
        dump = line.read()
    assert child.returncode == -STACK_DUMP_SIGNAL
    assert dump.startswith("Stack (most recent call first):\n")
    assert f'File "{entry}", line 4 in main\n' in dump


def test_a_stream_without_a_descriptor_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = {"value": 1, "sleep_ms": 0, "steps": 0, "print": "", "fail": ""}
    stream = io.StringIO()
    assert run_entry("ade_engine.entry.echo", asked, stream) == 0
    assert stream.getvalue() == '{"result": 1}\n'
    taken: object = faulthandler.unregister(STACK_DUMP_SIGNAL)  # type: ignore[func-returns-value]
    assert taken is False
