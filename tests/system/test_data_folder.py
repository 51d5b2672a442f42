"""The data folder is private, whatever the umask is: other users of the machine read nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.server import Start

from ade.process.data_folder import exposed, keep_private
from ade.settings import Settings

UMASK = ("sh", "-c", 'umask 022; exec "$@"', "-")
# What another user can list or read below a folder, one path a line.
LOOK = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").close()
        print(path)
    except OSError:
        pass
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def read_by_another(folder: Path) -> list[str]:
    """Return what another user can list or read of the data folder, but for installed packages."""
    paths = [str(folder), *map(str, folder.rglob("*"))]
    open_the_way_to(folder)
    control = folder.parent / "for-all"
    control.touch()
    control.chmod(0o644)
    command = [sys.executable, "-c", LOOK, str(control), *paths]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)
    first, *others = seen.stdout.splitlines()
    assert first == str(control)
    return others


def open_the_way_to(folder: Path) -> None:
    """Let others pass through pytest's own folders, which are private."""
    for above in folder.parents:
        if not above.stat().st_mode & 1:
            above.chmod(0o711)


@needs_root
def test_another_user_reads_nothing(start: Start) -> None:
    start.under = UMASK
    server = start.server()
    server.ended_job(server.submit(value=1))
    names = {path.name for path in start.data_dir.rglob("*")}
    assert {"ade.db", "ade.db-wal", "events.ndjson", "scratch"} <= names
    assert read_by_another(start.data_dir) == []
    for name in ("ade.db", "ade.db-wal", "ade.db-shm", "ade.lock"):
        assert (start.data_dir / name).stat().st_mode & 0o077 == 0, name


@needs_root
def test_a_folder_that_others_can_read_is_closed_and_said(start: Start) -> None:
    (start.data_dir / "blobs").mkdir(parents=True)
    start.data_dir.chmod(0o755)
    (start.data_dir / "old.db").touch(0o644)
    doctor = start.command("doctor")
    doctor.ended()
    assert f"can reach {start.data_dir}/old.db" in doctor.output
    server = start.server()
    assert "took access from other users" in server.output
    assert read_by_another(start.data_dir) == []


@needs_root
def test_a_folder_that_is_not_ours_is_refused(start: Start) -> None:
    start.data_dir.mkdir()
    start.data_dir.chmod(0o777)
    open_the_way_to(start.data_dir)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from ade.process.data_folder import keep_private; from ade.settings import Settings\n"
        "from ade.domain.errors import Unavailable\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: keep_private(Settings(storage_data_dir=Path(sys.argv[1])))\n"
        "except Unavailable as refused: print(refused.detail)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(start.data_dir)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"Other users of this machine can read {start.data_dir}" in said
    # With mode 700 and its owner, ADE itself could not read it.
    assert f"chown 65534 {start.data_dir}" in said


def test_a_database_elsewhere_is_private_too(tmp_path: Path) -> None:
    database = tmp_path / "ade.db"
    journal = tmp_path / "ade.db-wal"
    for file in (database, journal):
        file.touch()
        file.chmod(0o644)
    where = Settings(
        storage_data_dir=tmp_path / "data",
        activation_envs_dir=tmp_path / "data" / "venvs",
        database_url=f"sqlite:///{database}",
    )
    keep_private(where)
    assert [file.stat().st_mode & 0o777 for file in (database, journal)] == [0o600, 0o600]
    assert list(exposed(where)) == []
