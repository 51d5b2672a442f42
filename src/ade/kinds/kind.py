"""What a job type answers for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ade.domain.agent_pool import AgentPool
from ade.domain.job import LOCAL_POOL
from ade.domain.outcome import Artifact, Outcome, OutputFile

FORMATS_MAX = 20
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Format = Annotated[str, StringConstraints(min_length=1, max_length=40)]


class OutputSpec(BaseModel):
    """Say which of a job's outputs are wanted, and in which formats."""

    model_config = ConfigDict(extra="forbid")

    return_stdout: bool = Field(default=True, description="whether the result holds it")
    return_stderr: bool = Field(default=True, description="whether the result holds it")
    formats: list[Format] = Field(
        default=[], max_length=FORMATS_MAX, description="what is wanted, of what the kind can make"
    )


@dataclass(frozen=True, slots=True)
class JobInputs:
    """Hold what one attempt is to do: checked, with defaults filled in, in plain values."""

    workspace_id: str
    job_id: str
    attempt: int
    inputs: dict[str, Any]
    output_spec: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstalledPackages:
    """Name an environment of installed packages, and list them; None is ADE's own environment."""

    environment: str | None
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Say what a job's entry is called with, and what it finds around it.

    `files` are put into the job's folder under these names, `outputs` are taken out of it and kept
    in the job's own folder under others. `environment` names installed packages; None is ADE's own.
    `preload` are modules that this job in particular should find imported. `packages` are the exact
    versions that were installed for it; the result names them.
    """

    inputs: dict[str, Any]
    files: Mapping[str, Path] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    environment: str | None = None
    preload: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionPackage:
    """Name a version of a configuration, and say where the bytes of its files are."""

    configuration_id: str
    sequence: int
    digest: str
    files: Mapping[str, Path]

    def below(self, folder: str) -> dict[str, Path]:
        """Return where the bytes of its files are, by their paths below a folder of the job."""
        return {f"{folder}/{path}": place for path, place in self.files.items()}


class JobIO(Protocol):
    """Find what a job works on, and keep what it leaves."""

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        """Return where a document's bytes are, and its name."""
        ...

    async def package(self, workspace_id: str, version_id: str) -> VersionPackage:
        """Return a version of a configuration, and where the bytes of its files are."""
        ...

    async def blob(self, workspace_id: str, digest: str) -> Path:
        """Return where the bytes with a digest are: of a document or an artifact."""
        ...

    async def keep(self, workspace_id: str, files: Sequence[OutputFile]) -> tuple[Artifact, ...]:
        """Keep files by their digests, for a result that will name them."""
        ...

    async def packages(self, requirements: Sequence[str]) -> InstalledPackages:
        """Install what is required, unless it is there, and return where."""
        ...

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        """Return which installed packages a build made; None is ADE's own environment."""
        ...

    async def made_environment(self, environment: str) -> None:
        """Share the packages that this job installed with the other hosts."""
        ...


class Kind:
    """Describe one job type; a subclass with other values is a new one.

    `inputs` and `output_spec` are the models that these parts of a submission must fit; `entry` is
    the module whose `main(inputs, channel)` runs in the child, `preload` what is imported once for
    all of its children; `env_version` what a result depends on besides its inputs. `trusted` is for
    ADE's own code only: it needs no sandbox.
    """

    name: ClassVar[str]
    inputs: ClassVar[type[BaseModel]]
    output_spec: ClassVar[type[BaseModel]] = OutputSpec
    entry: ClassVar[str]
    env_version: ClassVar[str]
    preload: ClassVar[tuple[str, ...]] = ()
    language: ClassVar[str | None] = None  # what its code is written in, if it takes any
    pool: ClassVar[str] = LOCAL_POOL
    retries: ClassVar[int] = 2
    trusted: ClassVar[bool] = False
    # Whether equal work is answered with an earlier result; not if it is wanted for its effects.
    dedupes: ClassVar[bool] = True
    # Whether its time has the limits of containers instead of those of other jobs.
    long_running: ClassVar[bool] = False
    # Whether it may be submitted by name; a run is made by way of its configuration instead.
    direct: ClassVar[bool] = True

    def check(self, inputs: dict[str, Any], output_spec: dict[str, Any]) -> None:
        """Raise InvalidRequest if inputs and output_spec, each right by itself, do not fit."""

    def agent_pool(self, inputs: dict[str, Any]) -> AgentPool | None:
        """Return what a job asks of the agent that runs it; None if no agent does."""
        return None

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Gather what an attempt needs; what is missing is an error of the job."""
        return Prepared(job.inputs)

    def collect(self, job: JobInputs, outcome: Outcome) -> Outcome:
        """Return the outcome of an attempt that ran, with what the kind knows of its result."""
        return outcome
