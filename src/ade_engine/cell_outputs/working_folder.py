"""Keep the files that a cell wrote beside its own: they are moved to `artifacts/`."""

import os
import stat
from collections.abc import Iterator

from ade_engine.cell_outputs.artifacts import unused_name
from ade_engine.channel import ARTIFACTS_FOLDER, ArtifactLimits, Channel

ENTRIES_MAX = 10_000
DEPTH_MAX = 8
NOT_KEPT = "artifacts", "__pycache__"
NAMED_MAX = 5


class WorkingFolder:
    """Remember what was in the folder of a job, and keep what is new at the end."""

    def __init__(self) -> None:
        self._folder = os.getcwd()
        self._before = set(os.listdir("."))

    def keep_new_files(self, limits: ArtifactLimits, channel: Channel) -> None:
        """Move new files to `artifacts/` as far as the limits allow, and say which do not fit.

        Names that begin with a dot are left alone: libraries keep their caches and settings there.
        """
        os.chdir(self._folder)  # the cell has ended, and may have changed its folder
        new = list(self._new_files())
        if not new:
            return
        files, size_bytes = _held(ARTIFACTS_FOLDER)
        left: list[str] = []
        for path, facts in new:
            fits = files < limits.files_max and size_bytes + facts.st_size <= limits.bytes_max
            if not fits or facts.st_nlink != 1:
                left.append(path)
                continue
            os.rename(path, f"{ARTIFACTS_FOLDER}/{_place(path)}")
            files, size_bytes = files + 1, size_bytes + facts.st_size
        if left:
            more = f" and {len(left) - NAMED_MAX} more" if len(left) > NAMED_MAX else ""
            channel.warning(
                f"{', '.join(left[:NAMED_MAX])}{more} in the working folder"
                f" {'was' if len(left) == 1 else 'were'} not kept: a job may leave"
                f" {limits.files_max} files and {limits.bytes_max // 2**20} MiB."
            )

    def _new_files(self) -> Iterator[tuple[str, os.stat_result]]:
        for name in sorted(set(os.listdir(".")).difference(self._before, NOT_KEPT)):
            if not name.startswith("."):
                yield from _files(name, 0)


def _held(folder: str) -> tuple[int, int]:
    sizes = [facts.st_size for _, facts in _files(folder, 0)]
    return len(sizes), sum(sizes)


def _files(path: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the regular files at and below a path, without following links."""
    try:
        facts = os.lstat(path)
    except OSError:
        return
    if stat.S_ISREG(facts.st_mode):
        yield path, facts
    elif stat.S_ISDIR(facts.st_mode) and depth < DEPTH_MAX:
        for name in sorted(os.listdir(path))[:ENTRIES_MAX]:
            if name not in NOT_KEPT and not name.startswith("."):
                yield from _files(f"{path}/{name}", depth + 1)


def _place(path: str) -> str:
    """Choose the name of a file in `artifacts/`; its folders are made there."""
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(f"{ARTIFACTS_FOLDER}/{folder}", exist_ok=True)
    if not os.path.lexists(f"{ARTIFACTS_FOLDER}/{path}"):
        return path
    stem, ending = os.path.splitext(path)
    return unused_name(ARTIFACTS_FOLDER, stem, ending.removeprefix(".") or "file")
