"""Runs on files of this machine: uploaded, started, waited for, and their outputs saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ade.cli.remote.several import Failed, each

if TYPE_CHECKING:
    from ade.client import Client
    from ade.client.sync.runs import Run

# Waiting costs the server less than sending does.
WAITING_AT_ONCE = 8
ROW_FILES = "normalized."


@dataclass(frozen=True)
class RunOptions:
    """How runs are started; None is the default of the server."""

    version: int | str | None = None
    priority: str | None = None
    network_access: bool | None = None
    fail_on: str | None = None
    outputs: Sequence[str] | None = None


@dataclass
class FileRun:
    """What became of one file so far."""

    file: Path
    output_name: str
    run: Run | None = None
    output: Path | None = None
    error: Exception | None = None

    @property
    def raw(self) -> dict[str, Any]:
        """Return it for programs."""
        error = None
        if self.error is not None:
            code = getattr(self.error, "code", None) or type(self.error).__name__
            error = {"code": code, "message": str(self.error)}
        return {
            "file": str(self.file),
            "run": None if self.run is None else self.run.raw,
            "output": None if self.output is None else str(self.output),
            "error": error,
        }


class FileRuns:
    """Run one configuration on many files."""

    def __init__(
        self, client: Client, configuration_id: str, options: RunOptions, concurrency: int
    ) -> None:
        self._client = client
        self._configuration_id = configuration_id
        self._options = options
        self._concurrency = concurrency

    def start(self, file: Path, on_upload: Callable[[int, int], None] | None = None) -> FileRun:
        """Upload a file and start its run."""
        document = self._client.documents.upload(file, on_progress=on_upload)
        options = self._options
        run = self._client.runs.start(
            document,
            configuration=self._configuration_id,
            version=options.version,
            priority=options.priority,
            network_access=options.network_access,
            fail_on=options.fail_on,
            outputs=options.outputs,
        )
        return FileRun(file, f"{file.stem}.normalized", run)

    def start_all(self, files: Sequence[Path]) -> Iterator[FileRun]:
        """Upload and start them, and yield each as soon as that is done or has failed."""
        names = output_names(files)
        for file, made in each(files, self.start, self._concurrency):
            if isinstance(made, Failed):
                yield FileRun(file, names[file], error=made.error)
            else:
                made.output_name = names[file]
                yield made

    def finish_all(self, started: Sequence[FileRun], out: Path) -> Iterator[FileRun]:
        """Wait for runs and save what they wrote; yield each as soon as that is done."""

        def finish(one: FileRun) -> None:
            if one.run is not None:
                one.run = one.run.wait()
                self.save(one, out, one.output_name)

        for one, ended in each(started, finish, WAITING_AT_ONCE):
            if isinstance(ended, Failed):
                one.error = ended.error
            yield one

    def save(self, one: FileRun, out: Path, name: str) -> None:
        """Save what a run wrote: its rows, in each format that it has."""
        if one.run is None or one.run.evaluation is None:
            return
        out.mkdir(parents=True, exist_ok=True)
        for artifact in one.run.artifacts():
            if artifact.name.startswith(ROW_FILES):
                saved = artifact.download(out / f"{name}{Path(artifact.name).suffix}")
                one.output = one.output or saved


def output_names(files: Sequence[Path]) -> dict[Path, str]:
    """Name the output of each file; files of one name in several folders are numbered."""
    taken: set[str] = set()
    names = {}
    for file in files:
        name, number = f"{file.stem}.normalized", 1
        while name in taken:
            number += 1
            name = f"{file.stem}-{number}.normalized"
        taken.add(name)
        names[file] = name
    return names
