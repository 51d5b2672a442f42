# Written from ade/client/aio/cells.py by scripts/write_sync_client.py; edit that instead.
"""Cells: run a piece of Python in the sandbox of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ade.client.answers.jobs import ResultAnswer
from ade.client.core.cell_inputs import FrameInput, cell_inputs
from ade.client.frames import frame_bytes, library_of
from ade.client.sync.artifacts import Artifact
from ade.client.sync.documents import Documents
from ade.client.sync.jobs import Jobs

CELL = "object_execute"
FRAME_FILE = "result.parquet"


@dataclass(frozen=True)
class CellResult:
    """What a cell left: its value, what it printed, and its files."""

    job_id: str
    value: Any
    stdout: str
    stderr: str
    artifacts: tuple[Artifact, ...]
    envelope: ResultAnswer = field(repr=False)

    def frame(self, library: str | None = None) -> Any:
        """Read the dataframe that the cell returned, of `polars` or `pandas`."""
        for one in self.artifacts:
            if one.name == FRAME_FILE:
                return one.frame(library)
        raise KeyError(f"the value of cell {self.job_id} was not a dataframe")


@dataclass(frozen=True)
class CellOptions:
    """How cells are run; what is not given is the server's default."""

    timeout_seconds: float | None = None
    limits: Mapping[str, int] | None = None
    requirements: Sequence[str] = ()
    datasets: Mapping[str, str] | None = None
    entrypoint: str | None = None
    output_spec: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] | None = None
    priority: str | None = None
    dedupe: bool | None = None


class Cells:
    """Run cells, with options that `options` changes."""

    def __init__(
        self, jobs: Jobs, documents: Documents, options: CellOptions | None = None
    ) -> None:
        self._jobs = jobs
        self._documents = documents
        self._options = options or CellOptions()

    def options(self, **changed: Any) -> Cells:
        """Return the same with other options: timeout_seconds, limits, requirements, dedupe, ...

        `datasets` are digests of documents or artifacts, by the name that the cell uses.
        """
        return Cells(self._jobs, self._documents, replace(self._options, **changed))

    def run(self, source: str, /, **parameters: Any) -> CellResult:
        """Run a cell, wait for its end and return what it left; raise JobEndedBadly if it fails.

        Parameters are variables of the cell, and arguments of its `main` if it has one. A dataframe
        of polars or pandas is uploaded and becomes a variable of the cell, not an argument.
        """
        options = self._options
        frames = [
            self._uploaded(name, value) for name, value in parameters.items() if library_of(value)
        ]
        held = {frame.variable for frame in frames}
        inputs = cell_inputs(
            source,
            {name: value for name, value in parameters.items() if name not in held},
            frames,
            options.datasets,
            options.requirements,
            options.entrypoint,
        )
        result = self._jobs.run(
            CELL,
            inputs,
            timeout_seconds=options.timeout_seconds,
            limits=options.limits,
            output_spec=options.output_spec,
            environment=options.environment,
            priority=options.priority,
            dedupe=options.dedupe,
        )
        return self._result(result)

    def _uploaded(self, name: str, frame: Any) -> FrameInput:
        library = library_of(frame)
        made = self._documents.upload(frame_bytes(frame), name=f"{name}.parquet")
        return FrameInput(name, made.digest, str(library))

    def _result(self, result: ResultAnswer) -> CellResult:
        left = self._jobs.artifacts_in(result)
        return CellResult(result.job_id, result.value, result.stdout, result.stderr, left, result)
