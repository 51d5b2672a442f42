"""`container`: run an image on a host with a container engine."""

import re
import shlex
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from ade.domain.agent_pool import AgentPool
from ade.domain.job import AGENT_POOL
from ade.domain.units import MIB
from ade.kinds.kind import JobInputs, JobIO, Kind, Prepared

KIND = "container"
COMMAND_CHARS_MAX = 32_768
ARGUMENTS_MAX = 1000
VOLUMES_MAX = 32
ENV_MAX = 256
ENV_VALUE_CHARS_MAX = 32_768
LABELS_MAX = 32
PATH_CHARS_MAX = 1024
MEMORY_BYTES_MIN = 6 * MIB  # what Docker requires at least
STOP_GRACE_SECONDS_MAX = 600
NAME_CHARS_MAX = 200
# What a command may say in place of the id of its job, which is not known before it is accepted.
JOB_ID_MARK = "{job_id}"

_STRICT = ConfigDict(extra="forbid")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,255}")


def _absolute(text: str) -> str:
    """Accept an absolute path without `..` and without what separates the parts of a mount."""
    if not text.startswith("/") or ".." in PurePosixPath(text).parts:
        raise ValueError("give an absolute path without '..'")
    if any(mark in text for mark in ":,\0\n"):
        raise ValueError("a path may not contain ':', ',', a line break or NUL")
    return text


def _relative(text: str) -> str:
    """Accept a path below a folder."""
    if text.startswith("/") or ".." in PurePosixPath(text).parts or "\0" in text:
        raise ValueError("give a relative path without '..'")
    return text


AbsolutePath = Annotated[
    str, StringConstraints(min_length=1, max_length=PATH_CHARS_MAX), AfterValidator(_absolute)
]
RelativePath = Annotated[
    str, StringConstraints(min_length=1, max_length=PATH_CHARS_MAX), AfterValidator(_relative)
]
HostName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
HostLabel = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./=-]{0,99}$")]
ExperimentName = Annotated[str, StringConstraints(max_length=NAME_CHARS_MAX)]
Argument = Annotated[str, StringConstraints(max_length=COMMAND_CHARS_MAX)]


class Volume(BaseModel):
    """A folder or file of the host that the container sees."""

    model_config = _STRICT

    host: AbsolutePath = Field(description="path on the host, below a folder that its agent allows")
    container: AbsolutePath = Field(description="path in the container")
    mode: Literal["ro", "rw"] = "ro"

    @model_validator(mode="after")
    def _not_the_root(self) -> Self:
        if PurePosixPath(self.container) == PurePosixPath("/"):
            raise ValueError("a volume cannot replace the root of the container")
        return self


class Resources(BaseModel):
    """What the container may use; what is not given is the agent's default."""

    model_config = _STRICT

    cpus: float | None = Field(default=None, ge=0.01, le=4096, description="CPUs, in parts of one")
    memory_bytes: int | None = Field(default=None, ge=MEMORY_BYTES_MIN, le=2**50)
    gpus: int = Field(default=0, ge=0, le=64, description="GPUs; refused where there are fewer")
    pids: int | None = Field(default=None, ge=1, le=1_000_000, description="processes and threads")


class ContainerInputs(BaseModel):
    """The image to run, and what it finds around it."""

    model_config = _STRICT

    image: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}$")
    command: Annotated[list[Argument], Field(max_length=ARGUMENTS_MAX)] | Argument = Field(
        default=[],
        description="arguments as a list, or one string that is split as a shell would;"
        " `{job_id}` in it stands for the id of the job",
    )
    container_name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")
    volumes: list[Volume] = Field(default=[], max_length=VOLUMES_MAX)
    env: dict[str, str] = Field(default={}, max_length=ENV_MAX)
    config_path: RelativePath | None = Field(
        default=None, description="file below the shared folder that must exist before the start"
    )
    preferred_host: HostName | None = Field(default=None, description="agent that should run it")
    require_host: bool = Field(default=False, description="no other agent may run it")
    labels: list[HostLabel] = Field(
        default=[], max_length=LABELS_MAX, description="labels that the agent must have"
    )
    resources: Resources = Resources()
    network: Literal["none", "bridge"] = "none"
    pull: Literal["missing", "always", "never"] = Field(
        default="missing", description="when the image is fetched from its registry"
    )
    stop_grace_seconds: float = Field(
        default=10, ge=0, le=STOP_GRACE_SECONDS_MAX, description="time from SIGTERM to SIGKILL"
    )
    user: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$",
        description="user[:group] instead of that of the image",
    )
    read_only: bool = Field(default=True, description="whether only volumes and /tmp are writable")
    experiment_name: ExperimentName | None = Field(
        default=None, description="what its configuration calls the experiment; for people"
    )
    run_name: ExperimentName | None = Field(
        default=None, description="what its configuration calls the run; for people"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.require_host and self.preferred_host is None:
            raise ValueError("require_host needs a preferred_host")
        places = [PurePosixPath(volume.container) for volume in self.volumes]
        if len(set(places)) < len(places):
            raise ValueError("two volumes have the same path in the container")
        for name, value in self.env.items():
            if not _ENV_NAME.fullmatch(name):
                raise ValueError("env: a name has letters, digits, '_', '.' and '-' only")
            if len(value) > ENV_VALUE_CHARS_MAX or "\0" in value:
                raise ValueError(
                    f"env: a value has at most {ENV_VALUE_CHARS_MAX} characters, none of them NUL"
                )
        self.arguments()
        return self

    def arguments(self) -> list[str]:
        """Return the command as a list."""
        if not isinstance(self.command, str):
            return list(self.command)
        try:
            return shlex.split(self.command)
        except ValueError as error:
            raise ValueError(f"command: it cannot be split ({error})") from None


class ContainerJob(Kind):
    """Run an image; a second start could repeat its effects, so there is no retry by default."""

    name = KIND
    inputs = ContainerInputs
    entry = KIND  # no module of the engine: the container runner starts the image
    env_version = "container@1"
    pool = AGENT_POOL
    retries = 0
    dedupes = False
    long_running = True

    def agent_pool(self, inputs: dict[str, Any]) -> AgentPool:
        """Return the pool of the host and the labels that a job asks for."""
        return AgentPool.of(
            inputs["preferred_host"], inputs["labels"], require_host=inputs["require_host"]
        )

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Name the attempt, so that its container can be found again."""
        owner: dict[str, Any] = {
            "workspace_id": job.workspace_id,
            "job_id": job.job_id,
            "attempt": job.attempt,
        }
        command = command_of(job.inputs["command"], job.job_id)
        return Prepared({**job.inputs, "command": command, "owner": owner})


def command_of(command: str | list[str], job_id: str) -> str | list[str]:
    """Return the command of a job, with the job's id where it is to be."""
    if isinstance(command, str):
        return command.replace(JOB_ID_MARK, job_id)
    return [argument.replace(JOB_ID_MARK, job_id) for argument in command]
