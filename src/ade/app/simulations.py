"""`POST /run-simulation`: turn a configuration of an experiment into a container job.

A configuration that comes with the request is written below `configs/` of the shared folder before
the job is submitted, because an agent may take the job at once. If no job comes of it, the file is
removed again.
"""

import asyncio
import re
import secrets
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ade.app.experiment_config import ExperimentNames, names_of, read_names, write_config
from ade.app.job_requests import Caller, JobRequests
from ade.app.request_schemas import JobRequest, LimitsRequest
from ade.domain.errors import Conflict, InvalidRequest, NotFound, PayloadTooLarge
from ade.kinds.container import JOB_ID_MARK, KIND
from ade.settings import Settings
from ade.stages.submit.model import Submission
from ade.storage.shared_folder import CONFIGS, SharedFolder, config_parts

# Larger ones are put below `configs/` and named by `config_path`.
INLINE_CONFIG_BYTES_MAX = 256 * 1024
NAME_CHARS_MAX = 200
# Where containers find the shared folder.
IN_CONTAINER = "/data"
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_OWN_FIELDS = frozenset(
    {"config", "config_path", "save_as", "target_host", "job_name", "priority", "limits"}
)


class SimulationRequest(BaseModel):
    """What to run: a configuration, or the path of one, and how its container differs."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any] | str | None = Field(
        default=None, description="the configuration: an object, or YAML as text"
    )
    config_path: str | None = Field(default=None, description="path of a file below `configs/`")
    save_as: str | None = Field(default=None, description="file below `configs/` for `config`")
    target_host: str | None = Field(default=None, description="agent that should run it")
    require_host: bool = Field(default=False, description="no other agent may run it")
    job_name: Annotated[str, StringConstraints(min_length=1, max_length=NAME_CHARS_MAX)] | None = (
        None
    )
    priority: Literal["high", "normal", "low"] | None = None
    limits: LimitsRequest | None = None
    # What the container differs in from the defaults; the kind checks it.
    image: str | None = None
    command: list[str] | str | None = None
    container_name: str | None = None
    volumes: list[dict[str, Any]] | None = None
    env: dict[str, str] | None = None
    labels: list[str] | None = None
    resources: dict[str, Any] | None = None
    network: str | None = None
    pull: str | None = None
    stop_grace_seconds: float | None = None
    user: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True)
class Simulation:
    """Hold a job that is to be submitted, and the file that was made for it."""

    submission: Submission
    made_file: str | None = None


@dataclass(frozen=True, slots=True)
class _Config:
    path: str
    names: ExperimentNames
    # What is to be written; None if the file is there.
    content: bytes | None = None


class Simulations:
    """Turn requests for simulations into submissions."""

    def __init__(self, settings: Settings, jobs: JobRequests, folder: SharedFolder) -> None:
        self._image = settings.simulation_image
        self._jobs = jobs
        self._folder = folder

    async def prepare(self, request: SimulationRequest, caller: Caller) -> Simulation:
        """Make the submission and write the configuration, if it came along; or raise why not."""
        config = await asyncio.to_thread(self._config, request)
        submission = self._submission(request, config, caller)
        is_new = config.content is not None and await asyncio.to_thread(self._write, config)
        return Simulation(submission, config.path if is_new else None)

    async def discard(self, made_file: str) -> None:
        """Remove a configuration from which no job came."""
        await asyncio.to_thread(self._folder.remove_config, made_file)

    def _config(self, request: SimulationRequest) -> _Config:
        if (request.config is None) == (request.config_path is None):
            raise InvalidRequest("Give either config or config_path.")
        if request.config_path is not None:
            if request.save_as is not None:
                raise InvalidRequest("save_as: it names a file for config; there is none.")
            return self._known_config(request.config_path)
        config = request.config
        assert config is not None
        text = config if isinstance(config, str) else write_config(config)
        content = text.encode("utf-8", "replace")
        if len(content) > INLINE_CONFIG_BYTES_MAX:
            raise PayloadTooLarge(
                f"config: it has more than {INLINE_CONFIG_BYTES_MAX // 1024} KiB. Put it below"
                f" {CONFIGS}/ and give its config_path."
            )
        names = read_names(config) if isinstance(config, str) else names_of(config)
        path = request.save_as or f"{_slug(_title(names) or 'config')}-{secrets.token_hex(4)}.yaml"
        parts = config_parts(path)
        path = "/".join((CONFIGS, *parts))
        return _Config(path, names, content)

    def _known_config(self, path: str) -> _Config:
        path = "/".join((CONFIGS, *config_parts(path)))
        content = self._folder.read_config(path)
        if content is None:
            raise NotFound(f"config_path: there is no file {path} in the shared folder.")
        if len(content) > INLINE_CONFIG_BYTES_MAX:
            return _Config(path, ExperimentNames())
        try:
            return _Config(path, read_names(content.decode("utf-8", "replace")))
        except InvalidRequest:  # what a file means is for the container to know
            return _Config(path, ExperimentNames())

    def _write(self, config: _Config) -> bool:
        """Write a configuration, and tell whether it is new; a job may still need another one."""
        assert config.content is not None
        if self._folder.create_config(config.path, config.content):
            return True
        if self._folder.read_config(config.path) != config.content:
            raise Conflict(
                f"save_as: {config.path} exists with other content, which jobs may still need."
                " Choose another name, or remove the file."
            )
        return False

    def _submission(
        self, request: SimulationRequest, config: _Config, caller: Caller
    ) -> Submission:
        given = request.model_dump(exclude_none=True, exclude=set(_OWN_FIELDS))
        volume = {
            "host": str(self._folder.root.absolute()),
            "container": IN_CONTAINER,
            "mode": "rw",
        }
        if request.command is None and JOB_ID_MARK in config.path:
            raise InvalidRequest(
                f"The path {config.path!r} holds {JOB_ID_MARK}, for which a command gets the id of"
                " its job. Choose another name, or give a command."
            )
        place = shlex.quote(f"{IN_CONTAINER}/{config.path}")
        inputs: dict[str, Any] = {
            "image": self._image,
            "command": f"--config {place} --job_id {JOB_ID_MARK}",
            "volumes": [volume],
            "config_path": config.path,
            "experiment_name": config.names.experiment_name,
            "run_name": config.names.run_name,
            "preferred_host": request.target_host,
            **given,
        }
        body: JobRequest = {"job_type": KIND, "inputs": inputs, "dedupe": False}
        if request.priority is not None:
            body["priority"] = request.priority
        if request.limits is not None:
            body["limits"] = request.limits
        job_name = request.job_name or _title(config.names) or PurePosixPath(config.path).stem
        return self._jobs.submission(body, caller)._replace(job_name=job_name[:NAME_CHARS_MAX])


def _title(names: ExperimentNames) -> str | None:
    return "-".join(filter(None, (names.experiment_name, names.run_name))) or None


def _slug(text: str) -> str:
    return _NOT_OF_NAMES.sub("-", text).strip("-.")[:80] or "config"
