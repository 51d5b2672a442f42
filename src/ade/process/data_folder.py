"""Keep the data folder private: it holds every document, result and secret of every workspace.

Only its owner can list and read it. Where ADE runs as root, jobs run as other users that reach
their packages and their folders by path, so others may pass through the data folder (0711), into
the folders of packages and of running jobs and nowhere else. What each folder holds is protected by
the folder, whatever the umask was when a file was made.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import structlog

from ade.domain.errors import Unavailable
from ade.settings import Settings

log = structlog.get_logger()
PRIVATE_FOLDER, PRIVATE_FILE, PASSABLE = 0o700, 0o600, 0o711
OTHERS = stat.S_IRWXG | stat.S_IRWXO
SCRATCH = "scratch"


def keep_private(settings: Settings, *, has_database: bool = True) -> None:
    """Make the data folder with its parts, and take access to them from others; or say why not."""
    root = settings.storage_data_dir
    passed_by_jobs = _passed_by_jobs(settings)
    private = (settings.blobs_dir, settings.jobs_dir, root / "configs", *_of_builds(settings))
    for folder in (root, *passed_by_jobs, *private):
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if os.geteuid() == 0 and folder not in private and folder.stat().st_mode & OTHERS == 0:
            folder.chmod(PASSABLE)
    for path, mode in exposed(settings):
        try:
            path.chmod(mode)
        except OSError as error:
            raise Unavailable(
                f"Other users of this machine can read {path}, which belongs to user"
                f" {path.stat().st_uid}: {error.strerror}. Give it to the user that ADE runs as"
                f" (chown {os.geteuid()} {path}), or choose another ADE_STORAGE_DATA_DIR, such as a"
                f" new folder in {root}."
            ) from None
        log.warning("took access from other users", path=str(path), mode=f"{mode:o}")
    for database in _database_files(settings)[:1] if has_database else ():
        _make_private_file(database)


def exposed(settings: Settings) -> Iterator[tuple[Path, int]]:
    """Yield what others may do too much with, and the mode that it should have."""
    root, passed_by_jobs = settings.storage_data_dir, _passed_by_jobs(settings)
    passable = PASSABLE if os.geteuid() == 0 else PRIVATE_FOLDER
    if not root.is_dir():
        return
    folders = root, *passed_by_jobs, *_of_builds(settings)
    for path in dict.fromkeys((*folders, *sorted(root.iterdir()), *_database_files(settings))):
        if path.is_symlink() or not path.exists():
            continue
        held = stat.S_IMODE(path.stat().st_mode)
        is_passed = path == root or path in passed_by_jobs
        allowed = passable if is_passed else held & ~OTHERS
        if held & OTHERS & ~allowed:
            yield path, allowed


def _of_builds(settings: Settings) -> list[Path]:
    """List the folders that builds use beside the packages that they install."""
    return [settings.activation_envs_dir / name for name in ("cache", "resolved", "unfinished")]


def _passed_by_jobs(settings: Settings) -> tuple[Path, Path]:
    return settings.activation_envs_dir, settings.storage_data_dir / SCRATCH


def _database_files(settings: Settings) -> list[Path]:
    """List the file of a SQLite database and its journals, which may be in another folder."""
    if not settings.database_url.startswith("sqlite:///"):
        return []
    file = settings.database_url.partition(":///")[2].partition("?")[0]
    return [Path(file + ending) for ending in ("", "-wal", "-shm")]


def _make_private_file(path: Path) -> None:
    """Make the file of a database before SQLite does: its journals get the same mode."""
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
