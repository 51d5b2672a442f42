"""The folder that the server shares with agents: its layout, and the files in it.

The model. What the server writes here are copies of what the database says, for people and for
workers that read files. They are never read back as truth. They are replaced by rename, so that a
reader sees one version or the next; nothing is brought to disk with fsync, because after a crash
they are written again from the database. What a worker writes (`progress.json`, `result.json`) and
the output of jobs (`ade.storage.attempt_logs`) are the only files that are read.

    root
    ├── configs/                 YAML files of experiments
    ├── datasets/
    ├── jobs/<job_id>/
    │   ├── job_info.json        written by the server
    │   ├── status.json          written by the server
    │   ├── logs/<job_id>.log    output: written by the server or by a worker
    │   ├── progress/progress.json   written by the worker
    │   └── results/result.json      written by the worker
    ├── queue/<job_id>.json      written by the server while the job waits
    ├── job_track.json           written by the server
    └── .ade-database            names the database that it belongs to

Everything in it is untrusted (`ade.storage.contained_paths`). New files and folders get the modes
of the umask; a root that ADE makes by itself is closed to other users, so what is in it is, too.
"""

import contextlib
import json
import math
import os
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import structlog

from ade.domain.errors import AdeError, InvalidRequest, UnsafePath
from ade.domain.ids import is_uuid
from ade.domain.units import MIB
from ade.storage import contained_paths

CONFIGS, DATASETS, JOBS, QUEUE = "configs", "datasets", "jobs", "queue"
LAYOUT = (CONFIGS, DATASETS, JOBS, QUEUE)
JOB_FOLDERS = ("logs", "progress", "results")
REGISTRY = "job_track.json"
OWNER = ".ade-database"
NAME_CHARS_MAX = 200
ENTRIES_MAX = 100_000
CONFIG_BYTES_MAX = MIB
PROGRESS_BYTES_MAX = MIB
REGISTRY_BYTES_MAX = 16 * MIB
CONFIG_PATH_CHARS_MAX = 500
PRIVATE = 0o700
log = structlog.get_logger()


class SharedFolder:
    """Read and write the files of the shared folder.

    All of this waits for a disk, which may be one of another machine: call it in a thread.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._is_private = True
        self._owner: str | None = None

    def create(self, *, private: bool) -> None:
        """Make what is missing; a private root can be entered by its owner only."""
        self._is_private = private
        if not self.root.is_dir():
            self.root.mkdir(mode=PRIVATE if private else 0o777, parents=True, exist_ok=True)
        for name in LAYOUT:
            with contained_paths.opened_folder(self.root, [name], make=True):
                pass

    def restore(self) -> None:
        """Make again what somebody deleted."""
        self.create(private=self._is_private)
        if self._owner is not None:
            self.claim(self._owner)

    def check_writable(self) -> None:
        """Raise OSError if nothing can be written here."""
        name = f"{contained_paths.UNFINISHED_PREFIX}probe-{os.getpid()}"
        for parts in ([name], [JOBS, name]):
            contained_paths.replace_file(self.root, parts, b"")
            contained_paths.remove_file(self.root, parts)

    def claim(self, owner: str, *, force: bool = False) -> str:
        """Say whose folder this is, unless it has an owner; return the name of its owner."""
        known = contained_paths.read_file(self.root, [OWNER], NAME_CHARS_MAX)
        if known and not force:
            holder = known.decode("utf-8", "replace").strip()
            self._owner = owner if holder == owner else None
            return holder
        contained_paths.replace_file(self.root, [OWNER], f"{owner}\n".encode())
        self._owner = owner
        return owner

    # --- copies of what the database says ---------------------------------------------------------

    def write_job_file(self, job_id: str, name: str, content: Any) -> None:
        """Replace a JSON file of a job."""
        self._write([JOBS, _checked(job_id), name], content)

    def make_job_folders(self, job_id: str) -> None:
        """Make the folders that a worker and its container write to."""
        for name in JOB_FOLDERS:
            parts = [JOBS, _checked(job_id), name]
            with contained_paths.opened_folder(self.root, parts, make=True):
                pass

    def write_queue_entry(self, job_id: str, content: Any) -> None:
        """Say that a job waits."""
        self._write([QUEUE, f"{_checked(job_id)}.json"], content)

    def remove_queue_entry(self, job_id: str) -> None:
        """Say that a job does not wait any more."""
        contained_paths.remove_file(self.root, [QUEUE, f"{_checked(job_id)}.json"])

    def write_registry(self, content: Any) -> None:
        """Replace the list of known jobs."""
        self._write([REGISTRY], content)

    def read_registry(self) -> Any:
        """Read the list of known jobs, as some server wrote it; None if it cannot be read."""
        with contextlib.suppress(InvalidRequest):
            return self._read([REGISTRY], REGISTRY_BYTES_MAX)
        return None

    def queue_entries(self) -> set[str]:
        """Return which jobs have an entry in the queue."""
        with contained_paths.opened_folder(self.root, [QUEUE]) as folder:
            names = os.listdir(folder)[:ENTRIES_MAX]
        ids = {name.removesuffix(".json") for name in names if name.endswith(".json")}
        return {job_id for job_id in ids if is_uuid(job_id) and job_id == job_id.lower()}

    def has_registry(self) -> bool:
        """Tell whether there is a list of known jobs."""
        return os.path.lexists(self.root / REGISTRY)

    def jobs_without_status(self, job_ids: Collection[str]) -> set[str]:
        """Return which of these jobs have no `status.json`."""
        with contained_paths.opened_folder(self.root, [JOBS]) as folder:
            return {job_id for job_id in job_ids if not _has_status(folder, job_id)}

    def delete_job(self, job_id: str) -> None:
        """Delete the files of a job; doing it twice is harmless."""
        self.remove_queue_entry(job_id)
        contained_paths.remove_folder(self.root, [JOBS, _checked(job_id)])

    def _write(self, parts: Sequence[str], content: Any) -> None:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        contained_paths.replace_file(self.root, parts, text.encode("utf-8", "replace"))

    # --- what workers write -----------------------------------------------------------------------

    def read_progress(self, job_id: str, bytes_max: int = PROGRESS_BYTES_MAX) -> Any:
        """Read what a worker says about its progress; None if it says nothing."""
        return self._read([JOBS, _checked(job_id), "progress", "progress.json"], bytes_max)

    def read_result(self, job_id: str, bytes_max: int) -> Any:
        """Read the result that a worker left; None if it left none."""
        return self._read([JOBS, _checked(job_id), "results", "result.json"], bytes_max)

    def _read(self, parts: Sequence[str], bytes_max: int) -> Any:
        content = contained_paths.read_file(self.root, parts, bytes_max)
        if content is None:
            return None
        try:
            return json.loads(content, parse_constant=_no_number, parse_float=_finite)
        except (ValueError, RecursionError):
            raise InvalidRequest(f"{'/'.join(parts)} is not a JSON document.") from None

    # --- configurations of experiments ------------------------------------------------------------

    def read_config(self, path: str) -> bytes | None:
        """Read a file below `configs`; None if there is none.

        A symbolic link to another file below `configs` is followed.
        """
        parts = config_parts(path)
        root = Path(os.path.realpath(self.root))
        try:
            place = Path(os.path.realpath(root.joinpath(CONFIGS, *parts)))
            found = place.relative_to(root / CONFIGS)
        except ValueError:
            raise UnsafePath(f"{path!r} leads out of {CONFIGS}/.") from None
        return contained_paths.read_file(root, [CONFIGS, *found.parts], CONFIG_BYTES_MAX)

    def create_config(self, path: str, content: bytes) -> bool:
        """Write a new file below `configs`; False if there is one already."""
        return contained_paths.create_file(self.root, [CONFIGS, *config_parts(path)], content)

    def remove_config(self, path: str) -> None:
        """Remove a file below `configs`, if it is there."""
        contained_paths.remove_file(self.root, [CONFIGS, *config_parts(path)])


def config_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path below `configs`, or raise UnsafePath; `configs/` may be named."""
    if len(path) > CONFIG_PATH_CHARS_MAX or not path.isprintable():
        raise UnsafePath(
            f"A path below {CONFIGS}/ has at most {CONFIG_PATH_CHARS_MAX} characters, and no line"
            " break or other control character."
        )
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path:
        raise UnsafePath(
            f"{path!r} is not a path below {CONFIGS}/: give a relative one without '..'."
        )
    parts = pure.parts[1:] if pure.parts[:1] == (CONFIGS,) else pure.parts
    if not parts:
        raise UnsafePath(f"{path!r} names no file below {CONFIGS}/.")
    return tuple(contained_paths.check_name(part) for part in parts)


def _has_status(jobs: int, job_id: str) -> bool:
    try:
        os.stat(f"{_checked(job_id)}/status.json", dir_fd=jobs, follow_symlinks=False)
    except OSError:
        return False
    return True


def _checked(job_id: str) -> str:
    """Accept the id of a job as a name, or raise UnsafePath."""
    if not is_uuid(job_id):
        raise UnsafePath("The id of a job is a UUID.")
    return job_id.lower()


def _finite(text: str) -> float | None:
    """Read a number that is too large for a float, such as 1e999, as null."""
    number = float(text)
    return number if math.isfinite(number) else None


def _no_number(name: str) -> None:
    """Read NaN and Infinity, which Python writes and JSON does not have, as null."""


def choose_shared_folder(
    wanted: Path, fallback: Path, owner: str, *, is_explicit: bool
) -> SharedFolder:
    """Open the wanted folder if this database may use it, else the fallback, and log that.

    `owner` names the database. A folder that belongs to another one is not used: the two would
    write over each other's lists. A root that is made here is closed to other users, unless a
    setting names it: then whoever runs ADE shares it, and the umask says with whom.
    """
    folder = SharedFolder(wanted)
    try:
        folder.create(private=not is_explicit)
        folder.check_writable()
        holder = folder.claim(owner)
        reason = None if holder == owner else f"it belongs to another database (see {OWNER})"
    except (OSError, AdeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    if reason is None:
        if wanted != fallback:
            log.info("the shared folder of agents", path=str(wanted))
        return folder
    folder = SharedFolder(fallback)
    folder.create(private=True)
    folder.claim(owner, force=True)
    say = log.warning if is_explicit else log.info
    say("the shared folder of agents", path=str(fallback), instead_of=str(wanted), reason=reason)
    return folder
